# SPDX-License-Identifier: Apache-2.0
"""A command that ended with an error as data. Its JSON Schema is generated from these types."""

from __future__ import annotations

from dataclasses import field

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.emulation import EngineError
from ferrule.errors import FerruleError
from ferrule.report.base import Case, Document, Outcome, Rule, Suite, part_of
from ferrule.report.picture import EnvironmentPart, surroundings
from ferrule.report.sections import (
    Code,
    Conclusion,
    Facts,
    Part,
    State,
    Table,
    Text,
    joined,
    names,
    part,
    plural,
)
from ferrule.report.surroundings import environment

FAILURE_SCHEMA_VERSION = 2


@frozen
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

    def section(self) -> Part:
        """Return the place, and the registers."""
        pc = f"0x{self.pc >> 16:04x}_{self.pc & 0xFFFF:04x}"
        place = Facts.known({"pc": pc, "function": self.symbol, "instruction": self.instruction}, large=True)
        registers = Facts.known({name: f"{value:08x}" for name, value in self.registers.items()})
        return Part("Where it stopped", (place, *map(Text, self.notes), registers))


@frozen
class ProblemPart:
    """One of the reasons why a model is refused."""

    place: str
    type: str
    """The type of the operator or layer; empty if the place is none."""
    reason: str
    hint: str = ""


@frozen
class FailureDocument(Document):
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
    def suite(self) -> Suite:
        file = self.models[0] if self.models else ""
        rule = Rule.ERROR if self.crash is None else Rule.CRASH
        where = f"{self.board} {self.engine} {self.error}"
        name, text = joined(*self.models) or "command", _hinted(self.message, self.hint)
        cases = [
            Case(
                f"{index} {each.place}",
                Outcome.ERROR,
                Rule.REFUSED,
                _hinted(each.reason, each.hint),
                layer=each.place,
                where=each.reason,
            )
            for index, each in enumerate(self.problems, start=1)
        ]
        return Suite(
            name=f"ferrule {self.command}",
            command=self.command,
            model=file,
            file=file,
            cases=cases or [Case(name, Outcome.ERROR, rule, text, self.error, where=where)],
            properties={"board": self.board, "engine": self.engine, "ferrule": self.ferrule_version},
        )

    @override
    def sections(self) -> Part:
        first = self.message.partition("\n")[0].rstrip(":")
        problems = Table(
            "",
            (*names("place", "type"), "reason", "what would help"),
            [(each.place, each.type, each.reason, each.hint) for each in self.problems],
        )
        return Part(
            joined(*self.models) or self.command,
            (
                Conclusion("failed", State.BAD, first if self.crash is None else self.crash.reason),
                *(Text(fault, "injected") for fault in self.faults),
                Text(self.hint, "hint") if self.hint else None,
                None if self.crash is None else self.crash.section(),
                part(plural(len(self.problems), "problem"), problems) if self.problems else None,
                part("The message", Code(f"{self.error}: {self.message}")),
                surroundings(self.environment),
            ),
            what=f"Failure of ferrule {self.command}",
            about=joined(self.board and f"on {self.board}", self.engine and f"by {self.engine}", by=" "),
        )

    @override
    def __repr__(self) -> str:
        return f"<FailureDocument {self.command}: {self.error}: {self.message.splitlines()[0] if self.message else ''}>"


def _hinted(text: str, hint: str) -> str:
    return joined(text, hint and f"hint: {hint}", by="\n")


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
    report = error.report if isinstance(error, EngineError) else None
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
        crash=None
        if report is None
        else part_of(CrashPart, report, instruction=report.instruction or "", registers=dict(report.registers)),
        problems=tuple(part_of(ProblemPart, each, hint=each.hint or "") for each in error.problems),
        environment=environment(),
    )
