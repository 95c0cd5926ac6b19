# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled kernels through cffi, equivalent to the C generated for a lowered operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ferrule._typing import override
from ferrule.backends.cpu_acc.host.library import HostLibrary
from ferrule.backends.firmware import LoweredOp
from ferrule.backends.shared.host_memory import address, aligned_empty
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayData,
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


class _Members(list[Any]):
    """The members of a parameter table that point to tensors, which are set as the arguments of a call are."""

    def __init__(self, table: object, names: Sequence[str]) -> None:
        super().__init__([None] * len(names))
        self._table = table
        self._names = names

    @override
    def __setitem__(self, index: Any, value: Any) -> None:  # noqa: ANN401 - as list's
        setattr(self._table, self._names[index], value)


class Calls:
    """The kernel calls of a lowered operator, in order, with their parameter tables and constants in memory.

    Tensor arguments are bound by name with `bind`, and bound again whenever their memory moves.
    """

    def __init__(
        self, op: LoweredOp, library: HostLibrary, tensors: Mapping[str, str], symbols: Mapping[str, object]
    ) -> None:
        """Prepare the calls of `op`.

        `tensors` maps the names of the operator's tensors to their identifiers; `symbols` maps further identifiers to
        pointers.
        """
        self._ffi = library.ffi
        self._keep: list[object] = []
        self._symbols: dict[str, Any] = dict(symbols)
        self._places: dict[str, list[tuple[list[Any], int]]] = {SCRATCH: []}
        self._places |= {name: [] for name in tensors}
        self._tensors = {identifier: name for name, identifier in tensors.items()} | {SCRATCH: SCRATCH}
        for blob in op.blobs:
            self._symbols[blob.name] = self._constant(blob.data)
        self.has_tables = False
        """Whether tensors are bound in parameter tables, too, and not only in arguments."""
        for declaration in op.declarations:
            self._declare(op, declaration)
        self.calls = tuple(self._call(op, statement, library) for statement in op.statements)
        """Pairs of a function and its arguments."""

    def bind(self, name: str, address_: int) -> None:
        """Set the address of a tensor, or of the scratch, for the following calls."""
        pointer = self._ffi.cast("void *", address_)
        for arguments, index in self._places[name]:
            arguments[index] = pointer

    def places(self, name: str) -> list[tuple[list[Any], int]]:
        """Return the arguments that are a tensor's address, or the scratch's: lists of arguments and indices."""
        return self._places[name]

    def _constant(self, data: Array) -> object:
        """Return a pointer to a copy of a constant; the copy is aligned to a cache line."""
        copy = aligned_empty((data.size,), DataType(data.dtype.name))
        copy[:] = data.reshape(-1)
        self._keep.append(copy)
        return self._ffi.cast("void *", address(copy))

    def _declare(self, op: LoweredOp, declaration: object) -> None:
        match declaration:
            case Variable(name=name, type=Const(StructType(tag)), value=Aggregate() as value):
                table = self._ffi.new(f"struct {tag} *", self._value(value))
                self._symbols[name] = table
                self._keep.append(table)
            case _:
                raise UnsupportedError(f"kernel {op.kernel} needs more than parameter tables, which the host can't run")

    def _local(self, op: LoweredOp, declaration: Declare) -> None:
        """Make a table of its own for a local variable, some of whose members point to tensors."""
        match declaration:
            case Declare(name, Const(StructType()) as type_, Aggregate(fields)):
                bound = {str(each.name): self._tensor(each.value) for each in fields}
                names = [member for member, tensor in bound.items() if tensor is not None]
                constant = Aggregate(tuple(each for each in fields if each.name not in names))
                self._declare(op, Variable(name=name, type=type_, value=constant))
                members = _Members(self._symbols[name], names)
                for index, member in enumerate(names):
                    self._places[str(bound[member])].append((members, index))
                self.has_tables = True
            case _:
                raise UnsupportedError(f"kernel {op.kernel} has a local variable that is no parameter table")

    def _tensor(self, node: Expression | None) -> str | None:
        """Return the name of the tensor to which an expression points; None for others."""
        pointer = node.operand if isinstance(node, Cast) else node
        return self._tensors.get(pointer.name) if isinstance(pointer, Identifier) else None

    def _call(self, op: LoweredOp, statement: Statement, library: HostLibrary) -> tuple[Callable[..., None], list[Any]]:
        match statement:
            case Block((Declare() as declaration, call)):
                self._local(op, declaration)
                return self._call(op, call, library)
            case Evaluate(Call(Identifier(name), arguments)):
                values: list[Any] = []
                for given in arguments:
                    tensor = self._tensor(given)
                    if tensor is not None:
                        self._places[tensor].append((values, len(values)))
                        values.append(None)
                    else:
                        values.append(self._value(given))
                return getattr(library.functions, name), values
            case _:
                raise UnsupportedError(f"kernel {op.kernel} needs more than calls, which the host can't run")

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
