# SPDX-License-Identifier: Apache-2.0
"""Computes layers that read only constants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.graph import Graph, GraphEditor, Layer, Tensor
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldConstants:
    """Replace each layer whose inputs are all constants by its outputs, computed with the numpy kernel.

    A layer whose outputs take more than `growth` times the memory of its inputs stays, to save flash; and so does one
    that runs other graphs, whose loops may be long.
    """

    name: str = "fold constants"
    growth: float = 4.0

    def run(self, graph: Graph) -> Graph:
        """Return the graph with the constant layers replaced by their computed outputs."""
        editor = GraphEditor(graph)
        for layer in editor.layers():
            operator = OPERATORS.get(layer.type)
            if operator is None or operator.transfers or layer.descriptor.graphs:
                continue
            if self._folds(editor, layer):
                _fold(editor, layer)
        return editor.finish()

    def _folds(self, editor: GraphEditor, layer: Layer) -> bool:
        names = layer.present_inputs
        if not names or not all(editor.tensor(name).is_constant for name in names):
            return False
        if any(editor.is_output(name) for name in layer.outputs):
            return False  # a graph output must be written by a layer
        before = sum(editor.info(name).size_bytes for name in set(names))
        after = sum(editor.info(name).size_bytes for name in layer.outputs)
        return after <= self.growth * before


def _fold(editor: GraphEditor, layer: Layer) -> None:
    operands = Operands.of(editor, layer)
    arrays = [None if name is None else editor.tensor(name).data for name in layer.inputs]
    results = OPERATORS[layer.type].kernel(layer.descriptor, operands, arrays)
    editor.remove_layer(layer.name)
    for name, result in zip(layer.outputs, results, strict=True):
        data = np.ascontiguousarray(result)
        if data.flags.writeable:
            data.setflags(write=False)
        editor.set_tensor(Tensor(info=editor.info(name), data=data))
