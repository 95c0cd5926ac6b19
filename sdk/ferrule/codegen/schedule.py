# SPDX-License-Identifier: Apache-2.0
"""Schedules, as data, when devices are activated, opened, closed and deactivated around the operators.

A device is activated before its first operator, or some operators earlier if it starts slowly, and deactivated after
its last one. It is open around each of its operators, and until the result of one that it only began is collected. It
stays open between two of them if no other operator runs in between, or while its own memory holds a tensor that is
still needed: another user of the device could overwrite it.

Two models that share two devices must not wait for each other. So the devices that are open at the same time are opened
together, as a set, before the first operator of any of them, and each is closed after its last operator in the set. No
device is activated or deactivated while another one is open, since both may wait.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import IntEnum

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.memory import Lifetime


class Call(IntEnum):
    """A kind of device call; the values are those of `enum ferrule_device_call` in C."""

    ACTIVATE = 0
    OPEN = 1
    COPY_TO = 2
    COPY_FROM = 3
    RUN = 4
    """Run the operator itself."""
    CLOSE = 5
    DEACTIVATE = 6
    FINISH = 7
    """Collect the result of the oldest operator or copy that the device began."""

    @override
    def __str__(self) -> str:
        return self.name.lower()


@frozen
class DeviceCall:
    """One device call and its position."""

    operator: int
    """Index of the operator that runs next, is running or has just run; for FINISH, of the one that is collected."""
    device: str
    """Name of the device's member in the devices struct."""
    call: Call

    @override
    def __str__(self) -> str:
        return f"{self.operator} {self.device} {self.call}"


@frozen
class Use:
    """The use of a device by one operator."""

    device: str
    call: Call
    """COPY_TO, COPY_FROM or RUN."""
    end: int | None = None
    """The operator after which the result is collected, if this one only begins; None if it waits for the result."""


@frozen
class ScheduledStep:
    """The calls around one operator, in order."""

    before: tuple[DeviceCall, ...] = ()
    own: DeviceCall | None = None
    """The operator's own call; None on the core and for an operator that does nothing."""
    after: tuple[DeviceCall, ...] = ()

    @property
    def calls(self) -> tuple[DeviceCall, ...]:
        """All calls, in order."""
        return (*self.before, *(() if self.own is None else (self.own,)), *self.after)


@frozen
class Activity:
    """The properties of one device of a model that its schedule depends on."""

    lead: int = 0
    """How many operators before its first one the device is activated."""
    pool: tuple[str, ...] = ()
    """The members of the pool of which it is the first one; they are activated together."""
    held: tuple[Lifetime, ...] = ()
    """The lifetimes of the tensors in the device's own memory."""


@frozen
class _Bounds:
    """The indices of the operators before or after which a device is called."""

    pool: tuple[str, ...]
    activate: int
    deactivate: int
    opens: frozenset[int]
    closes: frozenset[int]


_NOTHING = Activity()


@frozen
class Schedule:
    """The device calls of one inference without errors."""

    steps: tuple[ScheduledStep, ...] = field(default=())

    @property
    def calls(self) -> tuple[DeviceCall, ...]:
        """All calls, in order."""
        return tuple(call for step in self.steps for call in step.calls)

    @property
    def longest(self) -> int:
        """The most calls that any run makes: a failing run skips the remaining calls except releases of devices."""
        return len(self.calls)


def schedule(
    uses: Sequence[Use | None], idle: Iterable[int] = (), activities: Mapping[str, Activity] | None = None
) -> Schedule:
    """Return the calls for a sequence of operators.

    `uses` has the device use of each operator, or None. `idle` has the indices of operators that do nothing at all,
    such as a reshape. `activities` is by device, in the order in which devices are called at the same position.
    """
    nothing = frozenset(idle)
    known = dict(activities or {})
    for use in uses:
        if use is not None:
            known.setdefault(use.device, _NOTHING)
    opened = {
        device: _together(device, activity, uses, nothing)
        for device, activity in known.items()
        if any(use is not None and use.device == device for use in uses)
    }
    sets = _sets(itertools.chain.from_iterable(opened.values()))
    bounds = {device: _bounds(known[device], spans, sets) for device, spans in opened.items()}
    finishes: dict[int, list[DeviceCall]] = {}
    for index, use in enumerate(uses):
        if use is not None and use.end is not None:
            call = DeviceCall(operator=index, device=use.device, call=Call.FINISH)
            finishes.setdefault(use.end, []).append(call)
    return Schedule(steps=tuple(_step(index, use, bounds, finishes.get(index, ())) for index, use in enumerate(uses)))


def _step(index: int, use: Use | None, bounds: dict[str, _Bounds], finishes: Iterable[DeviceCall]) -> ScheduledStep:
    """Return the calls around one operator; devices are released in the reverse order of their acquisition."""

    def calls(call: Call, devices: Iterable[str]) -> Iterator[DeviceCall]:
        return (DeviceCall(operator=index, device=device, call=call) for device in devices)

    def members(devices: Iterable[str]) -> Iterator[str]:
        return (member for device in devices for member in (bounds[device].pool or (device,)))

    backwards = tuple(reversed(bounds))
    return ScheduledStep(
        before=(
            *calls(Call.ACTIVATE, members(device for device in bounds if bounds[device].activate == index)),
            *calls(Call.OPEN, (device for device in bounds if index in bounds[device].opens)),
        ),
        own=None if use is None else DeviceCall(operator=index, device=use.device, call=use.call),
        after=(
            *finishes,
            *calls(Call.CLOSE, (device for device in backwards if index in bounds[device].closes)),
            *calls(
                Call.DEACTIVATE,
                reversed([*members(device for device in bounds if bounds[device].deactivate == index)]),
            ),
        ),
    )


def _together(device: str, activity: Activity, uses: Sequence[Use | None], idle: frozenset[int]) -> list[Lifetime]:
    """Return the spans of operators during which a device has to stay open."""
    own = [
        Lifetime(first=index, last=index if use.end is None else use.end)
        for index, use in enumerate(uses)
        if use is not None and use.device == device
    ]
    spans = own[:1]
    for span in own[1:]:
        left, right = spans[-1].last, span.first
        apart = any(index not in idle for index in range(left + 1, right))
        if apart and not any(life.first <= left and right <= life.last for life in activity.held):
            spans.append(span)
        else:
            spans[-1] = spans[-1].hull(span)
    return spans


def _sets(spans: Iterable[Lifetime]) -> list[Lifetime]:
    """Return the spans of operators during which any device is open, in order; spans that overlap are one."""
    merged: list[Lifetime] = []
    for span in sorted(spans, key=lambda span: span.first):
        if merged and span.first <= merged[-1].last:
            merged[-1] = Lifetime(first=merged[-1].first, last=max(merged[-1].last, span.last))
        else:
            merged.append(span)
    return merged


def _bounds(activity: Activity, spans: Sequence[Lifetime], sets: Iterable[Lifetime]) -> _Bounds:
    """Return where a device that has to be open in `spans` is called."""
    opens, closes = set(), set()
    activate = deactivate = max(spans[0].first - activity.lead, 0)
    for one in sets:
        own = [span.last for span in spans if one.meets(span)]
        if own:
            opens.add(one.first)
            closes.add(own[-1])
            deactivate = one.last
        if one.first <= activate <= one.last:
            activate = one.first
    return _Bounds(
        pool=activity.pool,
        activate=activate,
        deactivate=deactivate,
        opens=frozenset(opens),
        closes=frozenset(closes),
    )
