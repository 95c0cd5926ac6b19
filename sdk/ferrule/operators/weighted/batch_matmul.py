# SPDX-License-Identifier: Apache-2.0
"""BATCH_MATMUL: products of the matrices in the last two axes of two tensors."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Shape, TensorInfo
from ferrule.graph.real_values import ieee_floats, saturated
from ferrule.operators.arithmetic.blas import matrix_product
from ferrule.operators.arithmetic.error_bound import sums
from ferrule.operators.arithmetic.fixed_point import (
    MAX_SHIFT,
    MAX_WIDE_SHIFT,
    Factor,
    multiply_wide_by_quantized_multiplier,
    product_scale,
    rescale,
    wrap_int32,
)
from ferrule.operators.movement.checks import check_activations, check_types
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, required_array
from ferrule.operators.sample import LayerSample
from ferrule.operators.weighted.products import WEIGHTED_RULES, products_of

_RANKS = range(2, 6)
_TYPES = frozenset({DataType.FLOAT32, DataType.INT8, DataType.INT16})
_MOST_PRODUCTS = {DataType.INT8: (1 << 31) // (255 * 255), DataType.INT16: (1 << 47) // (1 << 30) - 1}
"""The most products of a sum that stays in the range of the reference kernel's accumulator, whatever the inputs."""


@frozen
class BatchMatmulDescriptor(Descriptor):
    """Inputs: two tensors of 2 to 5 axes, [..., rows, depth] and [..., depth, columns].

    One output, [..., rows, columns]. The axes before the last two broadcast.
    """

    adj_x: bool = False
    """Whether the last two axes of the first input are [depth, rows]."""
    adj_y: bool = False
    """Whether the last two axes of the second input are [columns, depth]."""


def _infer(descriptor: BatchMatmulDescriptor, operands: Operands) -> Shapes:
    left, right = operands.pair
    for info in (left, right):
        if len(info.shape) not in _RANKS:
            raise UnsupportedError(f"tensor '{info.name}' has shape {list(info.shape)}, expected 2 to 5 axes")
    rows, depth = _matrix(left.shape, transposed=descriptor.adj_x)
    other, columns = _matrix(right.shape, transposed=descriptor.adj_y)
    if depth != other:
        raise ModelError(
            f"'{left.name}' of shape {list(left.shape)} has rows of {depth} elements and '{right.name}' of shape "
            f"{list(right.shape)} has columns of {other}, expected the same number"
        )
    try:
        batches = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError:
        raise ModelError(
            f"tensor '{right.name}' of shape {list(right.shape)} does not broadcast with '{left.name}' of shape "
            f"{list(left.shape)} in the axes before the last two"
        ) from None
    return ((*batches, rows, columns),)


def _matrix(shape: Shape, *, transposed: bool) -> tuple[int, int]:
    """Return the rows and columns of the matrices in the last two axes."""
    return (shape[-1], shape[-2]) if transposed else (shape[-2], shape[-1])


def depth_of(descriptor: BatchMatmulDescriptor, left: TensorInfo) -> int:
    """Return the number of products in an element of the output."""
    return _matrix(left.shape, transposed=descriptor.adj_x)[1]


def _check(descriptor: BatchMatmulDescriptor, operands: Operands) -> None:
    left, right, output = *operands.pair, operands.output
    check_types(operands, _TYPES)
    if left.dtype.is_float:
        return
    check_activations(left, right, output)
    factor_of(operands)
    depth, most = depth_of(descriptor, left), _MOST_PRODUCTS[left.dtype]
    if depth > most:
        raise UnsupportedError(
            f"a sum of {depth} products may exceed the range of the reference kernel, expected at most {most} products"
        )


def factor_of(operands: Operands) -> Factor:
    """Return the factor that scales the sums of integers to the output; UnsupportedError if it is too large."""
    left, right, output = *operands.pair, operands.output
    real = product_scale(left.scale, right.scale, output, operands.rounding)
    largest = MAX_WIDE_SHIFT if output.dtype is DataType.INT16 else MAX_SHIFT
    return Factor.of(real, output, largest, name="the product of the inputs' scales over the scale")


def _kernel(descriptor: BatchMatmulDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    """Return the products; float64 holds sums of integer products exactly."""
    output = operands.output
    left, right = (
        _centred(required_array(arrays, index), operands.input(index), transposed=transposed)
        for index, transposed in ((0, descriptor.adj_x), (1, descriptor.adj_y))
    )
    with ieee_floats():
        sums = matrix_product(left, right)
        if output.dtype.is_float:
            return [sums.astype(np.float32)]
    factor, whole = factor_of(operands), sums.astype(np.int64)
    if output.dtype is DataType.INT16:
        scaled = multiply_wide_by_quantized_multiplier(whole, factor.multiplier, factor.shift)
    else:
        scaled = rescale(whole, factor.multiplier, factor.shift, operands.rounding)
    return [saturated(wrap_int32(scaled + output.zero_point), output.dtype.numpy)]


def _centred(array: Array, info: TensorInfo, *, transposed: bool) -> Array:
    values = array.astype(np.float64)
    if not info.dtype.is_float:
        values -= info.zero_point
    return values.swapaxes(-1, -2) if transposed else values


def _terms(descriptor: BatchMatmulDescriptor, operands: Operands) -> int:
    """Return the products that an output element adds up."""
    return depth_of(descriptor, operands.source)


def _sample(sample: LayerSample) -> Descriptor:
    dice = sample.dice
    batches = tuple(dice.randint(1, 3) for _ in range(dice.randint(0, 3)))
    rows, depth, columns = dice.randint(1, 5), dice.randint(1, 8), dice.randint(1, 5)
    descriptor = BatchMatmulDescriptor(adj_x=dice.random() < 0.5, adj_y=dice.random() < 0.5)
    narrow = tuple(dice.choice([1, extent]) for extent in batches)[dice.randint(0, len(batches)) :]
    left = sample.take((*batches, *((depth, rows) if descriptor.adj_x else (rows, depth))))
    shape = (*narrow, *((columns, depth) if descriptor.adj_y else (depth, columns)))
    quantization = sample.quantization(sample.dtype)
    if dice.random() < 0.5:
        sample.take(shape, quantization)
    else:
        sample.hold("right", sample.array(shape, sample.dtype), quantization)
    if quantization is not None:
        scale = left.scale * quantization.scale * 60 * depth**0.5
        sample.output = sample.quantization(sample.dtype, scale if sample.dtype is DataType.INT8 else 200 * scale)
    return descriptor


BATCH_MATMUL = Operator(
    descriptor=BatchMatmulDescriptor,
    type=LayerType.BATCH_MATMUL,
    shapes=_infer,
    check=_check,
    kernel=_kernel,
    bound=sums(_terms),
    rules=WEIGHTED_RULES,
    macs=products_of(_terms),
    sample=_sample,
)
