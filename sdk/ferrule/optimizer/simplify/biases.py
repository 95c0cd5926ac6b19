# SPDX-License-Identifier: Apache-2.0
"""Removes biases that change no result but let sums of products overflow."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ferrule.graph import Array, DataType, Graph, GraphEditor, Layer, Tensor
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS, having
from ferrule.operators.weighted import centred, has_one_result

_LARGEST_DIFFERENCE = 255
"""The largest magnitude of an int8 value minus its zero point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearBiases:
    """Make 0 the biases of dead channels of int8 layers with which a sum of products may leave 32 bits.

    In trained networks, a dead channel has a tiny scale and a bias at the limit of its type. If every sum of 32 bits
    has the same result, the bias has no effect.
    """

    name: str = "clear biases"

    def run(self, graph: Graph) -> Graph:
        """Return the graph with other constants for such biases."""
        editor = GraphEditor(graph)
        for layer in editor.layers():
            if layer.type not in having(weighted=True) or len(layer.inputs) != 3:
                continue
            weights, bias = (None if name is None else editor.tensor(name) for name in layer.inputs[1:])
            if weights is None or bias is None or weights.data is None or bias.data is None:
                continue
            if bias.info.dtype is DataType.INT32 and weights.info.dtype is DataType.INT8:
                _clear(editor, layer, weights, bias)
        return editor.finish()


def _clear(editor: GraphEditor, layer: Layer, weights: Tensor, bias: Tensor) -> None:
    operands = Operands.of(editor, layer)
    if operands.input(0).dtype is not DataType.INT8 or weights.data is None or bias.data is None:
        return
    axis = OPERATORS[layer.type].channel_axis
    assert axis is not None, "it is weighted"
    others = tuple(index for index in range(weights.data.ndim) if index != axis)
    magnitudes = np.abs(centred(weights.data, weights.info).astype(np.int64)).sum(axis=others)
    values = bias.data.astype(np.int64).reshape(-1)
    overflows = magnitudes * _LARGEST_DIFFERENCE + np.abs(values) >= 1 << 31
    if not overflows.any():
        return
    cleared = overflows & has_one_result(operands, axis) & (values != 0)
    if cleared.any():
        data: Array = np.where(cleared.reshape(bias.data.shape), 0, bias.data).astype(np.int32)
        data.setflags(write=False)
        info = replace(bias.info, name=editor.fresh(f"{bias.info.name}_cleared"))
        editor.set_tensor(Tensor(info=info, data=data))
        editor.replace_layer(replace(layer, inputs=(*layer.inputs[:2], info.name)))
