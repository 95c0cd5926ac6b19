# SPDX-License-Identifier: Apache-2.0
"""The estimates of compilers as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ferrule.rendering import markdown as quoted
from ferrule.report.estimates import EstimatePart
from ferrule.report.writers.markdown_tables import Table, whole_list


def of_estimates(estimates: Sequence[tuple[str, EstimatePart]], rows: int | None, level: str) -> Iterator[str]:
    """Yield the blocks of a part of a page, with at most so many rows per table; none without estimates."""
    if not estimates:
        return
    yield f"{level}# Estimates of compilers"
    yield "What compilers expect of pre-compiled layers. None of these numbers is measured."
    for name, part in estimates[:rows]:
        yield f"{level}## {quoted(name)}"
        yield f"Estimated by {quoted(part.source)}: {part.total}."
        yield _layers(part).text(rows)
        if part.memories:
            yield _memories(part).text(rows)
        for warning in part.warnings[:rows]:
            yield f"⚠️ {quoted(warning)}"
    if rows is not None and len(estimates) > rows:
        yield f"And the estimates of {len(estimates) - rows:,} more, which {whole_list()} lists."


def _layers(part: EstimatePart) -> Table:
    numbers = ("estimated cycles", "share")
    table = Table("in place of", *numbers, right=numbers)
    for layer, cycles in part.layers.items():
        table.add(quoted(layer), f"{cycles:,}", f"{part.share(cycles):.1%}")
    return table


def _memories(part: EstimatePart) -> Table:
    numbers = ("estimated bytes read", "estimated bytes written", "estimated cycles")
    table = Table("memory", *numbers, right=numbers)
    for memory in part.memories:
        table.add(quoted(memory.name), f"{memory.read_bytes:,}", f"{memory.written_bytes:,}", f"{memory.cycles:,}")
    return table
