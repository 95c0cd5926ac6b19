# SPDX-License-Identifier: Apache-2.0
"""Dynamic quantisation, whose scales are those of each run, as float32 operators with the same integers.

The integers of DynamicQuantizeLinear, less the zero point, are float32 numbers, and so are the products of
MatMulInteger and ConvInteger; sums beyond 2^24 are rounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ferrule.formats.onnx.node import GraphRecord, Node
from ferrule.formats.onnx.normalise import Normalised
from ferrule.formats.onnx.rewriting import Rewriting
from ferrule.graph import Array

_DYNAMIC = "DynamicQuantizeLinear"
_PRODUCTS: Mapping[str, str] = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}
"""The operators of integers, and those of the same numbers as float32."""
_FLOAT = 1
"""TensorProto.FLOAT."""


def notes(record: GraphRecord) -> Iterator[str]:
    """Yield how many nodes compute in float32 in place of the integers of the file."""
    found = Counter(node.op for node in record.nodes if node.key == _DYNAMIC or node.key in _PRODUCTS)
    if found[_DYNAMIC]:
        listed = ", ".join(f"{count} {op}" for op, count in sorted(found.items()))
        yield f"dynamic quantisation: {listed} computed in float32, with weights of float32"


def without_dynamic(record: GraphRecord, graph: Normalised) -> Normalised:
    """Return the nodes of a graph without DynamicQuantizeLinear, where its integers are only multiplied by constants.

    Other nodes with integers stay, and are refused when the nodes become layers.
    """
    if not any(node.key == _DYNAMIC for node in graph.nodes):
        return graph
    return _Rewriting(record, graph).run()


class _Rewriting(Rewriting):
    def __init__(self, record: GraphRecord, graph: Normalised) -> None:
        super().__init__(record, graph)
        self._numbers: dict[str, str] = {}
        """The float32 tensors of integers: of a DynamicQuantizeLinear, less the zero point, and of products."""
        self._nodes: list[Node] = []

    def run(self) -> Normalised:
        for node in self._graph.nodes:
            if node.key == _DYNAMIC and self._is_multiplied(node):
                self._quantise(node)
            elif node.key in _PRODUCTS and node.source in self._numbers:
                self._multiply(node)
            elif node.key == "Cast" and node.source in self._numbers:
                self._nodes.append(node.made("Identity", (self._numbers[node.source],), node.output))
            else:
                self._nodes.append(node)
        return replace(self._graph, nodes=tuple(self._nodes), constants=self._constants)

    def _is_multiplied(self, node: Node) -> bool:
        """Whether all that reads the integers multiplies them by constants, and makes float32 of the result."""
        if len(node.outputs) != 3 or self._kept.intersection((node.output, node.outputs[2])):
            return False
        readers = self._readers.get(node.output, [])
        return all(self._is_product(each, node) for each in (*readers, *self._readers.get(node.outputs[2], [])))

    def _is_product(self, node: Node, source: Node) -> bool:
        if node.key not in _PRODUCTS or node.source != source.output or not node.has_input(2):
            return False
        casts = self._readers.get(node.output, [])
        return (
            node.inputs[2] == source.outputs[2]
            and self._weights(node) is not None
            and node.output not in self._kept
            and all(each.key == "Cast" and each.integer("to", 0) == _FLOAT for each in casts)
        )

    def _weights(self, node: Node) -> Array | None:
        """Return the weights of a product less their zero point; None unless they are constants of 8 bits that fit."""
        data = self._constants.get(node.inputs[1])
        point = self._constants.get(node.inputs[3]) if node.has_input(3) else np.zeros((), np.int8)
        if data is None or point is None or data.dtype not in {np.dtype(np.int8), np.dtype(np.uint8)}:
            return None
        if point.size > 1:
            channels = 0 if node.op == "ConvInteger" else data.ndim - 1
            if point.ndim != 1 or data.ndim < 2 or point.size != data.shape[channels]:
                return None
            point = point.reshape(-1, *(1,) * (data.ndim - 1 - channels))
        elif point.size == 1:
            point = point.reshape(())
        else:
            return None
        return (data.astype(np.int32) - point.astype(np.int32)).astype(np.float32)

    def _multiply(self, node: Node) -> None:
        weights = self._weights(node)
        assert weights is not None
        name = self._names.take(f"{node.output}_float32")
        self._numbers[node.output] = name
        inputs = (self._numbers[node.source], self._constant(node, "weights", weights))
        self._nodes.append(replace(node, op=_PRODUCTS[node.op], inputs=inputs, outputs=(name,)))

    def _quantise(self, node: Node) -> None:
        """Add the nodes that compute the scale, and the integers less the zero point."""
        zero, steps = self._number(node, "zero", 0), self._number(node, "steps", 255)
        one, negative = self._number(node, "one", 1), self._number(node, "negative", -1)
        largest = self._made(
            node, "Max", "largest", self._made(node, "ReduceMax", "maximum", node.source, keepdims=0), zero
        )
        least = self._made(
            node, "Min", "least", self._made(node, "ReduceMin", "minimum", node.source, keepdims=0), zero
        )
        extent = self._made(node, "Sub", "range", largest, least)
        step = self._made(node, "Div", "step", extent, steps)
        empty = self._made(node, "Equal", "empty", extent, zero)
        scale = node.outputs[1] or self._names.take(f"{node.output}_scale")
        self._nodes.append(node.made("Where", (empty, one, step), scale))
        exact = self._made(node, "Div", "exact", self._made(node, "Mul", "negated", least, negative), scale)
        limited = self._made(node, "Min", "limited", self._made(node, "Max", "positive", exact, zero), steps)
        point = self._made(node, "Round", "point", limited)
        low = self._made(node, "Mul", "low", point, negative)
        high = self._made(node, "Sub", "high", steps, point)
        whole = self._made(node, "Round", "whole", self._made(node, "Div", "quotients", node.source, scale))
        raised = self._made(node, "Max", "raised", whole, low)
        self._numbers[node.output] = self._made(node, "Min", "integers", raised, high)

    def _made(self, node: Node, op: str, role: str, *inputs: str, **attributes: int) -> str:
        name = self._names.take(f"{node.output}_{role}")
        self._nodes.append(node.made(op, inputs, name, **attributes))
        return name

    def _number(self, node: Node, role: str, value: float) -> str:
        return self._constant(node, role, np.array(value, np.float32))
