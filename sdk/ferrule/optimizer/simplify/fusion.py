# SPDX-License-Identifier: Apache-2.0
"""Fuses activations and pads into the layers beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ferrule.graph import Descriptor, GraphEditor, Layer
from ferrule.operators.activation import Activation, fused_activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.movement.pad import PadDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.optimizer.simplify.acceptance import accepts, clamp_of
from ferrule.optimizer.simplify.movement import writer

_Padded = Conv2dDescriptor | DepthwiseConv2dDescriptor


def fuse_activations(editor: GraphEditor, layer: Layer) -> None:
    """Fuse RELU, RELU6 and RELU_N1_TO_1 into the layer before them, as its activation.

    The pass applies only if the activation keeps scale and zero point: clamping once, at the tighter limits, then
    yields the same bits as clamping twice.
    """
    activation, before = clamp_of(editor, layer), writer(editor, layer)
    if activation is None or before is None or len(before.outputs) != 1:
        return
    if editor.only_consumer(before.outputs[0]) is not layer:
        return
    descriptor = with_activation(before.descriptor, activation)
    if descriptor is not None and _accepts(editor, replace(before, descriptor=descriptor)):
        editor.remove_layer(layer.name)
        editor.replace_layer(replace(before, descriptor=descriptor, outputs=layer.outputs))


def fold_pads(editor: GraphEditor, layer: Layer) -> None:
    """Fold a PAD of height and width into the padding of the convolution that reads it.

    Both fill with the zero point. Pools are excluded: they ignore their padded pixels, but count the pixels of a PAD.
    """
    pad = writer(editor, layer)
    if pad is None or not isinstance(pad.descriptor, PadDescriptor):
        return
    inner = pad.inputs[0]
    if inner is None or editor.info(inner).quantization != editor.info(pad.outputs[0]).quantization:
        return
    descriptor = _with_padding(layer.descriptor, pad.descriptor)
    if descriptor is not None:
        changed = replace(layer, descriptor=descriptor, inputs=(inner, *layer.inputs[1:]))
        if _accepts(editor, changed):
            editor.replace_layer(changed)


def with_activation(descriptor: Any, activation: Activation) -> Descriptor | None:  # noqa: ANN401 any operator's
    """Return a descriptor with an activation; None if it has another one."""
    if fused_activation(descriptor) not in {Activation.NONE, activation}:
        return None
    return cast(Descriptor, replace(descriptor, activation=activation))


def _with_padding(descriptor: Descriptor, pad: PadDescriptor) -> Descriptor | None:
    if not isinstance(descriptor, _Padded) or len(pad.before) != 4:
        return None
    if pad.before[0] or pad.after[0] or pad.before[3] or pad.after[3]:
        return None
    old = descriptor.padding
    padding = Padding(
        top=old.top + pad.before[1],
        bottom=old.bottom + pad.after[1],
        left=old.left + pad.before[2],
        right=old.right + pad.after[2],
    )
    return replace(descriptor, padding=padding)


def _accepts(editor: GraphEditor, layer: Layer) -> bool:
    return accepts(layer, editor.input_infos(layer), editor.output_infos(layer))
