# SPDX-License-Identifier: Apache-2.0
"""The custom operators of TensorFlow Lite Micro's signal library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ferrule.errors import ModelError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.encoder import Options, OptionValue
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.row import Row
from ferrule.formats.tflite.tensors import TYPE_NUMBERS
from ferrule.graph import Descriptor, Layer, LayerType, TensorInfo
from ferrule.operators.filter_bank import (
    SignalFilterBankDescriptor,
    SignalFilterBankLogDescriptor,
    SignalFilterBankSpectralSubtractionDescriptor,
    SignalFilterBankSquareRootDescriptor,
    SignalPcanDescriptor,
)
from ferrule.operators.signal_frames import (
    SignalDelayDescriptor,
    SignalFramerDescriptor,
    SignalOverlapAddDescriptor,
    SignalStackerDescriptor,
    SignalWindowDescriptor,
)
from ferrule.operators.spectrum import (
    SignalEnergyDescriptor,
    SignalFftAutoScaleDescriptor,
    SignalIrfftDescriptor,
    SignalRfftDescriptor,
)

_COUNT = "num_channels"
_TABLES = ("weights", "unweights", "frequency_starts", "weight_starts", "widths")
"""The parameter tensors of the filter bank, from position 1."""


def _kinds(descriptor: type[Descriptor]) -> dict[str, type[int | bool]]:
    return {field.name: bool if "bool" in str(field.type) else int for field in fields(descriptor)}


def _type_number(info: TensorInfo) -> int:
    return TYPE_NUMBERS[info.dtype]


def _elements(info: TensorInfo) -> int:
    return info.elements


def _read_filter_bank(node: Node) -> Descriptor:
    count = node.custom_values(num_channels=int)[_COUNT]
    tables = {}
    for position, name in enumerate(_TABLES, 1):
        table = node.constant(position)
        if table.dtype != np.int16 or table.ndim != 1:
            raise ModelError(f"its {name} are {table.dtype}{list(table.shape)}, expected one axis of int16")
        tables[name] = tuple(int(value) for value in table)
    if len(tables["widths"]) != count + 1:
        raise ModelError(f"its widths have {len(tables['widths'])} elements, expected num_channels + 1, {count + 1}")
    return SignalFilterBankDescriptor(**tables)


def _write_filter_bank(emitter: Emitter, layer: Layer, descriptor: SignalFilterBankDescriptor) -> None:
    tables = [emitter.parameter(layer, name, np.array(getattr(descriptor, name), np.int16)) for name in _TABLES]
    values: dict[str, OptionValue] = {_COUNT: len(descriptor.widths) - 1}
    emitter.emit(layer, Options(custom="SignalFilterBank", fields=values), inputs=[layer.inputs[0], *tables])


def _row(
    code: str,
    descriptor: type[Descriptor],
    *,
    inputs: int = 1,
    outputs: int = 1,
    **given: Callable[[TensorInfo], int],
) -> Row:
    """Return the row of an operator whose options are the fields of its descriptor, and those that `given` computes.

    The latter are functions of the first input.
    """
    kinds = _kinds(descriptor)

    def read(node: Node) -> Descriptor:
        values = node.custom_values(**kinds, **dict.fromkeys(given, int))
        for name, compute in given.items():
            found, wanted = values.pop(name), compute(node.input(0))
            if found != wanted:
                raise ModelError(f"its option '{name}' is {found}, expected {wanted} for input '{node.input(0).name}'")
        return descriptor(**values)

    def write(emitter: Emitter, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
        values: dict[str, OptionValue] = {name: getattr(descriptor, name) for name in kinds}
        values |= {name: compute(emitter.input_info(layer, 0)) for name, compute in given.items()}
        emitter.emit(layer, Options(custom=code, fields=values))

    return Row(
        read=read,
        write=write,
        custom=code,
        data_inputs=range(inputs),
        inputs=range(inputs, inputs + 1),
        outputs=range(outputs, outputs + 1),
    )


ROWS: Mapping[LayerType, Row] = {
    LayerType.SIGNAL_DELAY: _row("SignalDelay", SignalDelayDescriptor),
    LayerType.SIGNAL_ENERGY: _row("SignalEnergy", SignalEnergyDescriptor),
    LayerType.SIGNAL_FFT_AUTO_SCALE: _row("SignalFftAutoScale", SignalFftAutoScaleDescriptor, outputs=2),
    LayerType.SIGNAL_FILTER_BANK: Row(
        read=_read_filter_bank,
        write=_write_filter_bank,
        custom="SignalFilterBank",
        inputs=range(6, 7),
    ),
    LayerType.SIGNAL_FILTER_BANK_LOG: _row("SignalFilterBankLog", SignalFilterBankLogDescriptor),
    LayerType.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION: _row(
        "SignalFilterBankSpectralSubtraction",
        SignalFilterBankSpectralSubtractionDescriptor,
        outputs=2,
        num_channels=_elements,
    ),
    LayerType.SIGNAL_FILTER_BANK_SQUARE_ROOT: _row(
        "SignalFilterBankSquareRoot", SignalFilterBankSquareRootDescriptor, inputs=2
    ),
    LayerType.SIGNAL_FRAMER: _row("SignalFramer", SignalFramerDescriptor, outputs=2),
    LayerType.SIGNAL_IRFFT: _row("SignalIrfft", SignalIrfftDescriptor, T=_type_number),
    LayerType.SIGNAL_OVERLAP_ADD: _row("SignalOverlapAdd", SignalOverlapAddDescriptor, T=_type_number),
    LayerType.SIGNAL_PCAN: _row("SignalPCAN", SignalPcanDescriptor, inputs=3),
    LayerType.SIGNAL_RFFT: _row("SignalRfft", SignalRfftDescriptor, T=_type_number),
    LayerType.SIGNAL_STACKER: _row(
        "SignalStacker",
        SignalStackerDescriptor,
        outputs=2,
        num_channels=_elements,
    ),
    LayerType.SIGNAL_WINDOW: _row("SignalWindow", SignalWindowDescriptor, inputs=2),
}
"""The rows of these operators."""
