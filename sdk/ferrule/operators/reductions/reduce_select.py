# SPDX-License-Identifier: Apache-2.0
"""REDUCE_MAX, REDUCE_MIN, REDUCE_ANY and REDUCE_ALL: reductions whose results are elements of their input."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array, DataType, LayerType
from ferrule.operators.movement.checks import check_same_quantisation
from ferrule.operators.operator import Operands, Operator, of_one
from ferrule.operators.reductions.reduce import ReduceDescriptor, check_reduced, infer, sample_reduction

_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


@frozen
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
    check_reduced(layer_type, descriptor, operands, _SELECTIONS[layer_type].types)
    if operands.output.dtype is DataType.INT8:
        check_same_quantisation(operands)


def _kernel(layer_type: LayerType, descriptor: ReduceDescriptor, operands: Operands, data: Array) -> Array:
    """Select the first of equal elements, in memory order; a NaN is selected never, and an infinity becomes finite."""
    output = operands.output
    largest = _SELECTIONS[layer_type].largest
    kept = [axis for axis in range(data.ndim) if axis not in descriptor.axes]
    elements = data.transpose(*kept, *descriptor.axes).reshape(*(data.shape[axis] for axis in kept), -1)
    if output.dtype.is_float:
        limit = np.float32(-_LARGEST_FLOAT32 if largest else _LARGEST_FLOAT32)
        worse = np.isnan(elements) | (elements < limit if largest else elements > limit)
        elements = np.where(worse, limit, elements)
    place = elements.argmax(axis=-1) if largest else elements.argmin(axis=-1)
    found = np.take_along_axis(elements, place[..., np.newaxis], axis=-1)
    return np.ascontiguousarray(found).reshape(output.shape)


REDUCE_SELECT: tuple[Operator, ...] = tuple(
    Operator(
        descriptor=ReduceDescriptor,
        type=type_,
        shapes=infer,
        check=partial(_check, type_),
        kernel=of_one(partial(_kernel, type_)),
        sample=sample_reduction,
    )
    for type_ in _SELECTIONS
)
"""The operators of this module."""
REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL = REDUCE_SELECT
