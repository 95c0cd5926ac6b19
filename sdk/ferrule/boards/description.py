# SPDX-License-Identifier: Apache-2.0
"""The schema of board.toml, which holds what a platform description cannot express."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from ferrule.backends.target import MemoryKind
from ferrule.boards.allowed import LONGEST_TITLE, check_flags, check_machine
from ferrule.documents import convert, read_toml
from ferrule.errors import FerruleError
from ferrule.reading import exists
from ferrule.rendering import check_text

EXPANSION_BYTES = 0x1000
"""The default size of a place for an accelerator, and the unit of its address and size."""

_Positive = Annotated[int, msgspec.Meta(gt=0)]
_NotNegative = Annotated[int, msgspec.Meta(ge=0)]
_Word = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF_FFFF)]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the file that has these keys and no others."""


class CpuDescription(_Table, frozen=True, kw_only=True):
    """Table `[cpu]`."""

    fpu: str
    dsp: bool
    mve: bool = False
    interrupts: _Positive | None = None


class MemoryDescription(_Table, frozen=True, kw_only=True):
    """Table `[memories.<name>]`."""

    kind: MemoryKind
    masters: tuple[str, ...] = ()
    cacheable: bool = False
    line_bytes: _NotNegative = 0


class PlacementDescription(_Table, frozen=True, kw_only=True):
    """Table `[placement]`."""

    code: str
    weights: str
    data: str
    workspace: str
    stack: str
    stack_bytes: _Positive | None = None


class UartDescription(_Table, frozen=True, kw_only=True):
    """Table `[uarts]`: names of peripherals."""

    link: str
    console: str


class Expansion(_Table, frozen=True, kw_only=True):
    """Element of the array `expansions`: free addresses and an interrupt for an accelerator of the emulated board."""

    address: _NotNegative
    size_bytes: _Positive = EXPANSION_BYTES
    """The largest window of registers that fits."""
    interrupt: _NotNegative
    """Input of the interrupt controller, counted from 0; the emulated controller has it even if the chip's does not."""


class Setup(_Table, frozen=True, kw_only=True):
    """Table `[[setup]]`: a read-modify-write of a register that the real chip needs before its UARTs work."""

    address: _Word
    clear: _Word = 0
    """Bits to clear; they are cleared before `set` is applied."""
    set: _Word = 0
    """Bits to set."""
    wait: _Word = 0
    """Bits that the chip sets once it has done so; start-up waits for them, but never for ever."""
    why: str
    """The reason in one line, with its source."""
    uart: str | None = None
    """The UART that needs the change; None if every firmware needs it."""


class QemuDescription(_Table, frozen=True, kw_only=True):
    """Table `[qemu]`."""

    machine: str
    clock_hz: _Positive | None = None
    lacks: tuple[str, ...] = ()
    serial: dict[str, _NotNegative]


class FlagsDescription(_Table, frozen=True, kw_only=True, rename=lambda name: name.replace("_", "-")):
    """Table `[flags]`: compiler flags by toolchain, in addition to those derived from the core."""

    zig: tuple[str, ...] = ()
    arm_none_eabi_gcc: tuple[str, ...] = ()

    @property
    def by_toolchain(self) -> dict[str, tuple[str, ...]]:
        """The flags by the toolchain's name."""
        return dict(msgspec.to_builtins(self))


class CacheDescription(_Table, frozen=True, kw_only=True):
    """A cache of a memory."""

    sets: int
    ways: int
    line_bytes: int


class MemoryTimingDescription(_Table, frozen=True, kw_only=True):
    """Table `[timing.<memory>]`."""

    wait_states: int = 0
    write_wait_states: int = 0
    dma_wait_states: int = 0
    width_bytes: int = 4
    prefetch: bool = False
    instruction_cache: CacheDescription | None = None
    data_cache: CacheDescription | None = None


class TimingDescription(_Table, frozen=True, kw_only=True):
    """Table `[timing]` without the tables of memories."""

    source: str
    residual: tuple[float, float] | None = None


class CurrentDescription(_Table, frozen=True, kw_only=True, omit_defaults=True):
    """Tables `[energy.asleep]`, `[energy.stopped]` and `[energy.running.<memory>]`."""

    ua: tuple[float, float] | None = None
    ua_per_mhz: tuple[float, float] | None = None
    source: str


class DeviceCurrentsDescription(_Table, frozen=True, kw_only=True):
    """Table `[energy.devices.<name>]`."""

    work_ua: tuple[float, float]
    idle_ua: tuple[float, float]
    source: str


class EnergyDescription(_Table, frozen=True, kw_only=True, omit_defaults=True):
    """Table `[energy]`."""

    supply_v: float
    running: dict[str, CurrentDescription]
    asleep: CurrentDescription | None = None
    stopped: CurrentDescription | None = None
    devices: dict[str, DeviceCurrentsDescription] = {}


class BoardDescription(_Table, frozen=True, kw_only=True):
    """The whole of board.toml."""

    title: str
    platform: str
    clock_hz: _Positive
    cpu: CpuDescription
    memories: dict[str, MemoryDescription]
    placement: PlacementDescription
    uarts: UartDescription
    setup: tuple[Setup, ...] = ()
    expansions: tuple[Expansion, ...] = ()
    qemu: QemuDescription | None = None
    flags: FlagsDescription = FlagsDescription()
    timing: dict[str, Any] | None = None
    """`source` and `residual` (TimingDescription) beside a table per memory (MemoryTimingDescription)."""
    energy: EnergyDescription | None = None

    @property
    def energy_table(self) -> dict[str, Any]:
        """The table `[energy]` as it was written; empty without one."""
        return {} if self.energy is None else dict(msgspec.to_builtins(self.energy))


def read_description(file: Path) -> BoardDescription:
    """Read a board.toml.

    Raises:
        FerruleError: the file cannot be read, violates the schema, or has a text, a flag or a machine that a board may
            not have; the message names the key.
    """
    if not exists(file):
        raise FerruleError(f"there is no {file}", hint="a board is a folder with a board.toml")
    hint = "docs/boards.md describes every key"
    description = convert(str(file), read_toml(file, hint=hint), BoardDescription, hint=hint)
    check_text(description.title, f"{file}: title", longest=LONGEST_TITLE)
    for name, flags in description.flags.by_toolchain.items():
        check_flags(flags, f"{file}: flags.{name}")
    if description.qemu is not None:
        check_machine(description.qemu.machine, f"{file}: qemu.machine")
    return description
