# SPDX-License-Identifier: Apache-2.0
"""Computes layers that read only constants."""

from __future__ import annotations

import numpy as np

from ferrule.graph import GraphEditor, Layer, constant
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS


def fold_constants(editor: GraphEditor, layer: Layer, growth: float = 4.0) -> None:
    """Replace a layer whose inputs are all constants by its outputs, computed with the numpy kernel.

    A layer whose outputs take more than `growth` times the memory of its inputs stays, to save flash; and so does one
    that runs other graphs, whose loops may be long.
    """
    operator, names = OPERATORS.get(layer.type), layer.present_inputs
    if operator is None or operator.transfers or layer.descriptor.graphs or not names:
        return
    if not all(editor.tensor(name).is_constant for name in names) or any(map(editor.is_output, layer.outputs)):
        return  # a graph output must be written by a layer
    before = sum(editor.info(name).size_bytes for name in set(names))
    if sum(editor.info(name).size_bytes for name in layer.outputs) <= growth * before:
        _fold(editor, layer)


def _fold(editor: GraphEditor, layer: Layer) -> None:
    operands = Operands.of(editor, layer)
    arrays = [None if name is None else editor.tensor(name).data for name in layer.inputs]
    results = OPERATORS[layer.type].kernel(layer.descriptor, operands, arrays)
    editor.remove_layer(layer.name)
    for name, result in zip(layer.outputs, results, strict=True):
        editor.set_tensor(constant(editor.info(name), np.asarray(result, order="C")))
