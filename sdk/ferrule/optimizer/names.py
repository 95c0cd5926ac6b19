# SPDX-License-Identifier: Apache-2.0
"""New names in a graph that is about to be rewritten."""

from __future__ import annotations

from ferrule.graph import Graph


class Names:
    """The names of a graph's layers and tensors, and those given out since."""

    def __init__(self, graph: Graph) -> None:
        self._taken = {tensor.info.name for tensor in graph.tensors} | {layer.name for layer in graph.layers}

    def take(self, wanted: str) -> str:
        """Return `wanted`, or `wanted_2`, `wanted_3`... if that is taken; it is taken from now on."""
        candidate, number = wanted, 1
        while candidate in self._taken:
            number += 1
            candidate = f"{wanted}_{number}"
        self._taken.add(candidate)
        return candidate
