# SPDX-License-Identifier: Apache-2.0
"""What is wrong as SARIF 2.1.0 (OASIS), which code scanning of hosted repositories reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ferrule._version import VERSION
from ferrule.errors import FerruleError
from ferrule.rendering import shown
from ferrule.report.comparison_document import Comparison
from ferrule.report.document import ReportDocument, Verdict
from ferrule.report.evaluation_document import EvaluationDocument
from ferrule.report.failure_document import FailureDocument
from ferrule.report.sweep_document import SweepDocument
from ferrule.report.words import broken_limit, changed, counted, run_name

if TYPE_CHECKING:
    from ferrule.report.reading import Document

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
NOTHING = "ferrule/nothing-compared"
_RULES = {
    "ferrule/different": "The outputs of the firmware differ from the numpy reference.",
    NOTHING: "Nothing was compared, so that there is no verdict.",
    "ferrule/device-calls": "The calls of devices are not those that the generator scheduled.",
    "ferrule/crash": "The firmware faulted or hung.",
    "ferrule/error": "The command ended with an error.",
    "ferrule/refused": "A part of the model cannot be used.",
    "ferrule/failed-run": "A run of a sweep ended with an error.",
    "ferrule/undefined-metric": "A metric is undefined for the given samples.",
    "ferrule/over-budget": "A value is worse than its limit allows.",
}
"""By id: what a result of the rule means. The ids never change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """Something that is wrong."""

    rule: str
    message: str
    model: str
    file: str = ""
    """The model's file, relative to the working folder."""
    layer: str = ""
    where: str = ""
    """What tells it from the same finding elsewhere, such as the board."""
    level: str = "error"


def sarif_text(documents: Sequence[Document]) -> str:
    """Return one run of the tool with a result for each thing that is wrong; a good document has none.

    Raises:
        FerruleError: a document has no verdict.
    """
    findings = [finding for document in documents for finding in _findings(document)]
    failed = any(isinstance(document, FailureDocument) for document in documents)
    rules = list(_RULES)
    kind = documents[0].command if isinstance(documents[0], FailureDocument) else documents[0].kind
    run = {
        "tool": {
            "driver": {
                "name": "Ferrule",
                "version": VERSION,
                "rules": [
                    {
                        "id": rule,
                        "name": "".join(word.capitalize() for word in re.split(r"[/-]", rule)),
                        "shortDescription": {"text": text},
                    }
                    for rule, text in _RULES.items()
                ],
            }
        },
        "automationDetails": {"id": f"ferrule/{kind}/"},
        "invocations": [{"executionSuccessful": not failed}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, rules.index(finding.rule)) for finding in findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _findings(document: Document) -> Iterator[_Finding]:
    match document:
        case ReportDocument():
            yield from _of_run(document, document.model.file)
        case EvaluationDocument():
            yield from _of_evaluation(document)
        case SweepDocument():
            yield from _of_sweep(document)
        case Comparison():
            yield from _of_comparison(document)
        case FailureDocument():
            yield from _of_failure(document)
        case _:
            raise FerruleError(f"SARIF states what is wrong, and an {document.kind} has no verdict")


def _of_run(report: ReportDocument, file: str) -> Iterator[_Finding]:
    where = f"{report.build.board} {report.engine}"
    name = report.model.name
    if report.verdict is Verdict.DIFFERENT:
        bad = [sample for sample in report.samples if sample.verdict is Verdict.DIFFERENT]
        first = report.first_difference
        place = "" if first is None else f" {_first(first.layer, first.type, first.note)}"
        text = (
            f"On {report.build.board} by {report.engine}, the outputs of '{name}' differ from the numpy reference for "
            f"{len(bad):,} of {counted(len(report.samples), 'sample')}.{place}"
        )
        layer = "" if first is None else first.layer
        yield _Finding(rule="ferrule/different", message=text, model=name, file=file, layer=layer, where=where)
    if report.verdict is Verdict.NOTHING_COMPARED:
        text = f"On {report.build.board}, nothing of '{name}' was compared: {report.evidence.text}."
        yield _Finding(rule=NOTHING, message=text, model=name, file=file, where=where)
    if report.device_trace is not None and not report.device_trace.as_planned:
        text = f"On {report.build.board}, the calls of devices of '{name}' are not those that the generator scheduled."
        yield _Finding(rule="ferrule/device-calls", message=text, model=name, file=file, where=where)


def _first(layer: str, type_: str, note: str) -> str:
    return f"The first layer that differs is '{layer}' ({type_})." if layer else f"The first layer is not known: {note}"


def _of_evaluation(document: EvaluationDocument) -> Iterator[_Finding]:
    name, file = document.model.name, document.model.file
    proof = document.proof
    if not document.evidence:
        text = f"Nothing was compared with the outputs of '{name}': {document.evidence.text}."
        yield _Finding(rule=NOTHING, message=text, model=name, file=file, where="evaluation")
    if proof is not None:
        yield from _of_run(proof.report, file)
        if proof.verdict is Verdict.DIFFERENT and proof.report.verdict is not Verdict.DIFFERENT:
            text = f"The fast path of '{name}' differs from the firmware on {proof.report.build.board}."
            yield _Finding(rule="ferrule/different", message=text, model=name, file=file, where="fast path")
    for metric in document.metrics:
        if metric.failed:
            text = f"Of '{name}', {broken_limit(metric)}."
            yield _Finding(rule="ferrule/over-budget", message=text, model=name, file=file, where=metric.name)
        elif metric.value is None:
            text = f"The metric '{metric.name}' of '{name}' is undefined: {metric.note}"
            yield _Finding(
                rule="ferrule/undefined-metric",
                message=text,
                model=name,
                file=file,
                where=metric.name,
                level="warning",
            )


def _of_sweep(document: SweepDocument) -> Iterator[_Finding]:
    if not document.rows:
        yield _Finding(rule=NOTHING, message=f"The sweep '{document.name}' has no runs.", model=document.name)
    for row in document.rows:
        where = run_name(row)
        if row.status == "failed":
            text = f"The run '{where}' failed: {row.error}"
            yield _Finding(rule="ferrule/failed-run", message=text, model=row.model, file=row.model, where=where)
        elif row.verdict == Verdict.DIFFERENT:
            text = f"The outputs of the run '{where}' differ from the numpy reference."
            yield _Finding(rule="ferrule/different", message=text, model=row.model, file=row.model, where=where)
        elif not row.succeeded:
            text = f"The run '{where}' has compared nothing: {row.evidence.text}."
            yield _Finding(rule=NOTHING, message=text, model=row.model, file=row.model, where=where)


def _of_comparison(document: Comparison) -> Iterator[_Finding]:
    side = document.new
    for sentence in document.uncompared:
        yield _Finding(rule=NOTHING, message=sentence, model=side.model, file=side.file, where=sentence)
    for change in document.changes:
        if change.failed:
            layer = change.place if change.scope == "layer" else ""
            text = f"{' '.join(filter(None, [change.place, change.counter]))}: {changed(change)}"
            where = f"{document.new.board} {change.place} {change.counter}"
            yield _Finding(
                rule="ferrule/over-budget",
                message=text,
                model=document.new.model,
                file=document.new.file,
                layer=layer,
                where=where,
            )


def _of_failure(document: FailureDocument) -> Iterator[_Finding]:
    file = document.models[0] if document.models else ""
    where = f"{document.board} {document.engine} {document.error}"
    hint = f"\n{document.hint}" if document.hint else ""
    for problem in document.problems:
        text = f"{problem.place}: {problem.reason}"
        yield _Finding(
            rule="ferrule/refused", message=text, model=file, file=file, layer=problem.place, where=problem.reason
        )
    if not document.problems:
        rule = "ferrule/error" if document.crash is None else "ferrule/crash"
        yield _Finding(rule=rule, message=f"{document.message}{hint}", model=file, file=file, where=where)


def _result(finding: _Finding, index: int) -> dict[str, Any]:
    location: dict[str, Any] = {}
    if finding.file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": _uri(finding.file), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 1},
        }
    name = finding.layer or finding.model or "command"
    qualified = "/".join(filter(None, [finding.model, finding.layer])) or "command"
    kind = "member" if finding.layer else "module"
    location["logicalLocations"] = [{"name": shown(name), "fullyQualifiedName": shown(qualified), "kind": kind}]
    stable = "\0".join([finding.rule, finding.model, finding.layer, finding.where])
    digest = hashlib.sha256(stable.encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.level,
        "message": {"text": _message(finding.message)},
        "locations": [location],
        "partialFingerprints": {"ferrule/v1": digest},
    }


def _message(text: str) -> str:
    """Return a text with what SARIF would read as a link or a placeholder escaped (sections 3.11.5 and 3.11.6)."""
    unlinked = re.sub(r"\](?=\()", r"\\]", shown(text) or "no message")
    return re.sub(r"\{(\d+)\}", r"{{\1}}", unlinked)


def _uri(file: str) -> str:
    """Return the relative URI of a file; of one elsewhere on the machine, that of its name."""
    return quote(file.rpartition("/")[2] if file.startswith("/") else file, safe="/", errors="replace")
