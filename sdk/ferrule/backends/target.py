# SPDX-License-Identifier: Apache-2.0
"""What a backend is asked for: on which face, on which device, beside which core and memories, with which options."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ferrule.backends.device import BackendId, Device, default_device
from ferrule.backends.optimization_views import ModelOptions


class Face(StrEnum):
    """Where a network is to run: which face of a backend it needs."""

    HOST = "host"
    """In the runtime: tensors have handles, and data that changes hands is copied or imported by layers."""
    FIRMWARE = "firmware"
    """On a board: what goes to a device that has a memory of its own, or comes from there, is copied by layers; where
    else a tensor lies is the code generator's decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreFeatures:
    """What the processor core that runs the generated C can do."""

    name: str
    """As GCC's -mcpu names it, e.g. "cortex-m4"."""
    fpu: bool = False
    """Single precision in hardware."""
    dsp: bool = False
    mve: bool = False


class MemoryKind(StrEnum):
    """Whether a memory keeps its contents without power; code and weights are linked into the first kind only."""

    FLASH = "flash"
    RAM = "ram"


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(AddressRange):
    """One memory on the core's bus."""

    kind: MemoryKind
    cacheable: bool
    """Whether the core's data cache may hold its lines."""
    line_bytes: int
    """Bytes per line of that cache; 0 where nothing is cached."""
    masters: tuple[str, ...]
    """Bus masters that reach it: `cpu`, and the names of devices."""
    aliases: tuple[int, ...] = ()
    """Further addresses at which the same bytes appear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a layer is to run: plain values, the same in each question about one device."""

    face: Face
    device: Device
    """The instance of the backend, with its binding."""
    core: CoreFeatures | None = None
    """The board's core; None on the host, and where no board is chosen yet."""
    memories: tuple[Memory, ...] = ()
    """The board's memories; empty on the host, and where no board is chosen yet."""
    options: ModelOptions = field(default_factory=dict, hash=False)
    """The user's options for the backend."""


def default_target(backend: BackendId, face: Face = Face.HOST, options: ModelOptions | None = None) -> Target:
    """Return a backend's target without a board, on the device of a backend that has no entry."""
    return Target(face=face, device=default_device(backend), options=options or {})
