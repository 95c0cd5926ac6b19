# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime's optimiser does with operators between conversions, in the configuration of docs/onnx.md.

It makes the zeros of a Pad part of the operator behind it, moves conversions over operators that only move elements,
turns int8 tensors between a QuantizeLinear and its only DequantizeLinear into uint8, and fuses an operator with the
conversions round it if all of them have the same type.
Everything here was measured with onnxruntime 1.32.0: `tests/support/onnx_fusion.py` compares it on random graphs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.formats.onnx.encoding import DEQUANTIZE, QUANTIZE
from ferrule.formats.onnx.node import Node, clip_bounds, outer_names
from ferrule.graph import Array
from ferrule.graph.real_values import saturated

FUSED: Mapping[str, int] = {"Add": 2, "AveragePool": 1, "GlobalAveragePool": 1, "Mul": 2, "Softmax": 1}
"""The operators whose results depend on whether they are fused, and the number of their inputs."""
_PADDED = frozenset({"AveragePool", "Conv"})
"""The operators that take over the zeros of a Pad before them."""
WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm"})
"""The operators whose float32 weights are quantised if they stand between conversions."""
MOVING = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
"""The operators over which conversions are moved."""
CLAMPS = frozenset({"Relu", "Clip"})
"""The operators that only limit elements."""
_NARROW = (-64, 63)
"""int8 constants within these limits do not become uint8."""
_NEAR = float(np.finfo(np.float32).eps)
"""How far inside of the range of a QuantizeLinear a limit of Clip may lie."""


@dataclass(slots=True, eq=False)
class _Step:
    """A node while conversions are moved."""

    op: str
    """The operator, or one of `_QUANTIZE` and `_DEQUANTIZE`."""
    inputs: list[str]
    output: str
    parameters: tuple[str, ...] = ()
    """The scale and the zero point of a conversion."""


_Edge = tuple[_Step, int]
"""A reader of a tensor, and the position of the input; -1 for a graph inside of the reader."""
_QUANTIZE, _DEQUANTIZE, _PAD = "Q", "DQ", "Pad"


@frozen
class Fusions:
    """What the optimiser does, by names of outputs in the model."""

    types: Mapping[str, str]
    """int8 or uint8 for each operator of `FUSED` that is fused with the conversions round it."""
    weighted: frozenset[str]
    """The operators of `WEIGHTED` between conversions, whose constants are quantised."""


def fusions(nodes: Sequence[Node], constants: Mapping[str, Array], outputs: frozenset[str]) -> Fusions:
    """Return what becomes of the nodes of a graph, of which no two do the same."""
    graph = _Graph(nodes, constants, outputs)
    graph.merge_padding()
    graph.separate()
    graph.move_forward()
    graph.move_backward()
    graph.separate()
    types = {step.output: graph.type_of(step) for step in graph.steps if step.op in FUSED}
    weighted = {step.output for step in graph.steps if step.op in WEIGHTED and graph.is_between(step)}
    return Fusions(types={name: each for name, each in types.items() if each}, weighted=frozenset(weighted))


class _Graph:
    """The steps of a graph and who reads their tensors."""

    def __init__(self, nodes: Sequence[Node], constants: Mapping[str, Array], outputs: frozenset[str]) -> None:
        self.steps: list[_Step] = []
        self._constants = constants
        self._outputs = outputs
        self._stored = dict(constants)
        """Constants, among them those that a QuantizeLinear makes."""
        self._makers: dict[str, _Step] = {}
        self._readers: defaultdict[str, list[_Edge]] = defaultdict(list)
        self._new = 0
        for node in nodes:
            self._take(node)

    def _take(self, node: Node) -> None:
        kind = _QUANTIZE if node.key in QUANTIZE else _DEQUANTIZE if node.key in DEQUANTIZE else node.key
        kept = 1 if node.key in QUANTIZE | DEQUANTIZE else len(node.inputs)
        if kind == _PAD and not self._is_zero_padding(node):
            kind = "Pad of other values"
        step = _Step(kind, list(node.inputs[:kept]), node.output, tuple(node.inputs[kept:]))
        data = self._constants.get(node.source) if kind == _QUANTIZE else None
        if data is not None and self._is_constant(step):
            self._stored[step.output] = self._quantised(step, data)
            return
        self._add(step)
        for name in node.outputs[1:]:
            self._makers[name] = step
        for graph in node.graphs.values():
            for name in outer_names(graph):
                self._readers[name].append((step, -1))

    def _is_zero_padding(self, node: Node) -> bool:
        value = self._constants.get(node.inputs[2]) if node.has_input(2) else np.zeros(1)
        return node.text("mode", "constant") == "constant" and value is not None and not value.any()

    def _quantised(self, step: _Step, data: Array) -> Array:
        scale, zero = self._parameters(step)
        with np.errstate(all="ignore"):
            steps = np.nan_to_num(np.rint(data.astype(np.float64) / scale))
        return saturated(steps + zero, zero.dtype)

    def _parameters(self, step: _Step) -> tuple[Any, Any]:
        """Return the only scale and the only zero point of a conversion as numbers of their types."""
        point = self._zero_point(step)
        zero = np.zeros(1, np.uint8) if point is None else point.reshape(-1)
        return self._constants[step.parameters[0]].reshape(-1)[0], zero[0]

    def _add(self, step: _Step) -> None:
        self.steps.append(step)
        self._makers[step.output] = step
        for position, name in enumerate(step.inputs):
            self._readers[name].append((step, position))

    def _only_edge(self, name: str) -> _Edge | None:
        """Return the only use of a tensor; an output of the graph has another one."""
        edges = self._readers[name]
        return edges[0] if len(edges) == 1 and name not in self._outputs else None

    def _is_constant(self, step: _Step) -> bool:
        """Whether a conversion has constants of one element as its scale and zero point."""
        found = [self._constants.get(name) for name in step.parameters if name]
        if not found or any(each is None or each.size != 1 for each in found):
            return False
        return all(each is None or each.dtype.kind in "iu" for each in found[1:])

    def _zero_point(self, step: _Step) -> Array | None:
        return self._constants.get(step.parameters[1]) if len(step.parameters) > 1 else None

    def merge_padding(self) -> None:
        """Let operators with padding of their own read what a Pad reads."""
        for step in [each for each in self.steps if each.op == _PAD]:
            edge = self._only_edge(step.output)
            if edge is not None and edge[0].op in _PADDED and edge[1] == 0:
                reader, source = edge[0], step.inputs[0]
                reader.inputs[0] = source
                self._readers[source] = [each for each in self._readers[source] if each[0] is not step]
                self._readers[source].append(edge)
                self._readers[step.output].clear()
                self.steps.remove(step)

    # conversions move

    def _redirect(self, name: str, edges: Sequence[_Edge], made: Sequence[_Step]) -> None:
        """Let the readers of a tensor read the outputs of conversions instead, one each."""
        moved = {(id(step), position) for step, position in edges}
        self._readers[name] = [each for each in self._readers[name] if (id(each[0]), each[1]) not in moved]
        for (reader, position), step in zip(edges, made, strict=True):
            reader.inputs[position] = step.output
            self._readers[step.output].append((reader, position))

    def _made(self, kind: str, source: str, parameters: tuple[str, ...]) -> _Step:
        self._new += 1
        step = _Step(kind, [source], f"{source}\n{self._new}", parameters)
        self._add(step)
        return step

    def _insert(self, name: str, edges: Sequence[_Edge], parameters: tuple[str, ...]) -> None:
        """Put a QuantizeLinear behind a tensor, and a DequantizeLinear before each of some readers."""
        stored = self._made(_QUANTIZE, name, parameters)
        self._redirect(name, edges, [self._made(_DEQUANTIZE, stored.output, parameters) for _ in edges])

    def separate(self) -> None:
        """Give each reader of a DequantizeLinear one of its own."""
        for step in [each for each in self.steps if each.op == _DEQUANTIZE]:
            edges = [each for each in self._readers[step.output] if each[1] >= 0]
            shared = step.output in self._outputs or len(edges) < len(self._readers[step.output])
            others = edges if shared else edges[1:]
            made = [self._made(_DEQUANTIZE, step.inputs[0], step.parameters) for _ in others]
            self._redirect(step.output, others, made)

    def move_forward(self) -> None:
        """Repeat the conversions of a tensor behind the operators that move its elements."""
        for step in [each for each in self.steps if each.op == _DEQUANTIZE and self._is_constant(each)]:
            edge = self._only_edge(step.output)
            waiting = [] if edge is None else [edge]
            while waiting:
                reader, position = waiting.pop()
                if reader.op not in MOVING or position != 0 or reader.output in self._outputs:
                    continue
                found = [each for each in self._readers[reader.output] if each[0].op != _QUANTIZE and each[1] >= 0]
                if found:
                    self._insert(reader.output, found, step.parameters)
                    waiting += found

    def move_backward(self) -> None:
        """Repeat the conversions of a tensor before the operators that moved its elements."""
        for step in [each for each in self.steps if each.op == _QUANTIZE and self._is_constant(each)]:
            name = step.inputs[0]
            while self._only_edge(name) is not None:
                maker = self._makers.get(name)
                if maker is None or maker.op not in MOVING:
                    break
                name = maker.inputs[0]
                source, edge = self._makers.get(name), self._only_edge(name)
                if source is None or source.op == _DEQUANTIZE or edge is None:
                    break
                self._insert(name, [edge], step.parameters)

    # what is fused

    def type_of(self, step: _Step) -> str | None:
        """Return the type of integers with which an operator is fused; None if it stays one of float32."""
        makers = [self._makers.get(name) for name in step.inputs]
        after, clamps = self._quantize_behind(step)
        if after is None or len(makers) != FUSED[step.op] or not all(self._is_implied(each, after) for each in clamps):
            return None
        types = {self._integers(after, after.output)}
        for name, maker in zip(step.inputs, makers, strict=True):
            if maker is None or maker.op != _DEQUANTIZE or self._only_edge(name) is None:
                return None
            types.add(self._integers(maker, maker.inputs[0]))
        return types.pop() if len(types) == 1 else None

    def is_between(self, step: _Step) -> bool:
        """Whether an operator stands between conversions, with clamps before the second one."""
        before = self._makers.get(step.inputs[0])
        return before is not None and before.op == _DEQUANTIZE and self._quantize_behind(step)[0] is not None

    def _quantize_behind(self, step: _Step) -> tuple[_Step | None, list[_Step]]:
        """Return the only reader of an operator's result that is a QuantizeLinear, and the clamps before it."""
        clamps: list[_Step] = []
        while (edge := self._only_edge(step.output)) is not None and edge[1] == 0:
            step = edge[0]
            if step.op == _QUANTIZE:
                return step, clamps
            if step.op not in CLAMPS or step in clamps:
                break
            clamps.append(step)
        return None, clamps

    def _is_implied(self, clamp: _Step, conversion: _Step) -> bool:
        """Whether a clamp changes nothing, because of the range of a QuantizeLinear behind it."""
        if not self._is_constant(conversion):
            return False
        scale, point = self._parameters(conversion)
        limits, zero = np.iinfo(point.dtype), int(point)
        if clamp.op == "Relu":
            return zero == limits.min
        ends = [float(np.float32(scale) * np.float32(end - zero)) for end in (limits.min, limits.max)]
        bounds = clip_bounds(clamp.inputs, self._constants.get)
        return bounds is not None and bounds[0] - ends[0] <= _NEAR and ends[1] - bounds[1] <= _NEAR

    def _integers(self, conversion: _Step, name: str) -> str:
        """Return the type of the integers that a conversion makes or reads."""
        data, point = self._stored.get(name), self._zero_point(conversion)
        if data is not None:
            wide = data.dtype == np.int8 and (data.min(initial=0) < _NARROW[0] or data.max(initial=0) > _NARROW[1])
            return "uint8" if wide else str(data.dtype)
        own = "uint8" if point is None else str(point.dtype)
        maker, edge = self._makers.get(name), self._only_edge(name)
        if own != "int8" or maker is None or edge is None:
            return own
        points = [self._zero_point(each) for each in (maker, edge[0])]  # None of an operator that is no conversion
        values = {None if each is None or each.size != 1 else int(each.reshape(-1)[0]) for each in points}
        return "uint8" if len(values) == 1 and None not in values else own
