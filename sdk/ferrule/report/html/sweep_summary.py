# SPDX-License-Identifier: Apache-2.0
"""The rows of a sweep by model and board."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ferrule.report.sweep_document import SweepRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepGroup:
    """The runs of one model on one board."""

    model: str
    board: str
    runs: int
    failed: int
    different: int
    unit: str
    fewest: int | None
    """The smallest count of one inference; None if nothing was counted."""
    most: int | None
    flash_bytes: int | None
    """The smallest."""
    ram_bytes: int | None


def groups(rows: Sequence[SweepRow]) -> tuple[SweepGroup, ...]:
    """Return the runs by model, board and unit, in the order of their first rows."""
    found: dict[tuple[str, str, str], list[SweepRow]] = {}
    units = {(row.model, row.board): row.unit for row in rows if row.unit}
    for row in rows:
        found.setdefault((row.model, row.board, row.unit or units.get((row.model, row.board), "")), []).append(row)
    return tuple(_group(key, members) for key, members in found.items())


def metric_names(rows: Iterable[SweepRow]) -> tuple[str, ...]:
    """Return the names of all metrics, in the order of their first rows."""
    return tuple(dict.fromkeys(name for row in rows for name in row.metrics))


def _group(key: tuple[str, str, str], rows: Sequence[SweepRow]) -> SweepGroup:
    counts = [row.count for row in rows if row.count is not None]
    return SweepGroup(
        model=key[0],
        board=key[1],
        runs=len(rows),
        failed=sum(row.status == "failed" for row in rows),
        different=sum(row.verdict == "different" for row in rows),
        unit=key[2],
        fewest=min(counts, default=None),
        most=max(counts, default=None),
        flash_bytes=min((row.flash_bytes for row in rows if row.flash_bytes is not None), default=None),
        ram_bytes=min((row.ram_bytes for row in rows if row.ram_bytes is not None), default=None),
    )
