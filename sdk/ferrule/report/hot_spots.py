# SPDX-License-Identifier: Apache-2.0
"""Where the time and the memory of a run go: its layers as a graph, and what would save most, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ferrule.report.picture import HotLayer, HotLayers, RegionPlanPart
from ferrule.report.sections import Picture, Section, Text, group_colours, joined, plural, share

if TYPE_CHECKING:
    from ferrule.report.run_document import ReportDocument

_HOTTEST = 3
"""The layers of whose time the words speak."""
_HELD = 4
"""The buffers at the peak of the memory that are named."""


def hot_spots(report: ReportDocument) -> Iterator[Section]:
    """Yield the graph of the layers, and what would save most; nothing without layers."""
    if not report.layers:
        return
    region = max(report.plan, key=lambda each: each.peak_bytes, default=None)
    used = {} if region is None else _used_by_layer(region)
    writers = {name: index for index, layer in enumerate(report.layers) for name in layer.outputs}
    colours = group_colours([layer.runner for layer in report.layers])
    counted = bool(report.count.per_inference)
    layers = [
        HotLayer(
            name=layer.name,
            type=layer.type,
            runner=layer.runner,
            colour=colours[layer.runner],
            share=layer.share if counted else None,
            used_bytes=used.get(layer.name),
            sources=tuple(sorted({writers[name] for name in layer.inputs if writers.get(name, index) < index})),
        )
        for index, layer in enumerate(report.layers)
    ]
    unit = report.count.unit if counted else ""
    yield Picture("hot layers", HotLayers(layers, unit, "" if region is None else region.name))
    items = [
        *_times(report),
        *_islands(report),
        *([] if region is None else _memory(region, report)),
        *_weights(report),
    ]
    if items:
        yield Text("where a change would save most", "largest", items=items)


def _times(report: ReportDocument) -> Iterator[str]:
    """Yield the layers that take most of the time, with what would help them if that is known."""
    if not report.count.per_inference:
        return
    for layer in sorted(report.layers, key=lambda each: -each.count)[:_HOTTEST]:
        if not layer.count:
            continue
        helped = f"; {layer.advice}" if layer.advice else ""
        where = f"layer {layer.index} '{layer.name}' ({layer.type} on {layer.runner})"
        yield f"time: {share(layer.share)} of the {report.count.unit} in {where}{helped}"


def _islands(report: ReportDocument) -> Iterator[str]:
    """Yield what the parts in float32 take of the time, without their conversions, and what would help."""
    if not report.count.per_inference:
        return
    shares = {layer.name: layer.share for layer in report.layers}
    for each in report.islands:
        taken = share(sum(shares.get(name, 0.0) for name in each.layers))
        where = f"{plural(len(each.layers), 'layer')} {each.place} in float32, from '{each.layers[0]}'"
        yield f"time: {taken} of the {report.count.unit} in {where}; {each.advice}"


def _memory(region: RegionPlanPart, report: ReportDocument) -> Iterator[str]:
    """Yield what is in use where most of a memory is, and how much of it the other layers need."""
    used = used_bytes(region)
    if not any(used):
        return
    peak = max(used)
    places = [index for index, size in enumerate(used) if size == peak]
    first = places[0]
    held = sorted(
        (each for each in region.buffers if each.first <= first <= each.last), key=lambda each: -each.size_bytes
    )
    more = f" and {plural(len(held) - _HELD, 'smaller buffer')}" if len(held) > _HELD else ""
    called = {each.name: f"'{each.name}'" for each in held}
    called |= {name: f"the output of '{layer.name}'" for layer in report.layers for name in layer.outputs}
    buffers = joined(*(f"{called[each.name]} {each.size_bytes:,} B" for each in held[:_HELD]))
    others = max((size for size in used if size != peak), default=0)
    where = f"layer '{region.steps[first]}'"
    if len(places) > 1:
        where = f"{where} and {plural(len(places) - 1, 'other step')}"
    rest = f"; all other steps take at most {others:,} B" if len(places) < len(used) else ""
    yield f"memory {region.name}: most is in use at {where}, {peak:,} B: {buffers}{more}{rest}"


def _weights(report: ReportDocument) -> Iterator[str]:
    """Yield the layer with most constants."""
    largest = max(report.layers, key=lambda each: each.constant_bytes)
    whole = sum(layer.constant_bytes for layer in report.layers)
    if largest.constant_bytes:
        part = share(largest.constant_bytes / whole)
        yield f"flash: {part} of the weights in layer {largest.index} '{largest.name}', {largest.constant_bytes:,} B"


def _used_by_layer(region: RegionPlanPart) -> dict[str, int]:
    found: dict[str, int] = {}
    for layer, size in zip(region.steps, used_bytes(region), strict=True):
        found[layer] = max(found.get(layer, 0), size)
    return found


def used_bytes(region: RegionPlanPart) -> list[int]:
    """Return by step the bytes that some buffer holds; those that several share, such as in place, count once."""
    held: list[list[tuple[int, int]]] = [[] for _ in region.steps]
    for each in sorted(region.buffers, key=lambda each: each.offset):
        for spans in held[max(each.first, 0) : max(each.last + 1, 0)]:
            spans.append((each.offset, each.offset + each.size_bytes))
    return [_union(spans) for spans in held]


def _union(spans: Sequence[tuple[int, int]]) -> int:
    """Return the bytes in spans that are sorted by their starts."""
    size, reached = 0, 0
    for start, end in spans:
        size += max(0, end - max(start, reached))
        reached = max(reached, end)
    return size
