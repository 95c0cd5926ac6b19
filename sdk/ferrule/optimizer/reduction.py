# SPDX-License-Identifier: Apache-2.0
"""Converts float32 networks to float16 computation."""

from __future__ import annotations

from dataclasses import replace

from ferrule.errors import FerruleError
from ferrule.graph import DataType, Graph, GraphEditor, Layer, LayerType, TensorInfo
from ferrule.network.execution import operands_of
from ferrule.operators.interpreter import operator_of
from ferrule.operators.table import unary_layer
from ferrule.optimizer.conversion import NARROWING, WIDENING, converted

_CONVERSIONS = {LayerType.CONVERT_FP16_TO_FP32, LayerType.CONVERT_FP32_TO_FP16}


def reduce_to_fp16(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Return the graph with its float32 layers in float16 and conversions at the borders, and the layers left out.

    A float32 layer whose operator has no float16 kernel stays as it is; the second value maps its name to the reason.
    Inputs and outputs of the graph keep their types.
    """
    reasons = {layer.name: _refusal(graph, layer) for layer in graph.layers if _has_float32(graph, layer)}
    reducible = {name for name, reason in reasons.items() if not reason}
    kept = {name: reason for name, reason in reasons.items() if reason}
    return (_Reducer(graph, reducible).run() if reducible else graph), kept


class _Reducer:
    """Rewrites a graph layer by layer; each float32 tensor that a reduced layer reads or writes gets a float16 twin."""

    def __init__(self, graph: Graph, reducible: set[str]) -> None:
        self._reducible = reducible
        self._graph = graph
        self._editor = GraphEditor(graph)
        self._twins: dict[str, str] = {}

    def run(self) -> Graph:
        for layer in self._graph.layers:
            if layer.name in self._reducible:
                self._reduce(layer)
        return self._editor.finish()

    def _reduce(self, layer: Layer) -> None:
        inputs = tuple(None if name is None else self._narrow_input(name, layer) for name in layer.inputs)
        outputs = tuple(self._twin(name) if self._is_float32(name) else name for name in layer.outputs)
        self._editor.replace_layer(replace(layer, inputs=inputs, outputs=outputs))
        last = layer.name
        for wide, narrow in zip(layer.outputs, outputs, strict=True):
            readers = self._graph.consumers(wide)
            is_kept = self._editor.is_output(wide) or any(reader.name not in self._reducible for reader in readers)
            if wide != narrow and is_kept:
                name = self._editor.fresh(f"{wide}_fp32")
                self._editor.add_layer(unary_layer(name, WIDENING, narrow, wide), behind=last)
                last = name

    def _narrow_input(self, name: str, reader: Layer) -> str:
        if not self._is_float32(name):
            return name
        known = name in self._twins
        twin = self._twin(name)
        if not known and not self._editor.tensor(name).is_constant:
            self._editor.add_layer(unary_layer(twin, NARROWING, name, twin), before=reader.name)
        return twin

    def _twin(self, name: str) -> str:
        if name not in self._twins:
            twin = self._twins[name] = self._editor.fresh(f"{name}_fp16")
            self._editor.set_tensor(converted(self._editor.tensor(name), twin, DataType.FLOAT16))
        return self._twins[name]

    def _is_float32(self, name: str) -> bool:
        return self._editor.info(name).dtype is DataType.FLOAT32


def _has_float32(graph: Graph, layer: Layer) -> bool:
    operands = operands_of(graph, layer)
    infos = (*operands.inputs, *operands.outputs)
    return layer.type not in _CONVERSIONS and any(info is not None and info.dtype is DataType.FLOAT32 for info in infos)


def _refusal(graph: Graph, layer: Layer) -> str:
    """Return the reason why the layer cannot be computed in float16; "" if it can."""
    operands = operands_of(graph, layer)
    reduced = replace(
        operands,
        inputs=tuple(None if info is None else _reduced(info) for info in operands.inputs),
        outputs=tuple(_reduced(info) for info in operands.outputs),
    )
    try:
        operator_of(layer.type).accept(layer.descriptor, reduced)
    except FerruleError as error:
        return str(error)
    return ""


def _reduced(info: TensorInfo) -> TensorInfo:
    return replace(info, dtype=DataType.FLOAT16) if info.dtype is DataType.FLOAT32 else info
