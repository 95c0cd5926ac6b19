# SPDX-License-Identifier: Apache-2.0
"""Reductions and running sums in C: MEAN, SUM, REDUCE_MAX, REDUCE_ANY, ARG_MAX, CUMSUM and so on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, descriptor_of, int32s, kernel_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Rounding, Shape
from ferrule.operators.arithmetic.fixed_point import wrap_int32
from ferrule.operators.reductions.arg_select import ArgSelectDescriptor
from ferrule.operators.reductions.cumsum import CumsumDescriptor, cumsum_factor
from ferrule.operators.reductions.reduce import ReduceDescriptor, divisor, reduced_count, rescaling

_LOOPS = 4
_SELECT = "ferrule/kernels/reduce_select.h"


def lower_reduce(context: LoweringContext) -> LoweredOp:
    """Return the call for MEAN or SUM; neighbouring axes are merged so that the kernel has the fewest loops."""
    type_, descriptor = context.layer.type, descriptor_of(context, ReduceDescriptor)
    source, output, rounding = context.source, context.output, context.operands.rounding
    count = reduced_count(descriptor, source)
    fields: dict[str, Member] = dict(_loop_fields(context))
    if source.dtype is DataType.FLOAT32:
        kernel, table = "reduce_f32", "reduce_f32_params"
        fields["divisor"] = float(divisor(type_, descriptor, source))
    elif rounding is Rounding.ONNX_FLOAT:
        kernel, table = "real_mean_s8", "real_mean_params"
        fields |= {"count": count, "zero_point": source.zero_point, "output_zero_point": output.zero_point}
        fields |= {"scale": source.scale, "output_scale": output.scale}
    else:
        multiplier, shift = rescaling(type_, descriptor, context.operands)
        fields["offset"] = int(wrap_int32(-source.zero_point * count))
        fields["output_zero_point"] = output.zero_point
        if rounding is Rounding.TFLM:
            kernel, table = "reduce_s8" if source.dtype is DataType.INT8 else "reduce_s16", "reduce_int_params"
            fields |= {"multiplier": multiplier, "shift": shift}
        else:
            kernel, table = "float_mean_s8", "float_mean_params"
            fields["factor"] = math.ldexp(multiplier, shift - 31)
    return KernelCall(kernel, "ferrule/kernels/reduce.h", fields, table=table).elementwise(context)


def _loop_fields(context: LoweringContext) -> Mapping[str, Member]:
    """Return the loops over the kept and over the reduced axes, each a `struct ferrule_reduce_loops`."""
    axes, shape = descriptor_of(context, ReduceDescriptor).axes, context.source.shape
    found: dict[str, list[tuple[int, int]]] = {"kept": [], "reduced": []}
    long = [axis for axis, extent in enumerate(shape) if extent != 1]
    for name, group in itertools.groupby(long, key=lambda axis: "reduced" if axis in axes else "kept"):
        own = list(group)
        found[name].append((math.prod(shape[axis] for axis in own), math.prod(shape[own[-1] + 1 :])))
    most = max(map(len, found.values()))
    if most > _LOOPS:
        raise UnsupportedError(f"there is no kernel for reductions with {most} loops, expected at most {_LOOPS}")
    padded = {name: zip(*[(1, 0)] * (_LOOPS - len(each)), *each, strict=True) for name, each in found.items()}
    return {
        name: {"extents": int32s(extents), "strides": int32s(strides)} for name, (extents, strides) in padded.items()
    }


def lower_reduce_select(context: LoweringContext) -> LoweredOp:
    """Return the call of the reduction that is named after the layer's type and the type of its elements."""
    call = KernelCall(kernel_of(context), _SELECT, _loop_fields(context), table="reduce_select_params")
    return call.elementwise(context)


def _axis_fields(shape: Shape, axis: int) -> Mapping[str, int]:
    """Return the elements in front of an axis, on it, and behind it."""
    return {"outer": math.prod(shape[:axis]), "extent": shape[axis], "inner": math.prod(shape[axis + 1 :])}


def lower_arg_select(context: LoweringContext) -> LoweredOp:
    """Return the call for ARG_MAX or ARG_MIN."""
    fields = _axis_fields(context.source.shape, descriptor_of(context, ArgSelectDescriptor).axis)
    return KernelCall(kernel_of(context), _SELECT, fields, table="arg_select_params").lowered(context)


def lower_cumsum(context: LoweringContext) -> LoweredOp:
    """Return the call for CUMSUM."""
    descriptor, source = descriptor_of(context, CumsumDescriptor), context.source
    directions = {"exclusive": descriptor.exclusive, "reverse": descriptor.reverse}
    fields: dict[str, Member] = {"shape": {**_axis_fields(source.shape, descriptor.axis), **directions}}
    if not source.dtype.is_float:
        factor = cumsum_factor(context.operands)
        fields |= {"zero_point": source.zero_point, "multiplier": factor.multiplier, "shift": factor.shift}
        fields["output_zero_point"] = context.output.zero_point
    kernel = "cumsum_f32" if source.dtype.is_float else "cumsum_s8"
    return KernelCall(kernel, "ferrule/kernels/cumsum.h", fields).elementwise(context)
