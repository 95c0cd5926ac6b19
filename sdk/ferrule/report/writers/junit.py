# SPDX-License-Identifier: Apache-2.0
"""Verdicts as JUnit XML, which servers for continuous integration read: a suite per document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ferrule.errors import FerruleError
from ferrule.rendering import shown
from ferrule.report.comparison_document import ChangePart, Comparison
from ferrule.report.document import ReportDocument, SamplePart, Verdict
from ferrule.report.evaluation_document import EvaluationDocument, MetricPart
from ferrule.report.evidence import Evidence
from ferrule.report.failure_document import FailureDocument
from ferrule.report.sweep_document import SweepDocument, SweepRow
from ferrule.report.words import broken_limit, changed, counted, run_name, verdict_text

if TYPE_CHECKING:
    from ferrule.report.reading import Document

NOTHING = "nothing-compared"
"""The type of a case that has compared nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A test case; `outcome` is "" for a success, or the name of the element that states another."""

    name: str
    seconds: float = 0.0
    outcome: str = ""
    kind: str = ""
    """The type of a failure or error."""
    message: str = ""
    details: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suite:
    name: str
    group: str
    """The class of its cases, by which servers sort them."""
    cases: Sequence[_Case]
    properties: Mapping[str, object] = field(default_factory=dict)
    seconds: float = 0.0


def junit_text(documents: Sequence[Document]) -> str:
    """Return the suites: a case per sample of a run, metric of an evaluation, run of a sweep, or value compared.

    Raises:
        FerruleError: a document has no verdict.
    """
    suites = [_suite(document) for document in documents]
    root = Element("testsuites", {"name": "ferrule", **_counts([case for suite in suites for case in suite.cases])})
    root.set("time", _seconds(sum(suite.seconds for suite in suites)))
    for suite in suites:
        _write(root, suite)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(document: Document) -> _Suite:
    match document:
        case ReportDocument():
            return _of_run(document)
        case EvaluationDocument():
            return _of_evaluation(document)
        case SweepDocument():
            return _of_sweep(document)
        case Comparison():
            return _of_comparison(document)
        case FailureDocument():
            return _of_failure(document)
        case _:
            raise FerruleError(f"JUnit states verdicts, and an {document.kind} has none")


def _of_run(report: ReportDocument) -> _Suite:
    name = f"{report.model.name} on {report.build.board} by {report.engine}"
    each = report.run_s / max(len(report.samples), 1)
    cases = [_of_sample(report, sample, each) for sample in report.samples]
    if report.device_trace is not None:
        planned = report.device_trace.as_planned
        message = "" if planned else "the calls of devices are not those that the generator scheduled"
        outcome = "" if planned else "failure"
        cases.append(_Case(name="device calls", outcome=outcome, kind="device-calls", message=message))
    return _Suite(
        name=name,
        group=f"ferrule.run.{_dotless(report.model.name)}",
        cases=cases,
        properties=_properties(report),
        seconds=report.run_s,
    )


def _of_sample(report: ReportDocument, sample: SamplePart, seconds: float) -> _Case:
    name = f"sample {sample.index}"
    if sample.verdict is Verdict.NOTHING_COMPARED:
        outcome = "skipped" if report.verdict.agrees else "failure"
        return _Case(name=name, seconds=seconds, outcome=outcome, kind=NOTHING, message=_compared(sample.evidence))
    if sample.verdict.agrees:
        text = f"{verdict_text(sample.verdict)} ({sample.evidence.text})"
        return _Case(name=name, seconds=seconds, output=text)
    extent = "" if sample.max_difference is None else f" by up to {sample.max_difference:g}"
    first = report.first_difference
    details = "" if first is None else f"first difference: layer {first.layer}" if first.layer else first.note
    message = f"the outputs differ from the reference{extent}"
    return _Case(name=name, seconds=seconds, outcome="failure", kind="different", message=message, details=details)


def _compared(evidence: Evidence) -> str:
    return f"nothing was compared: {evidence.text}"


def _properties(report: ReportDocument) -> dict[str, object]:
    flash, ram = report.memory.flash, report.memory.ram
    return {
        "verdict": report.verdict.value,
        "compared": report.evidence.text,
        "model digest": report.model.digest,
        "board": report.build.board,
        "engine": report.engine,
        "toolchain": report.build.toolchain_version,
        report.count.unit: report.count.per_inference,
        **({} if flash is None else {"flash bytes": flash.total}),
        **({} if ram.total is None else {"RAM bytes": ram.total}),
        "stack bytes": ram.stack_used,
        "ferrule": report.ferrule_version,
    }


def _of_evaluation(document: EvaluationDocument) -> _Suite:
    cases = [_of_metric(metric) for metric in document.metrics]
    proof = document.proof
    if proof is not None:
        equal = proof.verdict.agrees
        compared = document.data.samples if proof.whole else len(proof.samples)
        said = f"{verdict_text(proof.verdict)} ({proof.evidence.text})"
        text = f"{counted(compared, 'sample')} on {proof.report.build.board}: {said}"
        outcome, message = ("", "") if equal else ("failure", text)
        kind = proof.verdict.value.replace("_", "-")
        cases.append(_Case(name="proof", outcome=outcome, kind=kind, message=message, output=text))
    if not document.evidence:
        cases.append(_Case(name="outputs", outcome="failure", kind=NOTHING, message=_compared(document.evidence)))
    return _Suite(
        name=f"{document.model.name} with {document.data.source}",
        group=f"ferrule.evaluate.{_dotless(document.model.name)}",
        cases=cases,
        properties={
            "model digest": document.model.digest,
            "data digest": document.data.digest,
            "samples": document.data.samples,
            **{f"metric {each.name}": each.value for each in document.metrics if each.value is not None},
            "ferrule": document.ferrule_version,
        },
        seconds=sum(path.wall_s for path in document.paths),
    )


def _of_metric(metric: MetricPart) -> _Case:
    if metric.failed:
        return _Case(name=metric.name, outcome="failure", kind="limit", message=broken_limit(metric))
    if metric.value is None:
        return _Case(name=metric.name, outcome="skipped", message=f"undefined: {metric.note}")
    interval = "" if metric.low is None or metric.high is None else f", {metric.low:.6g} to {metric.high:.6g}"
    how = f" ({metric.confidence:.0%} confidence, {metric.method})" if interval else ""
    return _Case(name=metric.name, output=f"{metric.value:.6g}{interval}{how}")


def _of_sweep(document: SweepDocument) -> _Suite:
    cases = [_of_row(row) for row in document.rows]
    missing = document.planned - len(document.rows)
    message = f"{missing:,} of {document.planned:,} runs have no result"
    if not document.rows:
        cases.append(_Case(name="all runs", outcome="failure", kind=NOTHING, message=_compared(document.evidence)))
    elif missing > 0:
        cases.append(_Case(name="all runs", outcome="skipped", message=message))
    return _Suite(
        name=f"sweep {document.name}",
        group=f"ferrule.sweep.{_dotless(document.name)}",
        cases=cases,
        properties={"planned": document.planned, "ferrule": document.ferrule_version},
        seconds=sum(row.seconds for row in document.rows),
    )


def _of_row(row: SweepRow) -> _Case:
    name = run_name(row)
    if row.status == "failed":
        message, _, more = row.error.partition("\n")
        return _Case(name=name, seconds=row.seconds, outcome="error", kind="failed", message=message, details=more)
    if row.verdict == Verdict.DIFFERENT:
        message = "the outputs differ from the reference"
        return _Case(name=name, seconds=row.seconds, outcome="failure", kind="different", message=message)
    if not row.succeeded:
        message = _compared(row.evidence)
        return _Case(name=name, seconds=row.seconds, outcome="failure", kind=NOTHING, message=message)
    count = "" if row.count is None else f"{row.count:,} {row.unit}"
    return _Case(name=name, seconds=row.seconds, output=", ".join(filter(None, [row.verdict, count])))


def _of_comparison(document: Comparison) -> _Suite:
    return _Suite(
        name=f"{document.new.model}: what has changed",
        group=f"ferrule.compare.{_dotless(document.new.model)}",
        cases=[*map(_of_change, document.changes), *_of_uncompared(document)],
        properties={f"limit {name}".rstrip(): limit for name, limit in document.limits.items()},
    )


def _of_uncompared(document: Comparison) -> list[_Case]:
    message = " ".join(document.uncompared)
    return [_Case(name="everything compared", outcome="failure", kind=NOTHING, message=message)] if message else []


def _of_change(change: ChangePart) -> _Case:
    name = f"{change.place}: {change.counter}" if change.place else change.counter
    if not change.failed:
        return _Case(name=name, output=changed(change))
    return _Case(name=name, outcome="failure", kind="over-budget", message=changed(change))


def _of_failure(document: FailureDocument) -> _Suite:
    name = ", ".join(document.models) or "command"
    message, _, more = document.message.partition("\n")
    details = "\n".join(filter(None, [more, document.hint and f"hint: {document.hint}"]))
    case = _Case(name=name, outcome="error", kind=document.error, message=message, details=details)
    known = {"board": document.board, "engine": document.engine, "ferrule": document.ferrule_version}
    return _Suite(
        name=f"ferrule {document.command}",
        group=f"ferrule.{document.command}",
        cases=[case],
        properties={key: value for key, value in known.items() if value},
    )


def _write(root: Element, suite: _Suite) -> None:
    attributes = {"name": shown(suite.name), **_counts(suite.cases)}
    attributes["skipped"] = str(sum(case.outcome == "skipped" for case in suite.cases))
    element = SubElement(root, "testsuite", {**attributes, "time": _seconds(suite.seconds)})
    if suite.properties:
        properties = SubElement(element, "properties")
        for name, value in suite.properties.items():
            SubElement(properties, "property", {"name": shown(name), "value": shown(str(value))})
    for case in suite.cases:
        names = {"classname": shown(suite.group), "name": shown(case.name), "time": _seconds(case.seconds)}
        child = SubElement(element, "testcase", names)
        if case.outcome:
            said = {"message": shown(case.message)}
            if case.outcome != "skipped":
                said["type"] = case.kind
            SubElement(child, case.outcome, said).text = shown(case.details) or None
        if case.output:
            SubElement(child, "system-out").text = shown(case.output)


def _counts(cases: Sequence[_Case]) -> dict[str, str]:
    outcomes = [case.outcome for case in cases]
    return {
        "tests": str(len(cases)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
    }


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _dotless(name: str) -> str:
    """Return a name as one part of a dotted one."""
    return name.replace(".", "_").replace(" ", "_")
