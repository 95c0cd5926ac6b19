# SPDX-License-Identifier: Apache-2.0
"""What the parts of the builder of an executor share: the facts of the model, and C that occurs in several of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial, reduce

from ferrule.codegen.lowered import offset_name
from ferrule.codegen.storage import StoragePlan
from ferrule.dom import (
    Binary,
    BinaryOperator,
    Block,
    Const,
    Dereference,
    Expression,
    Function,
    Identifier,
    Integer,
    Linkage,
    Member,
    Not,
    Null,
    Parameter,
    Pointer,
    Scalar,
    Statement,
    StructType,
    call_of,
    return_if,
    unsigned,
)
from ferrule.memory import Region


class ExecutorPart:
    """The part of the builder on which the others rest."""

    def __init__(self, storage: StoragePlan) -> None:
        self.storage = storage
        self.lowered = storage.lowered
        self.graph = storage.lowered.graph
        self.arena = storage.lowered.plan.arena
        self.prefix = f"ferrule_{storage.lowered.symbol}"

    def constant(self, name: str) -> str:
        """Return the full name of a public enumerator of the model."""
        return f"{self.prefix}_{name}".upper()

    def variable(self, tensor: str) -> Identifier:
        """Return the executor's local pointer variable for a tensor."""
        return Identifier(self.lowered.variables[tensor])

    def offset_name(self, tensor: str) -> str:
        """Return the name of the enumerator for a tensor's offset in its memory."""
        return offset_name(self.lowered.variables[tensor])

    def size(self, tensor: str) -> Integer:
        """Return the bytes of a tensor."""
        return unsigned(self.graph.info(tensor).size_bytes)

    def parameter(self, struct: str) -> Parameter:
        """Return the parameter for one of the model's structures."""
        return Parameter(struct, Pointer(Const(StructType(f"{self.prefix}_{struct}"))))

    def function(
        self, name: str, parameters: Iterable[Parameter], statements: Iterable[Statement], doc: str
    ) -> Function:
        """Return a function that the model's user calls, which returns a status."""
        return Function(
            f"{self.prefix}_{name}",
            Scalar.INT32,
            parameters=tuple(parameters),
            body=Block(tuple(statements)),
            linkage=Linkage.EXTERNAL,
            doc=doc,
        )

    def checked_block(self, region: Region) -> Iterator[Statement]:
        """Yield the checks of the memory that the caller gives for a region."""
        given = member("memory", region.name)
        yield refuse_null(given)
        yield refuse_misaligned(given, Identifier(self.constant(f"{region.name}_alignment")))
        if self.storage.plan.region(region.name).peak_bytes:
            size, least = member("memory", workspace_size(region.name)), self.constant(f"{region.name}_bytes")
            yield refuse(Binary(BinaryOperator.LESS, size, Identifier(least)))


def workspace_size(region: str) -> str:
    """Return the member of the memory struct that states a region's size."""
    return f"{region}_bytes"


def member(struct: str, name: str) -> Expression:
    """Return a member of a structure that a parameter points to."""
    return Member(Dereference(Identifier(struct)), name)


def refuse_null(*pointers: Expression) -> Statement:
    """Return the statement that refuses null pointers."""
    tests = (Binary(BinaryOperator.EQUAL, pointer, Null()) for pointer in pointers)
    return refuse(reduce(partial(Binary, BinaryOperator.OR), tests))


def refuse_misaligned(pointer: Expression, alignment: Expression) -> Statement:
    """Return the statement that refuses a misaligned pointer."""
    return refuse(Not(call_of("ferrule_is_aligned", pointer, alignment)))


def refuse(condition: Expression) -> Statement:
    """Return the statement that refuses the arguments of a function if a condition holds."""
    return return_if(condition, Identifier("FERRULE_ERR_ARGUMENT"))
