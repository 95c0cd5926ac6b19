# SPDX-License-Identifier: Apache-2.0
"""The operators of the signal library in C: a row has the members of a kernel's parameter table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import D, KernelCall, Lowering, Member, descriptor_of, kernel_of
from ferrule.backends.firmware import LoweredOp, LoweringContext, numbers
from ferrule.dom import ArrayData
from ferrule.graph import Descriptor, LayerType
from ferrule.operators.signal.filter_bank import (
    LOG_TABLE,
    SignalFilterBankDescriptor,
    SignalFilterBankLogDescriptor,
    SignalFilterBankSpectralSubtractionDescriptor,
    SignalPcanDescriptor,
)
from ferrule.operators.signal.fixed_fft import real_twiddles, twiddles
from ferrule.operators.signal.frames import (
    SignalDelayDescriptor,
    SignalFramerDescriptor,
    SignalOverlapAddDescriptor,
    SignalStackerDescriptor,
    SignalWindowDescriptor,
)
from ferrule.operators.signal.spectrum import SignalEnergyDescriptor, SignalIrfftDescriptor, SignalRfftDescriptor


def _row(
    kind: type[D],
    fields: Callable[[LoweringContext, D], Mapping[str, Member]],
    replaced: Mapping[int, int] | None = None,
    *,
    table: str = "",
    typed: bool = False,
) -> Lowering:
    """Return the lowering to the kernel that is named after the layer's type and, if `typed`, that of its data.

    `fields` returns the members of its table, given the layer's descriptor; `replaced` is as in `KernelCall`.
    """

    def lower(context: LoweringContext) -> LoweredOp:
        name = context.layer.type.lower()
        return KernelCall(
            kernel_of(context) if typed else name,
            "ferrule/kernels/signal.h",
            fields(context, descriptor_of(context, kind)),
            table=f"{table or name}_params",
            inputs=range(len(context.layer.inputs)),
            replaced=replaced or {},
        ).lowered(context)

    return lower


def _elements(context: LoweringContext) -> int:
    return context.source.elements


def _samples(context: LoweringContext) -> int:
    return context.source.shape[-1]


def _rows(context: LoweringContext) -> int:
    return _elements(context) // _samples(context)


def _transform(
    context: LoweringContext, descriptor: SignalRfftDescriptor | SignalIrfftDescriptor, *, inverse: bool
) -> Mapping[str, Member]:
    points, dtype = descriptor.fft_length // 2, context.source.dtype.numpy
    return {
        "rows": _rows(context),
        "samples": _samples(context),
        "points": points,
        "factors": twiddles(points, dtype, inverse=inverse),
        "real_factors": real_twiddles(points, dtype, inverse=inverse),
    }


def _filter_bank(_: LoweringContext, bank: SignalFilterBankDescriptor) -> Mapping[str, Member]:
    tables = {
        "weights": bank.weights,
        "unweights": bank.unweights,
        "frequency_starts": bank.frequency_starts,
        "weight_starts": bank.weight_starts,
        "widths": bank.widths,
    }
    return {"bands": len(bank.widths), **{name: np.array(values, np.int16) for name, values in tables.items()}}


def _pair(even: int, odd: int) -> ArrayData:
    return numbers(np.array([even, odd], np.uint32))


LOWERINGS: Mapping[LayerType, Lowering] = {
    LayerType.SIGNAL_DELAY: _row(
        SignalDelayDescriptor,
        lambda context, each: {"rows": _rows(context), "samples": _samples(context), "delay": each.delay_length},
        {1: 1},
    ),
    LayerType.SIGNAL_ENERGY: _row(
        SignalEnergyDescriptor,
        lambda context, each: {
            "energies": context.output.elements,
            "start": each.start_index,
            "end": each.end_index,
        },
    ),
    LayerType.SIGNAL_FFT_AUTO_SCALE: _row(Descriptor, lambda context, _: {"samples": _elements(context)}, {0: 0}),
    LayerType.SIGNAL_FILTER_BANK: _row(SignalFilterBankDescriptor, _filter_bank),
    LayerType.SIGNAL_FILTER_BANK_LOG: _row(
        SignalFilterBankLogDescriptor,
        lambda context, each: {
            "channels": _elements(context),
            "correction_bits": each.input_correction_bits,
            "output_scale": each.output_scale,
            "table": np.array(LOG_TABLE, np.int16),
        },
    ),
    LayerType.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION: _row(
        SignalFilterBankSpectralSubtractionDescriptor,
        lambda context, each: {
            "channels": _elements(context),
            "smoothing": _pair(each.smoothing, each.alternate_smoothing),
            "one_minus_smoothing": _pair(each.one_minus_smoothing, each.alternate_one_minus_smoothing),
            "min_signal_remaining": each.min_signal_remaining,
            "smoothing_bits": each.smoothing_bits,
            "spectral_subtraction_bits": each.spectral_subtraction_bits,
            "clamping": each.clamping,
        },
        {0: 0, 1: 2},
    ),
    LayerType.SIGNAL_FILTER_BANK_SQUARE_ROOT: _row(Descriptor, lambda context, _: {"channels": _elements(context)}),
    LayerType.SIGNAL_FRAMER: _row(
        SignalFramerDescriptor,
        lambda context, each: {
            "rows": _rows(context),
            "frames": _samples(context) // each.frame_step,
            "size": each.frame_size,
            "step": each.frame_step,
            "kept": each.kept,
            "missing": each.missing,
        },
        {1: 2, 2: 3},
    ),
    LayerType.SIGNAL_IRFFT: _row(
        SignalIrfftDescriptor, partial(_transform, inverse=True), table="signal_fft", typed=True
    ),
    LayerType.SIGNAL_OVERLAP_ADD: _row(
        SignalOverlapAddDescriptor,
        lambda context, each: {
            "rows": _rows(context) // context.source.shape[-2],
            "frames": context.source.shape[-2],
            "size": _samples(context),
            "step": each.frame_step,
        },
        {1: 1},
        typed=True,
    ),
    LayerType.SIGNAL_PCAN: _row(
        SignalPcanDescriptor,
        lambda context, each: {"channels": _elements(context), "snr_shift": each.snr_shift},
        {0: 0},
    ),
    LayerType.SIGNAL_RFFT: _row(
        SignalRfftDescriptor, partial(_transform, inverse=False), table="signal_fft", typed=True
    ),
    LayerType.SIGNAL_STACKER: _row(
        SignalStackerDescriptor,
        lambda context, each: {
            "channels": _elements(context),
            "frames": each.frames,
            "left": each.stacker_left_context,
            "step": each.stacker_step,
        },
        {1: 2, 2: 3},
    ),
    LayerType.SIGNAL_WINDOW: _row(
        SignalWindowDescriptor,
        lambda context, each: {"rows": _rows(context), "samples": _samples(context), "shift": each.shift},
        {0: 0},
    ),
}
"""The lowering of each operator."""
