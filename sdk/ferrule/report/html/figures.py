# SPDX-License-Identifier: Apache-2.0
"""The geometry of pictures: a memory plan over time, a division among backends, and a timeline of one inference.

Each is a figure of boxes in rows. Horizontal places are shares of the picture's width, vertical ones pixels.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from ferrule._frozen import frozen, positional
from ferrule.rendering import shown
from ferrule.report.picture import Assigned, BufferPart, HotLayer, HotLayers, RegionPlanPart, SpanPart, Timeline
from ferrule.report.sections import Column, Table, joined, names, numbers, plural, share

HEIGHT = 280.0
"""Of a memory plan."""
_MOST_DRAWN = 1200
"""Buffers of a memory, the largest ones."""
_ROW = 48
"""Height of the row of a backend, a device or the core: a label, and below it the boxes."""
_BOX = 24
_NARROWEST = 0.0012
"""Neighbouring spans below this width are drawn as one."""
_ROWS = 40
"""The most layers that have a row each where time and memory are drawn."""
_LINE = 30
"""Height of such a row."""
_GUTTER, _TIME, _MEMORY = 0.08, 0.48, 0.76
"""Where the boxes of layers, their times and the memory in use begin."""
_LANES = 5
"""Branches beside one another; more of them share the last lane."""
_BAND = 90
"""Height of the columns of very many layers."""
_NAMED = 12
"""The most layers that the tooltip of a box names."""
_WINDOWS = {"narrow": 360, "middle": 600, "wide": 860}
"""Classes of the style sheet: the least width of a picture, in pixels, in windows like a phone, a half or a desk."""
_LETTER, _MARGIN, _TEXT = 6.8, 10, 18
"""The pixels of a letter of a label, about, of the space beside a label, and of a label from top to bottom."""
_FEWEST = 4
"""The letters without which the beginning of a label says nothing."""


@positional
class Label:
    """The text of a box in windows of a width."""

    window: str
    """Classes of the style sheet; empty for all windows."""
    text: str
    inside: bool = True
    """Whether it is in the box; otherwise it is to its right."""


@positional
class Box:
    """A rectangle with a tooltip."""

    x: float
    width: float
    y: float
    height: float
    style: str
    """Names of classes of the style sheet."""
    tip: str
    label: str
    """Shown where the box has room for it: a name perhaps without its end, a number as a whole."""
    beside: bool = False
    """Whether there is room to the right of the box for a label that does not fit."""

    @property
    def labels(self) -> list[Label]:
        """The label as it fits, by the windows; how many there are for a name does not depend on the name."""
        if not self.label or self.height < _BOX * 2 / 3:
            return []
        rooms = {f"fit {window}": int((width * self.width - _MARGIN) / _LETTER) for window, width in _WINDOWS.items()}
        if any(map(str.isalpha, self.label)):
            text = shown(self.label)
            return [
                Label(window, text if len(text) <= room else f"{text[: room - 1]}…")
                for window, room in rooms.items()
                if room > _FEWEST
            ]
        insides = {window: len(self.label) <= room for window, room in rooms.items()}
        if len({*insides.values()}) == 1:
            insides = {"": insides["fit wide"]}
        return [Label(window, self.label, inside) for window, inside in insides.items() if inside or self.beside]


@frozen
class Figure:
    """A drawing."""

    summary: str
    """Its text alternative."""
    caption: str
    height: float
    boxes: Sequence[Box]
    labels: Sequence[tuple[int, str]] = ()
    """The label of each row, with its upper edge."""
    lines: Sequence[tuple[str, float, float, float, float]] = ()
    """The style of each, its ends from left to right, and its ends from top to bottom."""
    axis: Sequence[str]
    """The texts below, from left to right."""
    legend: Mapping[str, str] = field(default_factory=dict)
    """The names of classes of the style sheet, by what they stand for."""
    table: Table | None = None
    """The details that the drawing lacks."""


def memory_figure(region: RegionPlanPart) -> Figure:
    """Return where the buffers of a region stand; of very many, the largest ones."""
    steps = max(len(region.steps), 1 + max((each.last for each in region.buffers), default=0))
    scale = HEIGHT / max(region.peak_bytes, 1)
    drawn = sorted(region.buffers, key=lambda each: -each.size_bytes)[:_MOST_DRAWN]
    holders = {each.name for each in drawn if each.kind == "scratch" and any(_meet(each, other) for other in drawn)}
    left_out = len(region.buffers) - len(drawn)
    bound = max(HEIGHT - region.bound_bytes * scale, 1)
    kinds = [kind for kind in ("input", "output", "activation", "scratch", "state") if kind in {b.kind for b in drawn}]
    rows = [(b.name, b.kind, b.offset, b.size_bytes, str(b.first), str(b.last)) for b in region.buffers]
    boxes = [
        Box(
            each.first / steps,
            (each.last + 1 - each.first) / steps,
            HEIGHT - (each.offset + each.size_bytes) * scale,
            each.size_bytes * scale,
            f"k-{each.kind}",
            f"{each.name}: {each.kind}, {each.size_bytes:,} B at offset {each.offset:,}, "
            f"steps {each.first} to {each.last} of {len(region.steps)}",
            f"{each.size_bytes:,}",
        )
        for each in sorted(drawn, key=lambda each: each.name not in holders)
    ]
    return Figure(
        summary=region.caption,
        caption=joined(region.caption, f"{left_out:,} smaller buffers are not drawn." if left_out else "", by=" "),
        height=HEIGHT,
        boxes=list(_readable(boxes)),
        lines=[("bound", 0, 1, bound, bound)],
        axis=("first layer", f"time: {plural(len(region.steps), 'step')}", "last layer"),
        legend={**{kind: f"k-{kind}" for kind in kinds}, "proved lower bound": "dash"},
        table=Table(
            f"buffers of {region.name}",
            (*names("buffer"), Column("kind", spare=1), *numbers("offset", "bytes", "first step", "last step")),
            rows,
        ),
    )


def _readable(boxes: Sequence[Box]) -> Iterator[Box]:
    """Yield boxes, those without their labels whose labels a later one would cover."""
    labelled = [bool(each.labels) for each in boxes]
    for index, box in enumerate(boxes):
        wide = min(box.width, (len(box.label) * _LETTER + _MARGIN) / _WINDOWS["narrow"])
        covered = labelled[index] and any(
            each.x < box.x + wide
            and box.x < each.x + each.width
            and each.y < box.y + _TEXT
            and box.y + 1 < each.y + each.height
            for each in boxes[index + 1 :]
        )
        yield replace(box, label="") if covered else box


def _meet(scratch: BufferPart, other: BufferPart) -> bool:
    """Return whether a buffer lies inside of scratch, over which it is drawn."""
    return (
        other is not scratch
        and other.first <= scratch.last
        and scratch.first <= other.last
        and other.offset < scratch.offset + scratch.size_bytes
        and scratch.offset < other.offset + other.size_bytes
    )


def lanes_figure(layers: Sequence[Assigned]) -> Figure:
    """Return where the layers of a network stand: a row for each backend or device, in the order of execution."""
    rows = {name: index * _ROW for index, name in enumerate(dict.fromkeys(each.runner for each in layers))}
    boxes: list[Box] = []
    lines = []
    start = 0
    for name, run in itertools.groupby(layers, key=lambda each: each.runner):
        members = [each.layer for each in run]
        x, y = start / len(layers), rows[name] + _ROW - _BOX - 4
        if boxes:
            lines.append(("link", x, x, boxes[-1].y + _BOX / 2, y + _BOX / 2))
        label = members[0] if len(members) == 1 else plural(len(members), "layer")
        style, tip = f"f{rows[name] // _ROW % 8}", f"{name}: {_listed(members)}"
        boxes.append(Box(x, len(members) / len(layers), y, _BOX, style, tip, label))
        start += len(members)
    shares = {name: [each.share for each in layers if each.runner == name] for name in rows}
    labels = [
        (rows[name], joined(name, plural(len(found), "layer"), share(sum(found)) if any(found) else "", by=" · "))
        for name, found in shares.items()
    ]
    return Figure(
        summary=joined(*(label for _, label in labels)),
        caption="Each box is a layer, or consecutive layers, in the order of execution from left to right.",
        height=_ROW * len(rows),
        boxes=boxes,
        labels=labels,
        lines=lines,
        axis=(),
    )


def timeline_figure(timeline: Timeline) -> Figure:
    """Return where the spans of an inference stand, the core's first."""
    end = max((span.end for span in timeline.spans), default=0) or 1
    tracks = sorted(dict.fromkeys(span.track for span in timeline.spans), key=lambda name: name != "core")
    boxes, labels = [], []
    for index, track in enumerate(tracks):
        spans = [span for span in timeline.spans if span.track == track]
        for run in _runs(spans, end):
            first, last = run[0].start, run[-1].end
            tip = f"{_listed([span.layer for span in run])}: {first:,} to {last:,}, {last - first:,} {timeline.unit}"
            exact = all(span.exact for span in run)
            style = f"f{timeline.colours.get(run[0].layer, 0)}{'' if exact else ' loose'}"
            y = index * _ROW + _ROW - _BOX - 4
            boxes.append(Box(first / end, (last - first) / end, y, _BOX, style, tip, run[0].layer))
        counted = "measured" if track == "core" else "placed by the order of the calls"
        busy = f"at work {share(sum(span.end - span.start for span in spans) / end)}"
        exact = all(span.exact for span in spans)
        text = joined(track, "" if track == "core" else busy, "" if exact else counted, by=" · ")
        labels.append((index * _ROW, text))
    return Figure(
        summary=f"One inference, {end:,} {timeline.unit}: {joined(*(label for _, label in labels))}",
        caption="From left to right: the time. The core carries out one layer after the other; during a layer of a "
        "device, it drives the device and waits for it, unless another layer runs beside.",
        height=_ROW * len(tracks),
        boxes=boxes,
        labels=labels,
        axis=("0", f"{end // 2:,}", f"{end:,} {timeline.unit}"),
    )


def hot_layers_figure(hot: HotLayers) -> Figure:
    """Return the layers of a run with their time and the memory in use: a row for each, or of very many a column."""
    shares = [each.share for each in hot.layers if each.share is not None]
    used = [each.used_bytes for each in hot.layers if each.used_bytes is not None]
    most, peak = max(shares, default=0.0), max(used, default=0)
    tips = [_hot_tip(each, hot) for each in hot.layers]
    time = f"the time (share of the {hot.unit}, the longest {share(most)})" if hot.unit else ""
    memory = f"the bytes of {hot.memory} in use, {peak:,} at the peak" if hot.memory else ""
    hottest = max(hot.layers, key=lambda each: each.share or 0.0)
    fullest = max(hot.layers, key=lambda each: each.used_bytes or 0)
    runners = {each.runner: f"c{each.colour}" for each in hot.layers}
    few = len(hot.layers) <= _ROWS
    draw = _hot_rows if few else _hot_columns
    boxes, lines, height = draw(hot.layers, most, peak, tips)
    words = joined(time, memory, by="; ") or "neither time nor memory is known"
    return Figure(
        summary=joined(
            plural(len(hot.layers), "layer"),
            f"most time in {hottest.name}, {share(hottest.share)}" if most else "",
            f"most memory in use at {fullest.name}, {peak:,} B" if peak else "",
        ),
        caption=f"From left to right: the layers in the order of execution, with lines for what skips some; {words}."
        if few
        else f"From left to right: the layers in the order of execution. From top to bottom: {words}.",
        height=height,
        boxes=boxes,
        lines=lines,
        axis=(),
        legend={**(runners if len(runners) > 1 else {}), **({"memory in use": "c7"} if peak else {})},
    )


def _hot_tip(layer: HotLayer, hot: HotLayers) -> str:
    time = "" if layer.share is None else f"{share(layer.share)} of the {hot.unit}"
    memory = "" if layer.used_bytes is None else f"{layer.used_bytes:,} B of {hot.memory} in use"
    return f"{layer.name}: {joined(f'{layer.type} on {layer.runner}', time, memory)}"


_Drawn = tuple[list[Box], list[tuple[str, float, float, float, float]], float]


def _hot_rows(layers: Sequence[HotLayer], most: float, peak: int, tips: Sequence[str]) -> _Drawn:
    """Return a row for each layer: lines of branches, its box, its time, and the memory in use."""
    boxes: list[Box] = []
    for index, (layer, tip) in enumerate(zip(layers, tips, strict=True)):
        y = index * _LINE
        boxes.append(Box(_GUTTER, _TIME - _GUTTER - 0.02, y, _BOX, f"f{layer.colour}", tip, layer.name))
        if layer.share and most:
            width = max(layer.share / most * (_MEMORY - _TIME - 0.02), 0.001)
            boxes.append(Box(_TIME, width, y, _BOX, f"f{layer.colour}", tip, share(layer.share), beside=True))
        if layer.used_bytes and peak:
            width = layer.used_bytes / peak * (1 - _MEMORY)
            boxes.append(Box(_MEMORY, width, y, _BOX, "f7", tip, f"{layer.used_bytes:,}", beside=True))
    return boxes, list(_branches(layers)), len(layers) * _LINE


def _branches(layers: Sequence[HotLayer]) -> Iterator[tuple[str, float, float, float, float]]:
    """Yield a line between neighbours, and for other edges one beside the boxes, in a lane that is free."""
    free: list[int] = []
    for index, layer in enumerate(layers):
        for source in layer.sources:
            if source == index - 1:
                x = _GUTTER + 0.02
                yield "link", x, x, source * _LINE + _BOX, index * _LINE
                continue
            lane = next((each for each, end in enumerate(free) if end <= source), len(free))
            free[lane : lane + 1] = [index]
            x = _GUTTER - min(lane + 1, _LANES) * _GUTTER / (_LANES + 1)
            begin, end = source * _LINE + _BOX * 0.65, index * _LINE + _BOX * 0.35
            yield "link", x, _GUTTER, begin, begin
            yield "link", x, x, begin, end
            yield "link", x, _GUTTER, end, end


def _hot_columns(layers: Sequence[HotLayer], most: float, peak: int, tips: Sequence[str]) -> _Drawn:
    """Return a column for each layer: its time above, and the memory in use below."""
    boxes: list[Box] = []
    width = 1 / len(layers)
    for index, (layer, tip) in enumerate(zip(layers, tips, strict=True)):
        if layer.share and most:
            height = layer.share / most * _BAND
            boxes.append(Box(index * width, width, _BAND - height, height, f"f{layer.colour}", tip, ""))
        if layer.used_bytes and peak:
            height = layer.used_bytes / peak * _BAND
            boxes.append(Box(index * width, width, 2 * _BAND + 12 - height, height, "f7", tip, ""))
    return boxes, [("link", 0, 1, _BAND, _BAND), ("link", 0, 1, 2 * _BAND + 12, 2 * _BAND + 12)], 2 * _BAND + 14


def _runs(spans: Sequence[SpanPart], end: int) -> list[list[SpanPart]]:
    """Return the spans, those that touch and are too narrow to be seen together; `end` is the end of the time."""
    runs: list[list[SpanPart]] = []
    for span in spans:
        narrow = end * _NARROWEST
        before = runs[-1] if runs else None
        if before and span.start <= before[-1].end < before[0].start + narrow and span.end - span.start < narrow:
            before.append(span)
        else:
            runs.append([span])
    return runs


def _listed(layers: Sequence[str]) -> str:
    more = len(layers) - _NAMED
    return joined(*layers[:_NAMED]) + (f" and {more} more" if more > 0 else "")
