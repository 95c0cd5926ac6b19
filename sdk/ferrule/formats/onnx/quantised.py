# SPDX-License-Identifier: Apache-2.0
"""Brings quantised models into one form: operators on stored integers, and conversions where they are needed.

Both forms of quantised models, QDQ and QOperator, become the same: operators with integers and scales are written as
operators on real numbers between DequantizeLinear and QuantizeLinear. These conversions are then merged into the
operators between them. What remains is computed in float32.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from ferrule.errors import ModelError, UnsupportedError, place
from ferrule.formats.onnx import moved, weights
from ferrule.formats.onnx.encoding import DEQUANTIZE, EIGHT_BITS, QUANTIZE
from ferrule.formats.onnx.folding import Folding
from ferrule.formats.onnx.fusion import FUSED, fusions
from ferrule.formats.onnx.integers import Held, Integers, Target, expect_bytes
from ferrule.formats.onnx.node import GraphRecord, Node, outer_names
from ferrule.formats.onnx.normalise import Normalised
from ferrule.formats.onnx.operators import OPERATORS
from ferrule.formats.onnx.optimised import Rewriting
from ferrule.formats.onnx.parse import TYPES
from ferrule.formats.onnx.qlinear import EXPANSIONS, expanded
from ferrule.graph import Array, Rounding
from ferrule.network.execution import operator_of

_WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_BINARY = frozenset({"Add", "Div", "Mul", "PRelu", "Sub"})
_ORDERING = frozenset({"ArgMax", "ArgMin", "Shape", "Size"})
"""The operators whose results depend on the shape of their first input, or on which elements are larger."""


class Arithmetic(StrEnum):
    """How the operators of a quantised model between DequantizeLinear and QuantizeLinear compute."""

    OPTIMISED = "optimised"
    """As onnxruntime does after its optimiser: fused with the conversions where that fuses them."""
    AS_WRITTEN = "as-written"
    """As the file has it: each operator in float32, and the result quantised."""


def quantised(record: GraphRecord, graph: Normalised, folding: Folding, arithmetic: Arithmetic) -> Normalised:
    """Return a graph in which quantised tensors are stored as int8, and layers round by ONNX's rule.

    Raises:
        ModelError: the parameters of a quantisation do not fit.
        UnsupportedError: the model is quantised in a way that networks do not have; the message names the node.
    """
    keys = {node.key for node in graph.nodes}
    if not keys & (QUANTIZE | DEQUANTIZE | set(EXPANSIONS)):
        return graph
    constants, kept = dict(graph.constants), {value.name for value in record.outputs}
    nodes: list[Node] = []
    linear: set[str] = set()
    for node in graph.nodes:
        with place(node.where, node.key):
            if not node.outputs or not node.outputs[0]:
                raise ModelError("its first output has no name")
            if node.key in QUANTIZE and node.has_input(2) and node.inputs[2] in record.narrow:
                raise UnsupportedError("it quantises to less than 8 bits, expected int8 or uint8", hint=EIGHT_BITS)
            made = expanded(node, constants)
        nodes += made
        if node.key in EXPANSIONS:
            linear.update(name for each in made for name in each.outputs)
    nodes = without_repetitions(nodes, kept, constants)
    fused: Mapping[str, str] = {}
    rewriting = Rewriting(record, nodes, constants, folding)
    if arithmetic is Arithmetic.OPTIMISED:
        found = fusions(without_repetitions(graph.nodes, kept, constants), constants, frozenset(kept))
        rewriting.quantise_weights(found.weighted)
        fused = found.types
    rewriting.move_conversions()
    fused = {**fused, **_named(rewriting.nodes, linear, constants)}
    result = _Pass(Integers(record, rewriting.nodes, constants, folding), fused).run()
    return replace(result, same={**graph.same, **result.same})


def _named(nodes: Sequence[Node], linear: Container[str], constants: Mapping[str, Array]) -> dict[str, str]:
    """Return the types of integers of operators that name scales, by output."""
    points = {
        node.inputs[0]: constants.get(node.inputs[2]) for node in nodes if node.key in QUANTIZE and node.has_input(2)
    }
    found = {name: points.get(name) for node in nodes for name in node.outputs if name in linear}
    return {name: "uint8" if point is None else str(point.dtype) for name, point in found.items()}


def without_repetitions(nodes: Sequence[Node], kept: set[str], constants: Mapping[str, Array]) -> list[Node]:
    """Return the nodes with one conversion in place of several that do the same."""
    names: dict[str, str] = {}
    found: dict[tuple[object, ...], str] = {}
    remaining = []
    for each in nodes:
        node = replace(each, inputs=tuple(names.get(name, name) for name in each.inputs))
        if node.key in QUANTIZE | DEQUANTIZE and node.inputs and node.outputs and node.outputs[0] not in kept:
            parameters = (_identity(constants, name) for name in node.inputs[1:])
            key = (node.op, node.inputs[0], node.attributes.get("axis", 1), *parameters)
            first = found.setdefault(key, node.outputs[0])
            if first != node.outputs[0]:
                names[node.outputs[0]] = first
                continue
        remaining.append(node)
    return remaining


def _identity(constants: Mapping[str, Array], name: str) -> object:
    """Return what tells a parameter from others: its value if it is a number, otherwise its name."""
    data = constants.get(name)
    return name if data is None or data.size != 1 else (str(data.dtype), data.item())


class _Pass:
    """The rewriting of the nodes of one graph."""

    def __init__(self, tensors: Integers, fused: Mapping[str, str]) -> None:
        self._tensors = tensors
        self._fused = fused
        """The types of integers of operators that are fused with the conversions round them, by output."""

    def run(self) -> Normalised:
        """Return the rewritten graph."""
        tensors = self._tensors
        self._take_inputs()
        for node in tensors.given:
            if node.outputs and node.outputs[0] in tensors.absorbed:
                continue
            with place(node.where, node.key):
                self._visit(node)
        for name in sorted(tensors.final):
            tensors.real(name)
        same = {name: held.name for name, held in tensors.reals.items() if held.data is None} | tensors.same
        return Normalised(nodes=tuple(tensors.nodes), constants=tensors.constants, types=tensors.types, same=same)

    def _take_inputs(self) -> None:
        """Take the quantisation of inputs of the graph from the nodes that read them."""
        known: dict[str, Node] = {}
        for node in reversed(self._tensors.given):
            if not node.inputs or not node.outputs:
                continue
            if node.key in DEQUANTIZE:
                known[node.inputs[0]] = node
            elif moved.moves(node) and node.outputs[0] in known:
                known[node.inputs[0]] = known[node.outputs[0]]
        for value in self._tensors.record.inputs:
            reader, dtype = known.get(value.name), TYPES.get(value.type)
            if reader is None or dtype is None or value.name in self._tensors.constants:
                continue
            with place(reader.where, reader.key):
                encoding = self._tensors.encoding(reader, dtype.value)
                self._tensors.hold_given(value.name, encoding)

    def _type_of(self, node: Node) -> str:
        """Return the type of the integers that a node dequantises: that of the zero point, or as declared."""
        point = self._tensors.constants.get(node.inputs[2]) if node.has_input(2) else None
        if point is not None:
            return str(point.dtype)
        value = self._tensors.record.values.get(node.inputs[0])
        dtype = None if value is None else TYPES.get(value.type)
        return "uint8" if dtype is None else dtype.value

    def _visit(self, node: Node) -> None:
        tensors = self._tensors
        if node.key in DEQUANTIZE | QUANTIZE:
            if not node.inputs or not node.outputs:
                raise ModelError("it has no input or no output")
            (self._dequantize if node.key in DEQUANTIZE else self._quantize)(node)
        elif any(name in tensors.stored for name in node.inputs):
            self._on_integers(node)
        elif not any(name in tensors.reals for name in node.inputs):
            self._keep(node)
        elif node.key in _ORDERING and (held := tensors.reals.get(node.inputs[0])) is not None and held.data is None:
            self._keep(replace(node, inputs=(held.name, *map(tensors.real, node.inputs[1:]))))
        elif not self._merged(node):
            self._keep(replace(node, inputs=tuple(map(tensors.real, node.inputs))))

    def _keep(self, node: Node) -> None:
        for graph in node.graphs.values():
            for name in sorted(outer_names(graph)):
                self._tensors.real(name)
        self._tensors.nodes.append(node)

    def _merged(self, node: Node) -> bool:
        """Add the node on integers that does what one on real numbers does, if there is one."""
        return moved.merged(node, self._tensors) if moved.takes(node) else self._compute(node)

    # conversions

    def _dequantize(self, node: Node) -> None:
        tensors, source = self._tensors, node.inputs[0]
        held, data = tensors.stored.get(source), tensors.constants.get(source)
        data = held.data if held is not None and held.data is not None else data
        if data is not None:
            encoding = tensors.encoding(node, str(data.dtype), data.shape)
            tensors.reals[node.outputs[0]] = Held(source, encoding, data)
            return
        type_ = self._type_of(node) if held is None else held.encoding.type
        encoding = tensors.encoding(node, type_)
        if held is None:
            tensors.hold_given(source, encoding)
            held = tensors.stored[source]
        if held.encoding != encoding:
            raise UnsupportedError(
                f"tensor '{source}' has another scale or zero point than where it was quantised",
                hint="give both conversions the same parameters",
            )
        tensors.reals[node.outputs[0]] = held

    def _quantize(self, node: Node) -> None:
        tensors, (source, output) = self._tensors, (node.inputs[0], node.outputs[0])
        data = tensors.numbers(source)
        encoding = tensors.encoding(node, None, () if data is None else data.shape)
        if data is not None:
            integers = tensors.quantised_data(data, encoding)
            tensors.stored[output] = Held(output, encoding, integers)
            if output in tensors.final:
                tensors.constants[output] = integers
            return
        expect_bytes(encoding)
        target = tensors.quantised(node, encoding)
        if source in tensors.reals:
            tensors.finish(target, tensors.converted(source, encoding))
            return
        stored = tensors.name(target, Rounding.ONNX)
        tensors.nodes.append(replace(node, op="QuantizeLinear", domain="", inputs=(source,), outputs=(stored,)))
        tensors.finish(target, stored)

    # operators that compute

    def _compute(self, node: Node) -> bool:
        tensors, original = self._tensors, node
        node = self._with_bias(self._without_slopes(node))
        rules = _rules(node)
        target = tensors.target(node.outputs[0]) if len(node.outputs) == 1 else None
        if target is None or Rounding.ONNX not in rules or (node.key == "Elu" and node.number("alpha", 1.0) != 1):
            return False
        made = weights.on_integers(node, tensors) if node.key in _WEIGHTED else self._on_bytes(node, target)
        if made is None:
            return False
        rule = self._rule(original)
        stored = tensors.name(target, rule)
        tensors.nodes.append(replace(made, outputs=(stored,)))
        tensors.finish(target, stored)
        tensors.absorbed.add(node.outputs[0])
        tensors.same[node.outputs[0]] = stored
        return True

    def _rule(self, node: Node) -> Rounding:
        """Return the rule by which an operator rounds: that of the fused one, or float32."""
        rules, fused = _rules(node), self._fused.get(node.outputs[0])
        if fused is None and node.key in FUSED and Rounding.ONNX_FLOAT in rules:
            return Rounding.ONNX_FLOAT
        return Rounding.ONNX_UINT8 if fused == "uint8" and Rounding.ONNX_UINT8 in rules else Rounding.ONNX

    def _without_slopes(self, node: Node) -> Node:
        """Return a PRelu that has one constant slope as LeakyRelu."""
        slope = self._tensors.numbers(node.inputs[1]) if node.key == "PRelu" and len(node.inputs) == 2 else None
        if slope is None or slope.size != 1 or not np.isfinite(slope).all():
            return node
        alpha = float(np.float32(slope.reshape(-1)[0]))
        return replace(node, op="LeakyRelu", inputs=node.inputs[:1], attributes={"alpha": alpha})

    def _with_bias(self, node: Node) -> Node:
        """Return a MatMul with the constant Add behind it as third input, its bias."""
        reader = self._tensors.single.get(node.outputs[0])
        if node.key != "MatMul" or len(node.inputs) != 2 or reader is None or reader.key != "Add":
            return node
        others = [name for name in reader.inputs if name != node.outputs[0]]
        matrix = self._tensors.numbers(node.inputs[1])
        numbers = self._tensors.numbers(others[0]) if len(others) == 1 else None
        if numbers is None or matrix is None or matrix.ndim != 2 or numbers.shape != matrix.shape[1:]:
            return node
        return replace(node, inputs=(*node.inputs, others[0]), outputs=reader.outputs)

    def _on_bytes(self, node: Node, target: Target) -> Node | None:
        """Return a node with integers as inputs; None if it has to stay one of floats."""
        tensors, count = self._tensors, 2 if node.key in _BINARY else 1
        held = [tensors.reals.get(name) for name in node.inputs[:count]]
        found = [each for each in held if each is not None and each.encoding.is_byte]
        if len(found) != count or all(each.data is not None for each in found):
            return None
        if count == 2 and any(each.encoding.type != target.encoding.type for each in found):
            return None
        inputs = [*map(tensors.integers, found), *map(tensors.real, node.inputs[count:])]
        return replace(node, inputs=tuple(inputs))

    # operators of the model that have integers as inputs

    def _on_integers(self, node: Node) -> None:
        tensors = self._tensors
        held = tensors.stored.get(node.inputs[0])
        if any(name in tensors.stored for name in node.inputs[1:]):
            held = None
        if held is not None and held.data is not None and (moved.moves(node) or node.key == "Clip"):
            if moved.move_constant(node, held, tensors.stored, tensors):
                return
            held = None
        if held is not None and node.key in _ORDERING:
            self._keep(replace(node, inputs=(held.name, *node.inputs[1:])))
        elif held is not None and moved.moves(node):
            self._move_integers(node, held)
        elif held is not None and node.key == "Pad":
            value = tensors.constants.get(node.inputs[2]) if node.has_input(2) else np.zeros((), held.encoding.type)
            if value is None or value.size != 1 or str(value.dtype) != held.encoding.type:
                raise ModelError(f"its value is no {held.encoding.type} constant")
            filling = tensors.constant(f"{node.outputs[0]}_padding", value.reshape(()), held.encoding)
            self._move_integers(replace(node, inputs=(*node.inputs[:2], filling, *node.inputs[3:])), held)
        elif held is not None and node.key == "Clip" and (bounds := tensors.bounds(node)) is not None:
            low, high = held.encoding.within(bounds)
            target = Target(
                output=node.outputs[0], encoding=held.encoding, low=low, high=high, absorbed=frozenset(node.outputs)
            )
            tensors.finish(target, held.name)
        else:
            raise UnsupportedError(
                "it computes with the integers of quantised tensors, not with the numbers for which they stand",
                hint="quantise the model in the form QDQ (quantize_static(..., quant_format=QuantFormat.QDQ))",
            )

    def _move_integers(self, node: Node, held: Held) -> None:
        tensors, encoding = self._tensors, held.encoding
        names = []
        for name in node.outputs:
            stored = tensors.new(f"{name}_int8") if name in tensors.final and encoding.offset else name
            names.append(stored)
            if name:
                tensors.types[stored] = encoding.stored()
                tensors.stored[name] = Held(stored, encoding)
        tensors.nodes.append(replace(node, inputs=(held.name, *node.inputs[1:]), outputs=tuple(names)))
        for name, stored in zip(node.outputs, names, strict=True):
            if name != stored:
                tensors.add("QuantizeLinear", (stored,), name, encoding.unsigned())


def _rules(node: Node) -> frozenset[Rounding]:
    """Return the rules of the layer of integers that computes an operator; none if there is no such layer."""
    row = OPERATORS.get(node.key)
    return frozenset() if row is None or row.layer is None else operator_of(row.layer).rules
