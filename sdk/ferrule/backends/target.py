# SPDX-License-Identifier: Apache-2.0
"""Targets: the face, device, core, memories and options for which a backend runs a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.device import BackendId, Device, default_device
from ferrule.backends.optimization_views import ModelOptions
from ferrule.timing.planned import Pace


class Face(StrEnum):
    """Where a network runs: the face of a backend that is used."""

    HOST = "host"
    """In the runtime: tensors have handles, and layers copy or import data that moves between backends."""
    FIRMWARE = "firmware"
    """On a board: layers copy data to and from devices that have their own memory; the code generator places all other
    tensors."""


class Goal(StrEnum):
    """The cost that backends minimise where they have several ways to run a layer in a firmware, see `PRICES`."""

    SPEED = "speed"
    """Instructions; RAM and flash may grow."""
    BALANCED = "balanced"
    """Instructions, as far as those that are saved are worth the bytes."""
    SIZE = "size"
    """Flash."""
    MEMORY = "memory"
    """Workspace; instructions may grow."""
    TIME = "time"
    """Planned cycles, where the core has a table of them, and otherwise instructions; RAM and flash may grow."""


@frozen
class Price:
    """The instructions of one inference, with the goal `time` the cycles, that a byte must save to be worth it; 0 if
    bytes are free.
    """

    ram: float = 0
    """Per byte of the workspace."""
    flash: float = 0
    """Per byte of weights."""

    @override
    def __str__(self) -> str:
        return f"ram={self.ram:g} flash={self.flash:g}"


PRICES: Mapping[Goal, Price] = {
    Goal.SPEED: Price(),
    Goal.BALANCED: Price(ram=20, flash=4),
    Goal.SIZE: Price(ram=20, flash=1000),
    Goal.MEMORY: Price(ram=1000, flash=4),
    Goal.TIME: Price(),
}
"""What bytes are worth to each goal."""


@frozen
class CoreFeatures:
    """Features of the processor core that runs the generated C."""

    name: str
    """The core's name for GCC's -mcpu, e.g. "cortex-m4"."""
    fpu: bool = False
    """Whether it has single-precision floating point in hardware."""
    dsp: bool = False
    """Whether it has the DSP extension."""
    mve: bool = False
    """Whether it has the M-profile Vector Extension."""

    @property
    def baseline(self) -> bool:
        """Whether it has the Armv6-M instructions only: no long multiply, no IT blocks, no CLZ."""
        return self.name in {"cortex-m0", "cortex-m0plus", "cortex-m1"}


class MemoryKind(StrEnum):
    """Whether a memory keeps its contents without power (FLASH) or not (RAM); code and weights go into FLASH only."""

    FLASH = "flash"
    RAM = "ram"


@frozen
class AddressRange:
    """A named range of addresses on the core's bus."""

    name: str
    address: int
    size_bytes: int

    @property
    def end(self) -> int:
        """The first address after the range."""
        return self.address + self.size_bytes

    def __contains__(self, address: int) -> bool:
        return self.address <= address < self.end

    def overlaps(self, other: AddressRange) -> bool:
        """Return whether an address is in both ranges."""
        return self.address < other.end and other.address < self.end


@frozen
class Memory(AddressRange):
    """One memory on the core's bus."""

    kind: MemoryKind
    cacheable: bool
    """Whether the core's data cache may hold lines of this memory."""
    line_bytes: int
    """Bytes per line of that cache; 0 if the memory is not cached."""
    masters: tuple[str, ...]
    """Bus masters that can access it: `cpu`, and the names of devices; empty if all can."""
    aliases: tuple[int, ...] = ()
    """Further addresses at which the same bytes appear."""

    def reached_by(self, master: str, regions: tuple[str, ...] = ()) -> bool:
        """Return whether a bus master, which reaches the memories `regions` (all if there are none), can access it."""
        return (not self.masters or master in self.masters) and (not regions or self.name in regions)


@frozen
class Target:
    """Where a layer runs, as plain values; the same target is passed in every call about one device."""

    face: Face
    device: Device
    """The instance of the backend, with its binding."""
    core: CoreFeatures | None = None
    """The board's core; None on the host, or if no board is chosen yet."""
    memories: tuple[Memory, ...] = ()
    """The board's memories; empty on the host, or if no board is chosen yet."""
    options: ModelOptions = field(default_factory=dict, hash=False)
    """The user's options for the backend."""
    goal: Goal = Goal.BALANCED
    """The cost that the firmware minimises; without an effect on the host."""
    own_price: Price | None = None
    """The user's own price of bytes; None for that of the goal."""
    pace: Pace | None = None
    """How fast the core runs kernels from the board's memories; None if that is unknown."""
    input_rows: bool = False
    """Whether the firmware takes the network's input row by row; see `LoweredOp.feed`."""

    @property
    def price(self) -> Price:
        """What the firmware pays for bytes in instructions."""
        return PRICES[self.goal] if self.own_price is None else self.own_price

    @property
    def clocked(self) -> Pace | None:
        """How fast the core runs kernels if the firmware minimises time; None if it minimises instructions."""
        return self.pace if self.goal is Goal.TIME else None

    @property
    def aim(self) -> str:
        """The goal, or the user's own price, for reports."""
        return str(self.goal) if self.own_price is None else f"the price {self.own_price}"


def default_target(backend: BackendId, face: Face = Face.HOST, options: ModelOptions | None = None) -> Target:
    """Return a backend's target without a board, on the backend's default device."""
    return Target(face=face, device=default_device(backend), options=options or {})
