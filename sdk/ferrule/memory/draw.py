# SPDX-License-Identifier: Apache-2.0
"""Draws a plan as text: one row per buffer, with its placement and a bar over the steps at which it is live."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ferrule.memory.placement import Plan, RegionPlan
from ferrule.memory.request import BufferKind, Request

_NARROWEST = 80
_FEWEST_COLUMNS = 16
_MOST_COLUMNS_BEFORE_NAMES = 60
_PLACE = "{:>10} {:>10} {:>9}  "
_BARS = {BufferKind.ACTIVATION: "#", BufferKind.SCRATCH: "="}


def draw(plan: Plan, requests: Sequence[Request], *, width: int = 100) -> str:
    """Return the drawing in lines of at most `width` characters (at least 80), without regions that have no buffers.

    Rows are sorted by offset; '#' marks an activation, '=' marks scratch. The last row of a region shows the height of
    the arena in use at each step, in tenths of the peak (9 means 90 % or more).
    """
    parts = []
    for region in plan.regions:
        rows = [request for request in requests if plan.placements[request.name].region == region.region]
        if rows:
            parts.append(_draw_region(plan, region, rows, max(width, _NARROWEST)))
    return "\n\n".join(parts)


def _draw_region(plan: Plan, region: RegionPlan, rows: Sequence[Request], width: int) -> str:
    rows = sorted(rows, key=lambda row: (plan.placements[row.name].offset, row.lifetime.first, row.name))
    steps = 1 + max(row.lifetime.last for row in rows)
    room = width - len(_PLACE.format("", "", ""))
    name_room = room - 2 - min(max(steps, _FEWEST_COLUMNS), _MOST_COLUMNS_BEFORE_NAMES, room // 2)
    names = {row.name: _shortened(row.name, name_room) for row in rows}
    name_width = max(len("buffer"), *(len(name) for name in names.values()))
    prefix = f"{_PLACE.format('offset', 'size', 'steps')}{'buffer':<{name_width}}  "
    columns = min(steps, width - len(prefix))
    lines = [*_heading(region), prefix + _ruler(steps, columns)]
    for row in rows:
        offset, life = plan.placements[row.name].offset, row.lifetime
        bar = _bar(life.first, life.last, steps, columns, _BARS[row.kind])
        lines.append(
            f"{_PLACE.format(f'{offset:,}', f'{row.size_bytes:,}', f'{life.first}-{life.last}')}"
            f"{names[row.name]:<{name_width}}  {bar}"
        )
    label = "in use, tenths of the peak"
    lines.append(f"{label:>{len(prefix) - 2}}  {_heights(plan, region, rows, steps, columns)}")
    return "\n".join(lines)


def _heading(region: RegionPlan) -> list[str]:
    limit = "" if region.size_bytes >= sys.maxsize else f" of {region.size_bytes:,}"
    first = f"region {region.region}: {region.peak_bytes:,}{limit} B, {region.certificate}"
    if region.scratch_bytes == 0:
        return [first]
    return [
        first,
        f"  activations alone {region.activation_peak_bytes:,} B, {region.activation_certificate}; "
        f"scratch adds {region.scratch_bytes:,} B",
    ]


def _shortened(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width // 2 - 1]}..{name[-(width - width // 2 - 1) :]}"


def _column(step: int, steps: int, columns: int) -> int:
    return step * columns // steps


def _ruler(steps: int, columns: int) -> str:
    """Return a ruler: every tenth column shows the step that starts there, if its number fits."""
    ruler = ""
    for column in range(0, columns, 10):
        step = -(-column * steps // columns)
        if column + len(str(step)) <= columns:
            ruler = f"{ruler:<{column}}{step}"
    return ruler


def _bar(first: int, last: int, steps: int, columns: int, mark: str) -> str:
    start, end = _column(first, steps, columns), _column(last, steps, columns)
    return " " * start + mark * (end - start + 1)


def _heights(plan: Plan, region: RegionPlan, rows: Sequence[Request], steps: int, columns: int) -> str:
    highest = [0] * columns
    for row in rows:
        end = plan.placements[row.name].offset + row.size_bytes
        start, stop = _column(row.lifetime.first, steps, columns), _column(row.lifetime.last, steps, columns)
        for column in range(start, stop + 1):
            highest[column] = max(highest[column], end)
    return "".join(str(min(9, 10 * end // region.peak_bytes)) for end in highest)
