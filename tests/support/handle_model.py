# SPDX-License-Identifier: Apache-2.0
"""A reference model in Python of a device's handle: one call at a time, by any thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fake_device import Event

from ferrule.link.protocol import Status

LIMIT = 2**32 - 1
MEMORY_BYTES = 64


@dataclass(slots=True)
class HandleModel:
    """A handle: each call returns its status and appends the platform and driver calls it causes to `events`."""

    initialised: bool = False
    bound: bool = False
    bare: bool = False
    """Whether the handle is bound to the driver without functions."""
    activations: int = 0
    opener: int = 0
    events: list[Event] = field(default_factory=list)
    faults: Mapping[Event, Status] = field(default_factory=dict)

    def init(self, _: int) -> Status:
        if self.initialised:
            return Status.STATE
        status = self._do(Event.INIT)
        self.initialised = status is Status.OK
        return status

    def bind(self, _: int, *, bare: bool = False) -> Status:
        if not self.initialised:
            return Status.HANDLE
        if self.bound:
            return Status.STATE
        self.bound, self.bare = True, bare
        return Status.OK

    def activate(self, _: int) -> Status:
        if not self.initialised:
            return Status.HANDLE
        if not self.bound or self.activations == LIMIT:
            return Status.STATE
        if self.activations:
            self.activations += 1
            return Status.OK
        return self._locked(self._power_up)

    def deactivate(self, _: int) -> Status:
        if not self.initialised:
            return Status.HANDLE
        if not self.activations:
            return Status.STATE
        if self.activations > 1:
            self.activations -= 1
            return Status.OK
        if self.opener:
            return Status.BUSY
        return self._locked(self._power_down)

    def open(self, thread: int, refusal: Status = Status.TIMEOUT) -> Status:
        if not self.initialised:
            return Status.HANDLE
        if not self.activations or self.opener == thread:
            return Status.STATE
        status = self._do(Event.LOCK)
        if status is not Status.OK:
            return status
        if self.opener:
            return refusal
        status = self._do(Event.READY)
        if status is Status.OK:
            status = self._drive(Event.CHECK)
        if status is Status.OK:
            self.opener = thread
        else:
            self._do(Event.UNLOCK)
        return status

    def close(self, thread: int) -> Status:
        status = self._mine(thread)
        if status is Status.OK:
            self.opener = 0
            status = self._do(Event.UNLOCK)
        return status

    def destroy(self, _: int) -> Status:
        if not self.initialised:
            return Status.HANDLE
        if self.activations or self.opener:
            return Status.BUSY
        self.initialised = self.bound = False
        return self._do(Event.DESTROY)

    def copy(self, thread: int, event: Event, offset: int, size_bytes: int, *, null: bool) -> Status:
        status = self._mine(thread)
        if status is not Status.OK:
            return status
        if self.bare:
            return Status.UNSUPPORTED
        if offset + size_bytes > MEMORY_BYTES or (null and size_bytes):
            return Status.ARGUMENT
        return self._do(event) if size_bytes else Status.OK

    def context(self, thread: int, *, bare: bool, null: bool) -> Status:
        status = self._mine(thread)
        if status is not Status.OK:
            return status
        return Status.ARGUMENT if null or bare != self.bare else Status.OK

    def _mine(self, thread: int) -> Status:
        if not self.initialised:
            return Status.HANDLE
        if not self.opener:
            return Status.STATE
        return Status.OK if self.opener == thread else Status.OWNER

    def _do(self, event: Event) -> Status:
        self.events.append(event)
        return Status(self.faults.get(event, Status.OK))

    def _drive(self, event: Event) -> Status:
        return Status.OK if self.bare else self._do(event)

    def _locked(self, action: Callable[[], Status]) -> Status:
        first = self._do(Event.LOCK)
        if first is not Status.OK:
            return first
        status = action()
        unlocked = self._do(Event.UNLOCK)
        return unlocked if status is Status.OK else status

    def _power_up(self) -> Status:
        status = self._do(Event.POWER_ON)
        if status is not Status.OK:
            return status
        status = self._drive(Event.ACTIVATE)
        if status is Status.OK:
            self.activations = 1
        else:
            self._do(Event.POWER_OFF)
        return status

    def _power_down(self) -> Status:
        self.activations = 0
        status = self._drive(Event.DEACTIVATE)
        power = self._do(Event.POWER_OFF)
        return power if status is Status.OK else status
