# SPDX-License-Identifier: Apache-2.0
"""The description of a board that the rest of Ferrule uses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from pathlib import Path

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.architectures import Architecture, Core, Cpu, architecture_of, core_of
from ferrule.backends.target import AddressRange, Memory
from ferrule.boards.description import Expansion, Setup
from ferrule.boards.repl import Interrupt, Value
from ferrule.boards.tags import Tag
from ferrule.errors import FerruleError, unknown_name
from ferrule.resources import root
from ferrule.timing import BoardTiming
from ferrule.timing.energy import BoardEnergy
from ferrule.timing.planned import Pace, pace_of

NANOSECONDS_PER_SECOND = 1_000_000_000


@frozen
class Peripheral(AddressRange):
    """One register window on the core's bus."""

    type: str
    """Renode's class, as in the platform description: `UART.CMSDK_APB_UART`."""
    properties: Mapping[str, Value]
    interrupts: tuple[Interrupt, ...]
    aliases: tuple[int, ...] = ()

    @property
    def uart_class(self) -> str:
        """Renode's class of a UART, and for Nordic's whether it is without EasyDMA, as in the nRF51."""
        without = self.type == "UART.NRF52840_UART" and self.properties.get("easyDMA") is not True
        return f"{self.type} without EasyDMA" if without else self.type


DEFAULT_STACK_BYTES = 16_384


@frozen
class Placement:
    """Names of the memories that hold the parts of a firmware."""

    code: str
    weights: str
    data: str
    workspace: str
    stack: str
    stack_bytes: int
    """Size of the stack; DEFAULT_STACK_BYTES if the board states none."""
    stack_is_stated: bool
    """Whether the board states the size; otherwise a build may reserve less, as its bound allows."""


@frozen
class QemuMachine:
    """How QEMU runs the board."""

    name: str
    """Argument of `-machine`."""
    instructions_per_tick: float
    """Instructions per SysTick tick under `-icount shift=0`, where one instruction takes 1 ns of virtual time."""
    serial: Mapping[str, int]
    """Index of the `-serial` option that each UART is connected to, by peripheral name."""
    lacks: tuple[str, ...] = ()
    """Names of the board's memories and peripherals that QEMU's machine lacks."""


@frozen
class Board:
    """A board, read from its platform description (.repl) and its board.toml."""

    name: str
    title: str
    cpu: Cpu
    clock_hz: int
    memories: tuple[Memory, ...]
    peripherals: tuple[Peripheral, ...]
    link_uart: Peripheral
    console_uart: Peripheral
    placement: Placement
    qemu: QemuMachine | None
    expansions: tuple[Expansion, ...] = ()
    """Places for accelerators, in the order in which they are assigned."""
    setup: tuple[Setup, ...] = ()
    """Register changes, in the order in which start-up code makes them."""
    tags: tuple[Tag, ...] = ()
    """Address ranges that read as zero and ignore writes."""
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Compiler flags in addition to those derived from the core, by toolchain name."""
    timing: BoardTiming | None = None
    """The waits of its memories at `clock_hz`; None if they are not stated."""
    energy: BoardEnergy | None = None
    """Its currents; None if they are not stated."""
    folder: Path
    platform: Path
    """The .repl file."""
    files: tuple[Path, ...]
    """board.toml, the .repl file and all files that it includes."""

    @override
    def __repr__(self) -> str:
        fpu = f" with {self.cpu.fpu}" if self.cpu.hard_float else ""
        memories = ", ".join(f"{each.name} {each.size_bytes // 1024:,} KiB of {each.kind}" for each in self.memories)
        return f"<Board {self.name}: {self.cpu.type}{fpu} at {self.clock_hz / 1e6:g} MHz, {memories}>"

    @property
    def architecture(self) -> Architecture:
        """The architecture of its core."""
        return architecture_of(self.cpu.type)

    @property
    def core(self) -> Core:
        """What is true of every core of its type."""
        return core_of(self.cpu.type)

    @property
    def controllers(self) -> tuple[Peripheral, ...]:
        """Its interrupt controllers."""
        return self.peripherals_of(self.architecture.platform.controller)

    @property
    def cache_line_bytes(self) -> int:
        """Bytes per line of the core's data cache; 0 if the core caches none of the memories."""
        return max((memory.line_bytes for memory in self.memories), default=0)

    @property
    def pace(self) -> Pace | None:
        """How fast its core runs kernels from its memories, for planned times; None for a core without a table."""
        place = self.placement
        return pace_of(self.cpu.type, self.timing, code=place.code, weights=place.weights)

    def memory(self, name: str) -> Memory:
        """Return a memory by name."""
        for memory in self.memories:
            if memory.name == name:
                return memory
        raise unknown_name("memory", name, (memory.name for memory in self.memories), where=f"on board {self.name}")

    def peripheral(self, name: str) -> Peripheral:
        """Return a peripheral by name."""
        for peripheral in self.peripherals:
            if peripheral.name == name:
                return peripheral
        raise unknown_name("peripheral", name, (each.name for each in self.peripherals), where=f"on board {self.name}")

    def path_among_boards(self, file: Path) -> Path:
        """Return the path of one of the board's files, relative to the folder of boards that contains it.

        Raises:
            FerruleError: the file lies neither beside the board's folder nor among Ferrule's own boards.
        """
        around, resolved = self.folder.parent, file.resolve()
        for start in (around, (root() / "boards").resolve()):
            if resolved.is_relative_to(start):
                return resolved.relative_to(start)
        raise FerruleError(
            f"board {self.name} includes {file}, which lies outside of {around}",
            hint="the board's files are copied together: put the included file beside the board's folder",
        )

    def path_for_renode(self, file: Path) -> Path:
        """Return the path, relative to Renode's folder, at which `using` finds a copy of one of the board's files.

        Raises:
            FerruleError: as `path_among_boards`.
        """
        path, own = self.path_among_boards(file), self.folder.name
        return path.relative_to(own) if path.is_relative_to(own) else path

    def setup_for(self, uarts: Collection[str]) -> tuple[Setup, ...]:
        """Return the register changes that a firmware using the UARTs of these names needs."""
        return tuple(each for each in self.setup if each.uart is None or each.uart in uarts)

    def uart_clock_hz(self, uart: Peripheral) -> int:
        """Return a UART's clock: `frequency` in the platform description or, if absent, the core's clock."""
        frequency = uart.properties.get("frequency")
        return frequency if isinstance(frequency, int) else self.clock_hz

    def peripherals_of(self, type_name: str) -> tuple[Peripheral, ...]:
        """Return the peripherals of one Renode class, in the order of the platform description."""
        return tuple(peripheral for peripheral in self.peripherals if peripheral.type == type_name)


def check_name(name: str, what: str) -> None:
    """Raise FerruleError for a name that is not valid in a linker script."""
    if not name.isidentifier() or not name.isascii():
        raise FerruleError(f"{what} '{name}' is not a plain identifier", hint="use letters, digits and underscores")
