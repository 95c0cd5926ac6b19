# SPDX-License-Identifier: Apache-2.0
"""Functions of one tensor in C, such as NEG, QUANTIZE and CAST; functions of 8 bits are look-ups in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import SUFFIXES, KernelCall, Member
from ferrule.backends.cpu_acc.lowering.operators.movement import lower_copy
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.dom import Scalar
from ferrule.graph import DataType, LayerType, Rounding
from ferrule.operators.elementwise.quantize import requantization
from ferrule.operators.elementwise.stored_binary import Result
from ferrule.operators.elementwise.stored_unary import absolute_rescaling, root_rescaling
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS

BYTES = frozenset({DataType.INT8, DataType.UINT8, DataType.BOOL})
_LOOK_UPS = {"int8": "lookup_s8", "uint8": "lookup_s8", "int16": "lookup_s8_s16", "int32": "lookup_s8_s32"}


def lower_table(context: LoweringContext) -> LoweredOp:
    """Return the look-up of an 8-bit input in the table of the numpy kernel's 256 results, in the order of uint8."""
    every = np.arange(256, dtype=np.uint8).view(context.source.dtype.numpy)
    (table,) = OPERATORS[context.layer.type].kernel(context.layer.descriptor, context.operands, [every])
    stored = table.view(np.int8) if table.dtype == np.uint8 else table
    fields: dict[str, Member] = {"table": stored, "elements": context.source.elements}
    call = KernelCall(_LOOK_UPS[table.dtype.name], "ferrule/kernels/lookup.h", fields, bytes_as=Scalar.INT8)
    return call.elementwise(context)


_MATH = {
    LayerType.COS: ("trigonometry",),
    LayerType.ELU: ("expm1f",),
    LayerType.EXP: ("expf",),
    LayerType.LOG: ("logf",),
    LayerType.RSQRT: ("sqrtf",),
    LayerType.SIN: ("trigonometry",),
    LayerType.SQRT: ("sqrtf",),
}
_RESCALINGS: Mapping[LayerType, Callable[[Operands], Result]] = {
    LayerType.ABS: absolute_rescaling,
    LayerType.RSQRT: root_rescaling,
}


def lower_elementwise_unary(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel that is named after the layer's type; functions of int8 are tables."""
    type_, source = context.layer.type, context.source
    if source.dtype is DataType.INT8:
        return lower_table(context)
    suffix, table, fields = "f32", "elementwise_unary_params", {"elements": source.elements}
    sources = _MATH.get(type_, ())
    if source.dtype is DataType.INT16:
        # the root of int16 is one of integers, which needs no function of floats
        rescaling = _RESCALINGS[type_](context.operands)
        suffix, table, sources = "s16", "stored_unary_params", ()
        fields = {"multiplier": rescaling.multiplier, "shift": rescaling.shift} | fields
    elif source.dtype is DataType.BOOL:
        suffix = "bool"
    header = "ferrule/kernels/elementwise_unary.h"
    return KernelCall(f"{type_.lower()}_{suffix}", header, fields, table=table, sources=sources).elementwise(context)


def lower_quantize(context: LoweringContext) -> LoweredOp:
    """Return QUANTIZE as a table look-up for 8 bits, otherwise as a call of the kernel for the data types."""
    source, output, tflm = context.source, context.output, context.operands.rounding is Rounding.TFLM
    if source.dtype is DataType.FLOAT32:
        fields = {"scale": output.scale, "zero_point": output.zero_point}
        kernel = f"quantize_f32_{'' if tflm else 'even_'}{SUFFIXES[output.dtype]}"
        return _quantize_call(context, kernel, "quantize_f32_params", fields)
    if not tflm or source.dtype in BYTES:
        return lower_table(context)
    multiplier, shift = requantization(source, output)
    kernel = f"requantize_{'_'.join(dict.fromkeys(SUFFIXES[each.dtype] for each in (source, output)))}"
    zero_points = {"input_zero_point": source.zero_point, "output_zero_point": output.zero_point}
    return _quantize_call(
        context, kernel, "requantize_params", zero_points | {"multiplier": multiplier, "shift": shift}
    )


def lower_dequantize(context: LoweringContext) -> LoweredOp:
    """Return the call for DEQUANTIZE."""
    source = context.source
    fields = {"scale": source.scale, "zero_point": source.zero_point}
    return _quantize_call(context, f"dequantize_{SUFFIXES[source.dtype]}", "dequantize_params", fields)


def _quantize_call(context: LoweringContext, kernel: str, table: str, fields: Mapping[str, float]) -> LoweredOp:
    members = {**fields, "elements": context.source.elements}
    return KernelCall(kernel, "ferrule/kernels/quantize.h", members, table=table).elementwise(context)


_CAST_NAMES = {**SUFFIXES, DataType.BOOL: "u8"}


def lower_cast(context: LoweringContext) -> LoweredOp:
    """Return the call for CAST: a copy for equal types; types that differ in sign share a kernel if bits are equal."""
    source, output = context.operands.ends
    if source.dtype is output.dtype:
        return lower_copy(context)
    kernel, fields = _cast_kernel(source.dtype, output.dtype), {"elements": source.elements}
    call = KernelCall(kernel, "ferrule/kernels/cast.h", fields, table="cast_params", source="cast")
    return call.elementwise(context)


def _cast_kernel(source: DataType, output: DataType) -> str:
    if output is DataType.BOOL:
        return f"cast_{'8' if source in BYTES else _cast_name(source, output)}_bool"
    if source in BYTES and output in BYTES:
        return "cast_8"
    if {source, output} == {DataType.INT32, DataType.UINT32}:
        return "cast_32"
    target = "8" if output in BYTES and not source.is_float else _cast_name(output, source)
    return f"cast_{_cast_name(source, output)}_{target}"


def _cast_name(dtype: DataType, other: DataType) -> str:
    """Return the name of a type in the kernel between two types; the sign of 32 bits matters to wider types only."""
    cut = dtype is DataType.UINT32 and not other.is_float and other is not DataType.INT64
    return "s32" if cut else _CAST_NAMES[dtype]
