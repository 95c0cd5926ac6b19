# SPDX-License-Identifier: Apache-2.0
"""The words in which every format states the same facts."""

from __future__ import annotations

from ferrule.report.comparison_document import Change, ChangePart
from ferrule.report.document import Verdict
from ferrule.report.evaluation_document import MetricPart
from ferrule.report.sweep_document import SweepRow


def verdict_text(verdict: Verdict | str) -> str:
    """Return a verdict as words."""
    return str(verdict).replace("_", " ")


def styled_verdict(verdict: Verdict) -> str:
    """Return a verdict as words in their colour, for a terminal."""
    style = "bold green" if verdict is Verdict.EXACT else "green" if verdict.agrees else "bold red"
    return f"[{style}]{verdict_text(verdict)}[/]"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an "s" if there is not one of it."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def run_name(row: SweepRow) -> str:
    """Return the choices that tell a run of a sweep from the others, as one line."""
    options = [f"{name}={value}" for name, value in row.options.items()]
    parts = [row.model, row.board, row.engine, row.toolchain, ",".join(row.backends), *options]
    return " ".join(filter(None, parts))


def number(value: float | str | None) -> str:
    """Return a value of a document as text: whole numbers with separators, others with six digits."""
    match value:
        case None:
            return ""
        case int():
            return f"{value:,}"
        case float():
            return f"{int(value):,}" if value.is_integer() and abs(value) < 1 << 53 else f"{value:.6g}"
        case _:
            return value


def broken_limit(metric: MetricPart) -> str:
    """Return which limit a metric does not keep, as a sentence's part; "" if it keeps all."""
    if not metric.failed:
        return ""
    if metric.value is None:
        return f"{metric.name} is undefined: {metric.note}"
    below = metric.at_least is not None and metric.value < metric.at_least
    side, limit = ("below", metric.at_least) if below else ("above", metric.at_most)
    return f"{metric.name} is {metric.value:.6g}, {side} {limit:g}"


def growth(relative: float | None) -> str:
    """Return a relative change with its sign; "" if there is none."""
    return "" if relative is None else f"{relative:+.2%}"


def changed(change: ChangePart) -> str:
    """Return one value of a comparison as a sentence's part."""
    unit = f" {change.unit}" if change.unit else ""
    match change.change:
        case Change.EQUAL:
            said = f"{number(change.new)}{unit}, equal"
        case Change.ADDED:
            said = f"added: {number(change.new)}{unit}"
        case Change.REMOVED:
            said = f"removed: was {number(change.old)}{unit}"
        case _:
            grown = f" ({growth(change.relative)})" if change.relative is not None else ""
            said = f"{number(change.old)} to {number(change.new)}{unit}{grown}"
    over = f", over the limit of {change.limit}" if change.failed and change.limit else ""
    note = f"; {change.note}" if change.note else ""
    return f"{said}{over}{note}"
