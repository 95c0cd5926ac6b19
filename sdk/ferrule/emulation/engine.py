# SPDX-License-Identifier: Apache-2.0
"""The interfaces of engines and of the sessions in which they run a firmware."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ferrule._frozen import frozen
from ferrule.boards import Board
from ferrule.child_process import CommandError, first_line, run
from ferrule.devices import DeviceModel, Range, SerialModel
from ferrule.emulation.contract import ContractCounts, ContractPlan
from ferrule.emulation.crash import CrashReport
from ferrule.emulation.durations import DurationPlan
from ferrule.emulation.ownership import OwnershipCounts, OwnershipPlan
from ferrule.errors import FerruleError, MissingToolError
from ferrule.link import DEFAULT_BAUD, BoardMemory, Channel
from ferrule.record import file_digest
from ferrule.timing import Duration, timed_cores

_VERSION_S = 60
"""Seconds for a program to state its version, before it is taken for one that does not."""


class Clock(StrEnum):
    """What time is counted in while a firmware runs; SysTick, timers, device models and CYCCNT follow it."""

    INSTRUCTIONS = "instructions"
    """Each instruction takes one unit, so that figures and traces depend on nothing else."""
    CYCLES = "cycles"
    """Each instruction takes as many units as the model of the core and of the board's memories says."""


@frozen(eq=False)
class AttachedDevice:
    """A device model added to the board's bus."""

    name: str
    model: DeviceModel
    address: int
    """Address of the registers, where the board has nothing."""
    interrupt: int | None = None
    """Input of the interrupt controller, counted from 0; None if the device has no interrupt."""
    ranges: tuple[Range, ...] = ()
    """The memory that the device may access; empty for all."""
    operators: frozenset[int] = frozenset()
    """The indices of the network's operators that the device runs."""


@frozen
class DeviceWork:
    """What a device model did, each number exact."""

    read_bytes: int = 0
    """Bytes that it read by DMA; see `ferrule.devices.GuardedBus`."""
    written_bytes: int = 0
    busy: int = 0
    """Instructions during which it was at work, for which the core waits unless other layers run meanwhile."""

    def plus(self, other: DeviceWork, sign: int = 1) -> DeviceWork:
        """Return the sum with another, or with sign -1 the difference."""
        return DeviceWork(
            read_bytes=self.read_bytes + sign * other.read_bytes,
            written_bytes=self.written_bytes + sign * other.written_bytes,
            busy=self.busy + sign * other.busy,
        )


@frozen
class Observation:
    """What a run has shown of a device, without having failed."""

    notes: tuple[str, ...]
    """One sentence each, such as on an interrupt that was masked and not enabled again."""
    registers: Mapping[str, int]
    """The device's registers at the end, by name."""


@frozen(eq=False)
class AttachedWire:
    """A device behind a serial line, connected to one of the board's UARTs."""

    name: str
    model: SerialModel
    uart: str
    """Name of the UART in the platform description; neither the link's nor the console's."""


@frozen
class EngineOptions:
    """The user's options for an engine; each engine reads those that apply to it."""

    port: str | None = None
    """serial: the board's port, as a device name or a pyserial URL."""
    baud: int = DEFAULT_BAUD
    """serial: bits per second."""
    gdb: int | None = None
    """unicorn and qemu: the local TCP port on which to wait for gdb; the firmware is halted until it connects."""
    through_link: bool = False
    """unicorn and qemu: whether inputs and outputs pass through the link, as on a real board and with other engines,
    and not directly to and from the emulated memory."""
    semihosting: bool = False
    """unicorn: whether `bkpt 0xAB` is a call to the host (Arm semihosting): its text appears on the console, and its
    exit ends the session with an ExitError. The host's files are never accessible."""


_NO_CONTRACT = ContractPlan(unchecked="the layers of the firmware are not known: it was started as an ELF alone")
_NO_DURATIONS = DurationPlan()


@frozen
class Machine:
    """A board with a firmware and attached device models."""

    board: Board
    elf: Path
    """The firmware's ELF file; a str is accepted, too."""
    devices: tuple[AttachedDevice, ...] = ()
    wires: tuple[AttachedWire, ...] = ()
    options: EngineOptions = EngineOptions()
    ownership: OwnershipPlan | None = None
    """unicorn: the plan with which every access to the workspace is compared; see `ownership_plan`."""
    contract: ContractPlan = _NO_CONTRACT
    """unicorn: the commands with which every transfer of a device is compared; see `contract_plan`."""
    durations: DurationPlan = _NO_DURATIONS
    """unicorn: where runs begin and wait, so that they are timed; see `duration_plan`."""
    callback_s: float | None = None
    """Longest time of one call of a device model, if that is shorter than the model's own deadline."""
    clock: Clock = Clock.INSTRUCTIONS
    """unicorn: what time is counted in; the other engines have no choice."""

    def __post_init__(self) -> None:
        if not isinstance(self.elf, (str, PathLike)):
            raise FerruleError(f"a machine's elf is of type {type(self.elf).__name__}, expected a path")
        object.__setattr__(self, "elf", Path(self.elf))


@frozen
class Counters:
    """Execution counts of a firmware."""

    instructions: int | None
    """Instructions executed since reset, including those suppressed by an IT block; None if the engine cannot tell."""
    resolution: float
    """Possible error, in instructions, of a count that the firmware takes itself; 1 is exact."""
    unit: str = "instructions"
    """The unit of the firmware's own counter: instructions on emulators, cycles on silicon."""
    per_tick: float = 1
    """How many of these a tick of SysTick is."""


class Session(Protocol):
    """A running firmware, for use by one thread; it ends with `stop` or with its `with` block."""

    def channel(self, name: str = "link") -> Channel:
        """Return the channel of a UART: `link`, `console`, or a name from the platform description."""

    def counters(self) -> Counters:
        """Return the current counts."""

    def elapsed(self) -> int | None:
        """Return the time since reset in units of the machine's clock, sleep included; None if it is unknown."""
        return None

    def memory(self) -> BoardMemory | None:
        """Return the board's memory, or None if the engine does not reach it while the firmware runs."""
        return None

    def ownership(self) -> OwnershipCounts | None:
        """Return what the check of ownership has covered so far; None if the machine has no plan for it."""
        return None

    def contract(self) -> ContractCounts | None:
        """Return what the check of the devices' contract has covered so far; None if the engine does not check it."""
        return None

    def observations(self) -> Mapping[str, Observation]:
        """Return what was remarkable about devices so far, by device; only those with something to say."""
        return {}

    def device_work(self) -> Mapping[tuple[str, int | None], DeviceWork] | None:
        """Return the work of devices so far, by device and by the operator that it was for; None for work outside of
        operators. The result is None if the engine cannot tell.
        """
        return None

    def durations(self) -> Sequence[Duration] | None:
        """Return the times of the runs that have ended since the last call, the last thousand of them at most; None if
        the engine does not time runs.
        """
        return None

    def crash_report(self, reason: str) -> CrashReport | None:
        """Return a report on the firmware's current state, or None if it is unknown; `reason` is quoted in it."""
        return None

    def stop(self) -> None:
        """End the session; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def version_of(program: str) -> str:
    """Return the first line that a program prints for --version, and a digest of it; "not installed" for ""."""
    if not program:
        return "not installed"
    try:
        said = first_line(run([program, "--version"], _VERSION_S, check=False))
    except CommandError as error:
        said = f"does not state its version: {error}"
    return f"{said} ({file_digest(os.path.realpath(program))[:16]})"


class Engine(Protocol):
    """An emulator, or a connection to real boards."""

    checks_ownership: bool = False
    """Whether the engine can check the ownership of a firmware's workspace."""

    @property
    def name(self) -> str:
        """The name that users select the engine by."""

    def missing(self) -> MissingToolError | None:
        """Return the error for a missing program or package, or None if the engine can run here."""
        return None

    def version(self) -> str:
        """Return the version of the emulator in one line, which results may depend on; "" if there is none."""
        return ""

    def refuses(self, board: Board, devices: Sequence[str] = ()) -> str | None:
        """Return why the engine cannot run a board with device models of these names on its bus; None if it can."""
        return None

    def refuses_clock(self, board: Board, clock: Clock) -> str | None:
        """Return why the engine cannot count time on a board in a clock; None if it can."""
        if clock is Clock.INSTRUCTIONS:
            return None
        return f"engine {self.name} has no model of a core's cycles"

    def check_clock(self, board: Board, clock: Clock) -> None:
        """Raise FerruleError if the engine cannot count time on a board in a clock."""
        refusal = self.refuses_clock(board, clock)
        if refusal is not None:
            raise FerruleError(
                f"the clock {clock} cannot be had: {refusal}",
                hint=f"use the clock {Clock.INSTRUCTIONS}, or the engine unicorn with a board whose core has a model: "
                f"{', '.join(timed_cores())}",
            )

    def lacks(self, options: EngineOptions) -> FerruleError | None:
        """Return the error for a missing option, or None if the options suffice."""
        return None

    def kept(self) -> Engine:
        """Return an engine like this one that keeps what outlives a session, such as an emulator's process, until
        `end`; one session at a time. An engine whose sessions are quick to start returns itself.
        """
        return self

    def end(self) -> None:
        """End what the engine keeps between sessions; a second call does nothing."""
        return

    def start(self, machine: Machine) -> Session:
        """Reset the machine and start it.

        Raises:
            MissingToolError: a program or package is missing.
            EngineError: the engine cannot run this board or this firmware.
            FerruleError: an option is missing, or the engine cannot check ownership or has not the machine's clock.
        """
        if machine.ownership is not None and not self.checks_ownership:
            raise FerruleError(f"engine {self.name} cannot check ownership", hint="the engine that can: unicorn")
        self.check_clock(machine.board, machine.clock)
        lacking = self.missing() or self.lacks(machine.options)
        if lacking is not None:
            raise lacking
        return self._start(machine)

    def _start(self, machine: Machine) -> Session:
        """Start a machine, for which nothing is missing."""
