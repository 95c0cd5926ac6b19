# SPDX-License-Identifier: Apache-2.0
"""The operators, one row per layer type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import ModuleType

from ferrule.graph import Descriptor, Layer, LayerType
from ferrule.operators import control_flow, detection, transfer
from ferrule.operators.arithmetic.half import with_float16
from ferrule.operators.elementwise import (
    add_n,
    binary,
    cast,
    comparison,
    convert,
    division,
    functions,
    functions_of_two,
    lookup,
    nonlinear,
    quantize,
    rectify,
    select,
    squared_difference,
)
from ferrule.operators.movement import block, gather, join, mirror, pad, repeat, reshape, slice, stack, transpose  # noqa: A004
from ferrule.operators.operator import Operator
from ferrule.operators.recurrent import circular_buffer, lstm, svdf
from ferrule.operators.reductions import (
    arg_select,
    cumsum,
    l2_normalization,
    layer_normalization,
    log_softmax,
    reduce,
    reduce_select,
    softmax,
)
from ferrule.operators.signal import filter_bank, frames, spectrum
from ferrule.operators.spatial import pool2d, resize
from ferrule.operators.weighted import batch_matmul, conv2d, depthwise_conv2d, fully_connected, transpose_conv

_FAMILIES = (
    conv2d,
    depthwise_conv2d,
    transpose_conv,
    fully_connected,
    batch_matmul,
    pool2d,
    resize,
    reshape,
    softmax,
    log_softmax,
    l2_normalization,
    nonlinear,
    quantize,
    cast,
    reduce,
    reduce_select,
    arg_select,
    cumsum,
    binary,
    division,
    squared_difference,
    add_n,
    functions_of_two,
    pad,
    transpose,
    join,
    stack,
    gather,
    repeat,
    mirror,
    block,
    slice,
    rectify,
    functions,
    comparison,
    select,
    svdf,
    lstm,
    circular_buffer,
    detection,
)
_BEYOND_TFLITE = (convert, transfer, lookup, layer_normalization)


def _rows(*modules: ModuleType) -> Iterator[Operator]:
    """Yield the operators that modules define by themselves or in tuples."""
    for module in modules:
        for value in vars(module).values():
            yield from (row for row in (value if isinstance(value, tuple) else (value,)) if isinstance(row, Operator))


BEYOND_TFLITE = frozenset(row.type for row in _rows(*_BEYOND_TFLITE))
"""The layer types that TensorFlow Lite does not have, since the optimizer or the reader of ONNX files makes them."""

OPERATORS: Mapping[LayerType, Operator] = {
    row.type: row
    for row in (
        *map(with_float16, _rows(*_FAMILIES)),
        *sorted(_rows(filter_bank, frames, spectrum), key=lambda row: row.type),
        *_rows(control_flow, *_BEYOND_TFLITE),
    )
}
"""The operator of each layer type."""


def type_of(descriptor: Descriptor) -> LayerType:
    """Return the type of the layers with a descriptor whose class belongs to one operator only; ValueError if not."""
    (row,) = (row for row in OPERATORS.values() if row.descriptor is type(descriptor))
    return row.type


def unary_layer(name: str, descriptor: Descriptor, source: str, output: str) -> Layer:
    """Return a layer with one input and one output, of the type that `type_of` finds."""
    return Layer(name, type_of(descriptor), descriptor, inputs=(source,), outputs=(output,))


def family(descriptor: type[Descriptor]) -> Mapping[LayerType, Operator]:
    """Return the operators whose descriptors are of a class."""
    return {type_: row for type_, row in OPERATORS.items() if issubclass(row.descriptor, descriptor)}


@cache
def having(**traits: object) -> frozenset[LayerType]:
    """Return the types of the operators that have all of these traits, such as `having(moves=True, view=False)`.

    Raises:
        AttributeError: `Operator` has no trait of that name.
    """
    return frozenset(
        type_ for type_, row in OPERATORS.items() if all(getattr(row, name) == traits[name] for name in traits)
    )
