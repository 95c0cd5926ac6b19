# SPDX-License-Identifier: Apache-2.0
"""Methods that add layers with weights or windows: convolutions, FULLY_CONNECTED and pools."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from ferrule.errors import ModelError, place
from ferrule.graph import Array, Descriptor, Quantization
from ferrule.network.builder import Constant, Given, LayerBuilder, adding, bias_quantization
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import NO_PADDING, Padding, same_of
from ferrule.operators.operator import Operator
from ferrule.operators.spatial.pool2d import AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D, Pool2dDescriptor
from ferrule.operators.weighted.conv2d import CONV_2D, Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DEPTHWISE_CONV_2D, DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor

PaddingArgument = Padding | Literal["same", "valid"]
"""Explicit padding, or the name of one of TensorFlow's padding schemes."""


class WeightedLayers(LayerBuilder):
    """Methods that add layers with weights or windows.

    Each method returns the name of the output tensor, which is also the layer's name: `name`, or a name derived from
    the operator. `source` names the input tensor, and `quantization` is that of the output. The scale of a bias is the
    product of the scales of the input and the weights. Pairs are (height, width). If a layer is not valid, the method
    raises ModelError or UnsupportedError with the reason and adds nothing.
    """

    def _add_convolution(
        self,
        row: Operator,
        source: str,
        weights: Array,
        bias: Array | None = None,
        *,
        strides: tuple[int, int] = (1, 1),
        dilations: tuple[int, int] = (1, 1),
        padding: PaddingArgument = "valid",
        activation: Activation = Activation.NONE,
        weights_quantization: Quantization | None = None,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        padding = self._padding(source, padding, _window(weights), strides, dilations)
        make: Callable[..., Descriptor] = Conv2dDescriptor
        if row is DEPTHWISE_CONV_2D:
            make = partial(DepthwiseConv2dDescriptor, depth_multiplier=self._depth_multiplier(source, weights))
        descriptor = make(
            stride_h=strides[0],
            stride_w=strides[1],
            dilation_h=dilations[0],
            dilation_w=dilations[1],
            padding=padding,
            activation=activation,
        )
        return self._append_weighted(descriptor, source, weights, bias, weights_quantization, quantization, name)

    add_conv2d_layer = adding(
        CONV_2D,
        _add_convolution,
        "Add CONV_2D of an NHWC image, with weights [out, height, width, in] and bias [out].",
    )
    add_depthwise_conv2d_layer = adding(
        DEPTHWISE_CONV_2D,
        _add_convolution,
        """Add DEPTHWISE_CONV_2D of an NHWC image, with weights [1, height, width, out] and bias [out].

        `out` is the number of input channels times the depth multiplier.
        """,
    )

    def add_transpose_conv_layer(
        self,
        source: str,
        weights: Array,
        bias: Array | None = None,
        *,
        size: tuple[int, int],
        strides: tuple[int, int] = (1, 1),
        padding: Literal["same", "valid"] = "valid",
        activation: Activation = Activation.NONE,
        weights_quantization: Quantization | None = None,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add TRANSPOSE_CONV to a new size, with weights [out, height, width, in] and bias [out].

        `strides` and `padding` are those of the convolution whose output has the size of `source`.
        """
        window = _window(weights)
        if min(*size, *strides) < 1:
            raise ModelError(f"size {list(size)} and strides {list(strides)} must be positive")
        same = same_of(size, window, strides) if padding == "same" else NO_PADDING
        descriptor = TransposeConvDescriptor(
            output_h=size[0],
            output_w=size[1],
            stride_h=strides[0],
            stride_w=strides[1],
            pad_top=same.top,
            pad_left=same.left,
            activation=activation,
        )
        return self._append_weighted(descriptor, source, weights, bias, weights_quantization, quantization, name)

    def add_fully_connected_layer(
        self,
        source: str,
        weights: Array,
        bias: Array | None = None,
        *,
        keep_num_dims: bool = False,
        activation: Activation = Activation.NONE,
        weights_quantization: Quantization | None = None,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add FULLY_CONNECTED, with weights [out, in] and bias [out].

        The output is [batch, out]; with `keep_num_dims` it keeps all dimensions of the input except the last.
        """
        descriptor = FullyConnectedDescriptor(keep_num_dims=keep_num_dims, activation=activation)
        return self._append_weighted(descriptor, source, weights, bias, weights_quantization, quantization, name)

    def _add_pool(
        self,
        row: Operator,
        source: str,
        window: tuple[int, int],
        *,
        strides: tuple[int, int] = (1, 1),
        padding: PaddingArgument = "valid",
        activation: Activation = Activation.NONE,
        name: str | None = None,
    ) -> str:
        descriptor = Pool2dDescriptor(
            pool_h=window[0],
            pool_w=window[1],
            stride_h=strides[0],
            stride_w=strides[1],
            padding=self._padding(source, padding, window, strides, (1, 1)),
            activation=activation,
        )
        return self._append_like(source, descriptor, name=name, row=row)

    add_average_pool2d_layer = adding(
        AVERAGE_POOL_2D,
        _add_pool,
        "Add AVERAGE_POOL_2D over an NHWC image, ignoring padded pixels. The output has the input's quantisation.",
    )
    add_max_pool2d_layer = adding(
        MAX_POOL_2D,
        _add_pool,
        "Add MAX_POOL_2D over an NHWC image, ignoring padded pixels. The output has the input's quantisation.",
    )
    add_l2_pool2d_layer = adding(
        L2_POOL_2D,
        _add_pool,
        "Add L2_POOL_2D over a float32 NHWC image, ignoring padded pixels: the root of the mean of the squares.",
    )

    def _append_weighted(
        self,
        descriptor: Descriptor,
        source: str,
        weights: Array,
        bias: Array | None,
        weights_quantization: Quantization | None,
        quantization: Quantization | None,
        name: str | None,
    ) -> str:
        inputs: list[Given] = [source, Constant(role="weights", data=weights, quantization=weights_quantization)]
        if bias is not None:
            scale = bias_quantization(self.info(source), weights_quantization)
            inputs.append(Constant(role="bias", data=bias, quantization=scale))
        return self._append(descriptor, inputs, name=name, quantization=quantization)[0]

    def _depth_multiplier(self, source: str, weights: Array) -> int:
        channels = self.info(source).shape[-1]
        multiplier, rest = divmod(weights.shape[3], channels)
        if rest:
            raise ModelError(
                f"weights have {weights.shape[3]} channels, expected a multiple of the {channels} of '{source}'"
            )
        return int(multiplier)

    def _padding(
        self,
        source: str,
        padding: PaddingArgument,
        window: tuple[int, int],
        strides: tuple[int, int],
        dilations: tuple[int, int],
    ) -> Padding:
        image = self.info(source)
        with place(f"a window over tensor '{source}'"):
            if len(image.shape) != 4:
                raise ModelError(f"its shape is {list(image.shape)}, expected 4 dimensions")
            if min(*window, *strides, *dilations) < 1:
                raise ModelError(
                    f"window {list(window)}, strides {list(strides)} and dilations {list(dilations)} must be positive"
                )
        if isinstance(padding, Padding):
            return padding
        if padding == "valid":
            return NO_PADDING
        return same_of(image.shape[1:3], window, strides, dilations)


def _window(weights: Array) -> tuple[int, int]:
    if weights.ndim != 4:
        raise ModelError(f"weights have shape {list(weights.shape)}, expected 4 dimensions")
    return weights.shape[1], weights.shape[2]
