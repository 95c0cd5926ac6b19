# SPDX-License-Identifier: Apache-2.0
"""Backend-independent simplification passes; each keeps every bit of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ferrule._frozen import positional
from ferrule.graph import Graph, GraphEditor, Layer
from ferrule.optimizer.simplify.biases import clear_biases
from ferrule.optimizer.simplify.constants import fold_constants
from ferrule.optimizer.simplify.elementwise import join_across_elementwise
from ferrule.optimizer.simplify.fusion import fold_pads, fuse_activations
from ferrule.optimizer.simplify.movement import join_reshapes, join_transposes, transposes_as_reshapes
from ferrule.optimizer.simplify.rectifiers import find_prelus, remove_clamps
from ferrule.optimizer.simplify.redundant import merge_twins, remove_dead_layers, remove_identities

_MOST_ROUNDS = 50


@positional
class Pass:
    """A pass that rewrites graphs."""

    name: str
    """A short description, for reports."""
    run: Callable[[Graph], Graph]
    """Returns a graph whose outputs are bit-identical to those of the given one."""


def each_layer(rewrite: Callable[[GraphEditor, Layer], None]) -> Callable[[Graph], Graph]:
    """Return a function that rewrites a graph layer by layer."""

    def run(graph: Graph) -> Graph:
        editor = GraphEditor(graph)
        for layer in editor.layers():
            rewrite(editor, layer)
        return editor.finish()

    return run


PASSES: tuple[Pass, ...] = (
    Pass("fold constants", each_layer(fold_constants)),
    Pass("fold pads", each_layer(fold_pads)),
    Pass("find PRELUs", each_layer(find_prelus)),
    Pass("fuse activations", each_layer(fuse_activations)),
    Pass("remove clamps", each_layer(remove_clamps)),
    Pass("clear biases", each_layer(clear_biases)),
    Pass("join movements across elementwise layers", each_layer(join_across_elementwise)),
    Pass("join transposes", each_layer(join_transposes)),
    Pass("transposes as reshapes", each_layer(transposes_as_reshapes)),
    Pass("join reshapes", each_layer(join_reshapes)),
    Pass("remove identities", each_layer(remove_identities)),
    Pass("merge twins", merge_twins),
    Pass("remove dead layers", remove_dead_layers),
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


__all__ = ["PASSES", "Pass", "each_layer", "simplify"]
