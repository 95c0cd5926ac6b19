# SPDX-License-Identifier: Apache-2.0
"""The timeline of one inference as a Chrome JSON trace, which Perfetto and Speedscope read.

A microsecond of the trace is one instruction or cycle, the unit of the report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ferrule.errors import FerruleError
from ferrule.report.base import Document
from ferrule.report.document import LayerPart
from ferrule.report.evaluation_document import report_of
from ferrule.report.picture import BufferPart, RegionPlanPart
from ferrule.report.run_document import ReportDocument
from ferrule.report.timeline import CORE_TRACK

_Event = dict[str, Any]


def trace_text(documents: Sequence[Document]) -> str:
    """Return the trace: a process per model, with a thread for the core and one for each device.

    Raises:
        FerruleError: a document has no timeline.
    """
    events: list[_Event] = []
    units = []
    for number, document in enumerate(documents, start=1):
        report = _report(document)
        units.append(report.count.unit)
        events += _events(report, number)
    unit = units[0] if len(set(units)) == 1 else "instruction or cycle"
    data = {"unit": f"one microsecond of this trace is one {unit.removesuffix('s')}"}
    for report in map(_report, documents):
        if report.duration.text:
            data[f"elapsed time of {report.model.name}"] = report.duration.text
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": data}) + "\n"


def _report(document: Document) -> ReportDocument:
    report = report_of(document, "a trace needs a timeline")
    if not report.timeline:
        reason = "its firmware counts nothing" if not report.count.per_inference else "it has none"
        raise FerruleError(
            f"a trace needs a timeline, and the report of '{report.model.name}' lacks one: {reason}",
            hint="make the report again with this version of Ferrule, on an engine with a counter",
        )
    return report


def _events(report: ReportDocument, process: int) -> Iterator[_Event]:
    tracks = list(dict.fromkeys([CORE_TRACK, *(span.track for span in report.timeline)]))
    title = f"{report.model.name} on {report.build.board} by {report.engine}, {report.count.unit}"
    yield _named("process_name", title, process, 0)
    for number, track in enumerate(tracks):
        yield _named("thread_name", track, process, number)
    layers = {layer.name: layer for layer in report.layers}
    for span in report.timeline:
        yield {
            "ph": "X",
            "name": span.layer,
            "cat": _categories(layers.get(span.layer), exact=span.exact),
            "ts": span.start,
            "dur": span.end - span.start,
            "pid": process,
            "tid": tracks.index(span.track),
        }
    for pause in report.duration.pauses:  # within the spans of the core's layers
        yield {
            "ph": "X",
            "name": f"wait for {pause.device}",
            "cat": "wait,exact",
            "ts": pause.start,
            "dur": pause.end - pause.start,
            "pid": process,
            "tid": 0,
        }
    starts = {span.layer: span.start for span in reversed(report.timeline) if span.track == CORE_TRACK}
    for region in report.plan:
        yield from _memory(region, starts, process)


def _named(kind: str, name: str, process: int, thread: int) -> _Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _categories(layer: LayerPart | None, *, exact: bool) -> str:
    """Return what a viewer shows beside the name; Speedscope would append `args` to the name of each span."""
    parts = [] if layer is None else [layer.type, layer.backend, layer.kernel]
    return ",".join([*(part.replace(",", ";") for part in parts if part), "exact" if exact else "placed"])


def _memory(region: RegionPlanPart, starts: dict[str, int], process: int) -> Iterator[_Event]:
    """Yield the bytes of a region's plan that are in use when each step begins."""
    for step, layer in enumerate(region.steps):
        if layer in starts:
            used = _covered([buffer for buffer in region.buffers if buffer.first <= step <= buffer.last])
            name = f"{region.name}: live bytes"
            yield {"ph": "C", "name": name, "ts": starts[layer], "pid": process, "tid": 0, "args": {"bytes": used}}


def _covered(buffers: Sequence[BufferPart]) -> int:
    """Return the bytes that buffers take together: those of a layer that computes in place lie upon one another."""
    covered = end = 0
    for buffer in sorted(buffers, key=lambda each: each.offset):
        covered += max(0, buffer.offset + buffer.size_bytes - max(end, buffer.offset))
        end = max(end, buffer.offset + buffer.size_bytes)
    return covered
