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
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
class Schedule:
    """The device calls of one inference without errors."""

    steps: tuple[ScheduledStep, ...]

    @property
    def calls(self) -> tuple[DeviceCall, ...]:
        """All calls, in order; no run makes more: a failing one skips the remaining ones except releases of devices."""
        return tuple(call for step in self.steps for call in step.calls)


def schedule(
    uses: Sequence[Use | None], idle: Iterable[int] = (), activities: Mapping[str, Activity] | None = None
) -> Schedule:
    """Return the calls for a sequence of operators.

    `uses` has the device use of each operator, or None. `idle` has the indices of operators that do nothing at all,
    such as a reshape. `activities` is by device, in the order in which devices are called at the same position.
    """
    nothing, known = frozenset(idle), dict(activities or {})
    for use in uses:
        if use is not None:
            known.setdefault(use.device, Activity())
    opened = {
        device: spans for device, activity in known.items() if (spans := _together(device, activity, uses, nothing))
    }
    sets = _sets(itertools.chain.from_iterable(opened.values()))
    calls: defaultdict[tuple[int, Call], list[DeviceCall]] = defaultdict(list)
    """By operator and kind: the calls before or after it, in the order in which devices are acquired."""

    def add(call: Call, index: int, *devices: str, operator: int | None = None) -> None:
        number = index if operator is None else operator
        calls[index, call] += (DeviceCall(operator=number, device=device, call=call) for device in devices)

    for device, spans in opened.items():
        members = known[device].pool or (device,)
        activate = deactivate = max(spans[0].first - known[device].lead, 0)
        for one in sets:
            own = [span.last for span in spans if one.meets(span)]
            if own:
                add(Call.OPEN, one.first, device)
                add(Call.CLOSE, own[-1], device)
                deactivate = one.last
            if one.first <= activate <= one.last:
                activate = one.first
        add(Call.ACTIVATE, activate, *members)
        add(Call.DEACTIVATE, deactivate, *members)
    for index, use in enumerate(uses):
        if use is not None and use.end is not None:
            add(Call.FINISH, use.end, use.device, operator=index)
    return Schedule(
        steps=tuple(
            ScheduledStep(
                before=(*calls[index, Call.ACTIVATE], *calls[index, Call.OPEN]),
                own=None if use is None else DeviceCall(operator=index, device=use.device, call=use.call),
                after=(
                    *calls[index, Call.FINISH],
                    *reversed(calls[index, Call.CLOSE]),
                    *reversed(calls[index, Call.DEACTIVATE]),
                ),
            )
            for index, use in enumerate(uses)
        )
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
            merged[-1] = merged[-1].hull(span)
        else:
            merged.append(span)
    return merged
