# SPDX-License-Identifier: Apache-2.0
"""How long an inference takes, in the report of a run: elapsed time, its division, error, deadlines and energy."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from ferrule._frozen import frozen
from ferrule.interface import option, spelled
from ferrule.report.base import Case, Measure, Rule, Value
from ferrule.report.energy import EnergyPart
from ferrule.report.sections import (
    Align,
    Column,
    Conclusion,
    Fact,
    Only,
    Picture,
    Section,
    State,
    Strip,
    Table,
    Text,
    joined,
    names,
    numbers,
    plural,
    share,
)
from ferrule.timing.evidence import error_text


@frozen
class WaitPart:
    """The time in which the core waited for a device."""

    device: str
    awake: int
    """Time in which it looked for the end of the work, handled the interrupt and collected the result."""
    asleep: int
    waits: int
    """How often it waited."""
    limited: int = 0
    """How many of these waits ended by their limit, although the work was done."""
    late: int = 0
    """The time for which these went on after the work was done."""

    @property
    def total(self) -> int:
        """The whole time."""
        return self.awake + self.asleep


@frozen
class PausePart:
    """One of the waits."""

    device: str
    start: int
    """Since the start of the inference."""
    end: int


@frozen
class CommandPart:
    """A command of a device, from its submission to the collection of its result; times since the inference's start."""

    layer: str
    """Empty for a command outside of layers."""
    device: str
    start: int
    end: int
    begun: int | None = None
    """When the device's model began to work on it; None if that is not known."""
    done: int | None = None


@frozen
class LayerTimePart:
    """The time of a layer, from its announcement to that of the next one."""

    layer: str
    start: int
    """Since the start of the inference."""
    elapsed: int
    work: int
    asleep: int
    """Time asleep outside of waits for devices."""
    waited: int
    """Time of waits for devices."""


@frozen
class ErrorPart:
    """The measured error of a core's model of its cycles; see docs/timing.md."""

    low: float
    """The least that a chip took beyond the model, as a fraction of the model's cycles: below 0 where it took fewer."""
    high: float
    median: float
    """The median of the absolute values of the errors."""
    figures: int
    """The public measurements that it is from, none of which the model was fitted to; 0 for a board that the user has
    calibrated, where it is what the calibration left."""
    sources: int

    @property
    def text(self) -> str:
        """The range in words, rounded outwards."""
        return error_text(self.low, self.high)

    @property
    def origin(self) -> str:
        """Where it is from, in words that follow the range."""
        if not self.figures:
            return ", left by the board's calibration"
        median = f"{self.median:.0%}".replace("%", " %")
        return f", median {median}, of {plural(self.figures, 'public measurement')} in {self.sources} sources"


class Judgement(StrEnum):
    """Whether a limit of time is kept."""

    KEPT = "kept"
    """Also by the upper end of the range of the error."""
    MISSED = "missed"
    UNPROVED = "unproved"
    """The time itself keeps it, but its error was not measured."""

    @property
    def state(self) -> State:
        """How a reader is to take it."""
        return {"kept": State.GOOD, "missed": State.BAD}.get(self, State.WARN)

    @property
    def words(self) -> str:
        """The judgement in words."""
        return {"unproved": "not proved"}.get(self, str(self))


@frozen
class DeadlinePart:
    """A limit of the time of each inference."""

    name: str
    """"deadline", or the rate from which it follows, such as "rate 10/s"."""
    limit_ms: float
    longest_ms: float
    """The longest inference."""
    upper_ms: float
    """The same with the upper end of the measured error; the same number if no error was measured."""
    judgement: Judgement

    @property
    def text(self) -> str:
        """What was found, in words."""
        longest = f"the longest inference takes {milliseconds(self.longest_ms)}"
        limit = f"the {self.name} allows {milliseconds(self.limit_ms)}"
        if self.upper_ms > self.longest_ms:
            longest += f", and {milliseconds(self.upper_ms)} with the upper end of the measured error"
        if self.judgement is Judgement.UNPROVED:
            return f"{longest}, and {limit}; the error of the time was not measured"
        return f"{longest}; {limit}"

    @property
    def conclusion(self) -> Conclusion:
        """The judgement as a document shows it."""
        sentence = f"{self.text[0].upper()}{self.text[1:]}."
        return Conclusion(self.judgement.words, self.judgement.state, sentence, self.name)


@frozen
class DurationPart:
    """The elapsed time of an inference, from the first instruction of the executor's function to its return.

    All times but those in milliseconds are in `unit`. `work`, `asleep` and the waits add up to `elapsed`.
    """

    unit: str = ""
    """"instructions" or "cycles": what the clock counts; empty if `elapsed` is not known."""
    elapsed: int | None = None
    """That of the first sample; None if the engine cannot tell, with the reason in `note`."""
    work: int = 0
    """Time in which the core was at work, but for waits."""
    asleep: int = 0
    """Time in which it slept, but for waits."""
    waits: tuple[WaitPart, ...] = ()
    """By device."""
    layers: tuple[LayerTimePart, ...] = ()
    """Where the firmware announces its layers, as one with devices does."""
    commands: tuple[CommandPart, ...] = ()
    pauses: tuple[PausePart, ...] = ()
    """Each wait for a device."""
    longest: int | None = None
    """The most that an inference of a sample took."""
    longest_sample: int | None = 0
    """None if it is a sample of the evaluation that the run does not have."""
    modelled: bool = False
    """Whether the cycles are those of a model of the core, and not counted by a chip."""
    has_model: bool = False
    """Whether the core has such a model."""
    clock_hz: int | None = None
    """Of the board's core; None where no milliseconds are stated."""
    milliseconds: float | None = None
    """The elapsed time at this clock; None where `unit` is "instructions"."""
    error: ErrorPart | None = None
    """The measured error of the model's cycles; None if there is none, or no model."""
    deadlines: tuple[DeadlinePart, ...] = ()
    energy: EnergyPart | None = None
    """None if the board states no currents, or no milliseconds are known."""
    note: str = ""
    """What is worth knowing about the time, such as why it is not known."""

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """Whether each limit of time is kept."""
        return tuple(each.judgement for each in self.deadlines)

    @property
    def judgement(self) -> Judgement | None:
        """The worst of these; None without limits."""
        ranked = (Judgement.KEPT, Judgement.UNPROVED, Judgement.MISSED)
        return max(self.judgements, key=ranked.index, default=None)

    @property
    def range_ms(self) -> tuple[float, float] | None:
        """The milliseconds with the measured error; None without one."""
        if self.milliseconds is None or self.error is None:
            return None
        return self.milliseconds * (1 + self.error.low), self.milliseconds * (1 + self.error.high)

    @property
    def text(self) -> str:
        """The milliseconds with their error, in words; empty if none are known."""
        if self.milliseconds is None or self.clock_hz is None:
            return ""
        time = f"{milliseconds(self.milliseconds)} at {self.clock_hz / 1e6:g} MHz"
        if not self.modelled:
            return time
        return joined(time, "no measured error" if self.error is None else self.error.text)

    def facts(self) -> Iterator[Fact]:
        """Yield the elapsed time and its division, if it says more than the count of instructions does."""
        elapsed = self.elapsed_fact()
        if elapsed is None:
            return
        yield elapsed
        if self.error is not None:
            yield Fact("measured error", self.error.text, self.error.origin)
        if self.energy is not None:
            yield from self.energy.facts()

    def elapsed_fact(self) -> Fact | None:
        """Return the elapsed time and its division; None if it says no more than the count of instructions."""
        if self.elapsed is None or not (self.text or self.waits or self.asleep):
            return None
        count, more = f"{self.elapsed:,} {self.unit}", tuple(self._division())
        if self.milliseconds is None:
            return Fact("elapsed", count, "", more)
        value = milliseconds(self.milliseconds)
        return Fact("elapsed", value, f" = {count}{self.text.removeprefix(value)}", more)

    def _division(self) -> Iterator[str]:
        whole = max(self.elapsed or 0, 1)
        parts = [("core at work", self.work), ("asleep", self.asleep)]
        parts += [(f"waiting for {each.device}", each.total) for each in self.waits]
        if self.waits or self.asleep:
            yield joined(*(f"{what} {part:,} ({share(part / whole)})" for what, part in parts if part))
        for each in self.waits:
            if each.asleep and each.awake:
                yield f"of the wait for {each.device}: awake {each.awake:,}, asleep {each.asleep:,}"

    def sections(self) -> Iterator[Section]:
        """Yield the times of layers, where they are not those of the counts alone, and those of commands."""
        if self.elapsed is not None and (self.waits or self.asleep):
            yield Picture("strip", Strip("Elapsed", self._parts(), self.unit))
        if self.layers and self.elapsed is not None:
            yield self._layer_table(self.elapsed)
        if self.commands:
            yield Text("From the start of the inference, the commands of devices:", only=Only.PAGES)
            yield self._command_table()

    def _parts(self) -> dict[str, int]:
        """Return the parts that add up to the elapsed time, by their names."""
        parts = {"core at work": self.work, "core asleep": self.asleep}
        for each in self.waits:
            parts[f"waiting for {each.device}, awake"] = each.awake
            parts[f"waiting for {each.device}, asleep"] = each.asleep
        return {name: part for name, part in parts.items() if part}

    def _layer_table(self, elapsed: int) -> Table:
        inside = [sum(getattr(each, name) for each in self.layers) for name in ("elapsed", "work", "asleep", "waited")]
        whole = (elapsed, self.work, self.asleep, sum(each.total for each in self.waits))
        rows = [(each.layer, each.elapsed, each.work, each.asleep, each.waited) for each in self.layers]
        rows.append(("(outside of layers)", *(all_ - part for all_, part in zip(whole, inside, strict=True))))
        columns = (
            *names("layer"),
            *numbers(f"{self.unit} elapsed", "core at work"),
            Column("asleep otherwise", Align.NUMBER, sparse=True),
            *numbers("waiting for devices"),
        )
        return Table("elapsed time", columns, rows)

    def _command_table(self) -> Table:
        columns = (*names("layer", "device"), *numbers("begins", "ends", self.unit, "device at work"))
        rows = [
            (
                each.layer,
                each.device,
                each.start,
                each.end,
                each.end - each.start,
                None if each.begun is None or each.done is None else each.done - each.begun,
            )
            for each in self.commands
        ]
        return Table("commands of devices", columns, rows, only=Only.PAGES)

    def measures(self) -> Iterator[Measure]:
        """Yield the values to compare with those of another run."""
        if self.elapsed is not None:
            yield Measure(f"elapsed {self.unit}", self.elapsed)
        if self.milliseconds is not None:
            yield Measure("milliseconds", self.milliseconds, unit="ms")
        for each in self.waits:
            yield Measure(f"waiting for {each.device}", each.total, better="")
        if self.energy is not None:
            yield Measure("millijoules", self.energy.high_mj, unit="mJ")

    def properties(self) -> dict[str, Value]:
        """Return what the properties of a suite say; those that are None are left out."""
        return {
            f"elapsed {self.unit}": self.elapsed,
            "milliseconds": self.milliseconds,
            "measured error": "" if self.error is None else self.error.text,
        }

    def cases(self, place: str) -> Iterator[Case]:
        """Yield whether the limits of time are kept; `place` tells them from those of the same model elsewhere."""
        for each in self.deadlines:
            case = Case(each.name, text=each.text, where=place)
            rule = {Judgement.MISSED: Rule.OVER_DEADLINE, Judgement.UNPROVED: Rule.UNPROVED_DEADLINE}
            yield case.failing(rule[each.judgement]) if each.judgement in rule else case

    def conclusions(self) -> Iterator[Conclusion]:
        """Yield whether limits of time are kept, and that a device was late although its results were right."""
        yield from (each.conclusion for each in self.deadlines)
        for each in self.waits:
            if each.limited:
                late = f"{each.late:,} {self.unit} late ({share(each.late / max(self.elapsed or 0, 1))} of the whole)"
                sentence = (
                    f"{each.limited:,} of {plural(each.waits, 'wait')} for {each.device} ended by the limit although "
                    f"the work was done, {late}: no interrupt ended them."
                )
                yield Conclusion(f"device {each.device} is late", State.WARN, sentence, "time")

    def remarks(self) -> Iterator[Text]:
        """Yield what is worth knowing about the time."""
        for each in self.conclusions():
            yield Text(each.sentence, each.label, each.state, only=Only.TERMINAL)
        if self.note:
            yield Text(self.note, "time")
        elif self.milliseconds is None and self.has_model:
            yield Text(spelled(f"in {self.unit}; a run with {option('clock', 'cycles')} states milliseconds"), "time")


def milliseconds(value: float) -> str:
    """Return a time as text, with three digits or more."""
    return f"{value:,.1f} ms" if value >= 100 else f"{value:.3g} ms"


NOT_TIMED = DurationPart()
"""Of a document of an older version."""
