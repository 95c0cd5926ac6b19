# SPDX-License-Identifier: Apache-2.0
"""Workloads of CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule.backends.gpu_acc.parameters import WeightedParameters
from ferrule.backends.gpu_acc.workloads.launch import CHANNELS_GROUP, CHANNELS_PER_ITEM, KernelWorkload, Launch, Loading
from ferrule.errors import UnsupportedError
from ferrule.graph import Array
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import activation_range, wrap_int32
from ferrule.operators.arithmetic.window import Padding, Window
from ferrule.operators.weighted.conv2d import Conv2dDescriptor, groups_of
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.products import factors
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor


def conv2d(loading: Loading) -> KernelWorkload:
    """Return the workload of a CONV_2D layer."""
    descriptor = loading.info.layer.descriptor
    assert isinstance(descriptor, Conv2dDescriptor)
    weights = _weights(loading)
    window = descriptor.window(loading.info.operands.input(1))
    image, size = loading.info.operands.input(0).shape, loading.info.operands.output.shape[1:3]
    groups = groups_of(loading.info.operands.input(0), loading.info.operands.input(1))
    parameters = _parameters(loading, window, descriptor.activation, image=image, size=size, groups=groups)
    return _workload(loading, "conv2d_s8", parameters, _taps(weights), channel_axis=0)


def transpose_conv(loading: Loading) -> KernelWorkload:
    """Return the workload of a TRANSPOSE_CONV layer."""
    descriptor, operands = loading.info.layer.descriptor, loading.info.operands
    assert isinstance(descriptor, TransposeConvDescriptor)
    weights = _weights(loading)
    window = Window(
        height=weights.shape[1],
        width=weights.shape[2],
        stride_h=descriptor.stride_h,
        stride_w=descriptor.stride_w,
        padding=Padding(top=descriptor.pad_top, left=descriptor.pad_left, bottom=0, right=0),
    )
    image, size = operands.input(0).shape, operands.output.shape[1:3]
    parameters = _parameters(loading, window, descriptor.activation, image=image, size=size)
    return _workload(loading, "transpose_conv_s8", parameters, _taps(weights), channel_axis=0)


def depthwise_conv2d(loading: Loading) -> KernelWorkload:
    """Return the workload of a DEPTHWISE_CONV_2D layer."""
    descriptor = loading.info.layer.descriptor
    assert isinstance(descriptor, DepthwiseConv2dDescriptor)
    weights = _weights(loading)
    window = descriptor.window(loading.info.operands.input(1))
    image, size = loading.info.operands.input(0).shape, loading.info.operands.output.shape[1:3]
    multiplier = descriptor.depth_multiplier
    parameters = _parameters(loading, window, descriptor.activation, image=image, size=size, multiplier=multiplier)
    taps = weights.reshape(-1, weights.shape[3])
    return _workload(loading, "depthwise_conv2d_s8", parameters, taps, channel_axis=3)


def fully_connected(loading: Loading) -> KernelWorkload:
    """Return the workload of a FULLY_CONNECTED layer: a convolution of images of one pixel."""
    descriptor = loading.info.layer.descriptor
    assert isinstance(descriptor, FullyConnectedDescriptor)
    weights = _weights(loading)
    depth = weights.shape[1]
    window = Window(height=1, width=1, stride_h=1, stride_w=1)
    image = (loading.info.operands.input(0).elements // depth, 1, 1, depth)
    parameters = _parameters(loading, window, descriptor.activation, image=image, size=(1, 1))
    return _workload(loading, "conv2d_s8", parameters, weights.T, channel_axis=0)


def _taps(weights: Array) -> Array:
    """Return OHWI weights as [taps, output channels]."""
    return np.moveaxis(weights, 0, -1).reshape(-1, weights.shape[0])


def _weights(loading: Loading) -> Array:
    weights = loading.data(1)
    if weights is None:
        raise UnsupportedError(f"layer '{loading.info.layer.name}' has no weights")
    return weights


def _parameters(
    loading: Loading,
    window: Window,
    activation: Activation,
    *,
    image: tuple[int, ...],
    size: tuple[int, ...],
    multiplier: int = 1,
    groups: int = 1,
) -> WeightedParameters:
    """Return the parameters for images of shape `image` and outputs of height and width `size`."""
    data, output = loading.info.operands.input(0), loading.info.operands.output
    channels = output.shape[-1]
    height, width = size
    low, high = activation_range(activation, output)
    return WeightedParameters(
        height=image[1],
        width=image[2],
        channels=image[3] // groups,
        output_height=height,
        output_width=width,
        output_channels=channels // groups,
        output_pixels=output.elements // channels,
        window_height=window.height,
        window_width=window.width,
        stride_h=window.stride_h,
        stride_w=window.stride_w,
        dilation_h=window.dilation_h,
        dilation_w=window.dilation_w,
        padding_top=window.padding.top,
        padding_left=window.padding.left,
        multiplier=multiplier,
        channel_stride=_rounded_up(channels // groups),
        input_zero_point=data.zero_point,
        output_zero_point=output.zero_point,
        low=low,
        high=high,
        groups=groups,
    )


def _workload(
    loading: Loading, kernel: str, parameters: WeightedParameters, taps: Array, *, channel_axis: int
) -> KernelWorkload:
    """Return the workload, one launch per group; `taps` is [taps, output channels]."""
    channels, groups = parameters.output_channels, parameters.groups
    scaling = np.zeros((channels * groups, 3), np.int32)
    bias = loading.data(2)
    if bias is not None:
        scaling[:, 0] = wrap_int32(bias.reshape(-1))
    channel_factors = factors(loading.info.operands, channel_axis)
    scaling[:, 1] = [factor.multiplier for factor in channel_factors]
    scaling[:, 2] = [factor.shift for factor in channel_factors]
    launches = []
    for group in range(groups):
        own = slice(group * channels, (group + 1) * channels)
        padded = np.zeros((taps.shape[0], parameters.channel_stride), np.int8)
        padded[:, :channels] = taps[:, own]
        launch = Launch(
            kernel=kernel,
            parameters=replace(parameters, group=group),
            constants=(scaling[own], padded),
            items=(parameters.channel_stride // CHANNELS_PER_ITEM, parameters.output_pixels),
            group=CHANNELS_GROUP,
        )
        launches.append(launch)
    return KernelWorkload(loading, *launches)


def _rounded_up(channels: int) -> int:
    return -(-channels // CHANNELS_PER_ITEM) * CHANNELS_PER_ITEM
