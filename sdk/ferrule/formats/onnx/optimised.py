# SPDX-License-Identifier: Apache-2.0
"""Rewrites a quantised graph as onnxruntime's optimiser does, where that decides which integers come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from ferrule.formats.onnx.demand import quantised_before
from ferrule.formats.onnx.encoding import DEQUANTIZE
from ferrule.formats.onnx.folding import Folding
from ferrule.formats.onnx.fusion import MOVING
from ferrule.formats.onnx.integers import names_of
from ferrule.formats.onnx.node import GraphRecord, Node
from ferrule.graph import Array
from ferrule.graph.tensor import read_only

_INT8 = np.iinfo(np.int8)
_INT32 = np.iinfo(np.int32)


class Rewriting:
    """The nodes of one graph and the constants that are made for them."""

    def __init__(
        self, record: GraphRecord, nodes: Sequence[Node], constants: dict[str, Array], folding: Folding
    ) -> None:
        self.nodes = list(nodes)
        self._record = record
        self._constants = constants
        self._folding = folding
        self._makers = {name: node for node in nodes for name in node.outputs}
        self._names = names_of(record, nodes, constants)
        self._weights: dict[str, tuple[str, ...]] = {}
        """The integers, the scale and the zero point of float32 weights, by name."""

    # conversions before operators that move elements

    def move_conversions(self) -> None:
        """Quantise before operators that move elements what is quantised behind them."""
        found = quantised_before(self._record, self.nodes, self._constants)
        made: list[Node] = []
        renamed: dict[str, str] = {}

        def convert(name: str) -> None:
            stored, renamed[name] = self._names.take(f"{name}_quantised"), self._names.take(f"{name}_dequantised")
            made.append(node.made("QuantizeLinear", (name, *found[name]), stored, axis=1))
            made.append(node.made("DequantizeLinear", (stored, *found[name]), renamed[name], axis=1))

        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name in found and name not in renamed and name not in self._makers:
                    convert(name)
            made.append(node.renamed(renamed))
            for name in node.outputs:
                if name in found:
                    convert(name)
        self.nodes = made

    # weights and biases of float32

    def quantise_weights(self, weighted: frozenset[str]) -> None:
        """Quantise the constant weights and biases of operators, by name of their outputs."""
        made: list[Node] = []
        for node in self.nodes:
            between = node.output in weighted and len(node.inputs) > 1
            scale = self._data_scale(node) if between else None
            made.append(node if scale is None else self._with_integers(node, scale, made))
        self.nodes = made

    def _data_scale(self, node: Node) -> Array | None:
        """Return the only scale of the data; None if there is no such constant."""
        maker = self._makers.get(node.source)
        while maker is not None and maker.key in MOVING and maker.inputs:
            maker = self._makers.get(maker.source)
        scale = self._scale(maker)
        return scale if scale is not None and scale.size == 1 and scale.dtype == np.float32 else None

    def _scale(self, node: Node | None) -> Array | None:
        """Return the scale of a DequantizeLinear; None for other nodes."""
        if node is None or node.key not in DEQUANTIZE or len(node.inputs) < 2:
            return None
        return self._constants.get(node.inputs[1])

    def _with_integers(self, node: Node, data_scale: Array, made: list[Node]) -> Node:
        weights, maker = self._constants.get(node.inputs[1]), self._makers.get(node.inputs[1])
        bias = self._constants.get(node.inputs[2]) if node.has_input(2) else None
        if node.has_input(2) and not (_is_real(bias) and bias.ndim == 1):
            return node
        inputs = list(node.inputs)

        def dequantise(position: int, names: Sequence[str], axis: int) -> None:
            inputs[position] = self._names.take(f"{node.inputs[position]}_dequantised")
            made.append(node.made("DequantizeLinear", names, inputs[position], axis=axis))

        scale = self._scale(maker)
        if _is_real(weights) and weights.size:
            names = self._quantised_weights(node.inputs[1], weights)
            scale = self._constants[names[1]]
            dequantise(1, names, 1)
        elif maker is None or scale is None or not self._fits(node, maker, scale, 0 if bias is None else bias.size):
            return node
        if bias is not None and (names := self._quantised_bias(node.inputs[2], bias, data_scale, scale)):
            dequantise(2, names, 0)
        return node.reading(inputs)

    def _fits(self, node: Node, maker: Node, scale: Array, channels: int) -> bool:
        """Whether the weights have one scale, or as many as the bias has elements, along the axis of the results."""
        axis = 1 if node.op == "Gemm" and not node.flag("transB") else 0
        return scale.size == 1 or (
            scale.shape == (channels,) and not maker.flag("block_size") and maker.integer("axis", 1) == axis
        )

    def _quantised_weights(self, name: str, data: Array) -> tuple[str, ...]:
        """Return the names of integers, scale and zero point, which span the weights and 0 in 256 steps."""
        if name not in self._weights:
            self._folding.spend(data.shape)
            low, high = np.minimum(data.min(), np.float32(0)), np.maximum(data.max(), np.float32(0))
            with np.errstate(all="ignore"):
                scale = np.float32(1) if low == high else np.float32((high - low) / np.float32(255))
                point = np.rint(np.clip(np.float32(_INT8.min) - low / scale, _INT8.min, _INT8.max))
                steps = np.nan_to_num(np.rint(data / scale).astype(np.float64)) + np.nan_to_num(np.float64(point))
            roles: dict[str, Array] = {
                "quantised": np.clip(steps, _INT8.min, _INT8.max).astype(np.int8),
                "scale": np.asarray(scale),
                "zero_point": np.asarray(np.nan_to_num(point), np.int8),
            }
            self._weights[name] = tuple(self._constant(f"{name}_{role}", each) for role, each in roles.items())
        return self._weights[name]

    def _quantised_bias(self, name: str, data: Array, data_scale: Array, scale: Array) -> tuple[str, ...]:
        """Return the names of integers and scale; nothing if the integers do not fit."""
        with np.errstate(all="ignore"):
            steps = np.asarray(data_scale.reshape(()) * scale.reshape(-1 if scale.size > 1 else ()), np.float32)
            whole = np.rint(data / steps).astype(np.float64)
        if not np.isfinite(whole).all() or whole.min(initial=0) < _INT32.min or whole.max(initial=0) > _INT32.max:
            return ()
        return (
            self._constant(f"{name}_quantised", whole.astype(np.int32)),
            self._constant(f"{name}_scale", steps),
        )

    def _constant(self, wanted: str, data: Array) -> str:
        name = self._names.take(wanted)
        self._constants[name] = read_only(data)
        return name


def _is_real(data: Array | None) -> TypeGuard[Array]:
    """Whether a tensor is a constant of finite float32 numbers."""
    return data is not None and data.dtype == np.float32 and bool(np.isfinite(data).all())
