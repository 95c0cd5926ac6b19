# SPDX-License-Identifier: Apache-2.0
"""Places the layers of one inference on a line of time: the core's, and those of devices beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from ferrule.report.document import LayerPart
from ferrule.report.duration import NOT_TIMED, DurationPart
from ferrule.report.picture import SpanPart

CORE_TRACK = "core"


def timeline(
    layers: Sequence[LayerPart], devices: Iterable[str], duration: DurationPart = NOT_TIMED, *, exact: bool
) -> tuple[SpanPart, ...]:
    """Return the spans of an inference in the order of their starts; `exact` states whether each instruction counts.

    If the engine has timed the layers, these are the times, and those of the devices' commands: when the model worked
    on each, or else the whole time of the command, which is then not exact.

    Otherwise the core's spans follow from the counts, since it runs one layer after the other. A device works on a
    layer at some time between the start of this layer and the end of the layer that collects its result. The span has
    the length that the device's model counted. Without a count, it is the whole time between the two.
    """
    if duration.layers:
        spans = list(_timed(duration))
    else:
        ends = list(accumulate(layer.count for layer in layers))
        own = [
            SpanPart(track=CORE_TRACK, layer=layer.name, start=end - layer.count, end=end, exact=exact)
            for layer, end in zip(layers, ends, strict=True)
            if layer.count
        ]
        spans = [*own, *_device_spans(layers, ends, set(devices))]
    return tuple(sorted(spans, key=lambda span: (span.start, span.track != CORE_TRACK, span.end)))


def _timed(duration: DurationPart) -> Iterator[SpanPart]:
    for layer in duration.layers:
        if layer.elapsed:
            yield SpanPart(track=CORE_TRACK, layer=layer.layer, start=layer.start, end=layer.start + layer.elapsed)
    for each in duration.commands:
        begun, done = each.begun, each.done
        if begun is None or done is None:
            yield SpanPart(track=each.device, layer=each.layer, start=each.start, end=each.end, exact=False)
        elif done > begun:
            yield SpanPart(track=each.device, layer=each.layer, start=begun, end=done)


def _device_spans(layers: Sequence[LayerPart], ends: Sequence[int], devices: set[str]) -> list[SpanPart]:
    collected = {name: index for index, layer in enumerate(layers) for name in layer.beside}
    free: dict[str, int] = {}
    spans = []
    for index, layer in enumerate(layers):
        if layer.device not in devices:
            continue
        last = collected.get(layer.name, index)
        begins, begun, ends_at = ends[index] - layer.count, ends[index], ends[last]
        busy = ends_at - begins if layer.work is None else layer.work.busy
        # the core's wait ends with the device's work, or the device goes on when the core has begun it
        wanted = ends_at - busy if last == index else min(begun, ends_at - busy)
        start = max(wanted, begins, free.get(layer.device, 0))
        end = min(start + busy, ends_at)
        if end > start:
            spans.append(SpanPart(track=layer.device, layer=layer.name, start=start, end=end, exact=False))
            free[layer.device] = end
    return spans
