# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled kernels through cffi, equivalent to the C generated for a lowered operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ferrule.backends.cpu_acc.host.library import HostLibrary
from ferrule.backends.firmware import LoweredOp
from ferrule.backends.shared.host_memory import address, aligned_empty
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayData,
    ArrayType,
    Block,
    Boolean,
    Call,
    Cast,
    Const,
    Declare,
    Evaluate,
    Expression,
    Float,
    Identifier,
    Integer,
    Null,
    Pointer,
    Statement,
    StructType,
    Variable,
)
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType

SCRATCH = "scratch"
"""The identifier of the scratch memory in calls."""


class _Symbols(dict[str, Any]):
    """What identifiers stand for; those that nothing else has are functions, to which parameter tables may point."""

    def __init__(self, functions: object, symbols: Mapping[str, object]) -> None:
        super().__init__(symbols)
        self._functions = functions

    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - cffi's is untyped
        return getattr(self._functions, name)


class Calls:
    """The kernel calls of a lowered operator, in order, with their parameter tables and constants in memory."""

    def __init__(
        self, op: LoweredOp, library: HostLibrary, tensors: Mapping[str, str], symbols: Mapping[str, object]
    ) -> None:
        """Prepare the calls of `op`.

        `tensors` maps the names of the operator's tensors to their identifiers; `symbols` maps further identifiers to
        pointers.
        """
        self._ffi = library.ffi
        self._functions = library.functions
        self._kernel = op.kernel
        self._keep: list[object] = []
        self._symbols: dict[str, Any] = _Symbols(library.functions, symbols)
        self.places: dict[str, list[tuple[int, int]]] = {name: [] for name in (*tensors, SCRATCH)}
        """The arguments that are a tensor's address, or the scratch's: the indices of their calls, and their own."""
        self.members: dict[str, list[Any]] = {name: [] for name in tensors}
        """Pointers to the members of parameter tables that are a tensor's address."""
        self._tensors = {identifier: name for name, identifier in tensors.items()} | {SCRATCH: SCRATCH}
        for blob in op.blobs:
            self._symbols[blob.name] = self._constant(blob.data)
        for declaration in op.declarations:
            self._declare(declaration)
        self.calls: list[tuple[object, list[Any]]] = []
        """Functions and their arguments, None for those in `places`."""
        for statement in op.statements:
            self._call(statement)

    def _constant(self, data: Array) -> object:
        """Return a pointer to a copy of a constant; the copy is aligned to a cache line."""
        copy = aligned_empty((data.size,), DataType(data.dtype.name))
        copy[:] = data.reshape(-1)
        self._keep.append(copy)
        return self._ffi.cast("void *", address(copy))

    def _declare(self, declaration: object) -> None:
        match declaration:
            case Variable(name=name, type=Const(StructType(tag)), value=Aggregate() as value):
                table = self._ffi.new(f"struct {tag} *", self._value(value))
                self._symbols[name] = table
                self._keep.append(table)
            case Variable(name=name, type=ArrayType(Const(StructType(tag))), value=Aggregate() as value):
                tables = self._ffi.new(f"struct {tag}[]", self._value(value))
                self._symbols[name] = tables
                self._keep.append(tables)
            case _:
                raise UnsupportedError(
                    f"kernel {self._kernel} needs more than parameter tables, which the host can't run"
                )

    def _local(self, declaration: Declare) -> None:
        """Make a table of its own for a local variable, some of whose members point to tensors."""
        match declaration:
            case Declare(name, Const(StructType()) as type_, Aggregate(fields)):
                bound = {str(each.name): self._tensor(each.value) for each in fields}
                constant = Aggregate(tuple(each for each in fields if bound[str(each.name)] is None))
                self._declare(Variable(name, type_, value=constant))
                for member, tensor in bound.items():
                    if tensor is not None:
                        place = self._ffi.addressof(self._symbols[name][0], member)
                        self.members[tensor].append(self._ffi.cast("void **", place))
            case _:
                raise UnsupportedError(f"kernel {self._kernel} has a local variable that is no parameter table")

    def _tensor(self, node: Expression | None) -> str | None:
        """Return the name of the tensor to which an expression points; None for others."""
        pointer = node.operand if isinstance(node, Cast) else node
        return self._tensors.get(pointer.name) if isinstance(pointer, Identifier) else None

    def _call(self, statement: Statement) -> None:
        match statement:
            case Block((Declare() as declaration, call)):
                self._local(declaration)
                self._call(call)
            case Evaluate(Call(Identifier(name), arguments)):
                values: list[Any] = []
                for index, given in enumerate(arguments):
                    tensor = self._tensor(given)
                    if tensor is not None:
                        self.places[tensor].append((len(self.calls), index))
                    values.append(self._value(given) if tensor is None else None)
                self.calls.append((getattr(self._functions, name), values))
            case _:
                raise UnsupportedError(f"kernel {self._kernel} needs more than calls, which the host can't run")

    def _value(self, node: Expression) -> Any:  # noqa: ANN401 - see evaluate
        return evaluate(node, self._symbols, self._ffi.NULL)


def evaluate(node: Expression, symbols: Mapping[str, Any], null: object) -> Any:  # noqa: ANN401 - cffi's is untyped
    """Return the value of an argument, or of a member of a parameter table, in a form that cffi accepts.

    `symbols` maps identifiers to pointers; `null` is cffi's null pointer.

    Raises:
        UnsupportedError: lowerings do not use this kind of expression.
    """
    match node:
        case Integer(value) | Float(value) | Boolean(value):
            return value
        case Null():
            return null
        case Identifier(name) | AddressOf(Identifier(name)):
            return symbols[name]
        case Cast(Pointer(), operand):  # the type of a pointer is without meaning here
            return evaluate(operand, symbols, null)
        case ArrayData(values):
            return np.ravel(values).tolist()
        case Aggregate(fields):
            if all(field.name is None for field in fields):
                return [evaluate(field.value, symbols, null) for field in fields]
            return {str(field.name): evaluate(field.value, symbols, null) for field in fields}
        case _:
            raise UnsupportedError(f"the host can't evaluate {type(node).__name__} in a parameter table")
