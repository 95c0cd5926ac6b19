# SPDX-License-Identifier: Apache-2.0
"""A command that ended with an error as data. Its JSON Schema is generated from these types."""

from __future__ import annotations

from dataclasses import dataclass, field

from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.emulation import EngineError
from ferrule.errors import FerruleError
from ferrule.report.notebooks import Notebook
from ferrule.report.picture import EnvironmentPart
from ferrule.report.surroundings import environment

FAILURE_SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashPart:
    """The state of the core when the firmware faulted or hung."""

    reason: str
    pc: int
    symbol: str
    """The function at pc and the offset in it, "?" outside all functions."""
    instruction: str = ""
    """The instruction at pc; empty without a disassembler."""
    registers: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Further facts, one sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPart:
    """One of the reasons why a model is refused."""

    place: str
    type: str
    """The type of the operator or layer; empty if the place is none."""
    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDocument(Notebook):
    """A command that ended with an error instead of a result."""

    kind: str = "failure"
    schema_version: int = FAILURE_SCHEMA_VERSION
    ferrule_version: str
    command: str
    """The command that failed, such as "run"."""
    error: str
    """The kind of error, such as "EngineError"."""
    message: str
    """As the command line prints it."""
    hint: str = ""
    models: tuple[str, ...] = ()
    """The models, by the names of their files."""
    board: str = ""
    engine: str = ""
    faults: tuple[str, ...] = ()
    """The faults injected into device models, each with its device."""
    crash: CrashPart | None = None
    """None unless the firmware faulted or hung at a known place."""
    problems: tuple[ProblemPart, ...] = ()
    """The single problems of a model that is refused."""
    environment: EnvironmentPart | None = None

    @override
    def __repr__(self) -> str:
        return f"<FailureDocument {self.command}: {self.error}: {self.message.splitlines()[0] if self.message else ''}>"


def failure_document(
    error: FerruleError,
    *,
    command: str,
    models: tuple[str, ...] = (),
    board: str = "",
    engine: str = "",
    faults: tuple[str, ...] = (),
) -> FailureDocument:
    """Return the document of an error that ended a command."""
    return FailureDocument(
        ferrule_version=VERSION,
        command=command,
        error=type(error).__name__,
        message=str(error),
        hint=error.hint or "",
        models=models,
        board=board,
        engine=engine,
        faults=faults,
        crash=_crash(error),
        problems=tuple(
            ProblemPart(place=each.place, type=each.type, reason=each.reason, hint=each.hint or "")
            for each in error.problems
        ),
        environment=environment(),
    )


def _crash(error: FerruleError) -> CrashPart | None:
    if not isinstance(error, EngineError) or error.report is None:
        return None
    report = error.report
    return CrashPart(
        reason=report.reason,
        pc=report.pc,
        symbol=report.symbol,
        instruction=report.instruction or "",
        registers=dict(report.registers),
        notes=report.notes,
    )


def failure_schema() -> dict[str, object]:
    """Return the JSON Schema of the document."""
    import msgspec

    return msgspec.json.schema(FailureDocument)
