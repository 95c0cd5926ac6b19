# SPDX-License-Identifier: Apache-2.0
"""What an architecture brings to the embedded engine: unicorn's core, the C beside it, and the core's peripherals."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from ferrule._frozen import frozen

U32, I32, U64, POINTER = ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_void_p
MOST_REGISTERS = 40
"""FERRULE_GUEST_REGISTERS of the C hooks: the length of arrays with one element for each register."""
Prototype = tuple[str, Any, tuple[Any, ...]]
"""A function of the C hooks, with the types of its result and its parameters."""


@frozen
class UnicornCore:
    """How the Python package unicorn names an architecture."""

    architecture: str
    """Its constant, as `UC_ARCH_ARM`."""
    mode: str
    constants: str
    """The module with the constants of its registers and models."""
    register_prefix: str
    models: Mapping[str, str]
    """The constants of models by core."""
    page_bytes: int
    """The smallest mapping."""


@frozen
class HookSources:
    """The C of an architecture in the engine's library, beside the C that all share."""

    folder: Path
    sources: tuple[str, ...]
    """Names without the suffix; there is a header of each name in `headers`."""
    headers: tuple[str, ...]


class EnginePlace(Protocol):
    """A peripheral of the board, as in the platform description."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def type(self) -> str:
        """Renode's class."""

    @property
    def address(self) -> int:
        """The address of its window."""

    @property
    def size_bytes(self) -> int:
        """The size of its window."""

    @property
    def properties(self) -> Mapping[str, Any]:
        """Its properties."""


class EngineGuest(Protocol):
    """A core with its memories in unicorn, while nothing runs."""

    hooks: Any
    """The loaded C hooks."""

    @property
    def state_address(self) -> int:
        """The address of its `struct ferrule_guest`."""

    def register_id(self, name: str) -> int:
        """Return unicorn's number for a register."""

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """Return words of a memory; fewer if the memory ends earlier."""

    def map_c(
        self, address: int, size_bytes: int, read: str, write: str, unit: ctypes.Structure | ctypes.Array[ctypes.c_char]
    ) -> None:
        """Attach a peripheral whose functions `read` and `write` are in the C hooks."""

    def map_python(
        self,
        address: int,
        size_bytes: int,
        read: Callable[[int, int], int],
        write: Callable[[int, int, int], None],
    ) -> None:
        """Attach a peripheral whose model is in Python."""

    def synchronise(self, address: int, size_bytes: int) -> None:
        """Make time exact at every access to a peripheral."""

    def bus_access(self, address: int, size_bytes: int, value: int | None = None) -> int:
        """Read an address as the core does during its current access, or write `value` if it is not None."""


class EngineCore(Protocol):
    """The model of a core."""

    core: int
    """The address of its `struct ferrule_core`."""
    state: ctypes.Array[ctypes.c_char]
    """Its memory."""


class CoreModel(ABC):
    """An architecture's part of the embedded engine. The C is compiled into one library with that of the engine."""

    unicorn: ClassVar[UnicornCore]
    hooks: ClassVar[HookSources]
    prototypes: ClassVar[Sequence[Prototype]]
    """The functions of its C that its Python calls."""
    mirrors: ClassVar[Sequence[tuple[str, type[ctypes.Structure]]]]
    """The functions that return the sizes of structs, and the structs as they are in Python."""
    registers: ClassVar[tuple[str, ...]]
    """Unicorn's names of registers in the order of its `enum ferrule_register`, at most MOST_REGISTERS."""
    call: ClassVar[str]
    """The name of the instruction that calls a supervisor."""
    reset_request: ClassVar[str]
    """How a firmware requests a reset."""

    @abstractmethod
    def configuration(
        self, core: str, controllers: Sequence[EnginePlace], vector_table: int, fault_registers: Sequence[int]
    ) -> ctypes.Structure:
        """Return its `struct ferrule_core_config`.

        Args:
            core: the core's name.
            controllers: the interrupt controllers on the board.
            vector_table: the address of the memory that holds the code.
            fault_registers: unicorn's numbers of the architecture's registers, in their order.
        """

    @abstractmethod
    def attach_controller(self, guest: EngineGuest, core: EngineCore, place: EnginePlace) -> None:
        """Attach the registers of an interrupt controller, and of the core beside it."""

    @abstractmethod
    def attach(self, guest: EngineGuest, core: EngineCore, place: EnginePlace) -> bool:
        """Attach another peripheral that is a part of the core; return whether it is one.

        Raises:
            FerruleError: its platform description lacks a property.
        """

    @abstractmethod
    def reset(self, guest: EngineGuest, vector_table: int) -> dict[str, int]:
        """Return the values of registers after a reset; FerruleError if the firmware has no place to begin."""

    @abstractmethod
    def written(self, register: str, value: int) -> tuple[str, int]:
        """Return unicorn's name and value for setting a register of `Architecture.registers`."""

    @abstractmethod
    def fault_text(self, exception: int, status: int, more: int) -> str:
        """Return the exception first raised for a fault, and its causes by the two words of `struct ferrule_fault`."""

    @abstractmethod
    def trap_text(self, number: int) -> str:
        """Describe an exception of the emulator, by its number, that cores of the architecture do not have."""
