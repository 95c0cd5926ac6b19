# SPDX-License-Identifier: Apache-2.0
"""Brings quantised models into one form: operators on stored integers, and conversions where they are needed.

Both forms of quantised models, QDQ and QOperator, become the same: operators with integers and scales are written as
operators on real numbers between DequantizeLinear and QuantizeLinear. These conversions are then merged into the
operators between them. What remains is computed in float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from ferrule.errors import ModelError, UnsupportedError, place
from ferrule.formats.onnx import moved, weights
from ferrule.formats.onnx.decomposed import normalisations
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
from ferrule.operators.interpreter import operator_of
from ferrule.operators.operator import Operands
from ferrule.operators.reductions.layer_normalization import LAYER_NORMALIZATION, normalization_of

_WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_NORMALIZATION = "LayerNormalization"
_ORDERING = frozenset({"ArgMax", "ArgMin", "Shape", "Size"})
"""The operators whose results depend on the shape of their first input, or on which elements are larger."""


class Arithmetic(StrEnum):
    """How the operators of a quantised model between DequantizeLinear and QuantizeLinear compute."""

    OPTIMISED = "optimised"
    """As onnxruntime does after its optimiser: fused with the conversions where that fuses them.

    Normalisations compute with the integers before them, without the conversions among their operators.
    """
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
    named: dict[str, str] = {}
    for node in graph.nodes:
        with place(node.where, node.key):
            if not node.output:
                raise ModelError("its first output has no name")
            if node.key in QUANTIZE and node.has_input(2) and node.inputs[2] in record.narrow:
                raise UnsupportedError("it quantises to less than 8 bits, expected int8 or uint8", hint=EIGHT_BITS)
            expansion = expanded(node, constants)
        nodes += expansion.nodes
        named |= expansion.types
    nodes = without_repetitions(nodes, kept, constants)
    fused: Mapping[str, str] = {}
    if arithmetic is Arithmetic.OPTIMISED:
        nodes = normalisations(nodes, constants, kept)
    rewriting = Rewriting(record, nodes, constants, folding)
    if arithmetic is Arithmetic.OPTIMISED:
        found = fusions(without_repetitions(graph.nodes, kept, constants), constants, frozenset(kept))
        rewriting.quantise_weights(found.weighted)
        fused = {**found.types, **{node.output: "int8" for node in nodes if node.key == _NORMALIZATION}}
    rewriting.move_conversions()
    result = _Pass(record, rewriting.nodes, constants, folding, {**fused, **named}).run()
    return replace(result, same={**graph.same, **result.same})


def without_repetitions(nodes: Sequence[Node], kept: set[str], constants: Mapping[str, Array]) -> list[Node]:
    """Return the nodes with one conversion in place of several that do the same."""
    names: dict[str, str] = {}
    found: dict[tuple[object, ...], str] = {}
    remaining = []
    for each in nodes:
        node = each.renamed(names)
        if node.key in QUANTIZE | DEQUANTIZE and node.inputs and node.output not in kept:
            parameters = (_identity(constants, name) for name in node.inputs[1:])
            key = (node.op, node.source, node.attributes.get("axis", 1), *parameters)
            first = found.setdefault(key, node.output)
            if first != node.output:
                names[node.output] = first
                continue
        remaining.append(node)
    return remaining


def _identity(constants: Mapping[str, Array], name: str) -> object:
    """Return what tells a parameter from others: its value if it is a number, otherwise its name."""
    data = constants.get(name)
    return name if data is None or data.size != 1 else (str(data.dtype), data.item())


class _Pass(Integers):
    """The rewriting of the nodes of one graph."""

    def run(self) -> Normalised:
        """Return the rewritten graph."""
        self._take_inputs()
        for node in self.given:
            if node.output in self.absorbed:
                continue
            with place(node.where, node.key):
                self._visit(node)
        for name in sorted(self.final):
            self.real(name)
        same = {name: held.name for name, held in self.reals.items() if held.data is None} | self.same
        return Normalised(nodes=tuple(self.nodes), constants=self.constants, types=self.types, same=same)

    def _take_inputs(self) -> None:
        """Take the quantisation of inputs of the graph from the nodes that read them."""
        known: dict[str, Node] = {}
        for node in reversed(self.given):
            if node.key in DEQUANTIZE and node.inputs:
                known[node.source] = node
            elif moved.moves(node) and node.output in known:
                known[node.source] = known[node.output]
        for value in self.record.inputs:
            reader, dtype = known.get(value.name), TYPES.get(value.type)
            if reader is None or dtype is None or value.name in self.constants:
                continue
            with place(reader.where, reader.key):
                encoding = self.encoding(reader, dtype.value)
                self.hold_given(value.name, encoding)

    def _type_of(self, node: Node) -> str:
        """Return the type of the integers that a node dequantises: that of the zero point, or as declared."""
        point = self.constants.get(node.inputs[2]) if node.has_input(2) else None
        if point is not None:
            return str(point.dtype)
        value = self.record.values.get(node.source)
        dtype = None if value is None else TYPES.get(value.type)
        return "uint8" if dtype is None else dtype.value

    def _visit(self, node: Node) -> None:
        if node.key in DEQUANTIZE | QUANTIZE:
            if not node.inputs:
                raise ModelError("it has no input or no output")
            (self._dequantize if node.key in DEQUANTIZE else self._quantize)(node)
        elif any(name in self.stored for name in node.inputs):
            self._on_integers(node)
        elif not any(name in self.reals for name in node.inputs):
            self._keep(node)
        elif node.key in _ORDERING and (held := self.reals.get(node.source)) is not None and held.data is None:
            self._keep(node.reading((held.name, *map(self.real, node.inputs[1:]))))
        else:
            merge = moved.merge_of(node)
            if not (self._compute(node) if merge is None else merge(node, self)):
                self._keep(node.reading(map(self.real, node.inputs)))

    def _keep(self, node: Node) -> None:
        for graph in node.graphs.values():
            for name in sorted(outer_names(graph)):
                self.real(name)
        self.nodes.append(node)

    # conversions

    def _dequantize(self, node: Node) -> None:
        source = node.source
        held, data = self.stored.get(source), self.constants.get(source)
        data = held.data if held is not None and held.data is not None else data
        if data is not None:
            encoding = self.encoding(node, str(data.dtype), data.shape)
            self.reals[node.output] = Held(source, encoding, data)
            return
        encoding = self.encoding(node, self._type_of(node) if held is None else held.encoding.type)
        held = held or self.hold_given(source, encoding)
        if held.encoding != encoding:
            raise UnsupportedError(
                f"tensor '{source}' has another scale or zero point than where it was quantised",
                hint="give both conversions the same parameters",
            )
        self.reals[node.output] = held

    def _quantize(self, node: Node) -> None:
        source, output = node.source, node.output
        data = self.numbers(source)
        encoding = self.encoding(node, None, () if data is None else data.shape)
        if data is not None:
            integers = self.quantised_data(data, encoding)
            self.stored[output] = Held(output, encoding, integers)
            if output in self.final:
                self.constants[output] = integers
            return
        expect_bytes(encoding)
        target = self.quantised(node, encoding)
        if source in self.reals:
            self.finish(target, self.converted(source, encoding))
            return
        made = replace(node, op="QuantizeLinear", domain="", inputs=(source,))
        self.add_for(target, made, Rounding.ONNX)

    # operators that compute

    def _compute(self, node: Node) -> bool:
        original = node
        node = self._with_bias(self._without_slopes(node))
        rules = _rules(node)
        target = self.target(node.output) if len(node.outputs) == 1 else None
        if target is None or Rounding.ONNX not in rules or (node.key == "Elu" and node.number("alpha", 1.0) != 1):
            return False
        if node.key == _NORMALIZATION:
            made = self._normalised(node, target)
        else:
            made = weights.on_integers(node, self) if node.key in _WEIGHTED else self._on_bytes(node, target)
        if made is None:
            return False
        self.same[node.output] = self.add_for(target, made, self._rule(original))
        self.absorbed.add(node.output)
        return True

    def _rule(self, node: Node) -> Rounding:
        """Return the rule by which an operator rounds: that of the fused one, or float32."""
        rules, fused = _rules(node), self.fused.get(node.output)
        if fused is None and node.key in FUSED and Rounding.ONNX_FLOAT in rules:
            return Rounding.ONNX_FLOAT
        return Rounding.ONNX_UINT8 if fused == "uint8" and Rounding.ONNX_UINT8 in rules else Rounding.ONNX

    def _without_slopes(self, node: Node) -> Node:
        """Return a PRelu that has one constant slope as LeakyRelu."""
        slope = self.numbers(node.inputs[1]) if node.key == "PRelu" and len(node.inputs) == 2 else None
        if slope is None or slope.size != 1 or not np.isfinite(slope).all():
            return node
        alpha = float(np.float32(slope.reshape(-1)[0]))
        return replace(node, op="LeakyRelu", inputs=node.inputs[:1], attributes={"alpha": alpha})

    def _with_bias(self, node: Node) -> Node:
        """Return a MatMul with the constant Add behind it as third input, its bias."""
        reader = self.single.get(node.output)
        if node.key != "MatMul" or len(node.inputs) != 2 or reader is None or reader.key != "Add":
            return node
        others = [name for name in reader.inputs if name != node.output]
        matrix = self.numbers(node.inputs[1])
        numbers = self.numbers(others[0]) if len(others) == 1 else None
        if numbers is None or matrix is None or matrix.ndim != 2 or numbers.shape != matrix.shape[1:]:
            return node
        return replace(node, inputs=(*node.inputs, others[0]), outputs=reader.outputs)

    def _on_bytes(self, node: Node, target: Target) -> Node | None:
        """Return a node with integers as inputs; None if it has to stay one of floats."""
        count = OPERATORS[node.key].least
        held = [self.reals.get(name) for name in node.inputs[:count]]
        found = [each for each in held if each is not None and each.encoding.is_byte]
        if len(found) != count or all(each.data is not None for each in found):
            return None
        if count == 2 and any(each.encoding.type != target.encoding.type for each in found):
            return None
        return node.reading((*map(self.integers, found), *map(self.real, node.inputs[count:])))

    def _normalised(self, node: Node, target: Target) -> Node | None:
        """Return a LayerNormalization of integers over the last axis; None if it has to stay one of floats."""
        held, numbers = self.reals.get(node.source), [self.numbers(name) for name in node.inputs[1:] if name]
        if node.output not in self.fused or held is None or held.data is not None or not held.encoding.is_byte:
            return None
        rows = [each for each in numbers if each is not None and each.ndim == 1 and each.size > 1]
        if node.integer("axis", -1) != -1 or not rows or len(rows) != len(numbers):
            return None
        gamma, *others = rows
        beta, epsilon = others[0] if others else np.zeros_like(gamma), node.number("epsilon", 1e-5)
        source, output = (each.encoding.stored().described(node.output, gamma.shape) for each in (held, target))
        try:
            normalization = normalization_of(gamma, beta, epsilon, source, output)
            LAYER_NORMALIZATION.accept(normalization, Operands((source,), (output,)))
        except UnsupportedError:
            return None
        return node.reading((self.integers(held), *map(self.real, node.inputs[1:])))

    # operators of the model that have integers as inputs

    def _on_integers(self, node: Node) -> None:
        held = self.stored.get(node.source)
        if held is None or any(name in self.stored for name in node.inputs[1:]) or not self._follow(node, held):
            raise UnsupportedError(
                "it computes with the integers of quantised tensors, not with the numbers for which they stand",
                hint="quantise the model in the form QDQ (quantize_static(..., quant_format=QuantFormat.QDQ))",
            )

    def _follow(self, node: Node, held: Held) -> bool:
        """Add a node that only moves, limits or counts the integers of its first input; return False for another."""
        encoding, moves = held.encoding, moved.moves(node)
        bounds = self.bounds(node) if node.key == "Clip" else None
        if held.data is not None and (moves or node.key == "Clip"):
            return moved.move_constant(node, held, self.stored, self)
        if node.key in _ORDERING:
            self._keep(node.reading((held.name, *node.inputs[1:])))
        elif moves:
            self._move_integers(node, held)
        elif node.key == "Pad":
            value = self.constants.get(node.inputs[2]) if node.has_input(2) else np.zeros((), encoding.type)
            if value is None or value.size != 1 or str(value.dtype) != encoding.type:
                raise ModelError(f"its value is no {encoding.type} constant")
            filling = self.constant(f"{node.output}_padding", value.reshape(()), encoding)
            self._move_integers(node.reading((*node.inputs[:2], filling, *node.inputs[3:])), held)
        elif bounds is not None:
            low, high = encoding.within(bounds)
            absorbed = frozenset(node.outputs)
            target = Target(output=node.output, encoding=encoding, low=low, high=high, absorbed=absorbed)
            self.finish(target, held.name)
        else:
            return False
        return True

    def _move_integers(self, node: Node, held: Held) -> None:
        encoding = held.encoding
        names = []
        for name in node.outputs:
            stored = self.new(f"{name}_int8") if name in self.final and encoding.offset else name
            names.append(stored)
            if name:
                self.types[stored] = encoding.stored()
                self.stored[name] = Held(stored, encoding)
        self.nodes.append(replace(node.reading((held.name, *node.inputs[1:])), outputs=tuple(names)))
        for name, stored in zip(node.outputs, names, strict=True):
            if name != stored:
                self.add("QuantizeLinear", (stored,), name, encoding.unsigned())


def _rules(node: Node) -> frozenset[Rounding]:
    """Return the rules of the layer of integers that computes an operator; none if there is no such layer."""
    row = OPERATORS.get(node.key)
    return frozenset() if row is None or row.layer is None else operator_of(row.layer).rules
