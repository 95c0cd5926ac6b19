# SPDX-License-Identifier: Apache-2.0
"""Documents as the rows of one table, for CSV and data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ferrule.errors import FerruleError
from ferrule.interface import either
from ferrule.report.comparison_document import Comparison
from ferrule.report.document import DeviceWorkPart, ReportDocument
from ferrule.report.estimates import EstimatePart
from ferrule.report.evaluation_document import EvaluationDocument, MetricPart
from ferrule.report.inspection import Inspection, LayerInspection
from ferrule.report.sweep_document import SweepDocument, SweepRow

if TYPE_CHECKING:
    from ferrule.report.reading import Document

Cell = str | int | float | bool | None
Row = dict[str, Cell]
"""By the name of the column; None if it is not known."""


def table(documents: Sequence[Document]) -> tuple[list[str], list[Row]]:
    """Return the columns and the rows of documents; a row lacks the columns that do not apply to it.

    A run or an inspection has a row per layer, and after these the rows of estimates; an evaluation has one per metric
    and per label, a sweep one per run, and a comparison one per value.

    Raises:
        FerruleError: a document has no rows.
    """
    rows = [row for document in documents for row in _rows(document)]
    return list(dict.fromkeys(name for row in rows for name in row)), rows


def _rows(document: Document) -> Iterable[Row]:
    match document:
        case ReportDocument():
            return _of_run(document)
        case Inspection():
            return _of_inspection(document)
        case EvaluationDocument():
            return _of_evaluation(document)
        case SweepDocument():
            return (_of_sweep(row) for row in document.rows)
        case Comparison():
            return _of_comparison(document)
        case _:
            raise FerruleError(
                f"a {document.kind} has no rows",
                hint=either("write it as --html, --markdown or --json", "its attributes have what it says"),
            )


def _of_run(document: ReportDocument) -> Iterator[Row]:
    nothing = DeviceWorkPart(read_bytes=0, written_bytes=0, busy=0)
    place: Row = {"model": document.model.name, "board": document.build.board, "engine": document.engine}
    for layer in document.layers:
        work = layer.work or nothing
        known = layer.work is not None
        yield {
            **place,
            "row": "layer",
            "index": layer.index,
            "layer": layer.name,
            "type": layer.type,
            "backend": layer.backend,
            "device": layer.device,
            "kernel": layer.kernel,
            "rounding": layer.rounding,
            "macs": layer.macs,
            "count": layer.count,
            "unit": document.count.unit,
            "share": layer.share,
            "constant_bytes": layer.constant_bytes,
            "scratch_bytes": layer.scratch_bytes,
            "read_bytes": work.read_bytes if known else None,
            "written_bytes": work.written_bytes if known else None,
            "busy": work.busy if known else None,
            "beside": ", ".join(layer.beside),
            "copies": "; ".join(layer.copies),
            "outputs": ", ".join(layer.outputs),
        }
    yield from _of_estimates(place, document.estimates)


def _of_estimates(place: Row, estimates: Iterable[tuple[str, EstimatePart]]) -> Iterator[Row]:
    """Yield a row per estimate, and one for each of the layers in whose place it runs and for each memory."""
    for name, part in estimates:
        yield {
            **place,
            "row": "estimate",
            "layer": name,
            "estimated_cycles": part.cycles,
            "estimated_clock_hz": part.clock_hz,
            "estimated_by": part.source,
            "warnings": "; ".join(part.warnings),
        }
        inside: Row = {**place, "part_of": name, "estimated_by": part.source}
        for layer, cycles in part.layers.items():
            share = part.share(cycles)
            yield {
                **inside,
                "row": "estimated layer",
                "layer": layer,
                "estimated_cycles": cycles,
                "estimated_share": share,
            }
        for memory in part.memories:
            yield {
                **inside,
                "row": "estimated memory",
                "memory": memory.name,
                "estimated_cycles": memory.cycles,
                "estimated_read_bytes": memory.read_bytes,
                "estimated_written_bytes": memory.written_bytes,
            }


def _of_inspection(document: Inspection) -> Iterator[Row]:
    yield from _of_layers(document.name, document.layers)
    yield from _of_estimates({"model": document.name}, document.estimates)


def _of_layers(model: str, layers: Iterable[LayerInspection]) -> Iterator[Row]:
    for layer in layers:
        yield {
            "model": model,
            "row": "layer",
            "index": layer.index,
            "layer": layer.name,
            "type": layer.type,
            "macs": layer.macs,
            "constant_bytes": layer.constant_bytes,
            "rounding": layer.rounding,
            "inputs": ", ".join(layer.inputs),
            "outputs": ", ".join(layer.outputs),
        }
        yield from _of_layers(model, layer.inner)


def _of_evaluation(document: EvaluationDocument) -> Iterator[Row]:
    whole = document.data.samples
    yield from (_of_metric(document.model.name, "metric", metric, whole) for metric in document.metrics)
    if document.float_model is not None:
        model = document.float_model.model.name
        yield from (_of_metric(model, "float metric", metric, whole) for metric in document.float_model.metrics)
    for label in document.labels:
        yield {
            "model": document.model.name,
            "row": "label",
            "name": label.label,
            "samples": label.samples,
            "recall": label.recall,
            "precision": label.precision,
        }


def _of_metric(model: str, row: str, metric: MetricPart, samples: int) -> Row:
    return {
        "model": model,
        "row": row,
        "name": metric.name,
        "samples": samples,
        "value": metric.value,
        "low": metric.low,
        "high": metric.high,
        "confidence": metric.confidence,
        "method": metric.method,
        "better": metric.better,
        "note": metric.note,
        "at_least": metric.at_least,
        "at_most": metric.at_most,
        "failed": metric.failed,
    }


def _of_sweep(row: SweepRow) -> Row:
    return {
        "run": row.run,
        "model": row.model,
        "model_digest": row.model_digest,
        "board": row.board,
        "toolchain": row.toolchain,
        "engine": row.engine,
        "backends": ", ".join(row.backends),
        "status": row.status,
        "error": row.error,
        "verdict": row.verdict,
        "compared": row.evidence.numbers,
        "count": row.count,
        "unit": row.unit,
        "flash_bytes": row.flash_bytes,
        "ram_bytes": row.ram_bytes,
        "stack_bytes": row.stack_bytes,
        "samples": row.samples,
        "ferrule_version": row.ferrule_version,
        "toolchain_version": row.toolchain_version,
        "firmware_digest": row.firmware_digest,
        "started": row.started,
        "seconds": row.seconds,
        "cpu_s": row.cpu_s,
        "worker": row.worker,
        "attempts": row.attempts,
        **{f"option {name}": value for name, value in row.options.items()},
        **{f"metric {name}": value for name, value in row.metrics.items()},
    }


def _of_comparison(document: Comparison) -> Iterator[Row]:
    for change in document.changes:
        yield {
            "model": document.new.model,
            "scope": change.scope,
            "place": change.place,
            "counter": change.counter,
            "old": change.old,
            "new": change.new,
            "unit": change.unit,
            "relative": change.relative,
            "change": change.change.value,
            "limit": change.limit,
            "failed": change.failed,
            "note": change.note,
        }
