# SPDX-License-Identifier: Apache-2.0
"""Further elementwise layers in C: CAST, DIV, FLOOR_DIV, FLOOR_MOD and SQUARED_DIFFERENCE."""

from __future__ import annotations

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.operators.binary import (
    binary_call,
    broadcast_shape,
    kernel_of,
    result_fields,
    term_fields,
    without_parameters,
)
from ferrule.backends.cpu_acc.lowering.operators.movement import lower_copy
from ferrule.backends.cpu_acc.lowering.operators.unary import unary_call
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType
from ferrule.operators.binary import BinaryDescriptor, float_limits
from ferrule.operators.division import quotient_of
from ferrule.operators.squared_difference import squared_difference_of

_BYTES = frozenset({DataType.INT8, DataType.UINT8, DataType.BOOL})
_CAST_NAMES = {
    DataType.FLOAT32: "f32",
    DataType.INT8: "s8",
    DataType.INT16: "s16",
    DataType.INT32: "s32",
    DataType.INT64: "s64",
    DataType.UINT32: "u32",
    DataType.UINT8: "u8",
    DataType.BOOL: "u8",
}


def lower_cast(context: LoweringContext) -> LoweredOp:
    """Return the call for CAST: a copy for equal types; types that differ in sign share a kernel if bits are equal."""
    source, output = context.input(0), context.operands.output
    if source.dtype is output.dtype:
        return lower_copy(context)
    if not {source.dtype, output.dtype} <= set(_CAST_NAMES):
        raise UnsupportedError(
            f"layer '{context.layer.name}': there is no kernel for CAST of {source.dtype} to {output.dtype}"
        )
    return unary_call(
        context,
        _cast_kernel(source.dtype, output.dtype),
        header="cast",
        parameters="cast_params",
        elements=source.elements,
    )


def _cast_kernel(source: DataType, output: DataType) -> str:
    if output is DataType.BOOL:
        return f"cast_{'8' if source in _BYTES else _cast_name(source, output)}_bool"
    if source in _BYTES and output in _BYTES:
        return "cast_8"
    if {source, output} == {DataType.INT32, DataType.UINT32}:
        return "cast_32"
    target = "8" if output in _BYTES and not source.is_float else _cast_name(output, source)
    return f"cast_{_cast_name(source, output)}_{target}"


def _cast_name(dtype: DataType, other: DataType) -> str:
    """Return the name of a type in the kernel between two types; the sign of 32 bits matters to wider types only."""
    cut = dtype is DataType.UINT32 and not other.is_float and other is not DataType.INT64
    return "s32" if cut else _CAST_NAMES[dtype]


def lower_div(context: LoweringContext) -> LoweredOp:
    """Return the call for DIV."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, BinaryDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    if context.operands.output.dtype is DataType.INT8:
        quotient = quotient_of(descriptor, context.operands)
        return binary_call(
            context,
            "div_s8",
            "product_params",
            shape=broadcast_shape(context),
            first_offset=quotient.first_offset,
            second_offset=quotient.second_offset,
            result=result_fields(quotient.result),
        )
    if context.operands.output.dtype is DataType.FLOAT32:
        low, high = float_limits(descriptor.activation)
        return binary_call(context, "div_f32", "binary_f32_params", shape=broadcast_shape(context), low=low, high=high)
    return without_parameters(context, kernel_of(context))


def lower_floored(context: LoweringContext) -> LoweredOp:
    """Return the call for FLOOR_DIV or FLOOR_MOD."""
    kernel = kernel_of(context)
    further = ("fmodf",) if kernel == f"{LayerType.FLOOR_MOD.lower()}_f32" else ()
    return without_parameters(context, kernel, KERNELS.part(kernel, *further))


def lower_squared_difference(context: LoweringContext) -> LoweredOp:
    """Return the call for SQUARED_DIFFERENCE."""
    if context.operands.output.dtype not in {DataType.INT8, DataType.INT16}:
        return without_parameters(context, kernel_of(context))
    arithmetic = squared_difference_of(context.operands)
    return binary_call(
        context,
        kernel_of(context),
        "sum_params",
        shape=broadcast_shape(context),
        first=term_fields(arithmetic.first),
        second=term_fields(arithmetic.second),
        result=result_fields(arithmetic.result),
        left_shift=arithmetic.first.left_shift,
    )
