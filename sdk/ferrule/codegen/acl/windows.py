# SPDX-License-Identifier: Apache-2.0
"""Rows of convolutions, pooling and fully connected layers."""

from __future__ import annotations

from math import floor

from ferrule.codegen.acl.builder import AclTensor
from ferrule.codegen.acl.layouts import stored
from ferrule.codegen.acl.rows import (
    FLOATS,
    QUANTIZED,
    Accuracy,
    Add,
    LayerParts,
    LayerView,
    Row,
    activation_info,
    pad_stride,
    size,
)
from ferrule.codegen.acl.targets import acl, acl_name
from ferrule.dom import (
    Assign,
    Boolean,
    Construct,
    Expression,
    Member,
    Null,
    unsigned,
)
from ferrule.graph import DataType, Graph, Layer, LayerType, Rounding
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.spatial.resize import ResizeDescriptor, displacement
from ferrule.operators.weighted.conv2d import Conv2dDescriptor, groups_of
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.products import has_zero_point
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor

_INT8_RANGE = 255
"""The largest difference of two pixels."""
_LEAST_MULTIPLIER = 1e-5
"""Version 20.08 replaces smaller requantisation multipliers by 0 (measured)."""


def _conv2d(part: LayerParts) -> None:
    about = part.descriptor(Conv2dDescriptor)
    part.function(
        "ConvolutionLayer",
        part.input(0),
        _weights(part),
        _bias(part),
        part.output(0),
        pad_stride(about.padding, about.stride_h, about.stride_w),
        Construct(acl("WeightsInfo")),
        size(about.dilation_w, about.dilation_h),
        activation_info(about.activation),
    )


def _weights(part: LayerParts) -> AclTensor:
    """Add the weights, [O, H, W, I] as (W, H, I, O)."""
    return part.builder.constant(part.name("weights"), part.info(1).name, weights=True)


def _depthwise_conv2d(part: LayerParts) -> None:
    about, data = part.descriptor(DepthwiseConv2dDescriptor), part.tensor(1).data
    assert data is not None
    part.function(
        "DepthwiseConvolutionLayer",
        part.input(0),
        part.builder.constant(part.name("weights"), part.info(1).name, stored(data)[0], weights=True),  # (W, H, C)
        _bias(part),
        part.output(0),
        pad_stride(about.padding, about.stride_h, about.stride_w),
        unsigned(about.depth_multiplier),
        activation_info(about.activation),
        size(about.dilation_w, about.dilation_h),
    )


def _pool(kind: str, types: frozenset[DataType] = QUANTIZED) -> Row:
    def add(part: LayerParts) -> None:
        about = part.descriptor(Pool2dDescriptor)
        result = part.before_activation(about.activation)
        info = Construct(
            acl("PoolingLayerInfo"),
            (
                acl_name("PoolingType", kind),
                size(about.pool_w, about.pool_h),
                acl_name("DataLayout", "NCHW"),
                pad_stride(about.padding, about.stride_h, about.stride_w),
                Boolean(True),
            ),
        )
        part.function("PoolingLayer", part.input(0), result, info)
        part.finish_activation(result, about.activation)

    return Row(add, types=types)


def _fully_connected(part: LayerParts) -> None:
    """Add the function on a matrix; 20.08 computes wrong upper limits of fused int8 activations."""
    about = part.descriptor(FullyConnectedDescriptor)
    outputs, depth = part.info(1).shape
    batch = part.info(0).elements // depth
    source = part.input(0, (batch, depth))
    weights = _weights(part)
    separate = part.info(0).dtype is DataType.INT8 and about.activation.limits[1] is not None
    fused = Activation.NONE if separate else about.activation
    info: Expression = part.builder.local(part.name("info")[1:], acl("FullyConnectedLayerInfo"))
    part.builder.configuration.append(Assign(Member(info, "activation_info"), activation_info(fused)))
    result = part.result((batch, outputs))
    sums = part.builder.scratch(part.name("sums"), result, result.shape) if separate else result
    part.function("FullyConnectedLayer", source, weights, _bias(part), sums, info)
    if separate:
        part.activate(sums, result, about.activation)
    part.finish(result)


def _transpose_conv(part: LayerParts) -> None:
    about = part.descriptor(TransposeConvDescriptor)
    result = part.before_activation(about.activation)
    part.function(
        "DeconvolutionLayer",
        part.input(0),
        _weights(part),
        _bias(part),
        result,
        pad_stride(_transposed_padding(part), about.stride_h, about.stride_w),
    )
    part.finish_activation(result, about.activation)


def _transposed_padding(part: LayerView) -> Padding:
    """Return how much of the windows' sum is left out on each side; it is negative where the output is larger."""
    about = part.descriptor(TransposeConvDescriptor)
    _, height, width, _ = part.info(0).shape
    _, window_h, window_w, _ = part.info(1).shape
    return Padding(
        top=about.pad_top,
        bottom=(height - 1) * about.stride_h + window_h - about.pad_top - about.output_h,
        left=about.pad_left,
        right=(width - 1) * about.stride_w + window_w - about.pad_left - about.output_w,
    )


def _resize(policy: str) -> Add:
    """Return what adds the function; version 20.08 reads the pixels beside the image, and later versions do not."""

    def add(part: LayerParts) -> None:
        about = part.descriptor(ResizeDescriptor)
        info = Construct(
            acl("ScaleKernelInfo"),
            (
                acl_name("InterpolationPolicy", policy),
                acl_name("BorderMode", "REPLICATE"),
                Construct(acl("PixelValue")),
                acl_name("SamplingPolicy", "CENTER" if about.half_pixel_centers else "TOP_LEFT"),
                Boolean(part.options.version == "20.08"),
                Boolean(about.align_corners),
            ),
        )
        part.function("Scale", part.input(0), part.output(0), info)

    return add


def _bias(part: LayerParts) -> AclTensor | Null:
    return part.builder.constant(part.name("biases"), part.info(2).name) if part.has(2) else Null()


def _weighted_check(part: LayerView) -> str:
    for index, what in ((1, "weights"), (2, "biases")):
        if part.has(index) and not part.is_constant(index):
            return f"its {what} '{part.info(index).name}' are not constant, and the library prepares them once"
    weights = part.info(1)
    if part.info(0).dtype is not DataType.INT8:
        return ""
    if weights.dtype is not DataType.INT8:
        return f"its weights are {weights.dtype}, expected int8"
    if has_zero_point(weights):
        return "its weights have a zero point that is not 0, and the class has symmetric weights"
    if part.options.version != "20.08":
        return ""
    assert weights.quantization is not None
    factor = part.info(0).scale / part.output_info.scale
    small = sum(factor * scale < _LEAST_MULTIPLIER for scale in weights.quantization.scales)
    if small:
        return (
            f"version 20.08 takes the factors of {small} of its {len(weights.quantization.scales)} output channels, "
            f"below {_LEAST_MULTIPLIER:g}, as 0"
        )
    return ""


def _conv2d_check(part: LayerView) -> str:
    groups = groups_of(part.info(0), part.info(1))
    if groups > 1:
        return f"it has {groups} groups, and NEON's function of the library takes one"
    return _weighted_check(part)


def _transpose_conv_check(part: LayerView) -> str:
    padding = _transposed_padding(part)
    if min(padding.bottom, padding.right) < 0:
        return "its output is larger than the windows reach, and the library's is not"
    weights = part.info(1)
    _, window_h, window_w, _ = weights.shape
    if part.options.version == "20.08":
        if window_h != window_w:
            return f"its window is {window_h} by {window_w}, and version 20.08 has square ones only"
        if weights.quantization is not None and len(weights.quantization.scales) > 1:
            return "its weights have a scale for each channel, and version 20.08 has one for all"
    return _weighted_check(part)


def _resize_check(part: LayerView) -> str:
    about = part.descriptor(ResizeDescriptor)
    if about.align_corners and about.half_pixel_centers:
        return "it aligns corners and samples at the centres of pixels, and the library does one of them"
    return ""


def _bilinear_accuracy(graph: Graph, layer: Layer) -> Accuracy:
    """Return one step for both roundings, and what the reference's places, of 10 bits, are beside the library's."""
    about, image = layer.descriptor, graph.info(layer.present_inputs[0])
    assert isinstance(about, ResizeDescriptor)
    if image.dtype is not DataType.INT8 or layer.rounding is Rounding.ONNX:
        return Accuracy()
    away = displacement(about, image.shape[1], about.height) + displacement(about, image.shape[2], about.width)
    return Accuracy(steps=1 + floor(_INT8_RANGE * away))


def _fully_connected_check(part: LayerView) -> str:
    weights = part.info(1)
    if part.info(0).dtype is DataType.INT8 and weights.quantization is not None and weights.quantization.per_channel:
        return "its weights have a scale per channel, and the library takes one for all"
    return _weighted_check(part)


ROWS = {
    LayerType.CONV_2D: Row(_conv2d, check=_conv2d_check),
    LayerType.DEPTHWISE_CONV_2D: Row(_depthwise_conv2d, check=_weighted_check),
    LayerType.TRANSPOSE_CONV: Row(_transpose_conv, check=_transpose_conv_check),
    LayerType.FULLY_CONNECTED: Row(_fully_connected, check=_fully_connected_check),
    LayerType.RESIZE_NEAREST_NEIGHBOR: Row(_resize("NEAREST_NEIGHBOR"), check=_resize_check),
    LayerType.RESIZE_BILINEAR: Row(_resize("BILINEAR"), check=_resize_check, accuracy=_bilinear_accuracy),
    LayerType.AVERAGE_POOL_2D: _pool("AVG"),
    LayerType.MAX_POOL_2D: _pool("MAX"),
    LayerType.L2_POOL_2D: _pool("L2", FLOATS),
}
