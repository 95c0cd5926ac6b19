# SPDX-License-Identifier: Apache-2.0
"""The results of `ferrule compare` as data. Its JSON Schema is generated from these types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.rendering import one_line
from ferrule.report.base import Case, Document, Outcome, Row, Rule, Suite, flat
from ferrule.report.evidence import NO_EVIDENCE, Evidence
from ferrule.report.picture import EnvironmentPart, surroundings
from ferrule.report.sections import (
    Cell,
    Column,
    Conclusion,
    Part,
    State,
    Table,
    Text,
    Value,
    joined,
    names,
    number,
    numbers,
    page_part,
    part,
    plural,
)

COMPARISON_SCHEMA_VERSION = 1
MATTERS = 0.005
"""The least relative change that is shown as better or worse; a limit judges smaller ones, too."""


class Change(StrEnum):
    """How a value has changed."""

    EQUAL = "equal"
    BETTER = "better"
    WORSE = "worse"
    OTHER = "other"
    """Changed, but neither is better."""
    ADDED = "added"
    REMOVED = "removed"


@frozen
class SidePart:
    """One of the two documents."""

    model: str
    """The name of the model, or of the sweep."""
    model_digest: str = ""
    file: str = ""
    """The model's file, as in `ModelPart`."""
    board: str = ""
    engine: str = ""
    toolchain: str = ""
    """The compiler's version."""
    ferrule: str
    """Version."""
    data_digest: str = ""
    """That of an evaluation's data."""


@frozen
class ChangePart:
    """One value of both documents."""

    scope: str
    """"whole", "layer", "metric", "run", or "trial" of a search's front."""
    place: str = ""
    """The layer, the run of a sweep or the setting of a trial; empty for the whole."""
    counter: str
    """Such as "instructions", "flash", "RAM", "stack", "verdict", or the name of a metric."""
    old: float | int | str | None
    """None if the old document lacks it."""
    new: float | int | str | None
    unit: str = ""
    relative: float | None = None
    """(new - old) / old; None without two numbers, or if the old one is 0."""
    change: Change
    limit: str = ""
    """The limit that applies, such as "1%" or "0"; empty if none does."""
    failed: bool = False
    """Whether it is worse than the limit allows."""
    note: str = ""
    """Such as "was 'conv_1'", or whether a metric's change is significant."""
    significant: bool | None = None
    """Whether the confidence intervals of a metric are apart; None without two intervals."""

    @property
    def slight(self) -> str:
        """Why a change for better or worse does not matter, in words; empty if it does."""
        if self.failed or self.change not in {Change.BETTER, Change.WORSE}:
            return ""
        if self.significant is False:
            return "not significant"
        return f"below {MATTERS:.1%}" if self.relative is not None and abs(self.relative) < MATTERS else ""

    @property
    def name(self) -> str:
        """The value with its place, if it has one."""
        return joined(self.place, self.counter, by=": ")

    @property
    def growth(self) -> str:
        """The relative change with its sign; empty if there is none."""
        return "" if self.relative is None else f"{self.relative:+.2%}"

    @property
    def text(self) -> str:
        """The change as a sentence's part."""
        unit = f" {self.unit}" if self.unit else ""
        match self.change:
            case Change.EQUAL:
                said = f"{number(self.new)}{unit}, equal"
            case Change.ADDED:
                said = f"added: {number(self.new)}{unit}"
            case Change.REMOVED:
                said = f"removed: was {number(self.old)}{unit}"
            case _:
                said = f"{number(self.old)} to {number(self.new)}{unit}{f' ({self.growth})' if self.growth else ''}"
        over = f", over the limit of {self.limit}" if self.failed and self.limit else ""
        return f"{said}{over}{f'; {self.note}' if self.note else ''}"

    @property
    def row(self) -> tuple[Value, ...]:
        """The change as the row of a table."""
        limit = f" (limit {self.limit})" if self.limit else ""
        states = {Change.BETTER: State.GOOD, Change.WORSE: State.WARN}
        slight = self.slight
        state = Cell(joined(self.change, slight) + limit, None if slight else states.get(self.change))
        if self.failed:
            state = Cell(f"worse than allowed{limit}", State.BAD)
        unit = f" {self.unit}" if self.unit else ""
        old, new = ("" if each is None else f"{number(each)}{unit}" for each in (self.old, self.new))
        return one_line(self.name), old, new, self.growth, state, one_line(self.note)

    def case(self, board: str) -> Case:
        """Return whether it is within its limit."""
        layer = self.place if self.scope == "layer" else ""
        case = Case(self.name, text=self.text, layer=layer, where=f"{board} {self.place} {self.counter}")
        return case.failing(Rule.OVER_BUDGET) if self.failed else case


@frozen
class Comparison(Document):
    """What has changed from one document to another of its kind."""

    kind: str = "comparison"
    schema_version: int = COMPARISON_SCHEMA_VERSION
    ferrule_version: str
    of: str
    """The kind of both documents: "run", "inspection", "evaluation", "quantization", "search" or "sweep"."""
    old: SidePart
    new: SidePart
    limits: dict[str, str] = field(default_factory=dict)
    """By counter, as the user typed them; "" for all counters."""
    differences: tuple[str, ...] = ()
    """How the conditions of the two differ, a sentence each, such as other toolchains."""
    changes: tuple[ChangePart, ...]
    """All values, equal ones too, in the order of the new document; those that it lacks are last."""
    evidence: Evidence = NO_EVIDENCE
    """The values that both documents have, as elements, with the layers and runs among them."""
    uncompared: tuple[str, ...] = ()
    """What one document has and the other lacks, and limits that have judged nothing, a sentence each: a failure."""
    environment: EnvironmentPart | None = None

    @property
    def worse(self) -> bool:
        """Whether anything is worse than the limits allow."""
        return any(change.failed for change in self.changes)

    @property
    def failed(self) -> bool:
        """Whether anything is worse than the limits allow, or was not compared."""
        return self.worse or bool(self.uncompared)

    @override
    def table_rows(self) -> Iterator[Row]:
        return ({"model": self.new.model, **flat(change)} for change in self.changes)

    @override
    def suite(self) -> Suite:
        cases = [change.case(self.new.board) for change in self.changes]
        if self.uncompared:
            text = " ".join(self.uncompared)
            cases.append(Case("everything compared", Outcome.FAILURE, Rule.NOTHING_COMPARED, text, where=text))
        return Suite(
            name=f"{self.new.model}: what has changed",
            command="compare",
            model=self.new.model,
            file=self.new.file,
            cases=cases,
            properties={f"limit {name}".rstrip(): limit for name, limit in self.limits.items()},
        )

    @override
    def sections(self) -> Part:
        changed = [change for change in self.changes if change.change is not Change.EQUAL]
        equal = len(self.changes) - len(changed)
        table = Table(
            one_line(f"{self.new.model}: what has changed"),
            (
                "what",
                *numbers("old", spare=1),
                *numbers("new", "change"),
                *names("state"),
                Column("note", sparse=True, drop=1),
            ),
            [change.row for change in sorted(changed, key=lambda each: not each.failed)],
        )
        old, new = flat(self.old), flat(self.new)
        sides = [(name.replace("_", " "), str(old[name]), str(new[name])) for name in old if old[name] or new[name]]
        return Part(
            self.new.model,
            (
                *(Text(each, "note", State.WARN) for each in self.differences),
                part("Changes", table) if changed else None,
                Text(f"{plural(equal, 'value')} {'is' if equal == 1 else 'are'} equal"),
                Text(self.evidence.of("value"), "compared"),
                *(Text(each, "not compared", State.BAD) for each in self.uncompared),
                self._conclusion(),
                page_part("The two sides", Table("", (*names(""), "old", "new"), sides)),
                surroundings(self.environment),
            ),
            what="Comparison",
            about=f"what has changed from one {self.of} to another",
        )

    def _conclusion(self) -> Conclusion:
        failed = sum(change.failed for change in self.changes)
        words, state = "within the limits", State.GOOD
        if failed:
            words, state = f"{plural(failed, 'value')} worse than allowed", State.BAD
        elif self.uncompared:
            words, state = "not everything was compared", State.BAD
        limits = joined(*(f"{name} {limit}".strip() for name, limit in self.limits.items()))
        return Conclusion(words, state, f"Limits: {limits or 'none'}.", "comparison")

    @override
    def __repr__(self) -> str:
        changed = sum(change.change is not Change.EQUAL for change in self.changes)
        state = "worse than allowed" if self.worse else "not compared" if self.uncompared else "within the limits"
        return f"<Comparison of {self.of}s: {changed:,} of {len(self.changes):,} values changed, {state}>"
