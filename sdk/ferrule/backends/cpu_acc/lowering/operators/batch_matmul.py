# SPDX-License-Identifier: Apache-2.0
"""BATCH_MATMUL and CUMSUM in C."""

from __future__ import annotations

import math

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernels.generic import RULE_KERNELS, rule_sources
from ferrule.backends.cpu_acc.lowering.operators.unary import unary_call
from ferrule.backends.cpu_acc.lowering.stateful import stateful_call
from ferrule.backends.firmware import FieldValue, LoweredOp, LoweringContext, numbers
from ferrule.dom import Aggregate, Boolean, Field, Integer
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Shape
from ferrule.operators.batch_matmul import BatchMatmulDescriptor, depth_of, factor_of
from ferrule.operators.cumsum import CumsumDescriptor, cumsum_factor
from ferrule.operators.fixed_point import reduced_multiplier

_BATCH_AXES = 3
"""The value of FERRULE_BATCH_MATMUL_AXES."""


def lower_batch_matmul(context: LoweringContext) -> LoweredOp:
    """Return the call for BATCH_MATMUL; a transposed input is read with other strides."""
    descriptor, operands = context.layer.descriptor, context.operands
    if not isinstance(descriptor, BatchMatmulDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    left, right, output = operands.input(0), operands.input(1), operands.output
    shape = Aggregate(
        (
            Field(numbers(np.array(_batches(output.shape), np.int32)), "batches"),
            Field(Integer(output.shape[-2]), "rows"),
            Field(Integer(output.shape[-1]), "columns"),
            Field(Integer(depth_of(descriptor, left)), "depth"),
            Field(_strides(left.shape, depth_first=descriptor.adj_x), "left"),
            Field(_strides(right.shape, depth_first=not descriptor.adj_y), "right"),
        )
    )
    if output.dtype.is_float:
        return _matmul_call(context, "f32", "f32", shape=shape)
    factor, wide = factor_of(operands), output.dtype is DataType.INT16
    return _matmul_call(
        context,
        "s16" if wide else f"{RULE_KERNELS[context.layer.rounding]}s8",
        "int",
        shape=shape,
        left_zero_point=left.zero_point,
        right_zero_point=right.zero_point,
        multiplier=int(reduced_multiplier(factor.multiplier)) if wide else factor.multiplier,
        shift=factor.shift,
        output_zero_point=output.zero_point,
    )


def _matmul_call(context: LoweringContext, suffix: str, table: str, **fields: FieldValue) -> LoweredOp:
    return stateful_call(
        context,
        f"batch_matmul_{suffix}",
        fields,
        header="batch_matmul",
        table=f"batch_matmul_{table}_params",
        inputs=(0, 1),
        states={},
        sources=rule_sources(context.layer.rounding),
    )


def _batches(shape: Shape) -> list[int]:
    """Return the extents of the axes before the last two, with axes of extent 1 in front."""
    return [1] * (_BATCH_AXES + 2 - len(shape)) + list(shape[:-2])


def _strides(shape: Shape, *, depth_first: bool) -> Aggregate:
    """Return the initial value of a `struct ferrule_batch_matmul_strides`."""
    batches = _batches(shape)
    steps = [math.prod(batches[axis + 1 :]) * shape[-2] * shape[-1] for axis in range(_BATCH_AXES)]
    kept = [0 if extent == 1 else step for extent, step in zip(batches, steps, strict=True)]
    line, depth = (1, shape[-1]) if depth_first else (shape[-1], 1)
    return Aggregate(
        (
            Field(numbers(np.array(kept, np.int32)), "batches"),
            Field(Integer(line), "line"),
            Field(Integer(depth), "depth"),
        )
    )


def lower_cumsum(context: LoweringContext) -> LoweredOp:
    """Return the call for CUMSUM."""
    descriptor, source = context.layer.descriptor, context.input(0)
    if not isinstance(descriptor, CumsumDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    axis = descriptor.axis
    shape = Aggregate(
        (
            Field(Integer(math.prod(source.shape[:axis])), "outer"),
            Field(Integer(source.shape[axis]), "extent"),
            Field(Integer(math.prod(source.shape[axis + 1 :])), "inner"),
            Field(Boolean(descriptor.exclusive), "exclusive"),
            Field(Boolean(descriptor.reverse), "reverse"),
        )
    )
    if source.dtype.is_float:
        return unary_call(context, "cumsum_f32", header="cumsum", parameters="cumsum_f32_params", shape=shape)
    factor = cumsum_factor(context.operands)
    return unary_call(
        context,
        "cumsum_s8",
        header="cumsum",
        parameters="cumsum_s8_params",
        shape=shape,
        zero_point=source.zero_point,
        multiplier=factor.multiplier,
        shift=factor.shift,
        output_zero_point=context.operands.output.zero_point,
    )
