# SPDX-License-Identifier: Apache-2.0
"""When devices are activated, opened, closed and deactivated round the operators, as data.

A device is activated before its first operator, or so many operators earlier as it is slow to start, and deactivated
behind its last one. It is open round each of its operators. It stays open between two of them when nothing runs in
between, and while its own memory holds a tensor that is still read: whoever opened it in between could overwrite it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ferrule._typing import override
from ferrule.memory import Lifetime


class Call(IntEnum):
    """What is called of a device; the numbers are `enum ferrule_device_call` in C."""

    ACTIVATE = 0
    OPEN = 1
    COPY_TO = 2
    COPY_FROM = 3
    RUN = 4
    """The operator itself."""
    CLOSE = 5
    DEACTIVATE = 6

    @override
    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCall:
    """One call, and where it stands."""

    operator: int
    """Index of the operator that comes next, runs or has just run."""
    device: str
    """Name of its member in the devices struct."""
    call: Call

    @override
    def __str__(self) -> str:
        return f"{self.operator} {self.device} {self.call}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What one operator does with a device."""

    device: str
    call: Call
    """COPY_TO, COPY_FROM or RUN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledStep:
    """The calls round one operator, each in order."""

    before: tuple[DeviceCall, ...] = ()
    own: DeviceCall | None = None
    """What the operator does; None on the core, and where it does nothing."""
    after: tuple[DeviceCall, ...] = ()

    @property
    def calls(self) -> tuple[DeviceCall, ...]:
        """All of them in order."""
        return (*self.before, *(() if self.own is None else (self.own,)), *self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What is known of one device of a model."""

    lead: int = 0
    """Operators before its first one at which it is activated."""
    held: tuple[Lifetime, ...] = ()
    """When tensors live in its own memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """The operators, by index, round which something is called."""

    activate: int
    deactivate: int
    opens: frozenset[int]
    closes: frozenset[int]


_NOTHING = Activity()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The device calls of one inference in which nothing fails."""

    steps: tuple[ScheduledStep, ...] = field(default=())

    @property
    def calls(self) -> tuple[DeviceCall, ...]:
        """All of them in order."""
        return tuple(call for step in self.steps for call in step.calls)

    @property
    def longest(self) -> int:
        """The most calls that any run makes: one that fails gives back less than is left, and takes nothing more."""
        return len(self.calls)


def schedule(
    uses: Sequence[Use | None], idle: Iterable[int] = (), activities: Mapping[str, Activity] | None = None
) -> Schedule:
    """Return the calls for a sequence of operators.

    `uses` has for each operator what it does with a device, None for nothing. `idle` are the indices of operators that
    do nothing at all, such as a reshape. `activities` are by device, in the order in which devices are called at one
    place.
    """
    nothing = frozenset(idle)
    known = dict(activities or {})
    for use in uses:
        if use is not None:
            known.setdefault(use.device, _NOTHING)
    bounds = {
        device: _bounds(device, activity, uses, nothing)
        for device, activity in known.items()
        if any(use is not None and use.device == device for use in uses)
    }
    return Schedule(steps=tuple(_step(index, use, bounds) for index, use in enumerate(uses)))


def _step(index: int, use: Use | None, bounds: dict[str, _Bounds]) -> ScheduledStep:
    """Return the calls round one operator; what is taken last is given back first."""

    def calls(call: Call, devices: Iterable[str]) -> Iterator[DeviceCall]:
        return (DeviceCall(operator=index, device=device, call=call) for device in devices)

    backwards = tuple(reversed(bounds))
    return ScheduledStep(
        before=(
            *calls(Call.ACTIVATE, (device for device in bounds if bounds[device].activate == index)),
            *calls(Call.OPEN, (device for device in bounds if index in bounds[device].opens)),
        ),
        own=None if use is None else DeviceCall(operator=index, device=use.device, call=use.call),
        after=(
            *calls(Call.CLOSE, (device for device in backwards if index in bounds[device].closes)),
            *calls(Call.DEACTIVATE, (device for device in backwards if bounds[device].deactivate == index)),
        ),
    )


def _bounds(device: str, activity: Activity, uses: Sequence[Use | None], idle: frozenset[int]) -> _Bounds:
    own = [index for index, use in enumerate(uses) if use is not None and use.device == device]
    opens, closes = {own[0]}, {own[-1]}
    for left, right in itertools.pairwise(own):
        apart = any(index not in idle for index in range(left + 1, right))
        if apart and not any(life.first <= left and right <= life.last for life in activity.held):
            closes.add(left)
            opens.add(right)
    return _Bounds(
        activate=max(own[0] - activity.lead, 0),
        deactivate=own[-1],
        opens=frozenset(opens),
        closes=frozenset(closes),
    )
