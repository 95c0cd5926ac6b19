# SPDX-License-Identifier: Apache-2.0
"""Documents as summaries in GitHub-flavoured Markdown, whole or shortened for the summary of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ferrule.firmware.arena import ArenaPart
from ferrule.rendering import markdown as quoted
from ferrule.report.comparison_document import Comparison
from ferrule.report.document import DevicePart, LayerPart, MemoryPart, ReportDocument, Verdict
from ferrule.report.evaluation_document import EvaluationDocument, MetricPart
from ferrule.report.failure_document import FailureDocument
from ferrule.report.inspection import Inspection, LayerInspection
from ferrule.report.picture import EnvironmentPart, RegionPlanPart
from ferrule.report.sweep_document import SweepDocument, SweepRow
from ferrule.report.words import broken_limit, counted, number, verdict_text
from ferrule.report.writers.markdown_estimates import of_estimates
from ferrule.report.writers.markdown_tables import Table, code_block

if TYPE_CHECKING:
    from ferrule.report.reading import Document

SUMMARY_BYTES = 1 << 20
"""The most that a hosted runner shows of the summary of one step."""
_SUMMARY_ROWS = 100
_MARKS = {
    Verdict.EXACT: "✅ exact",
    Verdict.WITHIN_BOUND: "✅ within bound",
    Verdict.NOTHING_COMPARED: "❌ nothing compared",
    Verdict.DIFFERENT: "❌ different",
}


def markdown_text(documents: Sequence[Document]) -> str:
    """Return the summary with every row."""
    return _page(documents, None)


def summary_text(documents: Sequence[Document]) -> str:
    """Return the summary with tables so short that it stays below `SUMMARY_BYTES`; it states what it leaves out."""
    rows = _SUMMARY_ROWS
    text = _page(documents, rows)
    while len(text.encode()) > SUMMARY_BYTES and rows > 1:
        rows //= 2
        text = _page(documents, rows)
    return text


def _page(documents: Sequence[Document], rows: int | None) -> str:
    return "\n\n".join(block for document in documents for block in _blocks(document, rows)) + "\n"


def _blocks(document: Document, rows: int | None) -> Iterator[str]:
    match document:
        case ReportDocument():
            yield from _of_run(document, rows)
        case Inspection():
            yield from _of_inspection(document, rows)
        case EvaluationDocument():
            yield from _of_evaluation(document, rows)
        case SweepDocument():
            yield from _of_sweep(document, rows)
        case Comparison():
            from ferrule.report.writers.markdown_comparison import of_comparison

            yield from of_comparison(document, rows)
        case FailureDocument():
            yield from _of_failure(document)
    yield from _made(document.environment)


def _of_run(report: ReportDocument, rows: int | None, level: str = "#") -> Iterator[str]:
    yield f"{level} {quoted(report.model.name)} on {quoted(report.build.board)}"
    yield f"Verdict: **{_MARKS[report.verdict]}**, {_agreeing(report)}, by {quoted(report.engine)}."
    yield f"Compared: {report.evidence.text}."
    if report.first_difference is not None:
        first = report.first_difference
        where = f"layer {quoted(first.layer)}, tensor {quoted(first.tensor)}" if first.layer else quoted(first.note)
        yield f"First difference: {where}."
    totals = Table("what", "value", right=("value",))
    for name, value in _totals(report):
        totals.add(quoted(name), quoted(value))
    yield totals.text()
    yield from _layers(report, rows, level)
    for region in report.plan:
        yield _plan(region)
    if report.devices:
        yield _devices(report.devices, report.count.unit)
    yield from of_estimates(report.estimates, rows, level)
    yield from _refusals(report, rows, level)
    for fault in report.faults:
        yield f"Injected: {quoted(fault)}"


def _agreeing(report: ReportDocument) -> str:
    agreeing = sum(sample.verdict.agrees for sample in report.samples)
    return f"{agreeing:,} of {len(report.samples):,} samples agree with the numpy reference"


def _totals(report: ReportDocument) -> Iterator[tuple[str, str]]:
    count, build = report.count, report.build
    if count.per_inference:
        yield f"{count.unit} per inference", f"{count.per_inference:,}{' (exact)' if count.exact else ''}"
    yield "MACs", f"{report.model.macs:,}"
    yield from _memory(report.memory)
    built = " ".join(filter(None, [build.toolchain_version, build.optimization and f"-{build.optimization}"]))
    if built:
        yield "built by", built
    yield "input", report.input
    yield "model", f"SHA-256 {report.model.digest}"


def _memory(memory: MemoryPart) -> Iterator[tuple[str, str]]:
    if memory.flash is not None:
        flash = memory.flash
        yield "flash", f"{flash.total:,} B (code {flash.code:,}, weights {flash.weights:,})"
    ram = memory.ram
    if ram.total is not None:
        yield "RAM", f"{ram.total:,} B"
    yield "workspace", f"{ram.workspace:,} B"
    yield from _arena(memory.arena)
    bound = "" if ram.stack_bound is None else f" (bound {ram.stack_bound:,} B)"
    yield "stack", f"{ram.stack_used:,} B{bound}"


def _arena(arena: ArenaPart) -> Iterator[tuple[str, str]]:
    yield "arena", f"{arena.size_bytes:,} B ({arena.certificate})"
    yield "arena, lower bound", f"{arena.bound_bytes:,} B"
    yield "arena, without scratch", f"{arena.activation_bytes:,} B ({arena.activation_certificate})"
    if arena.state_bytes:
        yield "state", f"{arena.state_bytes:,} B"


def _layers(report: ReportDocument, rows: int | None, level: str) -> Iterator[str]:
    yield f"{level}# Layers"
    numbers = ("#", "MACs", report.count.unit, "share", "bytes")
    table = Table("#", "layer", "type", "backend", *numbers[1:], right=numbers)
    for layer in report.layers:
        table.add(
            str(layer.index),
            quoted(layer.name),
            quoted(layer.type),
            quoted(_runner(layer)),
            f"{layer.macs:,}",
            f"{layer.count:,}",
            f"{layer.share:.1%}",
            f"{layer.constant_bytes:,}",
        )
    yield table.text(rows)


def _runner(layer: LayerPart) -> str:
    return layer.backend if layer.device in {"", layer.backend} else f"{layer.backend}/{layer.device}"


def _plan(region: RegionPlanPart) -> str:
    held = counted(len(region.buffers), "buffer")
    return (
        f"Memory {quoted(region.name)}: {region.peak_bytes:,} B at the peak for {held}; "
        f"no plan of these needs less than {region.bound_bytes:,} B ({quoted(region.certificate)})."
    )


def _devices(devices: Sequence[DevicePart], unit: str) -> str:
    table = Table("device", "backend", "layers", unit, "share", right=("layers", unit, "share"))
    for device in devices:
        table.add(
            quoted(device.name), quoted(device.backend), str(device.layers), f"{device.count:,}", f"{device.share:.1%}"
        )
    return table.text()


def _refusals(report: ReportDocument, rows: int | None, level: str) -> Iterator[str]:
    if not report.refusals:
        return
    yield f"{level}# Layers that backends refused"
    table = Table("layer", "backend", "reason")
    for refusal in report.refusals:
        for backend, reason in refusal.reasons.items():
            table.add(quoted(refusal.layer), quoted(backend), quoted(reason))
    yield table.text(rows)


def _of_inspection(inspection: Inspection, rows: int | None) -> Iterator[str]:
    yield f"# {quoted(inspection.name)}"
    arena = inspection.arena
    totals = Table("what", "value", right=("value",))
    totals.add("layers", f"{len(inspection.layers):,}")
    totals.add("MACs", f"{inspection.macs:,}")
    totals.add("constants", f"{inspection.constant_bytes:,} B")
    if arena is not None:
        totals.add("board and goal", quoted(f"{arena.board}, {arena.goal}"))
        for name, value in _arena(arena):
            totals.add(name, quoted(value))
    if inspection.arena_problem:
        totals.add("no firmware" if arena is None else "too large", quoted(inspection.arena_problem))
    totals.add("layers in whole", f"{inspection.whole_layers_bytes:,} B of activations")
    yield totals.text()
    yield "## Inputs and outputs"
    ends = Table("tensor", "role", "type", "shape")
    for role, names in (("input", inspection.inputs), ("output", inspection.outputs)):
        for name in names:
            tensor = inspection.tensor(name)
            ends.add(quoted(name), role, quoted(tensor.dtype), "×".join(map(str, tensor.shape)) or "scalar")
    yield ends.text(rows)
    yield "## Layers"
    numbers = ("#", "MACs", "bytes")
    takers = {} if inspection.division is None else {each.layer: each for each in inspection.division.layers}
    table = Table("#", "layer", "type", *(("backend",) if takers else ()), "MACs", "bytes", right=numbers)
    for layer in _nested(inspection.layers):
        taker = takers.get(layer.name)
        backend = () if not takers else (quoted("" if taker is None else taker.backend or "none"),)
        table.add(
            str(layer.index),
            quoted(layer.name),
            quoted(layer.type),
            *backend,
            f"{layer.macs:,}",
            f"{layer.constant_bytes:,}",
        )
    yield table.text(rows)
    yield from of_estimates(inspection.estimates, rows, "#")


def _nested(layers: Sequence[LayerInspection]) -> Iterator[LayerInspection]:
    for layer in layers:
        yield layer
        yield from _nested(layer.inner)


def _of_evaluation(document: EvaluationDocument, rows: int | None) -> Iterator[str]:
    data = document.data
    yield f"# {quoted(document.model.name)}: {counted(data.samples, 'sample')} of {quoted(data.source)}"
    metrics = Table("metric", "value", "interval", "how", right=("value", "interval"))
    for metric in document.metrics:
        metrics.add(*_metric(metric))
    if document.float_model is not None:
        for metric in document.float_model.metrics:
            name, *others = _metric(metric)
            metrics.add(f"{name}, in float32", *others)
    yield metrics.text()
    yield f"Compared: {document.evidence.text}." if document.evidence else "**❌ nothing compared**"
    for metric in document.metrics:
        if metric.failed:
            yield f"**❌ failed**: {quoted(broken_limit(metric))}"
    if document.float_model is not None and document.float_model.agreement is not None:
        yield f"The model in float32 predicts the same label for {document.float_model.agreement:.2%} of the samples."
    if document.proof is not None:
        proof = document.proof
        yield (
            f"Proof on {quoted(proof.report.build.board)} with {counted(len(proof.samples), 'sample')} "
            f"(seed {proof.seed}){', and all samples compared with the host' if proof.whole else ''}: "
            f"**{_MARKS[proof.verdict]}**."
        )
    yield from _labels(document, rows)
    yield "## How"
    paths = Table("where", "samples", "processor seconds", "seconds", right=("samples", "processor seconds", "seconds"))
    for path in document.paths:
        paths.add(quoted(path.where), f"{path.samples:,}", f"{path.cpu_s:.2f}", f"{path.wall_s:.2f}")
    yield paths.text()
    for step in data.preparation:
        yield f"Prepared: {quoted(step)}"
    if document.proof is not None:
        yield from _of_run(document.proof.report, rows, level="##")


def _labels(document: EvaluationDocument, rows: int | None) -> Iterator[str]:
    if document.labels:
        yield "## Labels"
        labels = Table("label", "samples", "recall", "precision", right=("samples", "recall", "precision"))
        for label in document.labels:
            labels.add(
                quoted(label.label), f"{label.samples:,}", _percentage(label.recall), _percentage(label.precision)
            )
        yield labels.text(rows)
    if document.confusion is not None and (rows is None or len(document.confusion.labels) <= rows):
        yield "## Confusion: expected labels down, predicted labels across"
        names = [quoted(label) for label in document.confusion.labels]
        confusion = Table("", *names, right=names)
        for name, counts in zip(names, document.confusion.counts, strict=True):
            confusion.add(f"**{name}**", *(f"{count:,}" for count in counts))
        yield confusion.text()
    if document.worst:
        yield "## Worst samples"
        worst = Table("sample", "expected", "predicted", "score", right=("score",))
        for each in document.worst:
            worst.add(quoted(each.name), quoted(each.expected), quoted(each.predicted), number(each.score))
        yield worst.text(rows)


def _metric(metric: MetricPart) -> tuple[str, str, str, str]:
    name = quoted(metric.name)
    if metric.value is None:
        return name, "undefined", "", quoted(metric.note)
    interval = "" if metric.low is None or metric.high is None else f"{metric.low:.6g} to {metric.high:.6g}"
    how = f"{metric.confidence:.0%}, {quoted(metric.method)}" if interval else quoted(metric.note)
    return name, f"{metric.value:.6g}", interval, how


def _percentage(share: float | None) -> str:
    return "" if share is None else f"{share:.2%}"


def _of_sweep(document: SweepDocument, rows: int | None) -> Iterator[str]:
    failed = [row for row in document.rows if row.status == "failed"]
    different = [row for row in document.rows if row.verdict == Verdict.DIFFERENT]
    empty = sum(not row.succeeded for row in document.rows) - len(failed) - len(different)
    yield f"# Sweep {quoted(document.name)}"
    yield (
        f"{len(document.rows):,} of {counted(document.planned, 'run')} done, {len(failed):,} failed, "
        f"{len(different):,} with outputs that differ from the reference, {empty:,} that have compared nothing "
        f"({document.evidence.text})."
    )
    if failed:
        yield "## Failed runs"
        table = Table("model", "board", "engine", "toolchain", "backends", "options", "error")
        for row in failed:
            table.add(*_choices(row), quoted(row.error))
        yield table.text(rows)
    yield "## Runs"
    metrics = list(dict.fromkeys(name for row in document.rows for name in row.metrics))
    numbers = ("count", "flash", "RAM", "stack", *map(quoted, metrics), "seconds")
    choices = ("model", "board", "engine", "toolchain", "backends", "options")
    table = Table(*choices, "verdict", *numbers, right=numbers)
    for row in document.rows:
        if row.status != "failed":
            values = (row.count, row.flash_bytes, row.ram_bytes, row.stack_bytes, *map(row.metrics.get, metrics))
            unit = f" {row.unit}" if row.count is not None else ""
            shown = [number(value) for value in values]
            shown[0] += unit
            table.add(*_choices(row), quoted(verdict_text(row.verdict)), *shown, f"{row.seconds:.1f}")
    yield table.text(rows)


def _choices(row: SweepRow) -> tuple[str, ...]:
    options = ", ".join(f"{name}={value}" for name, value in row.options.items())
    return tuple(map(quoted, (row.model, row.board, row.engine, row.toolchain, ", ".join(row.backends), options)))


def _of_failure(document: FailureDocument) -> Iterator[str]:
    models = ", ".join(document.models)
    yield f"# ❌ ferrule {quoted(document.command)}{f' {quoted(models)}' if models else ''} failed"
    where = " by ".join(quoted(text) for text in (document.board, document.engine) if text)
    yield f"{quoted(document.error)}{f' on {where}' if where else ''}:"
    yield code_block(document.message)
    if document.hint:
        yield f"Hint: {quoted(document.hint)}"


def _made(environment: EnvironmentPart | None) -> Iterator[str]:
    if environment is None:
        return
    if environment.commands:
        yield "To make it again:"
        yield code_block("\n".join(environment.commands), "sh")
    packages = ", ".join(f"{name} {version}" for name, version in environment.packages.items())
    facts = [f"Ferrule {environment.ferrule}", f"Python {environment.python}", environment.platform, packages]
    yield f"Made by {quoted(', '.join(filter(None, facts)))}."
