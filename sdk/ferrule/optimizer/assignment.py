# SPDX-License-Identifier: Apache-2.0
"""Gives each layer the first backend of a preference list that takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.backends import Backend, BackendId
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Graph, Layer

Assignment = Mapping[str, BackendId]
"""The backend of each layer, by the layer's name."""


def assign_backends(graph: Graph, preferences: Sequence[Backend]) -> Assignment:
    """Return for each layer the first backend that supports it.

    Raises:
        FerruleError: no backend is given.
        UnsupportedError: no backend takes some layer; the message has every backend's reason.
    """
    if not preferences:
        raise FerruleError("no backend is given, expected at least one", hint="the default is CpuAcc")
    return {layer.name: _first(graph, layer, preferences) for layer in graph.layers}


def _first(graph: Graph, layer: Layer, preferences: Sequence[Backend]) -> BackendId:
    reasons = []
    for backend in preferences:
        support = backend.layer_support().supports(graph, layer)
        if support:
            return backend.id
        reasons.append(f"{backend.id}: {support.reason}")
    raise UnsupportedError(f"layer '{layer.name}' ({layer.type}) runs on no backend; {'; '.join(reasons)}")
