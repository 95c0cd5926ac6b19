# SPDX-License-Identifier: Apache-2.0
"""Draws a memory plan as text: a row per buffer, with its place and a bar over the steps at which it is live."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.report.picture import BufferPart, RegionPlanPart

_NARROWEST = 80
_FEWEST_COLUMNS = 16
_MOST_COLUMNS_BEFORE_NAMES = 60
_PLACE = "{:>10} {:>10} {:>9}  "
_SCRATCH = "scratch"


def draw(plan: Sequence[RegionPlanPart], *, width: int = 100) -> str:
    """Return the drawing in lines of at most `width` characters (at least 80).

    Rows are sorted by offset; '#' marks a tensor, '=' marks scratch. The last row of a region shows the height of the
    arena in use at each step, in tenths of the peak (9 means 90 % or more).
    """
    return "\n\n".join(_draw_region(region, max(width, _NARROWEST)) for region in plan if region.buffers)


def _draw_region(region: RegionPlanPart, width: int) -> str:
    rows = sorted(region.buffers, key=lambda row: (row.offset, row.first, row.name))
    steps = 1 + max(row.last for row in rows)
    room = width - len(_PLACE.format("", "", ""))
    name_room = room - 2 - min(max(steps, _FEWEST_COLUMNS), _MOST_COLUMNS_BEFORE_NAMES, room // 2)
    half = name_room // 2
    names = {
        row.name: row.name
        if len(row.name) <= name_room
        else f"{row.name[: half - 1]}..{row.name[-(name_room - half - 1) :]}"
        for row in rows
    }
    name_width = max(len("buffer"), *(len(name) for name in names.values()))
    prefix = f"{_PLACE.format('offset', 'size', 'steps')}{'buffer':<{name_width}}  "
    columns = min(steps, width - len(prefix))
    heading = f"region {region.name}: {region.peak_bytes:,} B, {region.certificate}"
    lines = [heading, prefix + _ruler(steps, columns)]
    for row in rows:
        place = _PLACE.format(f"{row.offset:,}", f"{row.size_bytes:,}", f"{row.first}-{row.last}")
        span = _span(row, steps, columns)
        bar = ("=" if row.kind == _SCRATCH else "#") * len(span)
        lines.append(f"{place}{names[row.name]:<{name_width}}  {' ' * span.start}{bar}")
    label = "in use, tenths of the peak"
    lines.append(f"{label:>{len(prefix) - 2}}  {_heights(region, steps, columns)}")
    return "\n".join(lines)


def _span(row: BufferPart, steps: int, columns: int) -> range:
    """Return the columns of the steps at which a buffer is live."""
    return range(row.first * columns // steps, row.last * columns // steps + 1)


def _ruler(steps: int, columns: int) -> str:
    """Return a ruler: every tenth column shows the step that starts there, if its number fits."""
    ruler = ""
    for column in range(0, columns, 10):
        step = -(-column * steps // columns)
        if column + len(str(step)) <= columns:
            ruler = f"{ruler:<{column}}{step}"
    return ruler


def _heights(region: RegionPlanPart, steps: int, columns: int) -> str:
    highest = [0] * columns
    for row in region.buffers:
        end = row.offset + row.size_bytes
        for column in _span(row, steps, columns):
            highest[column] = max(highest[column], end)
    return "".join(str(min(9, 10 * end // region.peak_bytes)) for end in highest)
