# SPDX-License-Identifier: Apache-2.0
"""ARG_MAX and ARG_MIN."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.arithmetic.error_bound import known_inputs
from ferrule.operators.operator import Operands, Operator, Shapes, of_one
from ferrule.operators.sample import LayerSample

_TYPES = (DataType.FLOAT32, DataType.INT8)


@frozen
class ArgSelectDescriptor(Descriptor):
    """One input, one int32 output without the axis: an index along the axis."""

    axis: int
    """The axis, not negative."""


def _infer(descriptor: ArgSelectDescriptor, operands: Operands) -> Shapes:
    source = operands.source
    if not 0 <= descriptor.axis < len(source.shape):
        raise ModelError(
            f"tensor '{source.name}' of shape {list(source.shape)} has no axis {descriptor.axis}, "
            f"expected 0 to {len(source.shape) - 1}"
        )
    return (source.shape[: descriptor.axis] + source.shape[descriptor.axis + 1 :],)


def _check(layer_type: LayerType, descriptor: ArgSelectDescriptor, operands: Operands) -> None:
    source, output = operands.ends
    _infer(descriptor, operands)
    if source.dtype not in _TYPES or output.dtype is not DataType.INT32:
        raise UnsupportedError(
            f"{layer_type} of {source.dtype} to {output.dtype} has no reference kernel, "
            f"expected {' or '.join(_TYPES)} to int32"
        )


def _kernel(layer_type: LayerType, descriptor: ArgSelectDescriptor, operands: Operands, data: Array) -> Array:
    """Return the index of the first of equal elements; a NaN is selected only if it is the first element."""
    axis, largest = descriptor.axis, layer_type is LayerType.ARG_MAX
    unknown = np.isnan(data) if data.dtype.kind == "f" else np.zeros(data.shape, np.bool_)
    if unknown.any():
        data = np.where(unknown, -np.inf if largest else np.inf, data)
    found = data.argmax(axis=axis) if largest else data.argmin(axis=axis)
    found = np.where(unknown.take(0, axis), 0, found)
    return np.asarray(found, operands.output.dtype.numpy)


def _sample(sample: LayerSample) -> Descriptor:
    shape = sample.shape()
    sample.take(shape)
    sample.output_type = DataType.INT32
    return ArgSelectDescriptor(axis=sample.dice.randrange(len(shape)))


def _operator(layer_type: LayerType) -> Operator:
    return Operator(
        descriptor=ArgSelectDescriptor,
        type=layer_type,
        shapes=_infer,
        check=partial(_check, layer_type),
        kernel=of_one(partial(_kernel, layer_type)),
        bound=known_inputs,
        sample=_sample,
    )


ARG_MAX = _operator(LayerType.ARG_MAX)
ARG_MIN = _operator(LayerType.ARG_MIN)
