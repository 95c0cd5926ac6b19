# SPDX-License-Identifier: Apache-2.0
"""Removes biases that change no result but let sums of products overflow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule.graph import Array, DataType, GraphEditor, Layer, constant
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.products import centred, has_one_result

_LARGEST_DIFFERENCE = 255
"""The largest magnitude of an int8 value minus its zero point."""


def clear_biases(editor: GraphEditor, layer: Layer) -> None:
    """Make 0 the biases of dead channels of int8 layers with which a sum of products may leave 32 bits.

    In trained networks, a dead channel has a tiny scale and a bias at the limit of its type. If every sum of 32 bits
    has the same result, the bias has no effect.
    """
    axis = OPERATORS[layer.type].channel_axis if layer.type in OPERATORS else None
    if axis is None or len(layer.inputs) != 3 or None in layer.inputs:
        return
    operands = Operands.of(editor, layer)
    weights, bias = (editor.tensor(name) for name in layer.present_inputs[1:])
    types = (operands.source.dtype, weights.info.dtype, bias.info.dtype)
    if weights.data is None or bias.data is None or types != (DataType.INT8, DataType.INT8, DataType.INT32):
        return
    others = tuple(index for index in range(weights.data.ndim) if index != axis)
    magnitudes = np.abs(centred(weights.data, weights.info).astype(np.int64)).sum(axis=others)
    values = bias.data.astype(np.int64).reshape(-1)
    overflows = magnitudes * _LARGEST_DIFFERENCE + np.abs(values) >= 1 << 31
    if not overflows.any():
        return
    cleared = overflows & has_one_result(operands, axis) & (values != 0)
    if cleared.any():
        data: Array = np.where(cleared.reshape(bias.data.shape), 0, bias.data).astype(np.int32)
        info = replace(bias.info, name=editor.fresh(f"{bias.info.name}_cleared"))
        editor.set_tensor(constant(info, data))
        editor.replace_layer(replace(layer, inputs=(*layer.inputs[:2], info.name)))
