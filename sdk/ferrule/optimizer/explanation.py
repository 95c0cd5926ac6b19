# SPDX-License-Identifier: Apache-2.0
"""Explains which backend supports each layer of a network, and why the others do not."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule._frozen import frozen
from ferrule.backends.backend import Backend
from ferrule.backends.device import BackendId, Device
from ferrule.graph import Graph, LayerType
from ferrule.optimizer.candidate import Candidate
from ferrule.optimizer.options import OptimizerOptions


@frozen
class LayerRow:
    """One layer and the backends' answers about it."""

    layer: str
    type: LayerType
    refusals: tuple[tuple[BackendId, str], ...]
    """(backend, reason) in order of preference, without the backends that support the layer."""


def explain(graph: Graph, backends: Sequence[Backend], options: OptimizerOptions) -> tuple[LayerRow, ...]:
    """Return a row per layer, in order; every backend is queried for every layer, on the device that would run it.

    An all-or-nothing backend that refuses one layer refuses them all.
    """
    refusals = {backend.id: _refusals(graph, Candidate.of(backend, options)) for backend in backends}
    return tuple(
        LayerRow(
            layer=layer.name,
            type=layer.type,
            refusals=tuple((key, found[layer.name]) for key, found in refusals.items() if found[layer.name]),
        )
        for layer in graph.layers
    )


def _refusals(graph: Graph, candidate: Candidate) -> dict[str, str]:
    reasons = {layer.name: candidate.refusal(graph, layer, _device(candidate, layer.name)) for layer in graph.layers}
    offender = next((name for name, reason in reasons.items() if reason), None)
    if offender is None or not candidate.all_or_nothing:
        return reasons
    whole = f"it takes whole networks only, and refuses layer '{offender}'"
    return {name: reason or whole for name, reason in reasons.items()}


def _device(candidate: Candidate, layer: str) -> Device:
    """Return the device named by the layer's hint if the candidate has it; otherwise the candidate's first device."""
    hint = candidate.options.hints.get(layer, "")
    return next((each for each in candidate.devices if f"{candidate.id}/{each.name}" == hint), candidate.devices[0])
