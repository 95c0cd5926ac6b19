# SPDX-License-Identifier: Apache-2.0
"""What runs a firmware, and what one sees of it meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ferrule.boards import Board
from ferrule.devices import DeviceModel, Range, SerialModel
from ferrule.emulation.crash import CrashReport
from ferrule.errors import FerruleError, MissingToolError
from ferrule.link import DEFAULT_BAUD, Channel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttachedDevice:
    """A device that the board does not have, put onto its bus."""

    name: str
    model: DeviceModel
    address: int
    """Of its registers; the board has nothing there."""
    interrupt: int | None = None
    """Line of the interrupt controller, counted from 0; None if it has none."""
    ranges: tuple[Range, ...] = ()
    """The memory that it may reach; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttachedWire:
    """A device behind a serial line, connected to one of the board's UARTs."""

    name: str
    model: SerialModel
    uart: str
    """As the platform description calls it; neither link nor console."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """What the user says of an engine; each engine reads what concerns it."""

    port: str | None = None
    """serial: the board's port, by its name or as a URL of pyserial."""
    baud: int = DEFAULT_BAUD
    """serial: bits per second."""
    gdb: int | None = None
    """unicorn and qemu: the TCP port of this machine at which the firmware stands until gdb connects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A board with a firmware on it."""

    board: Board
    elf: Path
    devices: tuple[AttachedDevice, ...] = ()
    wires: tuple[AttachedWire, ...] = ()
    options: EngineOptions = EngineOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """How far a firmware got."""

    instructions: int | None
    """Executed since reset, those that an IT block suppressed included; None where the engine can't be asked."""
    resolution: float
    """Instructions by which a count that the firmware takes itself may be off; 1 is exact."""
    unit: str = "instructions"
    """What the firmware's own counter counts here: emulators know instructions only, silicon has cycles."""


class Session(Protocol):
    """A running firmware, for one thread. It ends with `stop`, or at the end of its `with` block."""

    def channel(self, name: str = "link") -> Channel:
        """Return the bytes of a UART: `link`, `console`, or a name from the platform description."""

    def counters(self) -> Counters:
        """Return the counts so far."""

    def crash_report(self, reason: str) -> CrashReport | None:
        """Return where the firmware stands now, None if that is unknown; `reason` says why it is asked for."""

    def stop(self) -> None:
        """End it; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Engine(Protocol):
    """A kind of emulator."""

    @property
    def name(self) -> str:
        """How the user names it."""

    def missing(self) -> MissingToolError | None:
        """Return what must be installed before it runs here; None if nothing."""

    def refuses(self, board: Board, devices: Sequence[str] = ()) -> str | None:
        """Return why it can't run a board, with device models of these names on its bus; None if it can."""

    def refuses_wires(self, names: Sequence[str]) -> str | None:
        """Return why it can't have devices of these names behind serial lines; None if it can."""
        return f"it does not connect devices behind serial lines ({', '.join(names)}); unicorn, qemu and renode do"

    def lacks(self, options: EngineOptions) -> FerruleError | None:
        """Return what must be said in the options before it runs; None if nothing."""
        del options
        return None

    def start(self, machine: Machine) -> Session:
        """Reset the machine and let it run.

        Raises:
            MissingToolError: a program or package is missing.
            EngineError: the engine can't run this board or this firmware.
        """
