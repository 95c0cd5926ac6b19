# SPDX-License-Identifier: Apache-2.0
"""Places the layers of one inference on a line of time: the core's, and those of devices beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from ferrule.report.document import LayerPart
from ferrule.report.picture import SpanPart

CORE_TRACK = "core"


def timeline(layers: Sequence[LayerPart], devices: Iterable[str], *, exact: bool) -> tuple[SpanPart, ...]:
    """Return the spans of an inference in the order of their starts; `exact` states whether each instruction counts.

    The core runs one layer after the other, so its spans follow from the counts. A device works on a layer at some time
    between the start of this layer and the end of the layer that collects its result. The span has the length that the
    device's model counted. Without a count, it is the whole time between the two.
    """
    ends = list(accumulate(layer.count for layer in layers))
    own = [
        SpanPart(track=CORE_TRACK, layer=layer.name, start=end - layer.count, end=end, exact=exact)
        for layer, end in zip(layers, ends, strict=True)
        if layer.count
    ]
    spans = [*own, *_device_spans(layers, ends, set(devices))]
    return tuple(sorted(spans, key=lambda span: (span.start, span.track != CORE_TRACK, span.end)))


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
