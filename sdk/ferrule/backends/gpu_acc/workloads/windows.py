# SPDX-License-Identifier: Apache-2.0
"""Launches for int8 convolutions, FULLY_CONNECTED and pools, and for RESIZE_BILINEAR."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ferrule.backends.gpu_acc.parameters import parameters
from ferrule.backends.gpu_acc.workloads.launch import CHANNELS_GROUP, CHANNELS_PER_ITEM, Launch, Loading
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, LayerType, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import activation_range, wrap_int32
from ferrule.operators.arithmetic.window import Window
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.spatial.resize import ResizeDescriptor, Taps, float_taps, integer_taps
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.conv2d import groups_of
from ferrule.operators.weighted.convolved import convolved
from ferrule.operators.weighted.products import factors

_KERNELS = {LayerType.DEPTHWISE_CONV_2D: "depthwise_conv2d_s8", LayerType.TRANSPOSE_CONV: "transpose_conv_s8"}


def weighted(loading: Loading) -> list[Launch]:
    """Return the launches for a layer with weights, one per group of channels.

    FULLY_CONNECTED is a convolution of images of one pixel.
    """
    layer, type_ = convolved(loading.layer, loading.operands), loading.layer.type
    axis, weights = OPERATORS[type_].channel_axis, loading.data(1)
    assert axis is not None, "the layer has weights"
    if weights is None:
        raise UnsupportedError(f"layer '{loading.layer.name}' has no weights")
    groups = groups_of(layer.image, loading.operands.input(1)) if type_ is LayerType.CONV_2D else 1
    all_channels = layer.output.shape[3]
    channels = all_channels // groups
    blocks = -(-channels // CHANNELS_PER_ITEM)
    stride = blocks * CHANNELS_PER_ITEM
    members = {
        **_members(layer.image, layer.output, layer.window, layer.activation),
        "channels": layer.image.shape[3] // groups,
        "output_channels": channels,
        "multiplier": layer.depth_multiplier,
        "channel_stride": stride,
        "groups": groups,
    }
    taps = np.moveaxis(weights, axis, -1).reshape(-1, all_channels)
    scaling = np.zeros((all_channels, 3), np.int32)
    bias = loading.data(2)
    if bias is not None:
        scaling[:, 0] = wrap_int32(bias.reshape(-1))
    scaling[:, 1:] = [(factor.multiplier, factor.shift) for factor in factors(loading.operands, axis)]
    return [
        Launch(
            kernel=_KERNELS.get(type_, "conv2d_s8"),
            parameters=parameters("window_parameters", **members, group=group),
            constants=(own, np.pad(part, ((0, 0), (0, stride - channels)))),
            items=(blocks, members["items"]),
            group=CHANNELS_GROUP,
        )
        for group, (own, part) in enumerate(zip(np.split(scaling, groups), np.split(taps, groups, axis=1), strict=True))
    ]


def pool2d(loading: Loading) -> Launch:
    """Return the launch for an AVERAGE_POOL_2D or MAX_POOL_2D layer."""
    descriptor, output = loading.layer.descriptor, loading.operands.output
    assert isinstance(descriptor, Pool2dDescriptor)
    members = _members(loading.operands.source, output, descriptor.window, descriptor.activation)
    return Launch(
        kernel=f"{loading.layer.type.lower()}_s8",
        parameters=parameters("window_parameters", **members),
        items=(output.elements,),
    )


def _members(image: TensorInfo, output: TensorInfo, window: Window, activation: Activation) -> Mapping[str, int]:
    low, high = activation_range(activation, output)
    return {
        "items": output.elements // output.shape[3],
        "height": image.shape[1],
        "width": image.shape[2],
        "channels": image.shape[3],
        "output_height": output.shape[1],
        "output_width": output.shape[2],
        "window_height": window.height,
        "window_width": window.width,
        "stride_h": window.stride_h,
        "stride_w": window.stride_w,
        "dilation_h": window.dilation_h,
        "dilation_w": window.dilation_w,
        "padding_top": window.padding.top,
        "padding_left": window.padding.left,
        "input_zero_point": image.zero_point,
        "output_zero_point": output.zero_point,
        "low": low,
        "high": high,
    }


def resize_bilinear(loading: Loading) -> Launch:
    """Return the launch for a RESIZE_BILINEAR layer."""
    descriptor, output = loading.layer.descriptor, loading.operands.output
    assert isinstance(descriptor, ResizeDescriptor)
    _, height, width, channels = loading.operands.source.shape
    find = float_taps if output.dtype.is_float else integer_taps
    sides = zip((height, width), output.shape[1:3], strict=True)
    packed = parameters(
        "window_parameters",
        items=output.elements,
        height=height,
        width=width,
        channels=channels,
        output_height=output.shape[1],
        output_width=output.shape[2],
    )
    return Launch(
        kernel=f"resize_bilinear_{'f32' if output.dtype.is_float else 's8'}",
        parameters=packed,
        constants=tuple(_table(find(descriptor, extent, count)) for extent, count in sides),
    )


def _table(taps: Taps) -> Array:
    """Return the two pixels and the weight of the second one, a float32 by its bits, of each output pixel."""
    weight = taps.weight
    bits = weight.astype(np.float32).view(np.int32) if weight.dtype.kind == "f" else weight
    return np.stack([taps.lower, taps.upper, bits], axis=-1).astype(np.int32)
