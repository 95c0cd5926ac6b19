# SPDX-License-Identifier: Apache-2.0
"""The interface of an architecture: all that a kind of core brings to boards, firmware, emulation and reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from ferrule._frozen import frozen
from ferrule.architectures.core_model import CoreModel
from ferrule.architectures.cpu import Core, Cpu
from ferrule.architectures.instructions import Instructions
from ferrule.architectures.micro_program import Areas, Assembly, MicroProgram
from ferrule.architectures.state import FaultRecord, RegisterNames, Registers, Semihosting
from ferrule.backends.contribution import Contribution

Words = tuple[str, ...]
"""A part of a command's arguments."""


@frozen
class PlatformClasses:
    """Renode's classes for the parts of a core, as a platform description (.repl) names them."""

    core: str
    controller: str
    """The interrupt controller that peripherals are connected to."""
    window_bytes: Mapping[str, int]
    """The windows of classes whose registration needs no size."""
    devicetree: str
    """The label of the interrupt controller in Zephyr's devicetrees."""


@frozen
class Gcc:
    """GCC for bare-metal firmware."""

    program: str
    """The compiler's command, which is the name of the toolchain, too."""
    package: str
    """Debian's package."""
    library: str
    """Debian's package of its C library."""


@frozen
class Qemu:
    """QEMU's emulator of an architecture."""

    program: str
    package: str
    """Debian's package."""
    machine: str
    """A machine that every release has."""
    registers: str
    """A regular expression that finds the names and hexadecimal values of registers in `info registers`."""
    renamed: Mapping[str, str]
    """The names of registers by those that QEMU prints."""


@frozen
class RenodeDefect:
    """Instructions that some releases of Renode compute wrongly."""

    last_release: tuple[int, int]
    cores: tuple[str, ...]
    is_wrong: Callable[[int, int], bool]
    """Whether an instruction of two halfwords is one of them."""
    what: str
    """The instructions, as the rest of a sentence about the firmware that contains them."""
    why: str
    """What Renode does, in a sentence that begins with its name."""


@frozen
class Elf:
    """What ELF files say of an architecture (32 bits, little-endian)."""

    machine: str
    """pyelftools' name of e_machine."""
    title: str
    """The architecture in a sentence: `Arm`."""


class Architecture(ABC):
    """A kind of core. A value without state; `ferrule.architectures.table` lists all."""

    name: ClassVar[str]
    """The family's name: `Cortex-M`."""
    cores: ClassVar[Mapping[str, Core]]
    """Supported cores by the designer's name in lower case."""
    plain: ClassVar[Cpu]
    """A core without options, with which compilers are tried."""
    platform: ClassVar[PlatformClasses]
    gcc: ClassVar[Gcc]
    clang_target: ClassVar[str]
    """The target by which editors' clang understands sources that zig compiles."""
    elf: ClassVar[Elf]
    instructions: ClassVar[Instructions]
    registers: ClassVar[RegisterNames]
    semihosting: ClassVar[Semihosting]
    qemu: ClassVar[Qemu]
    model: ClassVar[CoreModel]
    """Its part of the embedded engine."""
    assembly: ClassVar[Assembly]
    renode_defects: ClassVar[Sequence[RenodeDefect]]
    startup: ClassVar[Contribution]
    """Start-up code without an operating system. Its sources are reset and vectors, from the reset to main with the
    table of handlers; fault, which fills in the fault record; and memory, the functions of string.h that compilers call
    implicitly.
    """
    bare_metal: ClassVar[Contribution]
    """What the adapter for a core without an operating system needs of an architecture: interrupt, the handlers of
    devices' interrupts; and timer, the clock of ferrule/port.h.
    """
    fault_words: ClassVar[int]
    """Words of the fault record."""

    @abstractmethod
    def cpu(self, kind: str, *, fpu: str, dsp: bool, mve: bool, interrupts: int | None, file: str, place: str) -> Cpu:
        """Return the core that a platform description calls `kind`, with the options of the table `[cpu]`.

        `kind` is Renode's `cpuType`, and `interrupts` is None for as many as the core can have. Messages name `file`,
        the board.toml, and `place`, the file and line of the core in the platform description.

        Raises:
            FerruleError: the core is not supported, or it cannot have an option.
        """

    @abstractmethod
    def zig_flags(self, cpu: Cpu) -> Words:
        """Return the flags that select a core for zig."""

    @abstractmethod
    def gcc_flags(self, cpu: Cpu) -> Words:
        """Return the flags that select a core for GCC."""

    def startup_for(self, cache_line_bytes: int) -> Contribution:
        """Return the start-up code for a core with a data cache of that line size, which it switches on; 0: without."""
        if not cache_line_bytes:
            return self.startup
        return replace(self.startup, defines={"FERRULE_CACHE_LINE": f"{cache_line_bytes}u"})

    @abstractmethod
    def handlers(self, symbols: Mapping[str, int], word: Callable[[int], int | None]) -> Sequence[int]:
        """Return the addresses of the reset handler, and then of every other handler once.

        Args:
            symbols: the addresses of the firmware's symbols by name.
            word: returns a word of the firmware's code, or None.

        Raises:
            LookupError: what the firmware lacks, as the rest of a sentence about it.
        """

    @abstractmethod
    def exception_bytes(self, cpu: Cpu) -> int:
        """Return how many bytes of stack the core itself takes at most when it takes an exception."""

    @abstractmethod
    def longest_loop_bytes(self, cpu: Cpu) -> int | None:
        """Return the bytes of the longest loop that a branch of the core reaches; None if that is no limit."""

    @abstractmethod
    def micro_programs(self, cpu: Cpu, used: Areas) -> tuple[MicroProgram, ...]:
        """Return the programs of a calibration for a core, in the order in which it runs them."""

    @abstractmethod
    def disassemble(self, code: bytes, address: int) -> str | None:
        """Return the text of the first instruction; None without the optional package capstone."""

    @abstractmethod
    def caller(self, registers: Registers) -> int:
        """Return the address of the call whose return address is in the link register."""

    @abstractmethod
    def fault_record(self, words: Sequence[int]) -> FaultRecord | None:
        """Return the record in these words, or None if no fault has been recorded."""
