# SPDX-License-Identifier: Apache-2.0
"""REDUCE_MAX, REDUCE_MIN, REDUCE_ANY and REDUCE_ALL: reductions whose results are elements of their input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType
from ferrule.operators.operator import Arrays, Operands, Operator
from ferrule.operators.reduce import MAX_RANK, ReduceDescriptor, infer
from ferrule.operators.sample import LayerSample
from ferrule.operators.unary import check_per_tensor
from ferrule.operators.weighted import required_array

_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    largest: bool
    """Whether the largest element is the result; false is less than true."""
    types: tuple[DataType, ...]


_NUMBERS = (DataType.FLOAT32, DataType.INT8)
_SELECTIONS: Mapping[LayerType, _Selection] = {
    LayerType.REDUCE_MAX: _Selection(largest=True, types=_NUMBERS),
    LayerType.REDUCE_MIN: _Selection(largest=False, types=_NUMBERS),
    LayerType.REDUCE_ANY: _Selection(largest=True, types=(DataType.BOOL,)),
    LayerType.REDUCE_ALL: _Selection(largest=False, types=(DataType.BOOL,)),
}


def _check(layer_type: LayerType, descriptor: ReduceDescriptor, operands: Operands) -> None:
    source, output, types = operands.input(0), operands.output, _SELECTIONS[layer_type].types
    infer(descriptor, operands)
    if source.dtype is not output.dtype or source.dtype not in types:
        raise UnsupportedError(
            f"{layer_type} of {source.dtype} to {output.dtype} has no reference kernel, "
            f"expected the same type of {', '.join(types)} on both sides"
        )
    if len(source.shape) > MAX_RANK:
        raise UnsupportedError(
            f"tensor '{source.name}' has {len(source.shape)} dimensions, {layer_type} takes at most {MAX_RANK}"
        )
    if source.dtype is not DataType.INT8:
        return
    check_per_tensor(source, output)
    if source.quantization != output.quantization:
        raise UnsupportedError(f"'{source.name}' and '{output.name}' differ in quantisation, expected the same")


def _kernel(layer_type: LayerType, descriptor: ReduceDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    """Select the first of equal elements, in memory order; a NaN is selected never, and an infinity becomes finite."""
    data, output = required_array(arrays, 0), operands.output
    largest = _SELECTIONS[layer_type].largest
    kept = [axis for axis in range(data.ndim) if axis not in descriptor.axes]
    elements = data.transpose(*kept, *descriptor.axes).reshape(*(data.shape[axis] for axis in kept), -1)
    if output.dtype.is_float:
        limit = np.float32(-_LARGEST_FLOAT32 if largest else _LARGEST_FLOAT32)
        worse = np.isnan(elements) | (elements < limit if largest else elements > limit)
        elements = np.where(worse, limit, elements)
    place = elements.argmax(axis=-1) if largest else elements.argmin(axis=-1)
    found = np.take_along_axis(elements, place[..., np.newaxis], axis=-1)
    return [np.ascontiguousarray(found).reshape(output.shape)]


def _sample(sample: LayerSample) -> None:
    shape = sample.shape()
    sample.output = sample.take(shape).quantization
    axes = sample.dice.sample(range(len(shape)), sample.dice.randint(1, len(shape)))
    sample.descriptor = ReduceDescriptor(axes=tuple(sorted(axes)), keep_dims=sample.dice.random() < 0.5)


REDUCE_SELECT: tuple[Operator, ...] = tuple(
    Operator(
        descriptor=ReduceDescriptor,
        type=type_,
        shapes=infer,
        check=partial(_check, type_),
        kernel=partial(_kernel, type_),
        sample=_sample,
    )
    for type_ in _SELECTIONS
)
"""The operators of this module."""
REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL = REDUCE_SELECT
