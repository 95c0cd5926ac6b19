# SPDX-License-Identifier: Apache-2.0
"""The constants of float layers that sum products, as passes change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.graph import Array, DataType, GraphEditor, Layer, TensorInfo
from ferrule.graph.lookup import Lookup
from ferrule.graph.tensor import constant
from ferrule.operators.arithmetic.window import NO_PADDING
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor

Numbers = NDArray[np.float64]


@frozen
class Weights:
    """The constants of a layer that sums products."""

    weights: Numbers
    bias: Numbers | None
    axis: int
    """That of the weights with the channels of the output."""

    @classmethod
    def of(cls, graph: Lookup, layer: Layer) -> Weights | None:
        """Return the constants of a layer; None if it has none, or is none of float32."""
        operator = OPERATORS.get(layer.type)
        if operator is None or operator.channel_axis is None or len(layer.inputs) not in {2, 3}:
            return None
        if graph.info(layer.outputs[0]).dtype is not DataType.FLOAT32:
            return None
        tensors = [None if name is None else graph.tensor(name) for name in layer.inputs[1:]]
        if any(tensor is not None and tensor.data is None for tensor in tensors):
            return None
        weights, *biases = (None if tensor is None or tensor.data is None else tensor.data for tensor in tensors)
        if weights is None:
            return None
        bias = biases[0] if biases else None
        return cls(
            weights=weights.astype(np.float64),
            bias=None if bias is None else bias.astype(np.float64).ravel(),
            axis=operator.channel_axis,
        )

    @property
    def channels(self) -> int:
        """The number of channels of the output."""
        return int(self.weights.shape[self.axis])

    def scaled(self, factor: Numbers, offset: Numbers | None = None) -> Weights:
        """Return the constants of factor * sum + offset, by channel of the output; without an offset, it is 0."""
        shape = [1] * self.weights.ndim
        shape[self.axis] = self.channels
        bias = None if self.bias is None else self.bias * factor
        if offset is not None:
            bias = offset if bias is None else bias + offset
        return replace(self, weights=self.weights * factor.reshape(shape), bias=bias)

    def stored(self) -> list[Array] | None:
        """Return the weights and the bias, if there is one, in float32; None if a number is beyond its range."""
        arrays = [self.weights] if self.bias is None else [self.weights, self.bias]
        with np.errstate(over="ignore", under="ignore"):
            stored = [np.asarray(array.astype(np.float32)) for array in arrays]
        return stored if all(np.isfinite(array).all() for array in stored) else None


def inputs_per_channel(layer: Layer, own: Weights, channels: int) -> int | None:
    """Return how many indices of the last axis of a layer's weights are for each channel of its input, one by one.

    None if the weights are for another number of channels, or the layer is of another kind: those of TRANSPOSE_CONV
    have the channels of the input on that axis, too, but pixels between its inputs, which are 0.
    """
    along = own.weights.shape[-1]
    match layer.descriptor:
        case Conv2dDescriptor() | FullyConnectedDescriptor():
            return 1 if along == channels else None
        case DepthwiseConv2dDescriptor():
            return None if along % channels else along // channels
        case _:
            return None


def is_padded(layer: Layer) -> bool:
    """Return whether sums of a layer have pixels of a padding among their inputs, which are 0."""
    return getattr(layer.descriptor, "padding", NO_PADDING) != NO_PADDING


def with_constants(editor: GraphEditor, layer: Layer, arrays: Sequence[Array]) -> Layer:
    """Return a layer with other weights and, if there is a second array, another bias, which are added to the graph."""
    infos = [
        TensorInfo(f"{layer.name}_{role}", array.shape, DataType.FLOAT32)
        for role, array in zip(("weights", "bias"), arrays, strict=False)
    ]
    names = [editor.add_tensor(constant(info, array)) for info, array in zip(infos, arrays, strict=True)]
    return replace(layer, inputs=(layer.inputs[0], *names))
