# SPDX-License-Identifier: Apache-2.0
"""The results of `ferrule compare` as data. Its JSON Schema is generated from these types."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ferrule._typing import override
from ferrule.report.evidence import NO_EVIDENCE, Evidence
from ferrule.report.notebooks import Notebook
from ferrule.report.picture import EnvironmentPart

COMPARISON_SCHEMA_VERSION = 1


class Change(StrEnum):
    """How a value has changed."""

    EQUAL = "equal"
    BETTER = "better"
    WORSE = "worse"
    OTHER = "other"
    """Changed, but neither is better."""
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePart:
    """One value of both documents."""

    scope: str
    """"whole", "layer", "metric" or "run"."""
    place: str = ""
    """The layer or the run of a sweep; empty for the whole."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Notebook):
    """What has changed from one document to another of its kind."""

    kind: str = "comparison"
    schema_version: int = COMPARISON_SCHEMA_VERSION
    ferrule_version: str
    of: str
    """The kind of both documents: "run", "inspection", "evaluation" or "sweep"."""
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
    def __repr__(self) -> str:
        changed = sum(change.change is not Change.EQUAL for change in self.changes)
        state = "worse than allowed" if self.worse else "not compared" if self.uncompared else "within the limits"
        return f"<Comparison of {self.of}s: {changed:,} of {len(self.changes):,} values changed, {state}>"


def comparison_schema() -> dict[str, object]:
    """Return the JSON Schema of the document."""
    import msgspec

    return msgspec.json.schema(Comparison)
