# SPDX-License-Identifier: Apache-2.0
"""How long a tensor's bytes are needed in a run, in which backends may still work on earlier layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ferrule.backends.device import BackendId
from ferrule.graph import Graph, Layer
from ferrule.memory import Lifetime

Unit = tuple[BackendId, str]
"""A backend and a device: the unit within which workloads run in the order in which they are started."""


class Waits:
    """The layers before which a run waits for a unit, so that all that the unit was given by then is complete."""

    def __init__(self, graph: Graph, unit_of: Callable[[Layer], Unit | None]) -> None:
        """Collect them; `unit_of` returns None for a layer that is complete when the next one begins."""
        self._graph = graph
        self._index = {layer.name: index for index, layer in enumerate(graph.layers)}
        self._units = {layer.name: unit_of(layer) for layer in graph.layers}
        self._found: dict[Unit, list[tuple[int, int]]] = {}
        for index, layer in enumerate(graph.layers):
            for name in layer.present_inputs:
                producer = graph.producer(name)
                unit = None if producer is None else self._units[producer.name]
                if producer is not None and unit is not None and unit != self._units[layer.name]:
                    self._found.setdefault(unit, []).append((index, self._index[producer.name]))

    def completion(self, layer: Layer) -> int:
        """Return the index of the last layer that begins before a layer is certainly complete."""
        index, unit = self._index[layer.name], self._units[layer.name]
        if unit is None:
            return index
        later = (waiting for waiting, awaited in self._found.get(unit, ()) if awaited >= index)
        return min(later, default=len(self._graph.layers)) - 1

    def life(self, tensors: Iterable[str]) -> Lifetime:
        """Return the lifetime of bytes that all these tensors share; step 0 is the feeding of the inputs."""
        outputs = {info.name for info in self._graph.results}
        first, last = len(self._graph.layers), 0
        for name in tensors:
            producer = self._graph.producer(name)
            users = [] if producer is None else [producer]
            first = min(first, 0 if producer is None else self._index[producer.name] + 1)
            users += self._graph.consumers(name)
            last = max(last, *(self.completion(user) + 1 for user in users), 0)
            if name in outputs:
                last = len(self._graph.layers) + 1
        return Lifetime(first=first, last=max(first, last))
