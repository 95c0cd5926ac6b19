# SPDX-License-Identifier: Apache-2.0
"""What rewrites the nodes of a graph: who reads each tensor, which ones stay, and new constants."""

from __future__ import annotations

from ferrule.budget import hold
from ferrule.formats.onnx.node import GraphRecord, Node, outer_names
from ferrule.formats.onnx.normalise import Normalised
from ferrule.graph import Array
from ferrule.graph.names import UniqueNames
from ferrule.graph.tensor import read_only


class Rewriting:
    """The nodes of a graph while some of them are replaced."""

    def __init__(self, record: GraphRecord, graph: Normalised) -> None:
        self._graph = graph
        self._constants = dict(graph.constants)
        self._kept = {value.name for value in record.outputs}
        """The tensors that outputs or inner graphs read."""
        self._readers: dict[str, list[Node]] = {}
        self._names = UniqueNames([*self._constants, *record.values])
        for node in graph.nodes:
            self._kept.update(*map(outer_names, node.graphs.values()))
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)
            for name in node.outputs:
                self._names.add(name)

    def _constant(self, node: Node, role: str, data: Array) -> str:
        """Add a constant, and return its name, which is made of that of the node's output."""
        name = self._names.take(f"{node.output}_{role}")
        hold(data.nbytes, f"the constant '{name}'")
        self._constants[name] = read_only(data)
        return name
