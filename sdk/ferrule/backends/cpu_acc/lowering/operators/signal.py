# SPDX-License-Identifier: Apache-2.0
"""The operators of the signal library in C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ferrule.backends.cpu_acc.lowering.stateful import stateful_call
from ferrule.backends.firmware import FieldValue, LoweredOp, LoweringContext, numbers
from ferrule.graph import DataType, LayerType
from ferrule.operators.filter_bank import (
    LOG_TABLE,
    SignalFilterBankDescriptor,
    SignalFilterBankLogDescriptor,
    SignalFilterBankSpectralSubtractionDescriptor,
    SignalPcanDescriptor,
)
from ferrule.operators.fixed_fft import real_twiddles, twiddles
from ferrule.operators.signal_frames import (
    SignalDelayDescriptor,
    SignalFramerDescriptor,
    SignalOverlapAddDescriptor,
    SignalStackerDescriptor,
    SignalWindowDescriptor,
)
from ferrule.operators.spectrum import SignalEnergyDescriptor, SignalIrfftDescriptor, SignalRfftDescriptor

_SUFFIXES = {DataType.INT16: "s16", DataType.INT32: "s32", DataType.FLOAT32: "f32"}


def _call(
    context: LoweringContext,
    fields: Mapping[str, FieldValue],
    *,
    suffix: str = "",
    replaced: Mapping[int, int] | None = None,
    table: str = "",
) -> LoweredOp:
    """Return the call of the layer's kernel; `replaced` maps inputs to outputs that may lie over them."""
    name = context.layer.type.lower()
    return stateful_call(
        context,
        name + suffix,
        fields,
        header="signal",
        table=f"{table or name}_params",
        inputs=range(len(context.layer.inputs)),
        states=replaced or {},
    )


def _rows(context: LoweringContext) -> int:
    return context.input(0).elements // context.input(0).shape[-1]


def _window(context: LoweringContext) -> LoweredOp:
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, SignalWindowDescriptor)
    samples = context.input(0).shape[-1]
    fields = {"rows": _rows(context), "samples": samples, "shift": descriptor.shift}
    return _call(context, fields, replaced={0: 0})


def _framer(context: LoweringContext) -> LoweredOp:
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, SignalFramerDescriptor)
    fields = {
        "rows": _rows(context),
        "frames": context.input(0).shape[-1] // descriptor.frame_step,
        "size": descriptor.frame_size,
        "step": descriptor.frame_step,
        "kept": descriptor.kept,
        "missing": descriptor.missing,
    }
    return _call(context, fields, replaced={1: 2, 2: 3})


def _delay(context: LoweringContext) -> LoweredOp:
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, SignalDelayDescriptor)
    samples = context.input(0).shape[-1]
    fields = {"rows": _rows(context), "samples": samples, "delay": descriptor.delay_length}
    return _call(context, fields, replaced={1: 1})


def _overlap_add(context: LoweringContext) -> LoweredOp:
    descriptor, data = context.layer.descriptor, context.input(0)
    assert isinstance(descriptor, SignalOverlapAddDescriptor)
    frames, size = data.shape[-2:]
    fields = {"rows": _rows(context) // frames, "frames": frames, "size": size, "step": descriptor.frame_step}
    return _call(context, fields, suffix=f"_{_SUFFIXES[data.dtype]}", replaced={1: 1})


def _stacker(context: LoweringContext) -> LoweredOp:
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, SignalStackerDescriptor)
    fields = {
        "channels": context.input(0).elements,
        "frames": descriptor.frames,
        "left": descriptor.stacker_left_context,
        "step": descriptor.stacker_step,
    }
    return _call(context, fields, replaced={1: 2, 2: 3})


def _transform(context: LoweringContext) -> LoweredOp:
    descriptor, data = context.layer.descriptor, context.input(0)
    assert isinstance(descriptor, SignalRfftDescriptor | SignalIrfftDescriptor)
    points, inverse = descriptor.fft_length // 2, isinstance(descriptor, SignalIrfftDescriptor)
    fields: dict[str, FieldValue] = {
        "rows": _rows(context),
        "samples": data.shape[-1],
        "points": points,
        "factors": context.blob("factors", twiddles(points, data.dtype.numpy, inverse=inverse)),
        "real_factors": context.blob("real_factors", real_twiddles(points, data.dtype.numpy, inverse=inverse)),
    }
    return _call(context, fields, suffix=f"_{_SUFFIXES[data.dtype]}", table="signal_fft")


def _fft_auto_scale(context: LoweringContext) -> LoweredOp:
    return _call(context, {"samples": context.input(0).elements}, replaced={0: 0})


def _energy(context: LoweringContext) -> LoweredOp:
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, SignalEnergyDescriptor)
    energies = context.operands.output.elements
    return _call(context, {"energies": energies, "start": descriptor.start_index, "end": descriptor.end_index})


def _filter_bank(context: LoweringContext) -> LoweredOp:
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, SignalFilterBankDescriptor)

    def table(name: str, values: Sequence[int]) -> FieldValue:
        return context.blob(name, np.array(values, np.int16))

    fields: dict[str, FieldValue] = {
        "bands": len(descriptor.widths),
        "weights": table("weights", descriptor.weights),
        "unweights": table("unweights", descriptor.unweights),
        "frequency_starts": table("frequency_starts", descriptor.frequency_starts),
        "weight_starts": table("weight_starts", descriptor.weight_starts),
        "widths": table("widths", descriptor.widths),
    }
    return _call(context, fields)


def _square_root(context: LoweringContext) -> LoweredOp:
    return _call(context, {"channels": context.input(0).elements})


def _subtraction(context: LoweringContext) -> LoweredOp:
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, SignalFilterBankSpectralSubtractionDescriptor)

    def pair(even: int, odd: int) -> FieldValue:
        return numbers(np.array([even, odd], np.uint32))

    fields: dict[str, FieldValue] = {
        "channels": context.input(0).elements,
        "smoothing": pair(descriptor.smoothing, descriptor.alternate_smoothing),
        "one_minus_smoothing": pair(descriptor.one_minus_smoothing, descriptor.alternate_one_minus_smoothing),
        "min_signal_remaining": descriptor.min_signal_remaining,
        "smoothing_bits": descriptor.smoothing_bits,
        "spectral_subtraction_bits": descriptor.spectral_subtraction_bits,
        "clamping": descriptor.clamping,
    }
    return _call(context, fields, replaced={0: 0, 1: 2})


def _pcan(context: LoweringContext) -> LoweredOp:
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, SignalPcanDescriptor)
    fields = {"channels": context.input(0).elements, "snr_shift": descriptor.snr_shift}
    return _call(context, fields, replaced={0: 0})


def _log(context: LoweringContext) -> LoweredOp:
    descriptor = context.layer.descriptor
    assert isinstance(descriptor, SignalFilterBankLogDescriptor)
    fields: dict[str, FieldValue] = {
        "channels": context.input(0).elements,
        "correction_bits": descriptor.input_correction_bits,
        "output_scale": descriptor.output_scale,
        "table": context.blob("table", np.array(LOG_TABLE, np.int16)),
    }
    return _call(context, fields)


LOWERINGS: Mapping[LayerType, Callable[[LoweringContext], LoweredOp]] = {
    LayerType.SIGNAL_DELAY: _delay,
    LayerType.SIGNAL_ENERGY: _energy,
    LayerType.SIGNAL_FFT_AUTO_SCALE: _fft_auto_scale,
    LayerType.SIGNAL_FILTER_BANK: _filter_bank,
    LayerType.SIGNAL_FILTER_BANK_LOG: _log,
    LayerType.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION: _subtraction,
    LayerType.SIGNAL_FILTER_BANK_SQUARE_ROOT: _square_root,
    LayerType.SIGNAL_FRAMER: _framer,
    LayerType.SIGNAL_IRFFT: _transform,
    LayerType.SIGNAL_OVERLAP_ADD: _overlap_add,
    LayerType.SIGNAL_PCAN: _pcan,
    LayerType.SIGNAL_RFFT: _transform,
    LayerType.SIGNAL_STACKER: _stacker,
    LayerType.SIGNAL_WINDOW: _window,
}
"""The lowering of each operator."""
