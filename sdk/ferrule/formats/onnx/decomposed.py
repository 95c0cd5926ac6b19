# SPDX-License-Identifier: Apache-2.0
"""Finds LayerNormalization that an exporter wrote as operators of real numbers, as PyTorch does before opset 17.

A quantiser may have put conversions round some of these operators. They vanish with the operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import FerruleError
from ferrule.formats.onnx.encoding import DEQUANTIZE, QUANTIZE, encoding_of
from ferrule.formats.onnx.fusion import MOVING
from ferrule.formats.onnx.node import Node, outer_names
from ferrule.graph import Array


def normalisations(nodes: Sequence[Node], constants: Mapping[str, Array], kept: set[str]) -> list[Node]:
    """Return the nodes with one in place of those of a normalisation between conversions, which nothing else reads.

    Conversions inside of the normalisation are dropped: what becomes of it computes with the integers before them all.
    """
    return _Normalisations(nodes, constants, kept).replaced()


class _Normalisations:
    """The nodes of one graph, and who makes and reads their tensors."""

    def __init__(self, nodes: Sequence[Node], constants: Mapping[str, Array], kept: set[str]) -> None:
        self._nodes = nodes
        self._constants = constants
        self._makers = {name: node for node in nodes for name in node.outputs}
        self._reads = Counter(name for node in nodes for name in node.inputs)
        self._reads.update(kept)
        for node in nodes:
            for graph in node.graphs.values():
                self._reads.update(outer_names(graph))

    def replaced(self) -> list[Node]:
        """Return the nodes with those of normalisations replaced."""
        made: dict[str, Node] = {}
        gone: set[str] = set()
        for node in self._nodes:
            found: list[Node] = []
            last = self._maker(node.source, [], "Add") if node.key in QUANTIZE else None
            whole = None if last is None else self._normalisation(last, found)
            if last is not None and whole is not None and self._is_closed(found, last):
                made[last.output] = whole
                gone.update(each.output for each in found)
        remaining = (made.get(node.output, node) for node in self._nodes if node.output not in gone)
        return list(remaining) if made else list(self._nodes)

    def _maker(self, name: str, found: list[Node], *ops: str) -> Node | None:
        """Return the node that makes a tensor if it is one of some operators with one output.

        Conversions to integers and back behind it are appended to `found`.
        """
        node = conversion = self._makers.get(name)
        before = None if conversion is None else self._converted(conversion)
        if before is not None:
            node = self._makers.get(before.source)
        if node is None or node.key not in ops or len(node.outputs) != 1:
            return None
        if before is not None and conversion is not None:
            found += [before, conversion]
        return node

    def _converted(self, node: Node) -> Node | None:
        """Return the QuantizeLinear before a DequantizeLinear with the same scale and zero point, one of each."""
        before = self._makers.get(node.source) if node.key in DEQUANTIZE else None
        if before is None or before.key not in QUANTIZE or before.inputs[1:] != node.inputs[1:]:
            return None
        parameters = [self._constants.get(name) for name in node.inputs[1:] if name]
        return before if all(each is not None and each.size == 1 for each in parameters) else None

    def _normalisation(self, last: Node, found: list[Node]) -> Node | None:
        """Return (x - mean) / sqrt(variance + epsilon) * gamma + beta as one node, and append the nodes before it."""
        beta, scaled = self._with_constant(last)
        gamma, divided = self._with_constant(self._maker(scaled, found, "Mul"), found)
        quotient = self._maker(divided, found, "Div")
        if beta is None or gamma is None or quotient is None or len(quotient.inputs) != 2:
            return None
        source = self._centred(quotient.source, found)
        root = self._maker(quotient.inputs[1], found, "Sqrt")
        sum_ = None if root is None else self._maker(root.source, found, "Add")
        epsilon, variance = self._with_constant(sum_, found)
        number = self._number(epsilon)
        mean = self._mean(variance, found)
        if root is None or mean is None or number is None or number < 0 or not self._is_quantised(source):
            return None
        if self._squared(mean, found) != source or any(self._rank(each) != 1 for each in (gamma, beta)):
            return None
        found += [quotient, root]
        attributes = {"epsilon": number}
        return replace(last, op="LayerNormalization", inputs=(source, gamma, beta), attributes=attributes)

    def _with_constant(self, node: Node | None, found: list[Node] | None = None) -> tuple[str | None, str]:
        """Return the constant of float32 among the two inputs of a node, and the other input."""
        inputs = () if node is None else node.inputs
        real = [name for name in inputs if self._is_real(name)]
        others = [name for name in inputs if self._constant(name) is None]
        if node is None or len(inputs) != 2 or len(real) != 1 or len(others) != 1:
            return None, ""
        if found is not None:
            found.append(node)
        return real[0], others[0]

    def _constant(self, name: str) -> Array | None:
        """Return the data of a constant; its integers if it is dequantised."""
        node = self._makers.get(name)
        return self._constants.get(name if node is None or node.key not in DEQUANTIZE else node.source)

    def _is_real(self, name: str) -> bool:
        data = self._constant(name)
        return data is not None and (name not in self._constants or data.dtype == np.float32)

    def _rank(self, name: str) -> int | None:
        data = self._constant(name)
        return None if data is None else data.ndim

    def _number(self, name: str | None) -> float | None:
        """Return the real number that a constant is, if it is one finite number."""
        data = None if name is None else self._constant(name)
        if name is None or data is None or data.size != 1:
            return None
        node = self._makers.get(name)
        if node is not None:
            try:
                data = encoding_of(node, self._constants, str(data.dtype), data.shape).dequantised(data)
            except FerruleError:
                return None  # it is refused, with the node's place, when the node is read
        return float(data.item()) if np.isfinite(data).all() else None

    def _centred(self, name: str, found: list[Node]) -> str:
        """Return the tensor from which its means over the last axis are subtracted; empty if that is not so."""
        node = self._maker(name, found, "Sub")
        if node is None or len(node.inputs) != 2 or self._mean(node.inputs[1], found) != node.source:
            return ""
        found.append(node)
        return node.source

    def _mean(self, name: str, found: list[Node]) -> str | None:
        """Return the tensor of which another has the means over the last axis."""
        node = self._maker(name, found, "ReduceMean")
        if node is None or not node.flag("keepdims", default=True):
            return None
        axes = self._constants.get(node.inputs[1]) if node.has_input(1) else node.attributes.get("axes")
        if axes is None or np.array(axes).tolist() != [-1]:
            return None
        found.append(node)
        return node.source

    def _squared(self, name: str, found: list[Node]) -> str:
        """Return the tensor whose differences from the means are squared; empty if that is not so."""
        node = self._maker(name, found, "Pow", "Mul")
        if node is None or len(node.inputs) != 2:
            return ""
        is_square = node.inputs[0] == node.inputs[1] if node.op == "Mul" else self._number(node.inputs[1]) == 2
        found.append(node)
        return self._centred(node.source, found) if is_square else ""

    def _is_quantised(self, name: str) -> bool:
        """Whether a tensor that is no constant is dequantised, and perhaps moved after that."""
        node = self._makers.get(name)
        while node is not None and node.key in MOVING:
            node = self._makers.get(node.source)
        return node is not None and node.key in DEQUANTIZE and node.source not in self._constants

    def _is_closed(self, found: Sequence[Node], last: Node) -> bool:
        """Whether only a QuantizeLinear reads the last node's result, and only nodes of the group the others'."""
        group = {node.output: node for node in found}
        reads = Counter(name for node in (*group.values(), last) for name in node.inputs)
        return self._reads[last.output] == 1 and all(self._reads[name] == reads[name] for name in group)
