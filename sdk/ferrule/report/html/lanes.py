# SPDX-License-Identifier: Apache-2.0
"""The picture of a division: a lane for each backend or device, with the layers that it runs, in their order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.report.picture import Assigned

LANE_HEIGHT = 48
"""In pixels."""
_LABEL_WIDTH = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Consecutive layers of one lane; x and width are shares of the picture's width."""

    lane: int
    x: float
    width: float
    layers: tuple[str, ...]
    has_label: bool
    from_lane: int | None
    """The lane of the group before; None for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What one backend or device runs."""

    name: str
    layers: int
    share: float
    """Share of the counts, 0 to 1; 0 where nothing was counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """A division."""

    lanes: tuple[Lane, ...]
    groups: tuple[Group, ...]
    height: int
    """Of the picture, in pixels."""


def lanes(layers: Sequence[Assigned]) -> Lanes:
    """Return where the layers of a network stand."""
    names = list(dict.fromkeys(each.runner for each in layers))
    groups: list[Group] = []
    start = 0
    for name, run in itertools.groupby(layers, key=lambda each: each.runner):
        members = tuple(each.layer for each in run)
        width = len(members) / len(layers)
        groups.append(
            Group(
                lane=names.index(name),
                x=start / len(layers),
                width=width,
                layers=members,
                has_label=width >= _LABEL_WIDTH,
                from_lane=groups[-1].lane if groups else None,
            )
        )
        start += len(members)
    shares = {name: [each.share for each in layers if each.runner == name] for name in names}
    return Lanes(
        lanes=tuple(Lane(name=name, layers=len(found), share=sum(found)) for name, found in shares.items()),
        groups=tuple(groups),
        height=LANE_HEIGHT * len(names),
    )
