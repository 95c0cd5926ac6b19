# SPDX-License-Identifier: Apache-2.0
"""What code does to the stack and to the flow of control, instruction by instruction, for the bound of the stack."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import ClassVar, NamedTuple, Protocol


class Flow(IntEnum):
    """The instruction that follows."""

    NEXT = 0
    BRANCH = 1
    """The target."""
    BRANCH_IF = 2
    """The target or the next one."""
    CALL = 3
    """The target, and later the next one."""
    POINTER_CALL = 4
    """One whose address is in a register or in memory, and later the next one."""
    POINTER_JUMP = 5
    TABLE = 6
    """One of a table of offsets in bytes (target 1) or halfwords (target 2)."""
    END = 7
    """None of the function: a return, or an instruction that is always a fault."""


class Effect(NamedTuple):
    """What an instruction does."""

    flow: Flow = Flow.NEXT
    target: int = 0
    pushed: int = 0
    """Bytes by which the stack grows; negative if it shrinks."""
    sets_sp: bool = False
    """Whether the stack pointer gets a value that is not the old one and a constant."""
    conditional: tuple[bool, ...] = ()
    """For each of the next instructions that depend on a condition, whether it is executed if the condition holds."""


PLAIN = Effect()


class Words(Protocol):
    """The code of a firmware by address."""

    def word(self, address: int) -> int | None:
        """Return a word of the sections with code, or None outside them."""

    def instruction(self, address: int) -> tuple[int, int] | None:
        """Return the two halfwords at an address, the second 0 for a short instruction; None if there is no code."""


class Instructions(ABC):
    """The instructions of an architecture, of one or two halfwords each."""

    mark: ClassVar[str]
    """The name of the symbols that mark the begin of code among data (`$d`) in an ELF file."""
    calls: ClassVar[frozenset[int]]
    """The types of ELF's relocations of calls and branches to a fixed target."""
    unwinding: ClassVar[int | None]
    """The type of ELF's sections for unwinding, which the linker script discards; None if code has none of its own."""

    @abstractmethod
    def is_wide(self, first: int) -> bool:
        """Return whether an instruction that begins with this halfword has two."""

    @abstractmethod
    def effect(self, address: int, first: int, second: int) -> Effect:
        """Return the effect of the instruction at an address; `second` counts only for one of two halfwords."""

    @abstractmethod
    def thunk(self, code: Words, entry: int) -> int | None:
        """Return the target of a linker's thunk, which only jumps to another function; None for other functions."""
