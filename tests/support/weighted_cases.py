# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for networks of one convolution, FULLY_CONNECTED or pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from layer_case import layer_network

from ferrule.graph import Array, DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.network.bounds import outside, run_bounded
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import NO_PADDING, Padding, same_padding
from ferrule.operators.operator import OWN_CODE
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor

_SMALL = st.integers(1, 8)
_ZERO_POINTS = st.one_of(st.sampled_from([-128, 0, 127]), st.integers(-128, 127))
_EXPONENTS = {DataType.INT8: (3, 10), DataType.INT16: (5, 12), DataType.FLOAT32: (0, 0)}


def within_bound(network: Network, inputs: Sequence[Array], got: Array) -> bool:
    """Return whether the float32 output of a network is within the bound of each element for Ferrule's own code."""
    (wanted,) = run_bounded(network, inputs, arithmetic=OWN_CODE)
    return not outside(got, wanted).any()


def quantization(draw: st.DrawFn, dtype: DataType, scale: float) -> Quantization | None:
    """Draw the quantisation of an activation; zero points at the limits of int8 are frequent."""
    if dtype.is_float:
        return None
    return Quantization.of(scale, draw(_ZERO_POINTS) if dtype is DataType.INT8 else 0)


def _scale(draw: st.DrawFn, low: float, high: float) -> float:
    return float(np.float32(2.0 ** draw(st.floats(low, high))))


class _Constants:
    """Random weights and bias of a layer, from one drawn seed."""

    def __init__(
        self, draw: st.DrawFn, dtype: DataType, shape: Shape, axis: int, data_scale: float, *, wide_only: bool
    ) -> None:
        channels = shape[axis]
        random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.infos: list[TensorInfo] = []
        self.arrays: Mapping[int, Array] = {}
        if dtype.is_float:
            self.scale = 1.0
            self._add(TensorInfo("weights", shape, dtype), random.normal(size=shape))
            if draw(st.booleans()):
                self._add(TensorInfo("bias", (channels,), dtype), random.normal(size=channels))
            return
        count = channels if draw(st.booleans()) else 1
        scales = tuple(float(np.float32(2.0 ** random.uniform(-9, 0))) for _ in range(count))
        self.scale = max(scales)  # not the mean: channels with a far larger scale would get a multiplier out of range
        quantized = Quantization(scales=scales, zero_points=(0,) * count, axis=axis)
        lowest = draw(st.sampled_from([-127, -127, -127, -128]))
        self._add(
            TensorInfo("weights", shape, DataType.INT8, quantization=quantized),
            random.integers(lowest, 128, shape),
        )
        if not draw(st.booleans()):
            return
        wide = dtype is DataType.INT16 and (wide_only or draw(st.booleans()))
        products = Quantization(
            scales=tuple(float(np.float32(data_scale * scale)) for scale in scales), zero_points=(0,) * count
        )
        self._add(
            TensorInfo(
                "bias",
                (channels,),
                DataType.INT64 if wide else DataType.INT32,
                quantization=products,
            ),
            random.integers(-3000, 3000, channels),
        )

    def _add(self, info: TensorInfo, data: Array) -> None:
        self.infos.append(info)
        self.arrays = {**self.arrays, len(self.infos): data.astype(info.dtype.numpy)}


def _weighted(
    draw: st.DrawFn,
    type_: LayerType,
    descriptor: Conv2dDescriptor | DepthwiseConv2dDescriptor | FullyConnectedDescriptor | TransposeConvDescriptor,
    dtype: DataType,
    data: Shape,
    weights: Shape,
) -> Network:
    data_scale = _scale(draw, -8, 2)
    axis = 3 if type_ is LayerType.DEPTHWISE_CONV_2D else 0
    wide_only = type_ in {LayerType.DEPTHWISE_CONV_2D, LayerType.TRANSPOSE_CONV}
    constants = _Constants(draw, dtype, weights, axis, data_scale, wide_only=wide_only)
    info = TensorInfo("data", data, dtype, quantization=quantization(draw, dtype, data_scale))
    # Some outputs get so small a scale that the requantisation shifts to the left.
    exponent = draw(st.one_of(st.floats(*_EXPONENTS[dtype]), st.floats(-4, 1)))
    output = quantization(draw, dtype, data_scale * constants.scale * 2.0**exponent)
    return layer_network(type_, descriptor, [info, *constants.infos], output, constants.arrays)


def _padding(draw: st.DrawFn, height: int, width: int, window: tuple[int, int, int, int, int, int]) -> Padding:
    """Draw SAME padding, none, or any padding with which at least one window fits."""
    kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w = window
    if draw(st.booleans()):
        top, bottom = same_padding(height, kernel_h, stride_h, dilation_h)
        left, right = same_padding(width, kernel_w, stride_w, dilation_w)
        return Padding(top=top, bottom=bottom, left=left, right=right)
    missing_h = max((kernel_h - 1) * dilation_h + 1 - height, 0)
    missing_w = max((kernel_w - 1) * dilation_w + 1 - width, 0)
    if not missing_h and not missing_w and draw(st.booleans()):
        return NO_PADDING
    extra = st.integers(0, 3)
    return Padding(top=missing_h + draw(extra), bottom=draw(extra), left=draw(extra), right=missing_w + draw(extra))


@st.composite
def conv2d(draw: st.DrawFn, dtype: DataType) -> Network:
    """Draw a CONV_2D with any padding, stride and dilation."""
    batch, height, width, channels = draw(st.integers(1, 2)), draw(_SMALL), draw(_SMALL), draw(_SMALL)
    kernel_h, kernel_w = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    stride_h, stride_w = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    dilation_h, dilation_w = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    window = (kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w)
    descriptor = Conv2dDescriptor(
        stride_h=stride_h,
        stride_w=stride_w,
        dilation_h=dilation_h,
        dilation_w=dilation_w,
        padding=_padding(draw, height, width, window),
        activation=draw(st.sampled_from(Activation)),
    )
    weights = (draw(_SMALL), kernel_h, kernel_w, channels)
    return _weighted(draw, LayerType.CONV_2D, descriptor, dtype, (batch, height, width, channels), weights)


@st.composite
def grouped_conv2d(draw: st.DrawFn, dtype: DataType) -> Network:
    """Draw a CONV_2D with two or three groups; a group of one channel is frequent."""
    groups, depth, outputs = draw(st.integers(2, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    data = (draw(st.integers(1, 2)), draw(_SMALL), draw(_SMALL), groups * depth)
    window = (draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 2)), 1, 1, draw(st.integers(1, 2)))
    descriptor = Conv2dDescriptor(
        stride_h=window[2],
        dilation_w=window[5],
        padding=_padding(draw, data[1], data[2], window),
        activation=draw(st.sampled_from(Activation)),
    )
    weights = (groups * outputs, window[0], window[1], depth)
    return _weighted(draw, LayerType.CONV_2D, descriptor, dtype, data, weights)


@st.composite
def transpose_conv(draw: st.DrawFn, dtype: DataType) -> Network:
    """Draw a TRANSPOSE_CONV to any size, with VALID or SAME padding; strides above the window's size are frequent."""
    small = st.integers(1, 4)
    data, size = (draw(st.integers(1, 2)), draw(small), draw(small), draw(small)), (draw(_SMALL), draw(_SMALL))
    window, strides = (draw(small), draw(small)), (draw(small), draw(small))
    padding = NO_PADDING
    if draw(st.booleans()) or window[0] > size[0] or window[1] > size[1]:
        top, bottom = same_padding(size[0], window[0], strides[0])
        left, right = same_padding(size[1], window[1], strides[1])
        padding = Padding(top=top, bottom=bottom, left=left, right=right)
    descriptor = TransposeConvDescriptor(
        output_h=size[0],
        output_w=size[1],
        stride_h=strides[0],
        stride_w=strides[1],
        pad_top=padding.top,
        pad_left=padding.left,
        activation=draw(st.sampled_from(Activation)),
    )
    weights = (draw(small), *window, data[3])
    return _weighted(draw, LayerType.TRANSPOSE_CONV, descriptor, dtype, data, weights)


@st.composite
def pointwise(draw: st.DrawFn, dtype: DataType) -> Network:
    """Draw a CONV_2D with a 1x1 window, whose channels are often a multiple of four."""
    data = (draw(st.integers(1, 2)), draw(_SMALL), draw(_SMALL), draw(st.sampled_from([1, 3, 4, 8, 12, 20])))
    descriptor = Conv2dDescriptor(activation=draw(st.sampled_from(Activation)))
    return _weighted(draw, LayerType.CONV_2D, descriptor, dtype, data, (draw(_SMALL), 1, 1, data[3]))


@st.composite
def depthwise_conv2d(draw: st.DrawFn, dtype: DataType) -> Network:
    """Draw a DEPTHWISE_CONV_2D; a 3x3 window and a depth multiplier of 1 are frequent."""
    batch, height, width, channels = draw(st.integers(1, 2)), draw(_SMALL), draw(_SMALL), draw(st.integers(1, 6))
    usual = draw(st.booleans())
    kernel_h, kernel_w = (3, 3) if usual else (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    dilation_h, dilation_w = (1, 1) if usual else (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    stride_h, stride_w = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    multiplier = 1 if usual else draw(st.integers(1, 3))
    window = (kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w)
    descriptor = DepthwiseConv2dDescriptor(
        depth_multiplier=multiplier,
        stride_h=stride_h,
        stride_w=stride_w,
        dilation_h=dilation_h,
        dilation_w=dilation_w,
        padding=_padding(draw, height, width, window),
        activation=draw(st.sampled_from(Activation)),
    )
    weights = (1, kernel_h, kernel_w, channels * multiplier)
    return _weighted(draw, LayerType.DEPTHWISE_CONV_2D, descriptor, dtype, (batch, height, width, channels), weights)


@st.composite
def fully_connected(draw: st.DrawFn, dtype: DataType) -> Network:
    """Draw a FULLY_CONNECTED that keeps or flattens the input's dimensions."""
    depth, outputs, keep = draw(st.integers(1, 40)), draw(st.integers(1, 20)), draw(st.booleans())
    data = (draw(st.integers(1, 3)), draw(st.integers(1, 3)), depth) if keep else (draw(st.integers(1, 3)), depth)
    descriptor = FullyConnectedDescriptor(keep_num_dims=keep, activation=draw(st.sampled_from(Activation)))
    return _weighted(draw, LayerType.FULLY_CONNECTED, descriptor, dtype, data, (outputs, depth))


@st.composite
def batch_matmul(draw: st.DrawFn, dtype: DataType) -> Network:
    """Draw a BATCH_MATMUL; either input may be broadcast, transposed or constant."""
    small, axes = st.integers(1, 4), draw(st.integers(0, 3))
    rows, depth, columns = draw(small), draw(st.integers(1, 9)), draw(small)
    descriptor = BatchMatmulDescriptor(adj_x=draw(st.booleans()), adj_y=draw(st.booleans()))
    ends = (
        (depth, rows) if descriptor.adj_x else (rows, depth),
        (columns, depth) if descriptor.adj_y else (depth, columns),
    )
    batches = [draw(st.integers(1, 3)) for _ in range(axes)]
    narrow, cut = draw(st.integers(0, 1)), draw(st.integers(0, axes))
    infos, scales, constants = [], [], {}
    for index, end in enumerate(ends):
        front = [draw(st.sampled_from([1, extent])) for extent in batches][cut:] if index == narrow else batches
        scales.append(_scale(draw, -8, 2))
        quantized = quantization(draw, dtype, scales[-1])
        infos.append(TensorInfo(f"data_{index}", (*front, *end), dtype, quantization=quantized))
    chosen = draw(st.sampled_from([None, 0, 1]))
    if chosen is not None:
        random, shape = np.random.default_rng(draw(st.integers(0, 99))), infos[chosen].shape
        values = random.normal(size=shape) if dtype.is_float else random.integers(-128, 128, shape)
        constants[chosen] = values.astype(dtype.numpy)
    exponent = draw(st.one_of(st.floats(*_EXPONENTS[dtype]), st.floats(-4, 1)))
    scale = scales[0] * scales[1] * 2.0**exponent * (256 if dtype is DataType.INT16 else 1)
    output = quantization(draw, dtype, scale)
    return layer_network(LayerType.BATCH_MATMUL, descriptor, infos, output, constants)


def pool2d(type_: LayerType) -> Callable[[DataType], st.SearchStrategy[Network]]:
    """Return the strategy for the pool of this type."""

    @st.composite
    def pool(draw: st.DrawFn, dtype: DataType) -> Network:
        batch, height, width, channels = draw(st.integers(1, 2)), draw(_SMALL), draw(_SMALL), draw(_SMALL)
        pool_h, pool_w = draw(st.integers(1, 6)), draw(st.integers(1, 6))
        stride_h, stride_w = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        padding = NO_PADDING
        if pool_h > height or pool_w > width or draw(st.booleans()):
            top, bottom = same_padding(height, pool_h, stride_h)
            left, right = same_padding(width, pool_w, stride_w)
            padding = Padding(top=top, bottom=bottom, left=left, right=right)
        descriptor = Pool2dDescriptor(
            pool_h=pool_h,
            pool_w=pool_w,
            stride_h=stride_h,
            stride_w=stride_w,
            padding=padding,
            activation=draw(st.sampled_from(Activation)),
        )
        quantized = quantization(draw, dtype, _scale(draw, -8, 0))
        info = TensorInfo("data", (batch, height, width, channels), dtype, quantization=quantized)
        return layer_network(type_, descriptor, [info], quantized)

    return pool


FAMILY: Mapping[str, Callable[[DataType], st.SearchStrategy[Network]]] = {
    "conv2d": conv2d,
    "grouped_conv2d": grouped_conv2d,
    "transpose_conv": transpose_conv,
    "pointwise": pointwise,
    "depthwise_conv2d": depthwise_conv2d,
    "fully_connected": fully_connected,
    "batch_matmul": batch_matmul,
    "average_pool2d": pool2d(LayerType.AVERAGE_POOL_2D),
    "max_pool2d": pool2d(LayerType.MAX_POOL_2D),
}
"""Strategies by operator; each takes the data's type."""

OF_FLOATS: Mapping[str, Callable[[DataType], st.SearchStrategy[Network]]] = {
    **FAMILY,
    "l2_pool2d": pool2d(LayerType.L2_POOL_2D),
}
"""The strategies for float32."""


@st.composite
def weights_with_a_zero_point(draw: st.DrawFn, operator: str) -> Network:
    """Draw an int8 layer whose weights have one scale and a zero point, often one of the limits of int8."""
    network = draw(FAMILY[operator](DataType.INT8))
    (layer,) = network.layers
    infos = [network.info(name) for name in layer.present_inputs]
    weights = infos[1].quantization
    assert weights is not None
    infos[1] = replace(infos[1], quantization=Quantization.of(max(weights.scales), draw(_ZERO_POINTS)))
    if len(infos) > 2:
        scale = infos[0].scale * infos[1].scale
        infos[2] = replace(infos[2], quantization=Quantization.of(scale))
    data = {index: network.tensor(name).data for index, name in enumerate(layer.present_inputs)}
    known = {index: array for index, array in data.items() if array is not None}
    return layer_network(layer.type, layer.descriptor, infos, network.outputs[0].quantization, known)


WITH_ZERO_POINT = ("conv2d", "depthwise_conv2d", "fully_connected")
"""The operators for `weights_with_a_zero_point`."""
