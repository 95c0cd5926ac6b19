# SPDX-License-Identifier: Apache-2.0
"""A view of a part of a graph."""

from __future__ import annotations

from collections.abc import Iterable

from ferrule._frozen import positional
from ferrule.errors import ModelError
from ferrule.graph.assembly import assemble
from ferrule.graph.graph import Graph
from ferrule.graph.layer import Layer
from ferrule.graph.tensor import TensorInfo


@positional
class SubgraphView:
    """A subset of the layers of a graph; the graph itself is neither copied nor modified."""

    graph: Graph
    names: tuple[str, ...]
    """The layers' names, in the order in which the graph runs them."""

    @classmethod
    def of(cls, graph: Graph, layers: Iterable[str]) -> SubgraphView:
        """Return a view of the named layers, in the graph's order; ModelError if one does not exist."""
        return cls(graph, tuple(sorted(set(layers), key=graph.position)))

    @property
    def position(self) -> int:
        """The position of its first layer in the graph."""
        return self.graph.position(self.names[0])

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, in an order that can be executed."""
        return tuple(self.graph.layer(name) for name in self.names)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Non-constant tensors that come from outside the view, in the order of their first reader."""
        own = {name for layer in self.layers for name in layer.outputs}
        read = (name for layer in self.layers for name in layer.present_inputs)
        return tuple(dict.fromkeys(n for n in read if n not in own and not self.graph.tensor(n).is_constant))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Tensors that other layers read or that are results of the graph, in the order of their writers."""
        inside = set(self.names)
        results = {info.name for info in self.graph.results}
        return tuple(
            name
            for layer in self.layers
            for name in layer.outputs
            if name in results or any(reader.name not in inside for reader in self.graph.consumers(name))
        )

    def info(self, tensor: str) -> TensorInfo:
        """Return the description of a tensor of the graph."""
        return self.graph.info(tensor)

    def to_graph(self) -> Graph:
        """Return a graph of only these layers, with the name of the whole graph and the view's inputs and outputs."""
        names = (name for layer in self.layers for name in (*layer.present_inputs, *layer.outputs))
        tensors = {name: self.graph.tensor(name) for name in self.graph.in_order(names)}
        return assemble(self.graph.name, inputs=self.inputs, outputs=self.outputs, layers=self.layers, tensors=tensors)

    def without(self, layers: Iterable[str]) -> SubgraphView:
        """Return the view without the given layers; ModelError if one is not in the view."""
        gone = set(layers)
        if gone - set(self.names):
            raise ModelError(f"layers {sorted(gone - set(self.names))} are not in the subgraph {list(self.names)}")
        return SubgraphView(self.graph, tuple(name for name in self.names if name not in gone))
