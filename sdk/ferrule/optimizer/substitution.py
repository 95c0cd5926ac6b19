# SPDX-License-Identifier: Apache-2.0
"""Checks the backends' answers about their subgraphs and applies them to the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.backends.device import BackendId
from ferrule.backends.optimization_views import InvalidViewsError, OptimizationViews
from ferrule.errors import FerruleError, ModelError
from ferrule.graph import Graph, GraphEditor, LayerType, SubgraphView, Tensor
from ferrule.network.validation import check_layer


@frozen
class Answer:
    """A backend's answer for one subgraph; it must have passed `check_views`."""

    backend: BackendId
    subgraph: SubgraphView
    views: OptimizationViews


@frozen
class Rewritten:
    """A graph with the backends' answers applied."""

    graph: Graph
    kept: tuple[str, ...]
    """Layers that a backend deletes but that stay because they write an output of the graph under its name."""


def apply_answers(graph: Graph, answers: Sequence[Answer]) -> Rewritten:
    """Return the graph with all substitutions applied and the deleted layers removed.

    Raises:
        InvalidViewsError: an answer does not fit into the graph.
    """
    try:
        rewritten = _rewrite(graph, answers)
    except ModelError as error:
        raise _blame(graph, answers, error) from error
    inserted = [
        (answer.backend, layer)
        for answer in answers
        for substitution in answer.views.substitutions
        for layer in substitution.layers
    ]
    for backend, layer in inserted:
        if layer.type is not LayerType.PRE_COMPILED:
            try:
                check_layer(rewritten.graph, rewritten.graph.layer(layer.name))
            except FerruleError as error:
                raise InvalidViewsError(f"backend {backend} inserted a layer that does not fit: {error}") from error
    return rewritten


def _rewrite(graph: Graph, answers: Sequence[Answer]) -> Rewritten:
    editor = GraphEditor(graph)
    splices = _Splices(graph)
    for view in sorted((view for answer in answers for view in answer.views.deleted), key=lambda view: view.position):
        splices.delete(view)
    for answer in answers:
        for substitution in answer.views.substitutions:
            for tensor in (*(Tensor(info) for info in substitution.tensors), *substitution.constants):
                editor.set_tensor(tensor)
            editor.replace_layers(substitution.replaced.names, substitution.layers)
    for name in splices.gone:
        editor.remove_layer(name)
    editor.rename(splices.names())
    return Rewritten(graph=editor.finish(), kept=tuple(splices.kept))


class _Splices:
    """Collects deletions: which tensor replaces which once the layers between them are removed."""

    def __init__(self, graph: Graph) -> None:
        self._outputs = {info.name for info in graph.results}
        self._inputs = {info.name for info in graph.sources}
        self._source: dict[str, str] = {}
        """By output of deleted layers: the tensor that its readers read instead."""
        self._renamed: dict[str, str] = {}
        """By tensor: the name of the graph output that it takes over."""
        self.gone: dict[str, None] = {}
        self.kept: list[str] = []

    def delete(self, view: SubgraphView) -> None:
        """Delete a view's layers; a view that writes a graph output stays unless its source can take over the name."""
        (output,), (source,) = view.outputs, view.inputs
        source = self._source.get(source, source)
        if output in self._outputs:
            if source in self._outputs or source in self._inputs or source in self._renamed:
                self.kept += view.names
                return
            self._renamed[source] = output
        else:
            self._source[output] = source
        self.gone |= dict.fromkeys(view.names)

    def names(self) -> dict[str, str]:
        """Return the replacements of tensor names, old to new, for the layers that stay."""
        return {name: self._renamed.get(source, source) for name, source in self._source.items()} | self._renamed


def _blame(graph: Graph, answers: Sequence[Answer], error: ModelError) -> InvalidViewsError:
    """Return the error for the first substitution that does not fit on its own, or else for all answers together."""
    for answer in answers:
        for substitution in answer.views.substitutions:
            alone = replace(answer, views=OptimizationViews(substitutions=(substitution,)))
            try:
                _rewrite(graph, [alone])
            except ModelError as reason:
                return InvalidViewsError(
                    f"backend {answer.backend} replaces layers {list(substitution.replaced.names)} by "
                    f"{[layer.name for layer in substitution.layers]}, which does not fit into the graph: {reason}"
                )
    backends = ", ".join(dict.fromkeys(answer.backend for answer in answers))
    return InvalidViewsError(f"the answers of {backends} do not fit together: {error}")
