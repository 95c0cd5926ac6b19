# SPDX-License-Identifier: Apache-2.0
"""Lowers layers to C: calls of the functions in the folder's `src_c/`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ferrule.backends import (
    KERNELS,
    SCALARS,
    Blob,
    Contribution,
    LoweredOp,
    LoweringContext,
    PreCompiledDescriptor,
    read_manifest,
)
from ferrule.dom import (
    AddressOf,
    Aggregate,
    Call,
    Cast,
    Const,
    Evaluate,
    Expression,
    Field,
    Float,
    Identifier,
    Index,
    Integer,
    Pointer,
    Statement,
    StructType,
    Variable,
)
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType
from ferrule.operators import BinaryDescriptor
from my_custom.arithmetic import Combination, FloatSum, Sum, arithmetic_of
from my_custom.program import AdditionProgram

ALIGNMENT_BYTES = 4


@cache
def contributions() -> tuple[Contribution, ...]:
    """Return the C of this folder, as its backend.toml lists it, and the headers of Ferrule's kernels."""
    return (*read_manifest(Path(__file__).parent).contributions(), KERNELS.part())


class CustomTarget:
    """Lowers additions and programs of additions."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return the layer as calls of the adder."""
        descriptor = context.layer.descriptor
        if isinstance(descriptor, PreCompiledDescriptor) and isinstance(descriptor.payload, AdditionProgram):
            return _lower_program(context, descriptor.payload)
        if isinstance(descriptor, BinaryDescriptor):
            return _lower_addition(context, descriptor)
        raise UnsupportedError(f"layer '{context.layer.name}': the device adds, it has no {context.layer.type}")


def _lower_program(context: LoweringContext, program: AdditionProgram) -> LoweredOp:
    """Return one call per step; registers that are neither inputs nor outputs are in the scratch memory."""
    size = -(-program.elements * program.dtype.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    registers: list[Expression] = [context.input_pointer(index) for index in range(program.inputs)]
    kept = {register: index for index, register in enumerate(program.outputs)}
    scratch_bytes = 0
    for register in range(program.inputs, program.registers):
        if register in kept:
            registers.append(context.output_pointer(kept[register]))
        else:
            registers.append(_in_scratch(context, program.dtype, scratch_bytes))
            scratch_bytes += size
    tables: list[Variable] = []
    statements: list[Statement] = []
    for number, step in enumerate(program.steps):
        table = _table(context.symbol(f"step_{number}"), step.arithmetic, program.elements)
        tables.append(table)
        operands = (registers[step.first], registers[step.second], registers[step.result])
        statements.append(_call(program.dtype, table, operands))
    return LoweredOp(
        kernel=f"program_{_suffix(program.dtype)}",
        statements=tuple(statements),
        declarations=tuple(tables),
        scratch_bytes=scratch_bytes,
        scratch_alignment=ALIGNMENT_BYTES,
        headers=("my_custom/adder.h",),
        contributions=contributions(),
    )


def _lower_addition(context: LoweringContext, descriptor: BinaryDescriptor) -> LoweredOp:
    output = context.operands.output
    table = _table(context.symbol("step"), arithmetic_of(descriptor, context.operands), output.elements)
    blobs: list[Blob] = []
    operands: list[Expression] = []
    for index in range(2):
        data = context.constant(index) if context.is_constant(index) else None
        if data is None:
            operands.append(context.input_pointer(index))
        else:
            blobs.append(context.blob(f"operand_{index}", data))
            operands.append(Identifier(blobs[-1].name))
    return LoweredOp(
        kernel=f"add_{_suffix(output.dtype)}",
        statements=(_call(output.dtype, table, (*operands, context.output_pointer())),),
        declarations=(table,),
        blobs=tuple(blobs),
        headers=("my_custom/adder.h",),
        contributions=contributions(),
    )


def _suffix(dtype: DataType) -> str:
    return "f32" if dtype.is_float else "s8"


def _in_scratch(context: LoweringContext, dtype: DataType, offset: int) -> Expression:
    bytes_ = Cast(Pointer(SCALARS[DataType.UINT8]), context.scratch)
    return Cast(Pointer(SCALARS[dtype]), AddressOf(Index(bytes_, Integer(offset))))


def _call(dtype: DataType, table: Variable, operands: Sequence[Expression]) -> Statement:
    arguments = (AddressOf(Identifier(table.name)), *operands)
    return Evaluate(Call(Identifier(f"my_custom_add_{_suffix(dtype)}"), arguments))


def _table(name: str, arithmetic: Combination | FloatSum, elements: int) -> Variable:
    """Return the constant parameters of one addition."""
    fields: dict[str, Expression] = {"elements": Integer(elements)}
    if isinstance(arithmetic, FloatSum):
        fields |= {"low": Float(arithmetic.low), "high": Float(arithmetic.high)}
        return _constant(name, "my_custom_add_f32", fields)
    assert isinstance(arithmetic, Sum)  # layer_support.py refuses other rules of rounding on boards
    result = arithmetic.result
    fields["left_shift"] = Integer(arithmetic.first.left_shift)
    for which, term in (("first", arithmetic.first), ("second", arithmetic.second)):
        fields[which] = _numbers(offset=term.offset, multiplier=term.multiplier, shift=term.shift)
    numbers = {
        "multiplier": result.multiplier,
        "shift": result.shift,
        "zero_point": result.zero_point,
        "low": result.low,
        "high": result.high,
    }
    fields |= {key: Integer(value) for key, value in numbers.items()}
    return _constant(name, "my_custom_add_s8", fields)


def _numbers(**values: int) -> Aggregate:
    return Aggregate(tuple(Field(Integer(value), name) for name, value in values.items()))


def _constant(name: str, struct: str, fields: dict[str, Expression]) -> Variable:
    members = tuple(Field(value, member) for member, value in fields.items())
    return Variable(name=name, type=Const(StructType(struct)), value=Aggregate(members))
