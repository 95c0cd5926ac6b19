# SPDX-License-Identifier: Apache-2.0
"""BATCH_MATMUL in C."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ferrule.backends.cpu_acc.lowering.kernel_call import (
    RULE_KERNELS,
    KernelCall,
    Member,
    descriptor_of,
    int32s,
    rule_sources,
)
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import DataType, Shape
from ferrule.operators.arithmetic.fixed_point import reduced_multiplier
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor, depth_of, factor_of

_BATCH_AXES = 3
"""The value of FERRULE_BATCH_MATMUL_AXES."""


def lower_batch_matmul(context: LoweringContext) -> LoweredOp:
    """Return the call for BATCH_MATMUL; a transposed input is read with other strides."""
    descriptor, operands = descriptor_of(context, BatchMatmulDescriptor), context.operands
    left, right, output = *operands.pair, operands.output
    fields: dict[str, Member] = {
        "shape": {
            "batches": int32s(_batches(output.shape)),
            "rows": output.shape[-2],
            "columns": output.shape[-1],
            "depth": depth_of(descriptor, left),
            "left": _strides(left.shape, depth_first=descriptor.adj_x),
            "right": _strides(right.shape, depth_first=not descriptor.adj_y),
        }
    }
    suffix = "f32"
    if not output.dtype.is_float:
        factor, wide = factor_of(operands), output.dtype is DataType.INT16
        fields |= {
            "left_zero_point": left.zero_point,
            "right_zero_point": right.zero_point,
            "multiplier": int(reduced_multiplier(factor.multiplier)) if wide else factor.multiplier,
            "shift": factor.shift,
            "output_zero_point": output.zero_point,
        }
        suffix = "s16" if wide else f"{RULE_KERNELS[context.layer.rounding]}s8"
    return KernelCall(
        f"batch_matmul_{suffix}",
        "ferrule/kernels/batch_matmul.h",
        fields,
        table=f"batch_matmul_{'f32' if output.dtype.is_float else 'int'}_params",
        inputs=(0, 1),
        sources=rule_sources(context.layer.rounding),
    ).lowered(context)


def _batches(shape: Shape) -> list[int]:
    """Return the extents of the axes before the last two, with axes of extent 1 in front."""
    return [1] * (_BATCH_AXES + 2 - len(shape)) + list(shape[:-2])


def _strides(shape: Shape, *, depth_first: bool) -> Mapping[str, Member]:
    """Return the members of a `struct ferrule_batch_matmul_strides`."""
    batches = _batches(shape)
    steps = [math.prod(batches[axis + 1 :]) * shape[-2] * shape[-1] for axis in range(_BATCH_AXES)]
    kept = [0 if extent == 1 else step for extent, step in zip(batches, steps, strict=True)]
    line, depth = (1, shape[-1]) if depth_first else (shape[-1], 1)
    return {"batches": int32s(kept), "line": line, "depth": depth}
