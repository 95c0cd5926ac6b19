# SPDX-License-Identifier: Apache-2.0
"""The values of a document that comparisons match by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ferrule.report.document import ReportDocument
from ferrule.report.evaluation_document import EvaluationDocument, MetricPart
from ferrule.report.inspection import Inspection
from ferrule.report.sweep_document import SweepDocument, SweepRow
from ferrule.report.words import run_name

if TYPE_CHECKING:
    from ferrule.report.reading import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value with the place where it belongs."""

    scope: str
    """As in `ChangePart`."""
    place: str = ""
    kind: str = ""
    """The type of a layer."""
    counter: str
    value: float | int | str | None
    unit: str = ""
    better: str = "lower"
    """"lower", "higher", or empty if neither is better."""
    interval: tuple[float, float] | None = None
    """The confidence interval of a metric."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What the same value has in another document."""
        return self.scope, self.place, self.counter


def values(document: Document) -> list[Value]:
    """Return the values in the order of the document, those of the whole first; equal names are numbered."""
    found = [value for value in _values(document) if value.value is not None]
    seen: dict[tuple[str, str, str], int] = {}
    result = []
    for value in found:
        number = seen[value.key] = seen.get(value.key, 0) + 1
        result.append(value if number == 1 else replace(value, place=f"{value.place} ({number})".strip()))
    return result


def _values(document: Document) -> Iterator[Value]:
    match document:
        case ReportDocument():
            yield from _of_run(document)
        case EvaluationDocument():
            yield from _of_evaluation(document)
        case Inspection():
            yield from _of_inspection(document)
        case SweepDocument():
            for row in document.rows:
                yield from _of_row(row)
        case _:
            pass


def _of_run(report: ReportDocument) -> Iterator[Value]:
    yield Value(scope="whole", counter="verdict", value=report.verdict.value)
    unit, ram, arena = report.count.unit, report.memory.ram, report.memory.arena
    if report.count.per_inference:
        yield Value(scope="whole", counter=unit, value=report.count.per_inference)
    flash = report.memory.flash
    if flash is not None:
        for counter, size in (("flash", flash.total), ("code", flash.code), ("weights", flash.weights)):
            yield Value(scope="whole", counter=counter, value=size, unit="B")
    for counter, taken in (
        ("RAM", ram.total),
        ("workspace", ram.workspace),
        ("arena", arena.size_bytes),
        ("activations", arena.activation_bytes),
        ("stack", ram.stack_used),
        ("stack bound", ram.stack_bound),
    ):
        yield Value(scope="whole", counter=counter, value=taken, unit="B")
    yield Value(scope="whole", counter="MACs", value=report.model.macs, better="")
    for layer in report.layers:
        if report.count.per_inference:
            yield Value(scope="layer", place=layer.name, kind=layer.type, counter=unit, value=layer.count)
        else:
            yield Value(scope="layer", place=layer.name, kind=layer.type, counter="MACs", value=layer.macs, better="")


def _of_evaluation(document: EvaluationDocument) -> Iterator[Value]:
    for metric in document.metrics:
        yield _of_metric(metric, metric.name)
    if document.float_model is not None:
        yield Value(
            scope="metric", counter="agreement with float32", value=document.float_model.agreement, better="higher"
        )
    if document.proof is not None:
        yield Value(scope="whole", counter="proof", value=document.proof.verdict.value)
        yield from _of_run(document.proof.report)


def _of_metric(metric: MetricPart, name: str) -> Value:
    interval = None if metric.low is None or metric.high is None else (metric.low, metric.high)
    return Value(scope="metric", counter=name, value=metric.value, better=metric.better, interval=interval)


def _of_inspection(document: Inspection) -> Iterator[Value]:
    arena = document.arena
    yield Value(scope="whole", counter="MACs", value=document.macs)
    yield Value(scope="whole", counter="constants", value=document.constant_bytes, unit="B")
    if arena is not None:
        yield Value(scope="whole", counter="arena", value=arena.size_bytes, unit="B")
        yield Value(scope="whole", counter="activations", value=arena.activation_bytes, unit="B")
        yield Value(scope="whole", counter="state", value=arena.state_bytes, unit="B")
    for layer in document.layers:
        yield Value(scope="layer", place=layer.name, kind=layer.type, counter="MACs", value=layer.macs)


def _of_row(row: SweepRow) -> Iterator[Value]:
    place = run_name(row)
    verdict = "failed" if row.status == "failed" else row.verdict or "nothing_compared"
    yield Value(scope="run", place=place, counter="verdict", value=verdict)
    yield Value(scope="run", place=place, counter=row.unit or "count", value=row.count)
    for counter, size in (("flash", row.flash_bytes), ("RAM", row.ram_bytes), ("stack", row.stack_bytes)):
        yield Value(scope="run", place=place, counter=counter, value=size, unit="B")
    for name, value in row.metrics.items():
        yield Value(scope="run", place=place, counter=name, value=value, better=_better(name))


def _better(metric: str) -> str:
    """Return which values of a metric are better: a sweep's row has only its name."""
    return "lower" if metric in {"mae", "mse"} else "higher" if metric in {"accuracy", "top5", "auc"} else ""
