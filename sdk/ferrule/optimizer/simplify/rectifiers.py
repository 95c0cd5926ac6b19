# SPDX-License-Identifier: Apache-2.0
"""Removes clamps that another clamp makes superfluous, and finds PRELU in the layers that converters make of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule.graph import DataType, GraphEditor, Layer, LayerType, Tensor, constant
from ferrule.operators.activation import Activation, fused_activation
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.rectify import PreluDescriptor
from ferrule.operators.table import OPERATORS
from ferrule.optimizer.simplify.acceptance import accepts, clamp_of
from ferrule.optimizer.simplify.movement import writer


def remove_clamps(editor: GraphEditor, layer: Layer) -> None:
    """Remove a RELU, RELU6 or RELU_N1_TO_1 behind a layer whose results are within its limits already.

    The pass applies only if the clamp keeps scale and zero point.
    """
    activation, before = clamp_of(editor, layer), writer(editor, layer)
    if activation is None or before is None or len(before.outputs) != 1:
        return
    operator = OPERATORS.get(before.type)
    inner = fused_activation(before.descriptor) or (None if operator is None else operator.clamp)
    if inner is not None and _is_within(inner, activation):
        editor.bypass(layer, before.outputs[0])


def _is_within(inner: Activation, outer: Activation) -> bool:
    """Whether the limits of one activation are within those of another."""
    (low, high), (outer_low, outer_high) = (
        (-np.inf if low is None else low, np.inf if high is None else high)
        for low, high in (inner.limits, outer.limits)
    )
    return bool(low >= outer_low and high <= outer_high)


def find_prelus(editor: GraphEditor, layer: Layer) -> None:
    """Replace RELU(x) + RELU(-x) * c, as which Keras writes PRELU, by PRELU of x with the factors -c.

    Only float32 has such layers, since NEG has no integer kernel. Every result is the same number: one of the two terms
    is zero, and negation is exact. A result of zero may have the other sign.
    """
    if layer.type is LayerType.ADD and layer.descriptor == BinaryDescriptor():
        for first, second in (layer.inputs, reversed(layer.inputs)):
            if first is not None and second is not None and _replace(editor, layer, first, second):
                break


def _replace(editor: GraphEditor, total: Layer, positive: str, negative: str) -> bool:
    """Replace an addition if its terms are those of a PRELU, and return whether they are."""
    rectified, product = editor.producer(positive), _only(editor, negative, LayerType.MUL)
    if rectified is None or rectified.type is not LayerType.RELU or product is None:
        return False
    factors, mirrored = _factors(editor, product)
    source = rectified.inputs[0]
    below = None if mirrored is None else _only(editor, mirrored, LayerType.RELU)
    negation = None if below is None or below.inputs[0] is None else _only(editor, below.inputs[0], LayerType.NEG)
    if negation is None or factors is None or factors.data is None or negation.inputs[0] != source or source is None:
        return False
    info, output = editor.info(source), editor.info(total.outputs[0])
    if info.dtype is not DataType.FLOAT32 or not np.isfinite(factors.data).all():
        return False
    slopes = replace(factors.info, name=editor.fresh(f"{factors.info.name}_negated"))
    found = replace(total, type=LayerType.PRELU, descriptor=PreluDescriptor(), inputs=(source, slopes.name))
    if not accepts(found, [info, slopes], [output]) or info.shape != output.shape:
        return False
    editor.set_tensor(constant(slopes, -factors.data))
    editor.replace_layer(found)
    return True


def _factors(editor: GraphEditor, product: Layer) -> tuple[Tensor | None, str | None]:
    """Return the constant and the other operand of a multiplication; None for each that it lacks."""
    if product.type is not LayerType.MUL or product.descriptor != BinaryDescriptor():
        return None, None
    first, second = product.inputs
    for one, other in ((first, second), (second, first)):
        if one is not None and editor.tensor(one).is_constant:
            return editor.tensor(one), other
    return None, None


def _only(editor: GraphEditor, tensor: str, type_: LayerType) -> Layer | None:
    """Return the layer that writes a tensor, if it is of that type and nothing else reads the tensor."""
    layer = editor.producer(tensor)
    return layer if layer is not None and layer.type is type_ and editor.only_consumer(tensor) is not None else None
