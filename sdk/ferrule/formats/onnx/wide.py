# SPDX-License-Identifier: Apache-2.0
"""Conversions to 16 bits and back, as float32 operators with the same results.

A QuantizeLinear whose integers are read by DequantizeLinear alone only rounds and limits: all integers of 16 bits are
float32 numbers. Constants of 16 bits become those that they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.budget import hold
from ferrule.formats.onnx.encoding import DEQUANTIZE, QUANTIZE
from ferrule.formats.onnx.node import GraphRecord, Node
from ferrule.formats.onnx.normalise import Normalised
from ferrule.formats.onnx.rewriting import Rewriting
from ferrule.graph import Array
from ferrule.graph.real_values import overflowing_floats
from ferrule.graph.tensor import read_only

_TYPES: Mapping[int, str] = {4: "uint16", 5: "int16"}
"""The types of 16 bits, by their number in the enum TensorProto.DataType."""


@frozen
class _Conversion:
    """What a node states of integers of 16 bits."""

    type: str
    scale: Array
    zero_point: Array

    def equals(self, other: _Conversion | None) -> bool:
        return (
            other is not None
            and self.type == other.type
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
        )


def without_wide(record: GraphRecord, graph: Normalised) -> Normalised:
    """Return the nodes of a graph without conversions to 16 bits and back, and without constants of 16 bits.

    What is left of them, such as inputs and outputs of 16 bits, is refused when the nodes become layers.
    """
    return _Rewriting(record, graph).run()


class _Rewriting(Rewriting):
    def __init__(self, record: GraphRecord, graph: Normalised) -> None:
        super().__init__(record, graph)
        self._rounded: dict[str, tuple[str, _Conversion]] = {}
        """By tensor of 16 bits: the float32 tensor of its integers, less the zero point."""

    def run(self) -> Normalised:
        nodes: list[Node] = []
        for node in self._graph.nodes:
            made = self._made(node)
            nodes += [node] if made is None else made
        return replace(self._graph, nodes=tuple(nodes), constants=self._constants)

    def _made(self, node: Node) -> list[Node] | None:
        """Return the nodes in place of one; None if it stays."""
        if node.key in QUANTIZE:
            return self._round(node)
        if node.key not in DEQUANTIZE:
            return None
        if node.source in self._rounded:
            name, conversion = self._rounded[node.source]
            return [node.made("Mul", (name, self._constant(node, "scale", conversion.scale.reshape(()))), node.output)]
        data = self._constants.get(node.source)
        conversion_of = None if data is None else self._conversion(node, str(data.dtype))
        if data is None or conversion_of is None:
            return None
        real = _real(node, data, conversion_of)
        if real is None:
            return None
        hold(real.nbytes, f"the constant '{node.output}'")
        self._constants[node.output] = read_only(real)
        return []

    def _round(self, node: Node) -> list[Node] | None:
        found = self._conversion(node, "")
        readers = self._readers.get(node.output, [])
        if found is None or found.scale.size != 1 or node.output in self._kept or not readers:
            return None
        if not all(each.key in DEQUANTIZE and found.equals(self._conversion(each, found.type)) for each in readers):
            return None
        limits, point = np.iinfo(found.type), int(found.zero_point.item())
        steps, whole, name = (self._names.take(f"{node.output}_{each}") for each in ("steps", "whole", "integers"))
        low, high = (
            self._constant(node, role, np.array(limit - point, np.float32))
            for role, limit in (("lowest", limits.min), ("highest", limits.max))
        )
        self._rounded[node.output] = name, found
        return [
            node.made("Div", (node.source, self._constant(node, "scale", found.scale.reshape(()))), steps),
            node.made("Round", (steps,), whole),
            node.made("Clip", (whole, low, high), name),
        ]

    def _conversion(self, node: Node, type_: str) -> _Conversion | None:
        """Return what a node states; None unless it is constant and of 16 bits."""
        scale = self._constants.get(node.inputs[1]) if node.has_input(1) else None
        point = self._constants.get(node.inputs[2]) if node.has_input(2) else None
        found = type_ or (_TYPES.get(node.integer("output_dtype", 0), "") if point is None else str(point.dtype))
        if point is None and not node.has_input(2) and scale is not None and found in _TYPES.values():
            point = np.zeros(scale.shape, found)
        if scale is None or point is None or found not in _TYPES.values() or node.flag("block_size"):
            return None
        if scale.dtype != np.float32 or point.dtype != found or point.size != scale.size or not np.all(scale > 0):
            return None
        return _Conversion(type=found, scale=scale, zero_point=point) if np.all(np.isfinite(scale)) else None


def _real(node: Node, data: Array, found: _Conversion) -> Array | None:
    """Return the numbers for which constant integers stand; None if the scales do not fit them."""
    shape = [1] * data.ndim
    if found.scale.size > 1:
        axis = node.integer("axis", 1)
        if not -data.ndim <= axis < data.ndim or data.shape[axis] != found.scale.size:
            return None
        shape[axis] = found.scale.size
    with overflowing_floats():
        whole = data.astype(np.int32) - found.zero_point.astype(np.int32).reshape(shape)
        return np.asarray(whole.astype(np.float32) * found.scale.reshape(shape), np.float32)
