# SPDX-License-Identifier: Apache-2.0
"""Backend-independent simplification passes; each keeps every bit of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from ferrule.graph import Graph, GraphEditor
from ferrule.optimizer.simplify.biases import ClearBiases
from ferrule.optimizer.simplify.constants import FoldConstants
from ferrule.optimizer.simplify.elementwise import JoinAcrossElementwise
from ferrule.optimizer.simplify.fusion import FoldPads, FuseActivations
from ferrule.optimizer.simplify.movement import JoinReshapes, JoinTransposes, TransposesAsReshapes
from ferrule.optimizer.simplify.rectifiers import FindPrelus, RemoveClamps
from ferrule.optimizer.simplify.redundant import MergeTwins, RemoveDeadLayers, RemoveIdentities

_MOST_ROUNDS = 50


class Pass(Protocol):
    """A pass that rewrites graphs; its options are its fields."""

    @property
    def name(self) -> str:
        """A short description of the pass, for reports."""
        ...

    def run(self, graph: Graph) -> Graph:
        """Return a graph whose outputs are bit-identical to those of the given one."""
        ...


PASSES: tuple[Pass, ...] = (
    FoldConstants(),
    FoldPads(),
    FindPrelus(),
    FuseActivations(),
    RemoveClamps(),
    ClearBiases(),
    JoinAcrossElementwise(),
    JoinTransposes(),
    TransposesAsReshapes(),
    JoinReshapes(),
    RemoveIdentities(),
    MergeTwins(),
    RemoveDeadLayers(),
)
"""All passes, in the order in which one round runs them."""


def simplify(graph: Graph, passes: Sequence[Pass] = PASSES) -> Graph:
    """Return the graph after rounds of the passes, repeated until no pass changes it or the round limit is reached.

    The graphs that layers run are simplified first.
    """
    graph = _with_simple_graphs(graph, passes)
    for _ in range(_MOST_ROUNDS):
        before = graph.layers, tuple(tensor.info for tensor in graph.tensors)
        for item in passes:
            graph = item.run(graph)
        if (graph.layers, tuple(tensor.info for tensor in graph.tensors)) == before:
            break
    return graph


def _with_simple_graphs(graph: Graph, passes: Sequence[Pass]) -> Graph:
    calling = [layer for layer in graph.layers if layer.descriptor.graphs]
    if not calling:
        return graph
    editor = GraphEditor(graph)
    for layer in calling:
        graphs = {name: simplify(inner, passes) for name, inner in layer.descriptor.graphs.items()}
        editor.replace_layer(replace(layer, descriptor=layer.descriptor.with_graphs(graphs)))
    return editor.finish()


__all__ = [
    "PASSES",
    "ClearBiases",
    "FindPrelus",
    "FoldConstants",
    "FoldPads",
    "FuseActivations",
    "JoinAcrossElementwise",
    "JoinReshapes",
    "JoinTransposes",
    "MergeTwins",
    "Pass",
    "RemoveClamps",
    "RemoveDeadLayers",
    "RemoveIdentities",
    "TransposesAsReshapes",
    "simplify",
]
