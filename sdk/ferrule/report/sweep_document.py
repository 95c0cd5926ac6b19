# SPDX-License-Identifier: Apache-2.0
"""The results of `ferrule sweep` as data: a row for each run. Its JSON Schema is generated from these types."""

from __future__ import annotations

from dataclasses import dataclass, field

from ferrule._typing import override
from ferrule.report.document import Verdict
from ferrule.report.evidence import NO_EVIDENCE, Evidence
from ferrule.report.notebooks import Notebook
from ferrule.report.picture import EnvironmentPart

SWEEP_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
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
    def is_kept(self) -> bool:
        """Whether a resumed sweep may keep it: a row that claims a success which nothing supports is not."""
        return self.status != "done" or self.succeeded or self.verdict in {"nothing_compared", "different"}

    @property
    def succeeded(self) -> bool:
        """Whether the run has a verdict that rests on something, and agrees with the reference."""
        good = {verdict.value for verdict in Verdict if verdict.agrees}
        return self.status == "done" and self.verdict in good and bool(self.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepDocument(Notebook):
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
    def __repr__(self) -> str:
        failed = sum(row.status == "failed" for row in self.rows)
        return f"<SweepDocument {self.name}: {len(self.rows):,} of {self.planned:,} runs, {failed:,} failed>"


def sweep_schema() -> dict[str, object]:
    """Return the JSON Schema of the document."""
    import msgspec

    return msgspec.json.schema(SweepDocument)
