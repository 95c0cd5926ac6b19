# SPDX-License-Identifier: Apache-2.0
"""Simplification that no backend needs to know of: each pass keeps every bit of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ferrule.graph import Graph
from ferrule.optimizer.simplify.constants import FoldConstants
from ferrule.optimizer.simplify.fusion import FoldPads, FuseActivations
from ferrule.optimizer.simplify.movement import JoinReshapes, JoinTransposes, TransposesAsReshapes
from ferrule.optimizer.simplify.redundant import MergeTwins, RemoveDeadLayers, RemoveIdentities

_MOST_ROUNDS = 50


class Pass(Protocol):
    """A rewriting of graphs; its options are its fields."""

    @property
    def name(self) -> str:
        """What it does, for reports."""
        ...

    def run(self, graph: Graph) -> Graph:
        """Return a graph that computes the same bits."""
        ...


PASSES: tuple[Pass, ...] = (
    FoldConstants(),
    FoldPads(),
    FuseActivations(),
    JoinTransposes(),
    TransposesAsReshapes(),
    JoinReshapes(),
    RemoveIdentities(),
    MergeTwins(),
    RemoveDeadLayers(),
)
"""All passes, in the order of one round."""


def simplify(graph: Graph, passes: Sequence[Pass] = PASSES) -> Graph:
    """Return the graph after the passes, repeated until none changes anything."""
    for _ in range(_MOST_ROUNDS):
        before = graph.layers, tuple(tensor.info for tensor in graph.tensors)
        for item in passes:
            graph = item.run(graph)
        if (graph.layers, tuple(tensor.info for tensor in graph.tensors)) == before:
            break
    return graph


__all__ = [
    "PASSES",
    "FoldConstants",
    "FoldPads",
    "FuseActivations",
    "JoinReshapes",
    "JoinTransposes",
    "MergeTwins",
    "Pass",
    "RemoveDeadLayers",
    "RemoveIdentities",
    "TransposesAsReshapes",
    "simplify",
]
