# SPDX-License-Identifier: Apache-2.0
"""Devices that do not stop as they should, made from any model with registers and a STATUS.BUSY.

A write that ends the model's work, such as that of a reset, is what stops it, whatever the register is called.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from ferrule._typing import override
from ferrule.devices import Bus, DeviceModel, InterruptLine, Register, RegisterModel
from ferrule.devices.model import Bytes, NoInterrupt

LATE_CYCLES = 40
"""How long what a posting device writes is on its way, if nothing else is said."""


class Manner(StrEnum):
    """How a device obeys."""

    SOUND = "sound"
    SLOW = "slow"
    """It goes on for some time, and says so until it has stopped."""
    DEAF = "deaf"
    """It ignores that it is stopped, and says so."""
    LYING = "lying"
    """It says that it has stopped, and goes on."""
    POSTING = "posting"
    """What it writes is still on its way when it says that it is ready, also after a stop."""


def disobedient(model: Callable[[], RegisterModel], manner: Manner, *, cycles: int = 0) -> Callable[[], RegisterModel]:
    """Return what makes such a device; so many cycles later, a slow one stops, or a posting one's data arrives."""
    if manner is Manner.SOUND:
        return model

    def make() -> RegisterModel:
        made = model()
        kind = type(made)
        mixin = _Posting if manner is Manner.POSTING else _Unstopped
        made.__class__ = type(f"{manner.capitalize()}{kind.__name__}", (mixin, kind), {})
        if isinstance(made, _Unstopped):
            made.kind, made.manner, made.cycles_to_stop = kind, manner, cycles
        elif isinstance(made, _Posting):
            made.cycles_on_the_way = cycles or LATE_CYCLES
        return made

    return make


class _Unstopped(RegisterModel):
    """A device that a stop does not reach, or not at once. The work that it should have left is that of a copy."""

    kind: type[RegisterModel]
    """The class of the model as it was."""
    manner: Manner
    cycles_to_stop: int
    _ghost: DeviceModel | None = None
    _stopping = 0

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        before = None if super().next_event() is None else _state(self)
        super().write(offset, width, value)
        if before is None or super().next_event() is not None:
            return
        if self.manner is Manner.DEAF:
            self.__dict__.update(before)
            return
        self._ghost = object.__new__(self.kind)
        self._ghost.__dict__ |= {**before, "bus": self.bus, "irq": NoInterrupt()}
        self._stopping = self.cycles_to_stop

    @override
    def advance(self, cycles: int) -> None:
        super().advance(cycles)
        if self._ghost is None:
            return
        slow = self.manner is Manner.SLOW
        self._ghost.advance(min(cycles, self._stopping) if slow else cycles)
        self._stopping = max(self._stopping - cycles, 0)
        if self._ghost.next_event() is None or (slow and not self._stopping):
            self._ghost = None

    @override
    def next_event(self) -> int | None:
        events = [super().next_event(), None if self._ghost is None else self._ghost.next_event()]
        if self._ghost is not None and self._stopping:
            events.append(self._stopping)
        return min((event for event in events if event is not None), default=None)

    @override
    def on_read(self, register: Register) -> int:
        value = super().on_read(register)
        if register.name == "STATUS" and self._ghost is not None and self.manner is Manner.SLOW:
            value |= register.field("BUSY").mask
        return value


class _Posting(RegisterModel):
    """A device whose transfers to memory arrive later than it says."""

    cycles_on_the_way: int
    _wire: _Wire | None = None

    @override
    def attach(self, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        if bus is not None:
            self._wire = _Wire(bus, self.cycles_on_the_way)
        super().attach(bus=None if bus is None else self._wire, irq=irq)

    @override
    def advance(self, cycles: int) -> None:
        if self._wire is not None:
            self._wire.advance(cycles)
        super().advance(cycles)

    @override
    def next_event(self) -> int | None:
        events = [super().next_event(), self._wire and self._wire.left]
        return min((event for event in events if event), default=None)


class _Wire:
    """A bus on which what is written takes its time."""

    def __init__(self, bus: Bus, cycles: int) -> None:
        self._bus = bus
        self._cycles = cycles
        self._posted: list[tuple[int, bytes]] = []
        self.left = 0

    def read(self, address: int, size_bytes: int) -> bytes:
        return self._bus.read(address, size_bytes)

    def write(self, address: int, data: bytes) -> None:
        self._posted.append((address, bytes(data)))
        self.left = self._cycles

    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        return self._bus.view(address, size_bytes, writable=writable)

    def advance(self, cycles: int) -> None:
        self.left = max(self.left - cycles, 0)
        if self.left:
            return
        posted, self._posted = self._posted, []
        for address, data in posted:
            self._bus.write(address, data)


def _state(model: DeviceModel) -> dict[str, Any]:
    """Return a copy of what a model knows; not its connections."""
    own = {name: value for name, value in vars(model).items() if name not in {"bus", "irq", "_ghost", "_wire"}}
    return copy.deepcopy(own)
