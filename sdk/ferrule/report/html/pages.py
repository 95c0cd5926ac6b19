# SPDX-License-Identifier: Apache-2.0
"""Pages and fragments of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from ferrule.reading import read_text
from ferrule.report.comparison_document import Comparison
from ferrule.report.document import ReportDocument
from ferrule.report.evaluation_document import EvaluationDocument, MetricPart
from ferrule.report.failure_document import FailureDocument
from ferrule.report.html import confusion, lanes, memory_picture, sweep_summary, timeline_picture
from ferrule.report.html.rendering import TEMPLATES, environment
from ferrule.report.inspection import Inspection, TensorPart
from ferrule.report.reading import Document
from ferrule.report.sweep_document import SweepRow
from ferrule.report.words import broken_limit

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""The Content-Security-Policy of a page: it loads nothing, and runs no script."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one kind of document is shown."""

    template: str
    what: str


_KINDS = {
    "run": _Kind("run.html", "Run"),
    "inspection": _Kind("inspection.html", "Inspection"),
    "evaluation": _Kind("evaluation.html", "Evaluation"),
    "sweep": _Kind("sweep.html", "Sweep"),
    "failure": _Kind("failure.html", "Failure"),
    "comparison": _Kind("comparison.html", "Comparison"),
}


_ISOLATED = ".ferrule:not(#_)"
"""Selects what `.ferrule` does, with the weight of an id, which the rules of notebooks have not."""


def html_page(document: Document | Sequence[Document]) -> str:
    """Return a document, or several, as a web page: one file, without scripts, which loads nothing."""
    documents = _listed(document)
    return _render("page.html", documents, title=_title(documents), policy=POLICY)


def html_fragment(document: Document | Sequence[Document]) -> str:
    """Return a document, or several, as a part of a page, for notebooks: only its own style applies to it."""
    return _render("fragment.html", _listed(document), isolated_style=_style().replace(".ferrule", _ISOLATED))


def _style() -> str:
    return read_text(TEMPLATES / "style.css")


def _listed(document: Document | Sequence[Document]) -> list[Document]:
    documents = list(document) if isinstance(document, Sequence) else [document]
    if not documents:
        raise ValueError("no document to show")
    return documents


def _render(template: str, documents: Sequence[Document], **values: object) -> str:
    return (
        environment()
        .get_template(template)
        .render(
            documents=documents,
            kinds=_KINDS,
            name_of=_name,
            style=_style(),
            memory_picture=memory_picture.memory_picture,
            largest_buffers=memory_picture.largest,
            timeline_picture=timeline_picture.timeline_picture,
            run_lanes=lanes.run_lanes,
            final_lanes=lanes.final_lanes,
            reasons_of=lanes.reasons,
            taker_reasons=lanes.taker_reasons,
            runner_numbers=lanes.runner_numbers,
            layer_colours=lanes.layer_colours,
            runner=lanes.runner,
            confusions=confusion.worst_confusions,
            matrix_rows=confusion.matrix_rows,
            sweep_groups=sweep_summary.groups,
            sweep_metrics=sweep_summary.metric_names,
            options_of=_options,
            metric_top=_metric_top,
            broken_limit=broken_limit,
            tensor_table=_tensors,
            **values,
        )
    )


def _name(document: Document) -> str:
    """Return what a document is about."""
    match document:
        case ReportDocument() | EvaluationDocument():
            return document.model.name
        case FailureDocument():
            return ", ".join(document.models) or document.command
        case Comparison():
            return document.new.model
        case _:
            return document.name


def _options(row: SweepRow) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.options.items())


def _metric_top(metric: MetricPart) -> float:
    """Return the end of a metric's scale: 1, or a little more than the largest value."""
    values = [value for value in (metric.value, metric.low, metric.high) if value is not None]
    largest = max((value for value in values if isfinite(value)), default=0.0)
    return 1.0 if largest <= 1 else largest * 1.1


def _tensors(inspection: Inspection) -> dict[str, TensorPart]:
    return {tensor.name: tensor for tensor in inspection.tensors}


def _title(documents: Sequence[Document]) -> str:
    first = documents[0]
    kind = _KINDS[first.kind].what
    if len(documents) > 1:
        return f"{kind} of {len(documents)} models"
    return f"{kind} of {_name(first)}"
