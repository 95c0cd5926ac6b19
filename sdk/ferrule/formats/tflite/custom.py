# SPDX-License-Identifier: Apache-2.0
"""Rows of custom operators: TensorFlow Lite Micro's signal library, CIRCULAR_BUFFER, DETECTION_POSTPROCESS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, cast

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.flexbuffer import FlexValue
from ferrule.formats.tflite.node import Node, finite
from ferrule.formats.tflite.row import FIELDS, Given, Row
from ferrule.formats.tflite.tensors import TYPE_NUMBERS
from ferrule.graph import Descriptor, Layer, LayerType, TensorInfo
from ferrule.graph.real_values import overflowing_floats
from ferrule.operators.detection import DetectionPostprocessDescriptor
from ferrule.operators.recurrent.circular_buffer import CircularBufferDescriptor
from ferrule.operators.signal.filter_bank import SignalFilterBankDescriptor
from ferrule.operators.table import OPERATORS as KERNELS

_COUNT = "num_channels"
_TABLES = ("weights", "unweights", "frequency_starts", "weight_starts", "widths")
"""The parameter tensors of the filter bank, from position 1."""


def _read_filter_bank(node: Node) -> Descriptor:
    count = node.custom_values(num_channels=int)[_COUNT]
    tables = {}
    for position, name in enumerate(_TABLES, 1):
        table = node.constant(position)
        if table.dtype != np.int16 or table.ndim != 1:
            raise ModelError(f"its {name} are {table.dtype}{list(table.shape)}, expected one axis of int16")
        tables[name] = tuple(table.tolist())
    if len(tables["widths"]) != count + 1:
        raise ModelError(f"its widths have {len(tables['widths'])} elements, expected num_channels + 1, {count + 1}")
    return SignalFilterBankDescriptor(**tables)


def _filter_bank_sources(emitter: Emitter, layer: Layer, descriptor: SignalFilterBankDescriptor) -> list[str | None]:
    tables = [emitter.parameter(layer, name, np.array(getattr(descriptor, name), np.int16)) for name in _TABLES]
    return [layer.inputs[0], *tables]


def _channels(_: Emitter, layer: Layer) -> int:
    return len(cast(SignalFilterBankDescriptor, layer.descriptor).widths) - 1


def _signal(
    type_: LayerType, code: str, inputs: int, outputs: int, given: Mapping[str, Callable[[TensorInfo], int]]
) -> Row:
    """Return the row of an operator whose options are the fields of its descriptor, and those that `given` computes.

    The latter are functions of the first input.
    """
    descriptor = KERNELS[type_].descriptor
    kinds: dict[str, type[FlexValue]] = {
        field.name: bool if "bool" in str(field.type) else int for field in fields(descriptor)
    }

    def read(node: Node) -> Descriptor:
        values = node.custom_values(**kinds, **dict.fromkeys(given, int))
        for name, compute in given.items():
            found, wanted = values.pop(name), compute(node.source)
            if found != wanted:
                raise ModelError(f"its option '{name}' is {found}, expected {wanted} for input '{node.source.name}'")
        return descriptor(**values)

    def written(compute: Callable[[TensorInfo], int]) -> Given:
        return lambda emitter, layer: compute(emitter.input_info(layer, 0))

    return Row(
        options=[*kinds, *((name, written(compute)) for name, compute in given.items())],
        data_inputs=range(inputs),
        outputs=range(outputs, outputs + 1),
        reader=read,
        custom=code,
    )


_CYCLES = "cycles_max"
_LAST_SLOTS = frozenset({5, 13, 25})
"""Without the option, TensorFlow Lite Micro takes a period of 1 run for these numbers of slots, and of 2 for others."""
_AMBIGUOUS = (2, 96)
"""The width and depth for which it takes the number of such operators in all models into account, too."""


def _read_circular_buffer(node: Node) -> Descriptor:
    shape = node.output().shape
    if len(shape) != 4:
        raise ModelError(f"its output has shape {list(shape)}, expected 4 axes")
    cycles = 0
    if node.custom_options():
        cycles = node.custom_values(**{_CYCLES: int})[_CYCLES]
    if cycles <= 0:
        if shape[1] not in _LAST_SLOTS and shape[2:] == _AMBIGUOUS:
            raise UnsupportedError(
                f"it has no option '{_CYCLES}', and the period that TensorFlow Lite Micro takes for frames of "
                f"{list(_AMBIGUOUS)} depends on other models",
                hint=f"set {_CYCLES} to the number of runs of a period",
            )
        cycles = 1 if shape[1] in _LAST_SLOTS else 2
    return CircularBufferDescriptor(slots=shape[1], cycles=cycles)


_DETECTION_FIELDS = fields(DetectionPostprocessDescriptor)
_CLASSES_OF_A_DETECTION = "max_classes_per_detection"
_NUMBERS: Mapping[str, Callable[[float, str], Any]] = {
    "int": lambda value, _: int(value),
    "bool": lambda value, _: bool(value),
    "float": lambda value, key: finite(float(np.float32(value)), key),
}
"""How attributes of a type are read, given their keys."""


def _read_detection(node: Node) -> Descriptor:
    """Read the options by key; other keys have no meaning for an interpreter, either."""
    options = node.custom_options()
    keys = {each: FIELDS.get(each.name, each.name) for each in _DETECTION_FIELDS}
    required = [key for each, key in keys.items() if each.default is MISSING]
    missing = [key for key in (*required, _CLASSES_OF_A_DETECTION) if key not in options]
    if missing:
        raise ModelError(f"its custom options have no '{missing[0]}'")
    if _number(options, _CLASSES_OF_A_DETECTION) != 1:
        raise ModelError(
            f"its option '{_CLASSES_OF_A_DETECTION}' is {options[_CLASSES_OF_A_DETECTION]}, expected 1: with more, the "
            "reference kernels write outside of their outputs"
        )
    with overflowing_floats():
        values = {
            each.name: _NUMBERS[str(each.type)](_number(options, key), key)
            for each, key in keys.items()
            if key in options
        }
    return DetectionPostprocessDescriptor(**values)


def _number(options: Mapping[str, FlexValue], key: str) -> float:
    value = options[key]
    if isinstance(value, str):
        raise ModelError(f"its option '{key}' is '{value}', expected a number")
    return finite(value, key)


def _type_number(info: TensorInfo) -> int:
    return TYPE_NUMBERS[info.dtype]


def _elements(info: TensorInfo) -> int:
    return info.elements


_SIGNAL: Mapping[LayerType, Row] = {
    type_: _signal(type_, code, inputs, outputs, given)
    for type_, code, inputs, outputs, given in (
        (LayerType.SIGNAL_DELAY, "SignalDelay", 1, 1, {}),
        (LayerType.SIGNAL_ENERGY, "SignalEnergy", 1, 1, {}),
        (LayerType.SIGNAL_FFT_AUTO_SCALE, "SignalFftAutoScale", 1, 2, {}),
        (LayerType.SIGNAL_FILTER_BANK_LOG, "SignalFilterBankLog", 1, 1, {}),
        (
            LayerType.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION,
            "SignalFilterBankSpectralSubtraction",
            1,
            2,
            {_COUNT: _elements},
        ),
        (LayerType.SIGNAL_FILTER_BANK_SQUARE_ROOT, "SignalFilterBankSquareRoot", 2, 1, {}),
        (LayerType.SIGNAL_FRAMER, "SignalFramer", 1, 2, {}),
        (LayerType.SIGNAL_IRFFT, "SignalIrfft", 1, 1, {"T": _type_number}),
        (LayerType.SIGNAL_OVERLAP_ADD, "SignalOverlapAdd", 1, 1, {"T": _type_number}),
        (LayerType.SIGNAL_PCAN, "SignalPCAN", 3, 1, {}),
        (LayerType.SIGNAL_RFFT, "SignalRfft", 1, 1, {"T": _type_number}),
        (LayerType.SIGNAL_STACKER, "SignalStacker", 1, 2, {_COUNT: _elements}),
        (LayerType.SIGNAL_WINDOW, "SignalWindow", 2, 1, {}),
    )
}
"""By type: the code, the numbers of inputs and outputs, and the options that no attribute states."""

ROWS: Mapping[LayerType, Row] = {
    LayerType.CIRCULAR_BUFFER: Row(
        options=["cycles"], reader=_read_circular_buffer, custom="CIRCULAR_BUFFER", keeps_output=True
    ),
    LayerType.DETECTION_POSTPROCESS: Row(
        options=[(_CLASSES_OF_A_DETECTION, 1), *(each.name for each in _DETECTION_FIELDS)],
        reader=_read_detection,
        data_inputs=range(3),
        outputs=range(4, 5),
        custom="TFLite_Detection_PostProcess",
        real_inputs=True,
        infers_outputs=True,
    ),
    LayerType.SIGNAL_FILTER_BANK: Row(
        options=[(_COUNT, _channels)],
        reader=_read_filter_bank,
        sources=_filter_bank_sources,
        custom="SignalFilterBank",
        inputs=range(6, 7),
    ),
    **_SIGNAL,
}
"""The operators of this module."""
