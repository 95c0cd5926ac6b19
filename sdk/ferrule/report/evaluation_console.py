# SPDX-License-Identifier: Apache-2.0
"""Prints evaluations on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule.interface import either, name_of, spelled
from ferrule.report.evaluation_document import ConfusionPart, EvaluationDocument, FloatPart, MetricPart, ProofPart
from ferrule.report.tables import print_table
from ferrule.report.words import counted, styled_verdict

if TYPE_CHECKING:
    from rich.console import Console

_LABELS_LISTED = 20


def print_evaluation(document: EvaluationDocument, console: Console) -> None:
    """Print the metrics, the tables by label, the worst samples, how the samples ran, and the verdict of the proof."""
    _print_metrics(document, console)
    _print_labels(document, console)
    if document.confusion is not None:
        _print_confusion(document.confusion, console)
    _print_worst(document, console)
    if document.float_model is not None:
        _print_float(document.float_model, console)
    _print_paths(document, console)
    if not document.evidence:
        console.print("compared: [bold red]nothing[/]", highlight=False)
    if document.proof is None:
        console.print(spelled(f"not compared with a board: {name_of('board')} names one"), highlight=False)
    else:
        _print_proof(document.proof, console)


def _print_metrics(document: EvaluationDocument, console: Console) -> None:
    from rich.markup import escape

    data = document.data
    title = f"{document.model.name} on {data.samples:,} samples of {data.source}"
    if not document.metrics:
        console.print(escape(f"{title}: no metrics, since there are no labels"), highlight=False)
        return
    floats = {} if document.float_model is None else {part.name: part for part in document.float_model.metrics}
    rows = [
        (
            escape(part.name),
            _number(part.value),
            *((_number(floats[part.name].value) if part.name in floats else "",) if floats else ()),
            _interval(part),
            escape(part.method),
        )
        for part in document.metrics
    ]
    headings = ("metric", "value", *(("float model",) if floats else ()), "interval", "by")
    shown = [index for index, _ in enumerate(headings) if any(row[index] for row in rows)]
    print_table(
        console,
        [headings[index] for index in shown],
        [[row[index] for index in shown] for row in rows],
        right=("value", "float model"),
        whole=("metric", "interval"),
        optional=("by",),
        title=escape(title),
    )
    for part in document.metrics:
        if part.note:
            console.print(f"{part.name}: {part.note}", highlight=False, markup=False)


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}" if abs(value) < 1000 else f"{value:.6g}"


def _interval(part: MetricPart) -> str:
    if part.low is None or part.high is None:
        return ""
    return f"{_number(part.low)} to {_number(part.high)} ({part.confidence:.4g})"


def _print_labels(document: EvaluationDocument, console: Console) -> None:
    from rich.markup import escape

    if not document.labels:
        return
    listed = sorted(document.labels, key=lambda part: 1.0 if part.recall is None else part.recall)[:_LABELS_LISTED]
    chosen = {part.label for part in listed}
    rows = [
        (escape(part.label), f"{part.samples:,}", _share(part.recall), _share(part.precision))
        for part in document.labels
        if part.label in chosen
    ]
    print_table(
        console,
        ("label", "samples", "recall", "precision"),
        rows,
        right=("samples", "recall", "precision"),
        whole=("label",),
    )
    if len(document.labels) > len(rows):
        console.print(f"the {len(rows)} of {len(document.labels)} labels with the least recall", highlight=False)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _print_confusion(part: ConfusionPart, console: Console) -> None:
    from rich.markup import escape

    widths = [max(len(f"{row[column]:,}") for row in part.counts) for column in range(len(part.labels))]
    width = max(map(len, part.labels), default=0) + 8 + sum(max(size, 3) + 3 for size in widths)
    if width > console.width:
        shown = spelled(either("--json", "the attribute confusion"))
        console.print(
            f"[dim]the terminal is too narrow for the confusion matrix of {len(part.labels)} labels: {shown} has it[/]",
            highlight=False,
        )
        return
    numbers = [str(index) for index in range(len(part.labels))]
    rows = [
        (number, escape(label), *(f"{count:,}" if count else "." for count in row))
        for number, label, row in zip(numbers, part.labels, part.counts, strict=True)
    ]
    headings = ("#", "expected", *(f"{number} " for number in numbers))
    print_table(console, headings, rows, right=("#", *headings[2:]), whole=("expected",), title="predicted label by #")


def _print_worst(document: EvaluationDocument, console: Console) -> None:
    from rich.markup import escape

    if not document.worst:
        return
    rows = [
        (
            escape(part.name),
            escape(part.expected),
            escape(part.predicted),
            "-" if part.score is None else f"{part.score:.4g}",
        )
        for part in document.worst
    ]
    headings = ("sample", "expected", "predicted", "score")
    print_table(console, headings, rows, right=("score",), whole=("score",), title="worst samples")


def _print_float(part: FloatPart, console: Console) -> None:
    agreement = "" if part.agreement is None else f"same label for {part.agreement:.2%} of the samples"
    largest = part.largest_difference
    difference = "" if largest is None else f"outputs differ by up to {largest:.4g}"
    facts = ", ".join(each for each in (agreement, difference, f"inputs: {part.inputs}") if each)
    console.print(f"float model {part.model.name}: {facts}", highlight=False, markup=False)


def _print_paths(document: EvaluationDocument, console: Console) -> None:
    for path in document.paths:
        seconds = f"{path.wall_s:.1f} s, {path.cpu_s:.1f} s CPU"
        console.print(
            f"ran: {counted(path.samples, 'sample')} by {path.where}: {seconds}", highlight=False, markup=False
        )


def _print_proof(part: ProofPart, console: Console) -> None:
    board = f"{part.report.build.board} by {part.report.engine}"
    whole = "; all samples: host, board" if part.whole else ""
    console.print(
        f"proof: {counted(len(part.samples), 'sample')} (seed {part.seed}) compared: host, {board}, numpy{whole}",
        highlight=False,
        markup=False,
    )
    if part.different:
        console.print(f"samples that differ: {', '.join(map(str, part.different))}", highlight=False)
    console.print(f"compared: {part.evidence.text}", highlight=False)
    console.print(f"verdict: {styled_verdict(part.verdict)}", highlight=False)
