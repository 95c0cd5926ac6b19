# SPDX-License-Identifier: Apache-2.0
"""Lifetimes: the steps during which the bytes of each tensor must survive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule._frozen import frozen
from ferrule.errors import ModelError
from ferrule.graph import Graph, Layer


@frozen
class Lifetime:
    """Steps of the schedule during which a buffer's bytes must survive, both ends included; layer n runs at step n."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last:
            raise ValueError(f"lifetime {self.first} to {self.last}, expected 0 <= first <= last")

    def meets(self, other: Lifetime) -> bool:
        """Whether both are live at a common step."""
        return self.first <= other.last and other.first <= self.last

    def hull(self, other: Lifetime) -> Lifetime:
        """Return the shortest lifetime that contains both."""
        return Lifetime(first=min(self.first, other.first), last=max(self.last, other.last))


def scheduled_layers(graph: Graph, order: Sequence[str] | None = None) -> tuple[Layer, ...]:
    """Return the layers in the order of their names in `order`, by default in the graph's own order.

    Raises:
        ModelError: `order` misses or repeats a layer, or puts a layer before one whose output it reads.
    """
    if order is None:
        return graph.layers
    layers = tuple(graph.layer(name) for name in order)
    if len(set(order)) != len(layers) or len(layers) != len(graph.layers):
        raise ModelError(f"an order of graph '{graph.name}' has {len(layers)} names, expected each layer's once")
    done: set[str] = set()
    for layer in layers:
        for tensor in layer.present_inputs:
            producer = graph.producer(tensor)
            if producer is not None and producer.name not in done:
                raise ModelError(f"layer '{layer.name}' is ordered before '{producer.name}', whose output it reads")
        done.add(layer.name)
    return layers


def lifetimes(
    graph: Graph, order: Sequence[str] | None = None, ends: Mapping[str, int] | None = None
) -> dict[str, Lifetime]:
    """Return the lifetime of every non-constant tensor, in the graph's order of tensors.

    A graph input is live from step 0 to its last reader, and a graph output from the layer that writes it to the last
    step. A tensor that is never read is live only at the step that writes it. A graph without layers has one step, 0.
    The tensors of a layer in `ends` are live at least until the step given there.

    Raises:
        ModelError: see `scheduled_layers`.
    """
    layers = scheduled_layers(graph, order)
    first = {info.name: 0 for info in graph.sources}
    last = dict(first)
    for step, layer in enumerate(layers):
        end = step if ends is None else ends.get(layer.name, step)
        for name in layer.outputs:
            first[name], last[name] = step, end
        for name in layer.present_inputs:
            last[name] = max(last.get(name, 0), end)
    for info in graph.results:
        last[info.name] = max(len(layers) - 1, 0)
    return {
        tensor.info.name: Lifetime(first=first[tensor.info.name], last=last[tensor.info.name])
        for tensor in graph.tensors
        if not tensor.is_constant
    }
