# SPDX-License-Identifier: Apache-2.0
"""ADD, SUB, MUL, MAXIMUM and MINIMUM in C.

ADD and SUB of int8 use two multiplications (`scaled_sum`) or, on other cores and if the output is large enough, two
tables of 256 words, where a check of all 65536 pairs of inputs shows that the results are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.backends.contribution import KERNELS, Contribution
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row, choose
from ferrule.backends.cpu_acc.lowering.operators.movement import bytes_for_c, dense_strides
from ferrule.backends.cpu_acc.lowering.proofs.scaled_sum import scaled_sum
from ferrule.backends.firmware import (
    Blob,
    FieldValue,
    LoweredOp,
    LoweringContext,
    numbers,
    parameter_table,
)
from ferrule.dom import Aggregate, Call, Evaluate, Expression, Field, Identifier, Integer
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Shape
from ferrule.memory.request import Overlap
from ferrule.operators.binary import BinaryDescriptor, combination_of, float_limits
from ferrule.operators.broadcast import MAX_AXES
from ferrule.operators.elementwise import Additive, Product, Result, Sum, Term, int8_results
from ferrule.operators.onnx_elementwise import FloatDifference, FusedSum

TABLE_MIN_ELEMENTS = 1024
"""The number of elements from which two tables (2048 bytes of flash) pay off, as they save 25 instructions or more
per element."""

_SUFFIX = {DataType.INT8: "s8", DataType.INT16: "s16", DataType.INT32: "s32", DataType.FLOAT32: "f32"}
_FRACTION_BITS = 20
"""The value of FRACTION_BITS in the C kernel."""
_TIE_BREAKERS = (0.0, 2.0**-22, 2.0**-20, 2.0**-18, -(2.0**-20))
"""Relative changes of the tables to try; a small change rounds halves away from zero, as the reference does."""
_NUDGES = (0, -1, 1)


def lower_arithmetic(context: LoweringContext) -> LoweredOp:
    """Return the call for ADD, SUB or MUL by TFLM's rule."""
    return _lower_any(context) if context.layer.type is LayerType.MUL else choose(context, SUM_ROWS)


def kernel_of(context: LoweringContext) -> str:
    """Return the kernel that is named after the layer's type and the output's."""
    return f"{context.layer.type.lower()}_{_SUFFIX[context.operands.output.dtype]}"


def _lower_any(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel that takes any scales."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, BinaryDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    dtype = context.operands.output.dtype
    name = kernel_of(context)
    shape = broadcast_shape(context)
    if dtype.is_float:
        low, high = float_limits(descriptor.activation)
        return binary_call(context, name, "binary_f32_params", shape=shape, low=low, high=high)
    if dtype is DataType.INT32:
        return without_parameters(context, name)
    match combination_of(context.layer.type, descriptor, context.operands):
        case Sum() as total:
            return _lower_sum(context, name, total, shape)
        case Product() as product:
            return binary_call(
                context,
                name,
                "product_params",
                shape=shape,
                first_offset=product.first_offset,
                second_offset=product.second_offset,
                result=result_fields(product.result),
            )
        case _:
            raise UnsupportedError(f"layer '{context.layer.name}' ({context.layer.type}) has no kernel for {dtype}")


def lower_extremum(context: LoweringContext) -> LoweredOp:
    """Return the call for MAXIMUM or MINIMUM."""
    suffix = _SUFFIX[context.operands.output.dtype]
    return without_parameters(context, f"{context.layer.type.lower()}_{suffix}")


def broadcast_shape(context: LoweringContext, order: tuple[int, int] = (0, 1)) -> Aggregate:
    """Return the initial value of a `struct ferrule_broadcast` for the two inputs, with the fewest axes."""
    extents, first, second = merged_axes(context, order)
    return Aggregate(
        (
            Field(padded(extents, 1), "extents"),
            Field(padded(first, 0), "first_strides"),
            Field(padded(second, 0), "second_strides"),
        )
    )


def result_fields(result: Result) -> Aggregate:
    """Return the initial value of a `struct ferrule_result`."""
    return Aggregate(
        (
            Field(Integer(result.multiplier), "multiplier"),
            Field(Integer(result.shift), "shift"),
            Field(Integer(result.zero_point), "zero_point"),
            Field(Integer(result.low), "low"),
            Field(Integer(result.high), "high"),
        )
    )


def binary_call(
    context: LoweringContext,
    kernel: str,
    struct: str,
    *,
    header: str = "binary",
    contribution: Contribution | None = None,
    order: tuple[int, int] = (0, 1),
    **fields: FieldValue,
) -> LoweredOp:
    """Return the call ferrule_<kernel>(table, first, second, output); `contribution` as in `kernel_call`.

    `order` has the positions of the inputs that the kernel takes as its first and second one.
    """
    parameters, pointer = parameter_table(context, f"ferrule_{struct}", **fields)
    operands = context.operands
    blobs = [value for value in fields.values() if isinstance(value, Blob)]
    arguments: list[Expression] = [pointer]
    overlaps: dict[str, Overlap] = {}
    for index in order:
        info = operands.input(index)
        if context.is_constant(index):
            blob = context.blob(f"input_{index}", bytes_for_c(np.asarray(context.constant(index))))
            blobs.append(blob)
            arguments.append(Identifier(blob.name))
            continue
        arguments.append(context.input_pointer(index))
        if (info.elements, info.dtype) == (operands.output.elements, operands.output.dtype):
            overlaps[info.name] = Overlap(input=info.name, output=operands.output.name, distance_bytes=0)
    call = Call(Identifier(f"ferrule_{kernel}"), (*arguments, context.output_pointer()))
    return LoweredOp(
        kernel=kernel,
        statements=(Evaluate(call),),
        declarations=(parameters,),
        blobs=tuple(blobs),
        overlaps=tuple(overlaps.values()),
        headers=(f"ferrule/kernels/{header}.h",),
        contributions=(contribution or KERNELS.part(kernel),),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumTables:
    """Two tables, indexed by a stored value read as uint8; the result is (first + second) >> 20, saturated to int8."""

    first: Array
    second: Array


def sum_tables(total: Additive) -> SumTables | None:
    """Return tables with the exact result for every pair of int8 inputs; None if none were found."""
    parts = total.parts()
    if (parts.low, parts.high) != (-128, 127):
        return None
    wanted = int8_results(total).reshape(256, 256)
    first, second = parts.first, parts.second
    unit = 2.0**_FRACTION_BITS
    factor = parts.unit * unit
    constant = (parts.constant + 0.5) * unit
    for tie_breaker in _TIE_BREAKERS:
        first_table = np.rint(first * factor * (1 + tie_breaker)).astype(np.int64)
        for nudge in _NUDGES:
            second_table = np.rint(second * factor * (1 + tie_breaker) + constant + nudge).astype(np.int64)
            sums = first_table[:, np.newaxis] + second_table
            # The entries of the tables must fit into 32 bits, too.
            if max(np.abs(table).max() for table in (sums, first_table, second_table)) >= 2**31:
                return None
            if np.array_equal(np.clip(sums >> _FRACTION_BITS, -128, 127), wanted):
                return SumTables(first=first_table.astype(np.int32), second=second_table.astype(np.int32))
    return None


def _total(context: LoweringContext) -> Additive | str:
    """Return the arithmetic of an ADD or SUB of int8, or the reason why it is not one."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, BinaryDescriptor) or context.operands.output.dtype is not DataType.INT8:
        return "the data is not int8"
    total = combination_of(context.layer.type, descriptor, context.operands)
    return total if isinstance(total, Sum | FusedSum | FloatDifference) else "the layer is not a sum"


def scaled_candidate(context: LoweringContext) -> Candidate | str:
    """Return the kernel of two multiplications with the costs of the DSP extension."""
    total = _total(context)
    constants = total if isinstance(total, str) else scaled_sum(total)
    if constants is None or isinstance(constants, str):
        return constants or "no two factors have the exact result for all pairs of inputs"
    return Candidate(
        kernel="sum_s8",
        instructions=(6 if _is_dense(context) else 24) * context.operands.output.elements,
        weight_bytes=12,
        lower=lambda: binary_call(
            context,
            "sum_s8",
            "scaled_sum_params",
            shape=broadcast_shape(context),
            first=constants.first,
            second=constants.second,
            constant=constants.constant,
        ),
    )


def _is_dense(context: LoweringContext) -> bool:
    operands = context.operands
    return all(operands.input(index).shape == operands.output.shape for index in range(2))


def table_candidate(context: LoweringContext) -> Candidate | str:
    """Return the kernel of two tables."""
    total = _total(context)
    if isinstance(total, str):
        return total
    if context.operands.output.elements * context.bands < TABLE_MIN_ELEMENTS:
        return f"the output has fewer than {TABLE_MIN_ELEMENTS} elements"
    tables = sum_tables(total)
    if tables is None:
        return "no two tables have the exact result for all pairs of inputs"
    return Candidate(
        kernel="sum_table_s8",
        instructions=(8 if _is_dense(context) else 12) * context.operands.output.elements,
        weight_bytes=tables.first.nbytes + tables.second.nbytes,
        lower=lambda: binary_call(
            context,
            "sum_table_s8",
            "sum_table_params",
            shape=broadcast_shape(context),
            first=context.blob("first_table", tables.first),
            second=context.blob("second_table", tables.second),
        ),
    )


def _any_sum(context: LoweringContext) -> Candidate:
    return Candidate(
        kernel=kernel_of(context),
        instructions=40 * context.operands.output.elements,
        weight_bytes=0,
        lower=lambda: _lower_any(context),
    )


SUM_ROWS: tuple[Row, ...] = (
    Row(kernel="sum_s8", needs=frozenset({Feature.DSP}), candidate=scaled_candidate),
    Row(kernel="sum_table_s8", candidate=table_candidate),
    Row(kernel="any_sum", candidate=_any_sum),
)
"""The kernels of ADD and SUB by TFLM's rule."""


def _lower_sum(context: LoweringContext, name: str, total: Sum, shape: Aggregate) -> LoweredOp:
    return binary_call(
        context,
        name,
        "sum_params",
        shape=shape,
        first=term_fields(total.first),
        second=term_fields(total.second),
        result=result_fields(total.result),
        left_shift=total.first.left_shift,
    )


def term_fields(term: Term) -> Aggregate:
    """Return the initial value of a `struct ferrule_term`."""
    return Aggregate(
        (
            Field(Integer(term.offset), "offset"),
            Field(Integer(term.multiplier), "multiplier"),
            Field(Integer(term.shift), "shift"),
        )
    )


def without_parameters(
    context: LoweringContext,
    kernel: str,
    contribution: Contribution | None = None,
    *,
    header: str = "binary",
    order: tuple[int, int] = (0, 1),
) -> LoweredOp:
    """Return the call of a kernel whose only parameters are those of broadcasting; see `binary_call`."""
    extents, first, second = merged_axes(context, order)
    return binary_call(
        context,
        kernel,
        "broadcast",
        header=header,
        order=order,
        extents=padded(extents, 1),
        first_strides=padded(first, 0),
        second_strides=padded(second, 0),
        contribution=contribution,
    )


def merged_axes(context: LoweringContext, inputs: Sequence[int]) -> list[list[int]]:
    """Return the extents and the strides of each input, outermost first; neighbours are merged if all allow it."""
    operands = context.operands
    shape = operands.output.shape
    strides = [repeated_strides(operands.input(index).shape, shape) for index in inputs]
    merged: list[tuple[int, ...]] = []
    for extent, *steps in zip(shape, *strides, strict=True):
        if extent == 1:
            continue
        if merged and all(outer == step * extent for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (merged[-1][0] * extent, *steps)
        else:
            merged.append((extent, *steps))
    return [[axis[place] for axis in merged] for place in range(len(strides) + 1)]


def repeated_strides(shape: Shape, wanted: Shape) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense tensor that broadcasts to shape `wanted`; 0 on repeated axes."""
    missing = len(wanted) - len(shape)
    strides = dense_strides(shape)
    own = tuple(0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True))
    return (0,) * missing + own


def padded(values: Sequence[int], filler: int, axes: int = MAX_AXES) -> Expression:
    """Return the initial value of an array with an element per axis; unused outer axes have the filler."""
    return numbers(np.array([filler] * (axes - len(values)) + list(values), np.int32))
