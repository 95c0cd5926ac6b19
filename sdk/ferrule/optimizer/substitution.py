# SPDX-License-Identifier: Apache-2.0
"""What backends make of their subgraphs, checked and put into the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ferrule.backends.backend import BackendId
from ferrule.backends.optimization_views import InvalidViewsError, OptimizationViews
from ferrule.errors import FerruleError, ModelError
from ferrule.graph import Graph, Layer, LayerType, SubgraphView, Tensor
from ferrule.network.validation import check_layer
from ferrule.optimizer.rewriting import output_names, rebuilt, tensors_of, with_inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a backend made of one subgraph; checked by `check_views`."""

    backend: BackendId
    offered: SubgraphView
    views: OptimizationViews


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A graph with answers applied."""

    graph: Graph
    kept: tuple[str, ...]
    """Layers that were to be deleted, but that write an output of the graph under its name."""


def apply_answers(graph: Graph, answers: Sequence[Answer]) -> Rewritten:
    """Return the graph with all substitutions in place and deleted layers spliced out.

    Raises:
        InvalidViewsError: an answer does not fit into the graph.
    """
    try:
        rewritten = _rewrite(graph, answers)
    except ModelError as error:
        raise _blame(graph, answers, error) from error
    for answer in answers:
        for substitution in answer.views.substitutions:
            for layer in substitution.layers:
                _check_replacement(rewritten.graph, answer.backend, layer)
    return rewritten


def _rewrite(graph: Graph, answers: Sequence[Answer]) -> Rewritten:
    tensors = tensors_of(graph)
    replaced: dict[str, tuple[Layer, ...]] = {}
    for answer in answers:
        for substitution in answer.views.substitutions:
            replaced |= dict.fromkeys(substitution.replaced.names, ())
            replaced[substitution.replaced.names[0]] = substitution.layers
            tensors |= {info.name: Tensor(info=info) for info in substitution.tensors}
            tensors |= {constant.info.name: constant for constant in substitution.constants}
    splices = _Splices(graph)
    for view in sorted((view for answer in answers for view in answer.views.deleted), key=_position(graph)):
        splices.delete(view)
    layers = [new for layer in graph.layers for new in replaced.get(layer.name, (layer,))]
    return Rewritten(graph=rebuilt(graph, splices.applied(layers), tensors), kept=tuple(splices.kept))


class _Splices:
    """Which tensor stands for which once layers between them are gone."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._outputs = set(output_names(graph))
        self._inputs = {info.name for info in graph.inputs}
        self._source: dict[str, str] = {}
        """By output of deleted layers: what its readers read instead."""
        self._renamed: dict[str, str] = {}
        """Tensors that take over the name of a graph output."""
        self._gone: set[str] = set()
        self.kept: list[str] = []

    def delete(self, view: SubgraphView) -> None:
        """Take layers out; of those that write an output of the graph only if its writer can take over the name."""
        (output,), (source,) = view.outputs, view.inputs
        source = self._source.get(source, source)
        if output in self._outputs:
            if source in self._outputs or source in self._inputs or source in self._renamed:
                self.kept += view.names
                return
            self._renamed[source] = output
        else:
            self._source[output] = source
        self._gone |= set(view.names)

    def applied(self, layers: Iterable[Layer]) -> list[Layer]:
        """Return the layers that stay, with the tensors' new names."""
        final = {name: self._renamed.get(source, source) for name, source in self._source.items()} | self._renamed
        return [
            replace(
                layer, inputs=with_inputs(layer, final), outputs=tuple(final.get(name, name) for name in layer.outputs)
            )
            for layer in layers
            if layer.name not in self._gone
        ]


def _position(graph: Graph) -> _Position:
    return _Position({layer.name: index for index, layer in enumerate(graph.layers)})


@dataclass(frozen=True, slots=True)
class _Position:
    index: Mapping[str, int]

    def __call__(self, view: SubgraphView) -> int:
        return self.index[view.names[0]]


def _check_replacement(graph: Graph, backend: BackendId, layer: Layer) -> None:
    """Check a replacement layer of an ordinary type as any layer of a network is checked."""
    if layer.type is LayerType.PRE_COMPILED:
        return
    try:
        check_layer(graph, graph.layer(layer.name))
    except FerruleError as error:
        raise InvalidViewsError(f"backend {backend} put in a layer that does not fit: {error}") from error


def _blame(graph: Graph, answers: Sequence[Answer], error: ModelError) -> InvalidViewsError:
    """Return the error for the first substitution that does not fit by itself, else for all together."""
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
    return InvalidViewsError(f"what {backends} returned does not fit together: {error}")
