# SPDX-License-Identifier: Apache-2.0
"""Backend-independent simplification passes; each keeps every bit of the outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from ferrule.graph import Graph, GraphEditor, Layer
from ferrule.optimizer.simplify.biases import clear_biases
from ferrule.optimizer.simplify.constants import fold_constants
from ferrule.optimizer.simplify.elementwise import join_across_elementwise
from ferrule.optimizer.simplify.fusion import fold_pads, fuse_activations
from ferrule.optimizer.simplify.movement import join_reshapes, join_transposes, transposes_as_reshapes
from ferrule.optimizer.simplify.rectifiers import find_prelus, remove_clamps
from ferrule.optimizer.simplify.redundant import merge_twins, remove_dead_layers, remove_identities
from ferrule.optimizer.simplify.tables import find_tables

_MOST_ROUNDS = 50
"""A guard: nothing proves that no two passes undo each other."""


Pass = Callable[[Graph], Graph]
"""Returns a graph whose outputs are bit-identical to those of the given one."""


def each_layer(rewrite: Callable[[GraphEditor, Layer], None]) -> Pass:
    """Return a function of the same name that rewrites a graph layer by layer."""

    @wraps(rewrite)
    def run(graph: Graph) -> Graph:
        editor = GraphEditor(graph)
        for layer in editor.layers():
            rewrite(editor, layer)
        return editor.finish()

    return run


PASSES: tuple[Pass, ...] = (
    each_layer(fold_constants),
    each_layer(fold_pads),
    each_layer(find_prelus),
    each_layer(fuse_activations),
    each_layer(remove_clamps),
    each_layer(clear_biases),
    each_layer(join_across_elementwise),
    each_layer(join_transposes),
    each_layer(transposes_as_reshapes),
    each_layer(join_reshapes),
    each_layer(remove_identities),
    each_layer(find_tables),
    merge_twins,
    remove_dead_layers,
)
"""All passes, in the order in which one round runs them."""


def simplify(graph: Graph) -> Graph:
    """Return the graph after rounds of the passes, repeated until no pass changes it or the round limit is reached.

    The graphs that layers run are simplified first.
    """
    graph = _with_simple_graphs(graph)
    for _ in range(_MOST_ROUNDS):
        before = graph.layers, tuple(tensor.info for tensor in graph.tensors)
        for run in PASSES:
            graph = run(graph)
        if (graph.layers, tuple(tensor.info for tensor in graph.tensors)) == before:
            break
    return graph


def _with_simple_graphs(graph: Graph) -> Graph:
    calling = [layer for layer in graph.layers if layer.descriptor.graphs]
    if not calling:
        return graph
    editor = GraphEditor(graph)
    for layer in calling:
        graphs = {name: simplify(inner) for name, inner in layer.descriptor.graphs.items()}
        editor.replace_layer(replace(layer, descriptor=layer.descriptor.with_graphs(graphs)))
    return editor.finish()


__all__ = ["PASSES", "Pass", "each_layer", "simplify"]
