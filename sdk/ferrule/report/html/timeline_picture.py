# SPDX-License-Identifier: Apache-2.0
"""The picture of one inference over time: a track for the core and for each device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ferrule.report.picture import SpanPart, Timeline

_NARROWEST = 0.0012
"""Neighbouring spans below this share of the width are drawn as one."""
_LABEL_WIDTH = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanBox:
    """A span's rectangle; x and width are shares of the picture's width."""

    x: float
    width: float
    layers: tuple[str, ...]
    start: int
    end: int
    exact: bool
    has_label: bool
    colour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The spans of the core or of one device."""

    name: str
    boxes: tuple[SpanBox, ...]
    busy: float
    """Share of the time during which it works."""
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePicture:
    """All tracks of an inference."""

    tracks: tuple[Track, ...]
    end: int
    unit: str


def timeline_picture(timeline: Timeline) -> TimelinePicture:
    """Return where the spans of an inference stand, the core's first."""
    spans, colours = timeline.spans, timeline.colours
    end = max((span.end for span in spans), default=0) or 1
    names = sorted(dict.fromkeys(span.track for span in spans), key=lambda name: name != "core")
    return TimelinePicture(
        tracks=tuple(_track(name, [span for span in spans if span.track == name], end, colours) for name in names),
        end=end,
        unit=timeline.unit,
    )


def _track(name: str, spans: Sequence[SpanPart], end: int, colours: Mapping[str, int]) -> Track:
    boxes: list[SpanBox] = []
    for span in spans:
        box = SpanBox(
            x=span.start / end,
            width=(span.end - span.start) / end,
            layers=(span.layer,),
            start=span.start,
            end=span.end,
            exact=span.exact,
            has_label=(span.end - span.start) / end >= _LABEL_WIDTH,
            colour=colours.get(span.layer, 0),
        )
        joined = _joined(boxes[-1], box) if boxes else None
        if joined is None:
            boxes.append(box)
        else:
            boxes[-1] = joined
    return Track(
        name=name,
        boxes=tuple(boxes),
        busy=sum(span.end - span.start for span in spans) / end,
        exact=all(span.exact for span in spans),
    )


def _joined(before: SpanBox, box: SpanBox) -> SpanBox | None:
    """Return two touching boxes as one if both are too narrow to be seen; None otherwise."""
    if before.width >= _NARROWEST or box.width >= _NARROWEST or box.start - before.end > 0:
        return None
    return replace(
        before,
        width=box.x + box.width - before.x,
        layers=(*before.layers, *box.layers),
        end=box.end,
        exact=before.exact and box.exact,
    )
