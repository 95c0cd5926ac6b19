# SPDX-License-Identifier: Apache-2.0
"""Checks a layer that a pass would write, and what a layer computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ferrule.graph import GraphEditor, Layer, Rounding, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import activation_range
from ferrule.operators.operator import EVERY_INT8, Operands
from ferrule.operators.table import OPERATORS


def accepts(layer: Layer, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]) -> bool:
    """Whether the operator accepts the layer; a pass must never make a supported layer unsupported."""
    operands = Operands(tuple(inputs), tuple(outputs), rounding=layer.rounding)
    return OPERATORS[layer.type].accepts(layer.descriptor, operands)


def is_same(editor: GraphEditor, layer: Layer) -> bool:
    """Whether the first output of a layer has the shape, type and quantisation of its first input."""
    source, output = (editor.info(str(name)) for name in (layer.inputs[0], layer.outputs[0]))
    return replace(source, name=output.name) == output


def clamp_of(editor: GraphEditor, layer: Layer) -> Activation | None:
    """Return the activation that is all that a layer computes; None if it computes something else.

    That is so if it keeps scale and zero point. The TFLM rule clamps stored values. By the other rules a layer computes
    in float32, with limits that may round in another way, so that its results are compared.
    """
    operator = OPERATORS.get(layer.type)
    clamp = None if operator is None else operator.clamp
    if clamp is None or layer.inputs[0] is None or not is_same(editor, layer):
        return None
    if layer.rounding is Rounding.TFLM:
        return clamp
    flat = replace(editor.info(layer.outputs[0]), shape=EVERY_INT8.shape)
    operands = Operands((flat,), (flat,), rounding=layer.rounding)
    found = OPERATORS[layer.type].kernel(layer.descriptor, operands, [EVERY_INT8])[0]
    return clamp if np.array_equal(found, np.clip(EVERY_INT8, *activation_range(clamp, flat))) else None
