# SPDX-License-Identifier: Apache-2.0
"""Times the runs of a firmware's models to the instruction, and divides them by what the core does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from ferrule.architectures import address_text
from ferrule.emulation.durations import DurationPlan
from ferrule.emulation.unicorn.contract import Returns
from ferrule.emulation.unicorn.device import BoardDevice
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.observer import Observer
from ferrule.emulation.unicorn.processor import Processor
from ferrule.emulation.unicorn.timing import Timing
from ferrule.timing import Command, DataWaits, Duration, Pause, Step, Wait

MOST_RUNS = 1024
"""The most runs that are kept until they are taken; of more, the first ones are dropped."""


class Moment(NamedTuple):
    """A time since reset, in units of the clock."""

    awake: int
    asleep: int

    @property
    def now(self) -> int:
        """The whole time."""
        return self.awake + self.asleep

    def since(self, other: Moment) -> Moment:
        """Return the time that has passed since another."""
        return Moment(self.awake - other.awake, self.asleep - other.asleep)

    def plus(self, other: Moment) -> Moment:
        """Return the sum of two times."""
        return Moment(self.awake + other.awake, self.asleep + other.asleep)


_NONE = Moment(0, 0)


@dataclass
class _Waiting:
    """What is known of the waits for a device."""

    passed: Moment = _NONE
    waits: int = 0


@dataclass
class _Submitted:
    """A command of a device; times since reset."""

    device: str
    index: int
    start: int
    end: int | None = None


@dataclass
class _Run:
    """A run that goes on."""

    start: Moment
    late: Mapping[str, tuple[int, int]]
    """What the observer knew of late waits when it began, by device."""
    changed: Moment
    """When the core began to do what it does now."""
    core: Moment = _NONE
    """The core's own time, without waits."""
    waits: dict[str, _Waiting] = field(default_factory=dict)
    pauses: list[tuple[str, int, int]] = field(default_factory=list)
    waiting: str | None = None
    """The device for which the core waits; None if it does not wait."""
    index: int = -1
    """The layer that was announced last."""
    announced: list[tuple[int, Moment, Moment]] = field(default_factory=list)
    """Each announcement: the layer, when it came, and the core's own time until then."""
    commands: list[_Submitted] = field(default_factory=list)

    def settle(self, now: Moment) -> None:
        """Account for the time since the last change."""
        passed, self.changed = now.since(self.changed), now
        if self.waiting is None:
            self.core = self.core.plus(passed)
        else:
            found = self.waits[self.waiting]
            found.passed = found.passed.plus(passed)


class Stopwatch:
    """The times of one guest's runs; a run that begins while another goes on is a part of that one."""

    def __init__(
        self,
        guest: Guest,
        processor: Processor,
        plan: DurationPlan,
        devices: Mapping[str, BoardDevice],
        returns: Returns,
        observer: Observer,
        timing: Timing | None = None,
    ) -> None:
        self._guest = guest
        self._processor = processor
        self._plan = plan
        self._devices = devices
        self._returns = returns
        self._observer = observer
        self._timing = timing
        self._run: _Run | None = None
        self._ended: list[Duration] = []
        for addresses, call in (
            (plan.runs, self._enter),
            ((plan.next,), self._next),
            (plan.waits, self._wait),
            (plan.submits, self._submit),
        ):
            for address in filter(None, addresses):
                guest.on_call(address, partial(call, address))

    def take(self) -> tuple[Duration, ...]:
        """Return the runs that have ended since the last call."""
        ended, self._ended = tuple(self._ended), []
        return ended

    def _at(self, address: int) -> Moment:
        return Moment(*self._processor.moment(address))

    def _then(self, call: Callable[[Moment], None]) -> None:
        """Call a function with the time at which the function that the core has just entered returns."""
        address = self._guest.returns_to
        self._returns.on_return(lambda: call(self._at(address)))

    def _enter(self, address: int) -> None:
        if self._run is not None:
            return
        for device in self._devices.values():
            device.worked()
        start = self._at(address)
        self._run = _Run(start=start, changed=start, late=self._observer.late())
        if self._timing is not None:
            self._timing.begin()
        self._then(self._leave)

    def _leave(self, now: Moment) -> None:
        run = self._run
        assert run is not None
        run.settle(now)
        origin = DataWaits.MEASURED if self._timing is None else self._timing.end()
        self._ended = [*self._ended[1 - MOST_RUNS :], self._duration(run, now, origin)]
        self._run = None

    def _next(self, address: int) -> None:
        run = self._run
        if run is not None:
            now = self._at(address)
            run.settle(now)
            run.index = self._guest.argument(1)
            run.announced.append((run.index, now, run.core))

    def _name(self) -> str:
        handle = self._guest.argument(0)
        return self._plan.devices.get(handle, f"at {address_text(handle)}")

    def _wait(self, address: int) -> None:
        """Follow a wait, or one within a wait: a command that is collected waits by way of the platform."""
        run = self._run
        if run is None:
            return
        device = self._name()
        begins, start = run.waiting is None, self._at(address)
        if begins:
            run.settle(start)
            run.waiting = device
            run.waits.setdefault(device, _Waiting()).waits += 1
        finishes = address == self._plan.finish
        if not (begins or finishes):
            return

        def returned(now: Moment) -> None:
            if self._run is not run:
                return
            if finishes and self._guest.argument(0) == 0:
                oldest = next((each for each in run.commands if each.device == device and each.end is None), None)
                if oldest is not None:
                    oldest.end = now.now
            if begins:
                run.settle(now)
                run.pauses.append((device, start.now, now.now))
                run.waiting = None

        self._then(returned)

    def _submit(self, address: int) -> None:
        run = self._run
        if run is None:
            return
        command = _Submitted(device=self._name(), index=run.index, start=self._at(address).now)

        def returned(_: Moment) -> None:
            if self._guest.argument(0) == 0:
                run.commands.append(command)

        self._then(returned)

    # ---- the result

    def _duration(self, run: _Run, end: Moment, origin: DataWaits) -> Duration:
        begin = run.start.now
        return Duration(
            total=end.now - begin,
            work=run.core.awake,
            asleep=run.core.asleep,
            waits=tuple(self._waits(run)),
            steps=tuple(_steps(run)),
            pauses=tuple(Pause(device=name, start=at - begin, end=to - begin) for name, at, to in run.pauses),
            commands=tuple(self._commands(run, end)),
            data_waits=origin,
        )

    def _waits(self, run: _Run) -> list[Wait]:
        late = self._observer.late()
        found = []
        for device, each in run.waits.items():
            (limited, units), (earlier, before) = late.get(device, (0, 0)), run.late.get(device, (0, 0))
            found.append(
                Wait(
                    device=device,
                    awake=each.passed.awake,
                    asleep=each.passed.asleep,
                    waits=each.waits,
                    limited=limited - earlier,
                    late=units - before,
                )
            )
        return found

    def _commands(self, run: _Run, end: Moment) -> list[Command]:
        """Return the commands, with what the models of devices did for them if it is as many pieces of work."""
        start = run.start.now
        works = {name: device.worked() for name, device in self._devices.items()}
        numbers: dict[str, int] = {}
        for each in run.commands:
            numbers[each.device] = numbers.get(each.device, 0) + 1
        told = {name: iter(works[name]) for name, number in numbers.items() if len(works.get(name, ())) == number}
        found = []
        for each in run.commands:
            begun, done = next(told[each.device]) if each.device in told else (None, None)
            found.append(
                Command(
                    device=each.device,
                    index=each.index,
                    start=each.start - start,
                    end=(end.now if each.end is None else each.end) - start,
                    begun=None if begun is None else begun - start,
                    done=None if done is None else done - start,
                )
            )
        return found


def _steps(run: _Run) -> list[Step]:
    """Return the layers between two announcements; the last one comes after all layers."""
    found = []
    for (index, start, core), (_, end, core_then) in zip(run.announced, run.announced[1:], strict=False):
        own = core_then.since(core)
        total = end.now - start.now
        found.append(
            Step(
                index=index,
                start=start.now - run.start.now,
                total=total,
                work=own.awake,
                asleep=own.asleep,
                waited=total - own.now,
            )
        )
    return found
