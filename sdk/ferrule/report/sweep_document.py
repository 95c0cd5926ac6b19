# SPDX-License-Identifier: Apache-2.0
"""The results of `ferrule sweep` as data: a row for each run. Its JSON Schema is generated from these types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.report.base import Case, Document, Measure, Outcome, Row, Rule, Suite, flat
from ferrule.report.document import Verdict
from ferrule.report.evaluation_document import BETTER
from ferrule.report.evidence import NO_EVIDENCE, Evidence
from ferrule.report.picture import EnvironmentPart, surroundings
from ferrule.report.sections import (
    Align,
    Cell,
    Column,
    Conclusion,
    Only,
    Part,
    Section,
    State,
    Table,
    Text,
    Value,
    joined,
    names,
    number,
    numbers,
    page_part,
    plural,
)
from ferrule.report.tradeoff import Axis, Choice, Mark, Tradeoff, tradeoff_picture, with_front

SWEEP_SCHEMA_VERSION = 1


@frozen
class SweepRow:
    """One run of a sweep."""

    run: str
    """Digest of its choices and of the versions of its tools, by which a sweep that is resumed knows it."""
    inputs: str = ""
    """Digest of the record of all that was read for it; the record is in a file beside the results."""
    model: str
    """The model's file as the sweep names it."""
    model_digest: str = ""
    """SHA-256 of the file."""
    board: str
    toolchain: str
    engine: str
    backends: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    """The job's other choices, such as goal, optimization or a backend's option, by name."""
    status: str
    """"done", or "failed" with `error`. A run whose outputs differ from the reference is done, with its verdict."""
    error: str = ""
    verdict: str = ""
    """That of the run, empty if it failed."""
    evidence: Evidence = NO_EVIDENCE
    """What the verdict rests on."""
    count: int | None = None
    """Instructions or cycles per inference."""
    unit: str = ""
    elapsed: int | None = None
    """The elapsed time of an inference in the same unit, with sleep and waits; None if it is not known."""
    milliseconds: float | None = None
    """The same at the board's clock; None unless it was counted in cycles."""
    least_ms: float | None = None
    """These milliseconds with the measured error of the core's model; None if it was not measured."""
    most_ms: float | None = None
    judgement: str = ""
    """Whether the sweep's limits of time are kept: "kept", "missed", or "unproved" if only a time whose error was not
    measured keeps them; empty without limits."""
    flash_bytes: int | None = None
    ram_bytes: int | None = None
    stack_bytes: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    """The metrics of an evaluation, by name; empty without data."""
    samples: int = 0
    ferrule_version: str = ""
    toolchain_version: str = ""
    firmware_digest: str = ""
    """SHA-256 of the ELF file."""
    started: str = ""
    """UTC, in ISO 8601."""
    seconds: float = 0.0
    """Wall-clock seconds of this run."""
    cpu_s: float = 0.0
    worker: str = ""
    """The worker process that ran it, as its scheduler names it."""
    attempts: int = 1
    """How often the run was begun: more than once if its worker was lost."""

    @property
    def name(self) -> str:
        """The choices that tell the run from the others, as one line."""
        options = (f"{name}={value}" for name, value in self.options.items())
        return joined(self.model, self.board, self.engine, self.toolchain, ",".join(self.backends), *options, by=" ")

    @property
    def is_kept(self) -> bool:
        """Whether a resumed sweep may keep it: a row that claims a success which nothing supports is not."""
        return self.status != "done" or self.agrees or self.verdict in {"nothing_compared", "different"}

    @property
    def succeeded(self) -> bool:
        """Whether it agrees with the reference, and keeps the limits of time if there are any."""
        return self.agrees and self.judgement in {"", "kept"}

    @property
    def agrees(self) -> bool:
        """Whether the run has a verdict that rests on something, and agrees with the reference."""
        good = {verdict.value for verdict in Verdict if verdict.agrees}
        return self.status == "done" and self.verdict in good and bool(self.evidence)

    @property
    def failed(self) -> bool:
        """Whether it ended with an error."""
        return self.status == "failed"

    @property
    def state(self) -> Cell:
        """Its verdict in words, or that it failed."""
        words = "failed" if self.failed else self.verdict.replace("_", " ") or "nothing compared"
        if self.agrees and not self.succeeded:
            words = f"{words}, deadline {_DEADLINES[self.judgement]}"
        return Cell(words, State.GOOD if self.succeeded else State.BAD)

    @property
    def time(self) -> str:
        """The milliseconds of an inference with their range, in words; empty if they are not known."""
        if self.milliseconds is None:
            return ""
        if self.least_ms is None or self.most_ms is None:
            return f"{number(self.milliseconds)} ms"
        return f"{number(self.milliseconds)} ms ({number(self.least_ms)} to {number(self.most_ms)})"

    def case(self) -> Case:
        """Return what became of it."""
        case = Case(self.name, seconds=self.seconds, model=self.model, file=self.model, where=self.name)
        if self.succeeded:
            count = "" if self.count is None else f"{self.count:,} {self.unit}"
            return replace(case, text=joined(self.verdict, count, self.time))
        if self.failed:
            return replace(case, outcome=Outcome.ERROR, rule=Rule.FAILED_RUN, text=self.error)
        if self.agrees:
            missed = self.judgement == "missed"
            rule = Rule.OVER_DEADLINE if missed else Rule.UNPROVED_DEADLINE
            return case.failing(rule, joined(f"the deadline is {_DEADLINES[self.judgement]}", self.time))
        if self.verdict == Verdict.DIFFERENT:
            return case.failing(Rule.DIFFERENT, "the outputs differ from the numpy reference")
        return case.failing(Rule.NOTHING_COMPARED, self.evidence.nothing)

    def measures(self) -> Iterator[Measure]:
        """Yield the values to compare with those of the same run of another sweep."""
        verdict = "failed" if self.failed else self.verdict or Verdict.NOTHING_COMPARED.value
        found = [Measure("verdict", verdict), Measure(self.unit or "count", self.count)]
        found.append(Measure(f"elapsed {self.unit}" if self.unit else "elapsed", self.elapsed))
        found.append(Measure("milliseconds", self.milliseconds, unit="ms"))
        sizes = (("flash", self.flash_bytes), ("RAM", self.ram_bytes), ("stack", self.stack_bytes))
        found += (Measure(counter, size, unit="B") for counter, size in sizes)
        found += (Measure(name, value, better=BETTER.get(name, "")) for name, value in self.metrics.items())
        yield from (replace(each, scope="run", place=self.name) for each in found)


_DEADLINES = {"missed": "missed", "unproved": "not proved"}
_BOARDS_DRAWN = 8
_LISTED = 50
"""The most runs that a terminal lists; of more, those that did not succeed."""
_CHOICES: tuple[Column | str, ...] = (
    *names("model"),
    Column("board", below="model"),
    Column("engine", drop=2),
    Column("toolchain", drop=1, below="engine"),
    Column("backends", spare=1),
    Column("options", sparse=True),
)


def _choices(row: SweepRow) -> tuple[str, ...]:
    options = joined(*(f"{name}={value}" for name, value in row.options.items()))
    return row.model, row.board, row.engine, row.toolchain, joined(*row.backends), options


def _runs(rows: Sequence[SweepRow]) -> Table:
    metrics = list(dict.fromkeys(name for row in rows for name in row.metrics))
    sizes = (*numbers("flash, B", spare=3), *numbers("RAM, B", spare=2), *numbers("stack, B", only=Only.PAGES, spare=4))
    time = Column("milliseconds", Align.NUMBER, sparse=True)
    figures = (
        *numbers("per inference"),
        time,
        *sizes,
        *numbers(*metrics, bar=True),
        Column("seconds", Align.NUMBER, Only.PAGES, drop=1),
    )
    return Table(
        "",
        (*_CHOICES, *names("verdict"), *figures),
        [
            (
                *_choices(row),
                row.state,
                "" if row.count is None else f"{row.count:,} {row.unit}",
                row.time.removesuffix(" ms"),
                row.flash_bytes,
                row.ram_bytes,
                row.stack_bytes,
                *(row.metrics.get(name) for name in metrics),
                f"{row.seconds:.1f}",
            )
            for row in rows
        ],
    )


def _tradeoff(rows: Sequence[SweepRow]) -> tuple[Section | None, ...]:
    """Return the chart and the front of the runs on a board; nothing if there is nothing to choose from."""
    good = [row for row in rows if row.agrees]
    metrics = list(dict.fromkeys(name for row in good for name in row.metrics if name in BETTER))
    timed = all(row.milliseconds is not None for row in good)
    unit = "ms" if timed else next((row.unit for row in good if row.unit), "instructions")
    time, ram, flash = Axis(name="time", unit=unit), Axis(name="RAM", unit="B"), Axis(name="flash", unit="B")
    value = Axis(name=metrics[0], better=BETTER[metrics[0]]) if metrics else time
    costs = [axis for axis in (time, ram, flash) if axis is not value]
    told = [index for index, texts in enumerate(zip(*map(_choices, good), strict=True)) if len({*texts}) > 1]
    choices = []
    for row in good:
        taken = row.milliseconds if timed else row.count if row.unit == unit else None
        known: dict[str, float | None] = {"time": taken, "RAM": row.ram_bytes, "flash": row.flash_bytes, **row.metrics}
        choices.append(
            Choice(
                name=joined(*(_choices(row)[index] for index in told), by=" · ") or row.name,
                values={name: each for name, each in known.items() if each is not None},
                mark=Mark.OTHER if row.succeeded else Mark.OVER,
            )
        )
    marked = with_front(choices, (value, *costs))
    picture = tradeoff_picture(Tradeoff(noun="run", value=value, costs=costs, choices=marked))
    if picture is None:
        return ()
    left_out = len(rows) - len(good)
    are = "is" if left_out == 1 else "are"
    note = f"{plural(left_out, 'run')} that failed, differed or compared nothing {are} not drawn."
    axes = (value, *costs)
    table = Table(
        "the front",
        (*names("run"), *numbers(*(axis.label for axis in axes))),
        [
            (each.name, *(number(each.values[axis.name]) for axis in axes))
            for each in sorted(
                marked, key=lambda each: each.values.get(value.name, 0.0), reverse=value.better == "higher"
            )
            if each.mark is Mark.FRONT
        ],
    )
    return picture, Text(note) if left_out else None, table


@frozen
class SweepDocument(Document):
    """All results of one `ferrule sweep`."""

    kind: str = "sweep"
    schema_version: int = SWEEP_SCHEMA_VERSION
    ferrule_version: str
    name: str
    rows: tuple[SweepRow, ...]
    planned: int
    """The number of runs that the sweep consists of."""
    environment: EnvironmentPart | None = None

    @property
    def evidence(self) -> Evidence:
        """What all runs together rest on."""
        return sum((row.evidence for row in self.rows if row.succeeded), NO_EVIDENCE)

    @override
    def measures(self) -> Iterator[Measure]:
        for row in self.rows:
            yield from row.measures()

    @override
    def table_rows(self) -> Iterator[Row]:
        for row in self.rows:
            yield {
                **flat(row, inputs=""),
                "compared": row.evidence.numbers,
                **{f"option {name}": value for name, value in row.options.items()},
                **{f"metric {name}": value for name, value in row.metrics.items()},
            }

    @override
    def suite(self) -> Suite:
        cases = [row.case() for row in self.rows]
        missing = self.planned - len(self.rows)
        if not self.rows:
            cases.append(Case("all runs", Outcome.FAILURE, Rule.NOTHING_COMPARED, self.evidence.nothing))
        elif missing > 0:
            text = f"{missing:,} of {self.planned:,} runs have no result"
            cases.append(Case("all runs", Outcome.SKIPPED, text=text))
        return Suite(
            name=f"sweep {self.name}",
            command="sweep",
            model=self.name,
            cases=cases,
            properties={"planned": self.planned, "ferrule": self.ferrule_version},
            seconds=sum(row.seconds for row in self.rows),
        )

    @override
    def sections(self) -> Part:
        failed = [row for row in self.rows if row.failed]
        bad = [row for row in self.rows if not row.succeeded]
        different = sum(row.verdict == Verdict.DIFFERENT for row in self.rows)
        late = sum(row.agrees and row.judgement == "missed" for row in self.rows)
        unproved = sum(row.agrees and row.judgement == "unproved" for row in self.rows)
        empty = len(bad) - len(failed) - different - late - unproved
        unfinished = len(self.rows) < self.planned
        words, state = ("unfinished", State.WARN) if unfinished else ("complete", State.GOOD)
        if unproved:
            words, state = "not proved", State.WARN
        if failed or different or late:
            words, state = "not all runs succeeded", State.BAD
        elif empty or not self.rows:
            words, state = "nothing compared", State.BAD
        counts = joined(
            f"{len(self.rows):,} of {self.planned:,} runs",
            f"{len(failed):,} failed",
            f"{different:,} differ from the reference",
            f"{late:,} miss the deadline" if late else "",
            f"{unproved:,} keep it by a time whose error was not measured" if unproved else "",
            f"{empty:,} have compared nothing" if empty else "",
            "" if self.rows else "the sweep has compared nothing",
        )
        listed = self.rows if len(self.rows) <= _LISTED else bad[:_LISTED]
        errors = [(*_choices(row), row.error) for row in failed]
        return Part(
            self.name,
            (
                Conclusion(words, state, f"{counts}.", only=Only.PAGES),
                page_part(
                    f"{plural(len(failed), 'run')} failed",
                    Table("", (*_CHOICES, "error"), errors) if failed else None,
                ),
                *self._tradeoffs(),
                page_part("By model and board", self._groups()),
                page_part("Runs", _runs(self.rows)),
                replace(_runs(listed), only=Only.TERMINAL) if listed else None,
                *(Text(row.error, f"failed: {row.name}", State.BAD, only=Only.TERMINAL) for row in failed[:_LISTED]),
                Text(self.evidence.text, "compared"),
                Text(counts, self.name, only=Only.TERMINAL),
                surroundings(self.environment),
            ),
            what="Sweep",
            about=f"{len(self.rows):,} of {plural(self.planned, 'run')}",
        )

    def _tradeoffs(self) -> Iterator[Part | None]:
        """Yield by board what its runs take and how good they are: boards count in units of their own."""
        boards = list(dict.fromkeys(row.board for row in self.rows))
        for board in boards[:_BOARDS_DRAWN]:
            rows = [row for row in self.rows if row.board == board]
            about = f"Which run to choose{f', on {board}' if len(boards) > 1 else ''}"
            yield page_part(about, *_tradeoff(rows))
        if len(boards) > _BOARDS_DRAWN:
            more = len(boards) - _BOARDS_DRAWN
            yield page_part("Which run to choose", Text(f"{plural(more, 'more board')}: a sweep of each draws them."))

    def _groups(self) -> Table:
        units = {(row.model, row.board): row.unit for row in self.rows if row.unit}
        groups: dict[tuple[str, str, str], list[SweepRow]] = {}
        for row in self.rows:
            key = (row.model, row.board, row.unit or units.get((row.model, row.board), ""))
            groups.setdefault(key, []).append(row)
        rows: list[tuple[Value, ...]] = []
        for (model, board, unit), runs in groups.items():
            figures = zip(*((row.count, row.flash_bytes, row.ram_bytes) for row in runs), strict=True)
            counts, flash, ram = ([value for value in column if value is not None] for column in figures)
            failed = sum(row.failed for row in runs)
            different = sum(row.verdict == Verdict.DIFFERENT for row in runs)
            fewest = f"{min(counts):,} {unit}" if counts else None
            most = max(counts, default=None)
            sizes = (min(flash, default=None), min(ram, default=None))
            rows.append((model, board, len(runs), failed, different, fewest, most, *sizes))
        columns = (
            *names("model"),
            Column("board", below="model"),
            *numbers("runs", spare=1),
            *numbers("failed", "different", "fewest per inference"),
            *numbers("most", "least flash, B", "least RAM, B", spare=2),
        )
        return Table("", columns, rows)

    @override
    def __repr__(self) -> str:
        failed = sum(row.failed for row in self.rows)
        return f"<SweepDocument {self.name}: {len(self.rows):,} of {self.planned:,} runs, {failed:,} failed>"
