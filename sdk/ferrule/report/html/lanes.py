# SPDX-License-Identifier: Apache-2.0
"""The picture of a division: a lane for each backend or device, with the layers that it runs, in their order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ferrule.report.document import LayerPart, LayerRefusalsPart
from ferrule.report.inspection import DivisionPart, FinalPart

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
    share: float | None
    """Share of the counts, 0 to 1; None where nothing was counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """A division."""

    lanes: tuple[Lane, ...]
    groups: tuple[Group, ...]

    @property
    def height(self) -> int:
        """Of the picture, in pixels."""
        return LANE_HEIGHT * len(self.lanes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a backend did not get some layers."""

    backend: str
    reason: str
    layers: tuple[str, ...]


def runner(backend: str, device: str) -> str:
    """Return the backend, followed by its device if that has another name."""
    return backend if device in {"", backend} else f"{backend}/{device}"


def runner_numbers(layers: Sequence[LayerPart]) -> dict[str, int]:
    """Return the number of the colour of each backend and device, in the order of their first layers."""
    names = dict.fromkeys(runner(layer.backend, layer.device) for layer in layers)
    return {name: number % 8 for number, name in enumerate(names)}


def layer_colours(layers: Sequence[LayerPart]) -> dict[str, int]:
    """Return the numbers of the colours of a timeline: by layer, and by device for those that have a name."""
    numbers = runner_numbers(layers)
    found = {layer.device: numbers[runner(layer.backend, layer.device)] for layer in layers if layer.device}
    return found | {layer.name: numbers[runner(layer.backend, layer.device)] for layer in layers}


def run_lanes(layers: Sequence[LayerPart]) -> Lanes:
    """Return the division of a run's layers, with the shares of their counts."""
    shares: dict[str, float] = {}
    for layer in layers:
        name = runner(layer.backend, layer.device)
        shares[name] = shares.get(name, 0.0) + layer.share
    counted = any(layer.count for layer in layers)
    return _lanes([(layer.name, runner(layer.backend, layer.device)) for layer in layers], shares if counted else None)


def final_lanes(final: FinalPart) -> Lanes:
    """Return the division of a network that was only inspected."""
    return _lanes([(layer.layer, runner(layer.backend, layer.device)) for layer in final.layers], None)


def reasons(refusals: Iterable[LayerRefusalsPart]) -> tuple[Reason, ...]:
    """Return the reasons with the layers for which each is given, those for most layers first."""
    return _reasons((part.layer, backend, why) for part in refusals for backend, why in part.reasons.items())


def taker_reasons(division: DivisionPart) -> tuple[Reason, ...]:
    """Return the reasons of an inspection, as `reasons` does."""
    return _reasons((part.layer, each.backend, each.reason) for part in division.layers for each in part.refusals)


def _reasons(found: Iterable[tuple[str, str, str]]) -> tuple[Reason, ...]:
    layers: dict[tuple[str, str], list[str]] = {}
    for layer, backend, why in found:
        layers.setdefault((backend, why), []).append(layer)
    ordered = (Reason(backend=key[0], reason=key[1], layers=tuple(names)) for key, names in layers.items())
    return tuple(sorted(ordered, key=lambda each: -len(each.layers)))


def _lanes(layers: Sequence[tuple[str, str]], shares: Mapping[str, float] | None) -> Lanes:
    names = list(dict.fromkeys(name for _, name in layers))
    groups: list[Group] = []
    start = 0
    for name, run in itertools.groupby(layers, key=lambda each: each[1]):
        members = tuple(layer for layer, _ in run)
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
    counts = {name: sum(1 for _, each in layers if each == name) for name in names}
    return Lanes(
        lanes=tuple(
            Lane(name=name, layers=counts[name], share=None if shares is None else shares[name]) for name in names
        ),
        groups=tuple(groups),
    )
