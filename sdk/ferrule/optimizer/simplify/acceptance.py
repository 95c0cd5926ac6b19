# SPDX-License-Identifier: Apache-2.0
"""Checks a layer that a pass would write, and what a layer computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import FerruleError
from ferrule.graph import Array, GraphEditor, Layer, Rounding, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS

_EVERY_INT8 = np.arange(-128, 128).astype(np.int8)


def operands_in(editor: GraphEditor, layer: Layer) -> Operands:
    """Return the operands of a layer of a graph that is being rewritten."""
    return Operands(
        inputs=tuple(None if name is None else editor.info(name) for name in layer.inputs),
        outputs=tuple(editor.info(name) for name in layer.outputs),
        rounding=layer.rounding,
    )


def accepts(layer: Layer, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]) -> bool:
    """Whether the operator accepts the layer; a pass must never make a supported layer unsupported."""
    operands = Operands(inputs=tuple(inputs), outputs=tuple(outputs), rounding=layer.rounding)
    try:
        OPERATORS[layer.type].accept(layer.descriptor, operands)
    except FerruleError:
        return False
    return True


def only_clamps(editor: GraphEditor, layer: Layer, activation: Activation) -> bool:
    """Whether a layer with one input, whose output has the same type and quantisation, is the clamp of an activation.

    The TFLM rule clamps stored values. By the other rules a layer computes in float32, with limits that may round in
    another way, so that its results are compared.
    """
    if layer.rounding is Rounding.TFLM:
        return True
    low, high = activation_range(activation, editor.info(layer.outputs[0]))
    return bool(np.array_equal(_results(editor, layer), np.clip(_EVERY_INT8, low, high)))


def changes_nothing(editor: GraphEditor, layer: Layer) -> bool:
    """Whether a QUANTIZE whose output has the type and quantisation of its input returns every value unchanged."""
    return layer.rounding is Rounding.TFLM or bool(np.array_equal(_results(editor, layer), _EVERY_INT8))


def _results(editor: GraphEditor, layer: Layer) -> Array:
    """Return the results of an elementwise layer from int8 to int8, for every value."""
    operands = operands_in(editor, layer)
    flat = replace(
        operands,
        inputs=(replace(operands.input(0), shape=_EVERY_INT8.shape),),
        outputs=(replace(operands.output, shape=_EVERY_INT8.shape),),
    )
    return OPERATORS[layer.type].kernel(layer.descriptor, flat, [_EVERY_INT8])[0]
