# SPDX-License-Identifier: Apache-2.0
"""Layers of one input and one output: a call with a parameter table, or a look-up in a table for int8.

QUANTIZE, DEQUANTIZE and the functions without parameters, such as NEG, are lowered here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.firmware import Blob, FieldValue, LoweredOp, LoweringContext, parameter_table
from ferrule.dom import Call, Cast, Const, Evaluate, Expression, Identifier, Pointer, Scalar
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Rounding
from ferrule.memory.request import Overlap
from ferrule.operators.operator import Operands
from ferrule.operators.quantize import requantization, requantize
from ferrule.operators.stored_unary import Rescaling, absolute_rescaling, root_rescaling
from ferrule.operators.table import OPERATORS


def unary_call(
    context: LoweringContext,
    kernel: str,
    *,
    header: str,
    parameters: str,
    sources: tuple[str, ...] = (),
    bytes_as: Scalar | None = None,
    **fields: FieldValue,
) -> LoweredOp:
    """Return the call ferrule_<kernel>(parameters, input, output).

    The kernel must read each input element before it writes the output element of the same index, and must not read it
    again; the output may therefore overlap the input.

    `parameters` is the tag of the parameter struct without `ferrule_`, and `fields` are its members in order.
    `sources` names further kernel sources, among those that Ferrule ships, that the kernel needs. `bytes_as` is
    the type that the kernel has for uint8 elements, if it is another.
    """
    source, output = context.input(0), context.operands.output
    variable, pointer = parameter_table(context, f"ferrule_{parameters}", **fields)
    blobs = [value for value in fields.values() if isinstance(value, Blob)]
    overlaps: tuple[Overlap, ...] = ()
    if context.is_constant(0):
        data = context.blob("input", np.asarray(context.constant(0)))
        blobs.append(data)
        origin: Expression = Identifier(data.name)
    else:
        origin = context.input_pointer(0)
    if not context.is_constant(0) and _may_alias(source.dtype, output.dtype):
        distance = max(output.size_bytes - source.size_bytes, 0)
        overlaps = (Overlap(input=source.name, output=output.name, distance_bytes=distance),)
    target = context.output_pointer()
    if bytes_as is not None and source.dtype is DataType.UINT8:
        origin = Cast(Pointer(Const(bytes_as)), origin)
    if bytes_as is not None and output.dtype is DataType.UINT8:
        target = Cast(Pointer(bytes_as), target)
    call = Call(Identifier(f"ferrule_{kernel}"), (pointer, origin, target))
    return LoweredOp(
        kernel=kernel,
        statements=(Evaluate(call),),
        declarations=(variable,),
        blobs=tuple(blobs),
        overlaps=overlaps,
        headers=(f"ferrule/kernels/{header}.h",),
        contributions=(KERNELS.part(kernel, *sources),),
    )


_LOOK_UPS = {"int8": "lookup_s8", "uint8": "lookup_s8", "int16": "lookup_s8_s16", "int32": "lookup_s8_s32"}


def look_up(context: LoweringContext, table: Array) -> LoweredOp:
    """Return the look-up of an 8-bit input in a table of 256 results, which starts with the result for the byte 128."""
    kernel = _LOOK_UPS[table.dtype.name]
    return unary_call(
        context,
        kernel,
        header="lookup",
        parameters=f"{kernel}_params",
        bytes_as=Scalar.INT8,
        table=context.blob("table", table.view(np.int8) if table.dtype == np.uint8 else table),
        elements=context.input(0).elements,
    )


def lower_table(context: LoweringContext) -> LoweredOp:
    """Return the look-up of an 8-bit input in the table of the numpy kernel's results."""
    every = _EVERY_INT8.view(context.input(0).dtype.numpy)
    (table,) = OPERATORS[context.layer.type].kernel(context.layer.descriptor, context.operands, [every])
    return look_up(context, table)


_MATH = {
    LayerType.COS: "trigonometry",
    LayerType.ELU: "expm1f",
    LayerType.EXP: "expf",
    LayerType.LOG: "logf",
    LayerType.RSQRT: "sqrtf",
    LayerType.SIN: "trigonometry",
    LayerType.SQRT: "sqrtf",
}
_RESCALINGS: Mapping[LayerType, Callable[[Operands], Rescaling]] = {
    LayerType.ABS: absolute_rescaling,
    LayerType.RSQRT: root_rescaling,
}
_EVERY_INT8 = np.arange(-128, 128, dtype=np.int8)


def lower_elementwise_unary(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel that is named after the layer's type; functions of int8 are tables."""
    type_, source = context.layer.type, context.input(0)
    if source.dtype is DataType.INT8:
        return lower_table(context)
    if source.dtype is DataType.INT16:
        rescaling = _RESCALINGS[type_](context.operands)
        return unary_call(
            context,
            f"{type_.lower()}_s16",
            header="elementwise_unary",
            parameters="stored_unary_params",
            multiplier=rescaling.multiplier,
            shift=rescaling.shift,
            elements=source.elements,
        )
    return unary_call(
        context,
        f"{type_.lower()}_{'bool' if source.dtype is DataType.BOOL else 'f32'}",
        header="elementwise_unary",
        parameters="elementwise_unary_params",
        sources=(_MATH[type_],) if type_ in _MATH else (),
        elements=source.elements,
    )


def _may_alias(source: DataType, output: DataType) -> bool:
    """Return whether C allows the same memory to be read as one type and written as the other."""
    return source is output or not {DataType.INT8, DataType.UINT8}.isdisjoint({source, output})


_REQUANTIZE = {
    (DataType.INT16, DataType.INT8): "requantize_s16_s8",
    (DataType.INT16, DataType.INT16): "requantize_s16",
    (DataType.INT16, DataType.INT32): "requantize_s16_s32",
    (DataType.INT32, DataType.INT8): "requantize_s32_s8",
    (DataType.INT32, DataType.INT16): "requantize_s32_s16",
}
_FROM_FLOAT = {DataType.INT8: "quantize_f32_s8", DataType.INT16: "quantize_f32_s16"}
_FROM_FLOAT_TO_EVEN = {DataType.INT8: "quantize_f32_even_s8"}
_TO_FLOAT = {DataType.INT8: "dequantize_s8", DataType.INT16: "dequantize_s16", DataType.UINT8: "dequantize_u8"}


def lower_quantize(context: LoweringContext) -> LoweredOp:
    """Return QUANTIZE as a table look-up for 8 bits, otherwise as a call of the kernel for the data types."""
    source, output = context.input(0), context.operands.output
    if source.dtype is DataType.FLOAT32:
        kernels = _FROM_FLOAT if context.operands.rounding is Rounding.TFLM else _FROM_FLOAT_TO_EVEN
        return unary_call(
            context,
            _quantize_kernel(context, kernels.get(output.dtype)),
            header="quantize",
            parameters="quantize_f32_params",
            scale=output.scale,
            zero_point=output.zero_point,
            elements=source.elements,
        )
    if context.operands.rounding is not Rounding.TFLM:
        return lower_table(context)
    multiplier, shift = requantization(source, output)
    if source.dtype in {DataType.INT8, DataType.UINT8}:
        inputs = np.arange(-128, 128, dtype=np.int8).view(source.dtype.numpy)
        return look_up(context, requantize(inputs, source.zero_point, multiplier, shift, output))
    return unary_call(
        context,
        _quantize_kernel(context, _REQUANTIZE.get((source.dtype, output.dtype))),
        header="quantize",
        parameters="requantize_params",
        input_zero_point=source.zero_point,
        output_zero_point=output.zero_point,
        multiplier=multiplier,
        shift=shift,
        elements=source.elements,
    )


def lower_dequantize(context: LoweringContext) -> LoweredOp:
    """Return the call for DEQUANTIZE."""
    source = context.input(0)
    return unary_call(
        context,
        _quantize_kernel(context, _TO_FLOAT.get(source.dtype)),
        header="quantize",
        parameters="dequantize_params",
        scale=source.scale,
        zero_point=source.zero_point,
        elements=source.elements,
    )


def _quantize_kernel(context: LoweringContext, name: str | None) -> str:
    if name is None:
        source, output = context.input(0), context.operands.output
        raise UnsupportedError(
            f"layer '{context.layer.name}': there is no kernel for {context.layer.type} of {source.dtype} "
            f"to {output.dtype}"
        )
    return name
