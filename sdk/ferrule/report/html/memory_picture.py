# SPDX-License-Identifier: Apache-2.0
"""The picture of a memory plan: a rectangle for each buffer, over the steps during which its bytes must survive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.report.picture import BufferPart, RegionPlanPart

HEIGHT = 280.0
"""In pixels."""
_MOST_DRAWN = 1200
_MOST_LISTED = 400
_LABEL_HEIGHT = 16.0
_LABEL_WIDTH = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferBox:
    """A buffer's rectangle: x and width are shares of the picture's width, y and height pixels."""

    buffer: BufferPart
    x: float
    width: float
    y: float
    height: float
    has_label: bool
    steps: str
    """The layers at which it is live, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPicture:
    """The plan of one region."""

    region: RegionPlanPart
    listed: tuple[BufferPart, ...]
    """The buffers for the table below the picture."""
    boxes: tuple[BufferBox, ...]
    bound_y: float
    height: float
    left_out: int
    """The number of buffers, the smallest ones, that are not drawn."""


def memory_picture(region: RegionPlanPart) -> MemoryPicture:
    """Return where the buffers of a region stand; of very many, the largest ones."""
    steps = max(len(region.steps), 1 + max((each.last for each in region.buffers), default=0))
    peak = max(region.peak_bytes, 1)
    drawn = largest(region, _MOST_DRAWN)
    ordered = sorted(drawn, key=lambda each: not _holds(each, drawn))
    return MemoryPicture(
        region=region,
        listed=largest(region),
        boxes=tuple(_box(each, region, steps, peak) for each in ordered),
        bound_y=HEIGHT * (1 - region.bound_bytes / peak),
        height=HEIGHT,
        left_out=len(region.buffers) - len(drawn),
    )


def _holds(scratch: BufferPart, buffers: Sequence[BufferPart]) -> bool:
    """Whether a buffer is scratch with tensors inside, which are drawn over it."""
    return scratch.kind == "scratch" and any(
        each is not scratch
        and each.first <= scratch.last
        and scratch.first <= each.last
        and each.offset < scratch.offset + scratch.size_bytes
        and scratch.offset < each.offset + each.size_bytes
        for each in buffers
    )


def largest(region: RegionPlanPart, most: int = _MOST_LISTED) -> tuple[BufferPart, ...]:
    """Return the largest buffers of a region, in the order of the plan."""
    if len(region.buffers) <= most:
        return region.buffers
    kept = sorted(range(len(region.buffers)), key=lambda index: -region.buffers[index].size_bytes)[:most]
    return tuple(region.buffers[index] for index in sorted(kept))


def _box(buffer: BufferPart, region: RegionPlanPart, steps: int, peak: int) -> BufferBox:
    width = (buffer.last + 1 - buffer.first) / steps
    height = HEIGHT * buffer.size_bytes / peak
    return BufferBox(
        buffer=buffer,
        x=buffer.first / steps,
        width=width,
        y=HEIGHT * (1 - (buffer.offset + buffer.size_bytes) / peak),
        height=height,
        has_label=height >= _LABEL_HEIGHT and width >= _LABEL_WIDTH,
        steps=_steps(buffer, region),
    )


def _steps(buffer: BufferPart, region: RegionPlanPart) -> str:
    if buffer.first == buffer.last:
        return f"step {buffer.first}"
    return f"steps {buffer.first} to {buffer.last} of {len(region.steps)}"
