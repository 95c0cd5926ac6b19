# SPDX-License-Identifier: Apache-2.0
"""MEAN and SUM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Rounding, TensorInfo
from ferrule.graph.real_values import ieee_floats, saturated
from ferrule.operators.arithmetic.error_bound import mean_terms, monotone, of_floats, sums
from ferrule.operators.arithmetic.fixed_point import MAX_SHIFT, quantize_multiplier, rescale, wrap_int32
from ferrule.operators.elementwise.quantize import quantize_to_even, real_values, requantize
from ferrule.operators.movement.checks import check_per_tensor, check_same_type
from ferrule.operators.operator import Operands, Operator, Shapes, of_one
from ferrule.operators.sample import LayerSample

MAX_RANK = 8
"""The most dimensions of a tensor that is reduced."""
_LANES = 4
_TYPES = (DataType.FLOAT32, DataType.INT8, DataType.INT16)


@frozen
class ReduceDescriptor(Descriptor):
    """One input, one output."""

    axes: tuple[int, ...]
    """The axes to reduce: non-negative, ascending, without repetition."""
    keep_dims: bool = False


def infer(descriptor: ReduceDescriptor, operands: Operands) -> Shapes:
    """Return the shape without the reduced axes, or with extent 1 for them if `keep_dims` is set."""
    source = operands.source
    _check_axes(descriptor, source)
    kept = enumerate(source.shape)
    if descriptor.keep_dims:
        return (tuple(1 if axis in descriptor.axes else extent for axis, extent in kept),)
    return (tuple(extent for axis, extent in kept if axis not in descriptor.axes),)


def check(layer_type: LayerType, descriptor: ReduceDescriptor, operands: Operands) -> None:
    """Refuse types and ranks without a reference kernel, and scales too far apart."""
    source, output = operands.ends
    check_reduced(layer_type, descriptor, operands, _TYPES)
    if source.dtype.is_float:
        return
    if rescaling(layer_type, descriptor, operands)[1] > MAX_SHIFT:
        raise UnsupportedError(
            f"{layer_type} cannot convert tensor '{source.name}' of scale {source.scale:g} to scale {output.scale:g} "
            f"of '{output.name}': their quotient must be below 2^{MAX_SHIFT}"
        )


def check_reduced(
    layer_type: LayerType, descriptor: ReduceDescriptor, operands: Operands, types: Sequence[DataType]
) -> None:
    """Refuse axes, types, ranks and quantisations that no reduction supports."""
    source = operands.source
    _check_axes(descriptor, source)
    check_same_type(layer_type, operands, types)
    if len(source.shape) > MAX_RANK:
        raise UnsupportedError(
            f"tensor '{source.name}' has {len(source.shape)} dimensions, {layer_type} takes at most {MAX_RANK}"
        )
    if source.dtype is not DataType.BOOL:
        check_per_tensor(source, operands.output)


def kernel(layer_type: LayerType, descriptor: ReduceDescriptor, operands: Operands, data: Array) -> Array:
    """Return the mean or sum over the axes; integer sums wrap at 32 bits."""
    source, output = operands.ends
    axes = descriptor.axes
    if source.dtype.is_float:
        with ieee_floats():
            total = data.sum(axis=axes, keepdims=descriptor.keep_dims, dtype=np.float64)
            return np.asarray(total / divisor(layer_type, descriptor, source), np.float32)
    total = wrap_int32(data.sum(axis=axes, keepdims=descriptor.keep_dims, dtype=np.int64))
    multiplier, shift = rescaling(layer_type, descriptor, operands)
    offset = source.zero_point * reduced_count(descriptor, source)
    if operands.rounding is Rounding.ONNX_FLOAT:
        return _mean_of_lanes(descriptor, operands, data)
    if operands.rounding is Rounding.ONNX:
        moved = rescale(wrap_int32(total - offset), multiplier, shift, operands.rounding) + output.zero_point
        return saturated(moved, np.int8)
    return requantize(total, offset, multiplier, shift, output)


def _mean_of_lanes(descriptor: ReduceDescriptor, operands: Operands, data: Array) -> Array:
    """Return the means of float32 values as onnxruntime's GlobalAveragePool adds them up.

    Every fourth value goes to the same of four sums, which are added in pairs; the values that are left over come last.
    """
    source, output = operands.ends
    kept = tuple(axis for axis in range(data.ndim) if axis not in descriptor.axes)
    count = reduced_count(descriptor, source)
    values = real_values(data, source).transpose((*kept, *descriptor.axes)).reshape(-1, count)
    whole = count // _LANES * _LANES
    with ieee_floats():
        lanes = np.zeros((values.shape[0], _LANES), np.float32)
        if whole:
            lanes += np.add.accumulate(values[:, :whole].reshape(-1, count // _LANES, _LANES), axis=1)[:, -1]
        total = (lanes[:, 0] + lanes[:, 2]) + (lanes[:, 1] + lanes[:, 3])
        for index in range(whole, count):
            total += values[:, index]
        return quantize_to_even(total / np.float32(count), output).reshape(output.shape)


def reduced_count(descriptor: ReduceDescriptor, source: TensorInfo) -> int:
    """Return the number of elements that each result combines."""
    return math.prod(source.shape[axis] for axis in descriptor.axes)


def _count(descriptor: ReduceDescriptor, operands: Operands) -> int:
    return reduced_count(descriptor, operands.source)


def divisor(layer_type: LayerType, descriptor: ReduceDescriptor, source: TensorInfo) -> int:
    """Return the divisor of float sums: the number of elements for MEAN, 1 for SUM."""
    return reduced_count(descriptor, source) if layer_type is LayerType.MEAN else 1


def rescaling(layer_type: LayerType, descriptor: ReduceDescriptor, operands: Operands) -> tuple[int, int]:
    """Return the multiplier and the shift of integer sums; for MEAN they include the division."""
    source, output = operands.ends
    if operands.rounding is not Rounding.TFLM:
        return quantize_multiplier(onnx_factor(source, output, reduced_count(descriptor, source)))
    multiplier, shift = quantize_multiplier(source.scale / output.scale)
    if layer_type is LayerType.SUM:
        return multiplier, shift
    count = reduced_count(descriptor, source)
    # move bits from the shift into the multiplier, up to the bit length of the count minus 1; the shift stays >= -31
    bits = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << bits) // count, shift - bits


def onnx_factor(source: TensorInfo, output: TensorInfo, count: int) -> float:
    """Return the float32 factor of integer sums by ONNX's rule, as onnxruntime's QLinearGlobalAveragePool has it."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return float(np.float32(source.scale) / (np.float32(output.scale) * np.float32(count)))


def _check_axes(descriptor: ReduceDescriptor, source: TensorInfo) -> None:
    axes = descriptor.axes
    if list(axes) != sorted(set(axes)) or any(not 0 <= axis < len(source.shape) for axis in axes):
        raise ModelError(
            f"tensor '{source.name}' of shape {list(source.shape)} is reduced over axes {list(axes)}, "
            f"expected ascending ones from 0 to {len(source.shape) - 1}"
        )


def sample_reduction(sample: LayerSample) -> Descriptor:
    """Draw a layer whose output has the input's quantisation."""
    shape = sample.shape()
    sample.keep(shape)
    axes = sample.dice.sample(range(len(shape)), sample.dice.randint(1, len(shape)))
    return ReduceDescriptor(axes=tuple(sorted(axes)), keep_dims=sample.dice.random() < 0.5)


def _operator(layer_type: LayerType, rules: frozenset[Rounding]) -> Operator:
    return Operator(
        descriptor=ReduceDescriptor,
        type=layer_type,
        shapes=infer,
        check=partial(check, layer_type),
        kernel=of_one(partial(kernel, layer_type)),
        bound=of_floats(sums(mean_terms, _count if layer_type is LayerType.MEAN else None), monotone),
        rules=rules,
        sample=sample_reduction,
    )


MEAN = _operator(LayerType.MEAN, frozenset({Rounding.TFLM, Rounding.ONNX, Rounding.ONNX_FLOAT}))
SUM = _operator(LayerType.SUM, frozenset({Rounding.TFLM}))
