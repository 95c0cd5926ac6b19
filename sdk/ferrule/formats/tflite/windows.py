# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the operators with weights or windows, and selects their versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite.emitter import ACTIVATION_NUMBERS, Emitter
from ferrule.formats.tflite.encoder import Options, OptionValue
from ferrule.formats.tflite.node import Node, activation
from ferrule.graph import DataType, Descriptor, Layer, LayerType, TensorInfo
from ferrule.interface import option
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.pool2d import Pool2dDescriptor
from ferrule.operators.window import NO_PADDING, Padding, same_padding

MAX_WINDOW = 1 << 14
"""The most pixels that a window may span along one axis, with dilation; SAME padding is about as large."""

_BIAS_INT32 = 2
"""The value of TensorType.INT32, for the field `quantized_bias_type`."""
_NARROW: Mapping[str, str] = {"CONV_2D": "Conv2DOptions", "FULLY_CONNECTED": "FullyConnectedOptions"}
"""The operators with this field, and their options."""
_BIAS = 2
"""The position of the bias among their inputs."""


class PaddingScheme(IntEnum):
    """The schema's enum Padding."""

    SAME = 0
    VALID = 1


def read_convolution(node: Node) -> Descriptor:
    """Read CONV_2D."""
    refuse_hybrid(node.input(0), node.input(1))
    options = node.options("Conv2DOptions")
    strides, dilations = strides_of(options), _dilations(options)
    image, weights = rank_4(node.input(0)), rank_4(node.input(1))
    return Conv2dDescriptor(
        stride_h=strides[0],
        stride_w=strides[1],
        dilation_h=dilations[0],
        dilation_w=dilations[1],
        padding=padding_of(options, image, (weights.shape[1], weights.shape[2]), strides, dilations),
        activation=activation(options.FusedActivationFunction()),
    )


def read_depthwise_convolution(node: Node) -> Descriptor:
    """Read DEPTHWISE_CONV_2D."""
    refuse_hybrid(node.input(0), node.input(1))
    options = node.options("DepthwiseConv2DOptions")
    strides, dilations = strides_of(options), _dilations(options)
    image, weights = rank_4(node.input(0)), rank_4(node.input(1))
    multiplier, rest = divmod(weights.shape[3], image.shape[3])
    if rest:
        raise ModelError(f"its weights have {weights.shape[3]} channels, expected a multiple of {image.shape[3]}")
    if options.DepthMultiplier() not in {0, multiplier}:  # 0 means that the shapes decide
        raise ModelError(f"its depth multiplier is {options.DepthMultiplier()}, expected {multiplier} for its shapes")
    return DepthwiseConv2dDescriptor(
        depth_multiplier=multiplier,
        stride_h=strides[0],
        stride_w=strides[1],
        dilation_h=dilations[0],
        dilation_w=dilations[1],
        padding=padding_of(options, image, (weights.shape[1], weights.shape[2]), strides, dilations),
        activation=activation(options.FusedActivationFunction()),
    )


def read_fully_connected(node: Node) -> Descriptor:
    """Read FULLY_CONNECTED."""
    refuse_hybrid(node.input(0), node.input(1))
    options = node.optional_options("FullyConnectedOptions")
    if options is None:
        return FullyConnectedDescriptor()
    if options.WeightsFormat() != 0:
        raise UnsupportedError("its weights are shuffled (SHUFFLED4x16INT8), expected the default order")
    return FullyConnectedDescriptor(
        keep_num_dims=bool(options.KeepNumDims()), activation=activation(options.FusedActivationFunction())
    )


def read_pool(node: Node) -> Descriptor:
    """Read AVERAGE_POOL_2D, MAX_POOL_2D or L2_POOL_2D."""
    options = node.options("Pool2DOptions")
    window = (options.FilterHeight(), options.FilterWidth())
    if min(window) < 1:
        raise ModelError(f"its window is {list(window)}, expected positive extents")
    strides = strides_of(options)
    return Pool2dDescriptor(
        pool_h=window[0],
        pool_w=window[1],
        stride_h=strides[0],
        stride_w=strides[1],
        padding=padding_of(options, rank_4(node.input(0)), window, strides, (1, 1)),
        activation=activation(options.FusedActivationFunction()),
    )


def write_convolution(emitter: Emitter, layer: Layer, descriptor: Conv2dDescriptor | DepthwiseConv2dDescriptor) -> None:
    """Write CONV_2D or DEPTHWISE_CONV_2D."""
    weights = emitter.input_info(layer, 1)
    window = (weights.shape[1], weights.shape[2])
    dilation = (descriptor.dilation_h, descriptor.dilation_w)
    image = emitter.input_info(layer, 0)
    scheme = _scheme(image, descriptor.padding, window, (descriptor.stride_h, descriptor.stride_w), dilation)
    source = image.name
    if scheme is None:
        before, after = _sides(descriptor.padding)
        source = emitter.padded(layer, image, PadDescriptor(before=before, after=after))
        scheme = PaddingScheme.VALID
    fields: dict[str, OptionValue] = {
        "Padding": scheme.value,
        "StrideW": descriptor.stride_w,
        "StrideH": descriptor.stride_h,
        "FusedActivationFunction": ACTIVATION_NUMBERS[descriptor.activation.value],
        "DilationWFactor": descriptor.dilation_w,
        "DilationHFactor": descriptor.dilation_h,
    }
    table = "Conv2DOptions"
    if isinstance(descriptor, DepthwiseConv2dDescriptor):
        table = "DepthwiseConv2DOptions"
        fields["DepthMultiplier"] = descriptor.depth_multiplier
    elif _bias_is_int32_with_int16(emitter.input_infos(layer)):
        fields["QuantizedBiasType"] = _BIAS_INT32
    emitter.emit(layer, Options(table=table, fields=fields), inputs=[source, *layer.inputs[1:]])


def write_fully_connected(emitter: Emitter, layer: Layer, descriptor: FullyConnectedDescriptor) -> None:
    """Write FULLY_CONNECTED."""
    fields: dict[str, OptionValue] = {
        "FusedActivationFunction": ACTIVATION_NUMBERS[descriptor.activation.value],
        "KeepNumDims": descriptor.keep_num_dims,
    }
    if _bias_is_int32_with_int16(emitter.input_infos(layer)):
        fields["QuantizedBiasType"] = _BIAS_INT32
    emitter.emit(layer, Options(table="FullyConnectedOptions", fields=fields))


def write_pool(emitter: Emitter, layer: Layer, descriptor: Pool2dDescriptor) -> None:
    """Write AVERAGE_POOL_2D, MAX_POOL_2D or L2_POOL_2D."""
    image = emitter.input_info(layer, 0)
    window = (descriptor.pool_h, descriptor.pool_w)
    scheme = _scheme(image, descriptor.padding, window, (descriptor.stride_h, descriptor.stride_w), (1, 1))
    source = image.name
    if scheme is None:
        if layer.type is not LayerType.MAX_POOL_2D:
            raise UnsupportedError(
                f"layer '{layer.name}': {layer.type} with {descriptor.padding} cannot be expressed in TensorFlow Lite, "
                "which has only SAME and VALID padding",
                hint="put a PAD layer before it if the padded pixels may count as zeros",
            )
        before, after = _sides(descriptor.padding)
        lowest = PadV2Descriptor(before=before, after=after, value=_lowest(image.dtype))
        source = emitter.padded(layer, image, lowest)
        scheme = PaddingScheme.VALID
    options = Options(
        table="Pool2DOptions",
        fields={
            "Padding": scheme.value,
            "StrideW": descriptor.stride_w,
            "StrideH": descriptor.stride_h,
            "FilterWidth": descriptor.pool_w,
            "FilterHeight": descriptor.pool_h,
            "FusedActivationFunction": ACTIVATION_NUMBERS[descriptor.activation.value],
        },
    )
    emitter.emit(layer, options, inputs=[source])


def convolution_version(descriptor: Conv2dDescriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    """Return the version of CONV_2D."""
    del descriptor, output
    if _bias_is_int32_with_int16(inputs):
        return 8
    if inputs[1].shape[-1] != inputs[0].shape[-1]:
        return 6
    return {DataType.INT8: 3, DataType.INT16: 4}.get(inputs[0].dtype, 1)


def depthwise_version(descriptor: DepthwiseConv2dDescriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    """Return the version of DEPTHWISE_CONV_2D."""
    del output
    dilated = (descriptor.dilation_h, descriptor.dilation_w) != (1, 1)
    return {DataType.INT8: 3, DataType.INT16: 5}.get(inputs[0].dtype, 2 if dilated else 1)


def fully_connected_version(
    descriptor: FullyConnectedDescriptor, inputs: Sequence[TensorInfo], output: TensorInfo
) -> int:
    """Return the version of FULLY_CONNECTED."""
    del output
    if _bias_is_int32_with_int16(inputs):
        return 11
    if inputs[0].dtype is DataType.INT16:
        return 7
    if len(inputs) == 2:
        return 6
    if descriptor.keep_num_dims:
        return 5
    return {DataType.INT8: 4}.get(inputs[0].dtype, 1)


def _bias_is_int32_with_int16(inputs: Sequence[TensorInfo]) -> bool:
    """Whether int16 activations have an int32 bias, which the options must state (`quantized_bias_type`)."""
    return len(inputs) > 2 and inputs[0].dtype is DataType.INT16 and inputs[2].dtype is DataType.INT32


def _scheme(
    image: TensorInfo, padding: Padding, window: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int]
) -> PaddingScheme | None:
    """Return the scheme that results in this padding for an NHWC image; None if neither scheme does."""
    if padding == NO_PADDING:
        return PaddingScheme.VALID
    return PaddingScheme.SAME if padding == same_of(image, window, stride, dilation) else None


def same_of(
    image: TensorInfo, window: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int]
) -> Padding:
    """Return the explicit padding for the scheme SAME and an NHWC image."""
    top, bottom = same_padding(image.shape[1], window[0], strides[0], dilations[0])
    left, right = same_padding(image.shape[2], window[1], strides[1], dilations[1])
    return Padding(top=top, bottom=bottom, left=left, right=right)


def _sides(padding: Padding) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and after each axis of an NHWC image."""
    return (0, padding.top, padding.left, 0), (0, padding.bottom, padding.right, 0)


def _lowest(dtype: DataType) -> float:
    return float(np.finfo(np.float32).min) if dtype.is_float else int(np.iinfo(dtype.numpy).min)


def needs_narrow_bias(node: Node) -> bool:
    """Whether a layer has int16 sums of 32 bits and no bias: in a network, the type of the bias decides their width."""
    if node.record.type not in _NARROW or node.has_input(_BIAS) or node.input(0).dtype is not DataType.INT16:
        return False
    options = node.optional_options(_NARROW[node.record.type])
    return options is not None and options.QuantizedBiasType() == _BIAS_INT32


def refuse_hybrid(image: TensorInfo, weights: TensorInfo) -> None:
    """Refuse float32 activations with integer weights."""
    if image.dtype.is_float and weights.dtype in {DataType.INT8, DataType.INT16}:
        raise UnsupportedError(
            f"it is hybrid: float32 activations ('{image.name}') with {weights.dtype} weights ('{weights.name}'), "
            "which quantise their input anew in every run and are not supported",
            hint="convert the model without dynamic-range quantisation, quantise its activations too, or compute with "
            f"float32 weights: {option('dequantize_weights')}",
        )


def strides_of(options: Any) -> tuple[int, int]:  # noqa: ANN401
    """Return the strides (rows, columns) of the options; ModelError unless they are positive."""
    return _positive((options.StrideH(), options.StrideW()), "strides")


def _dilations(options: Any) -> tuple[int, int]:  # noqa: ANN401
    return _positive((options.DilationHFactor(), options.DilationWFactor()), "dilation factors")


def _positive(values: tuple[int, int], role: str) -> tuple[int, int]:
    if min(values) < 1:
        raise ModelError(f"its {role} are {list(values)}, expected positive numbers")
    return values


def rank_4(info: TensorInfo) -> TensorInfo:
    """Return a tensor's description; UnsupportedError unless it has 4 dimensions."""
    if len(info.shape) != 4:
        raise UnsupportedError(f"tensor '{info.name}' has shape {list(info.shape)}, expected 4 dimensions")
    return info


def padding_of(
    options: Any,  # noqa: ANN401
    image: TensorInfo,
    window: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> Padding:
    """Return explicit padding for the scheme in the options; UnsupportedError if the window exceeds `MAX_WINDOW`."""
    for extent, dilation in zip(window, dilations, strict=True):
        span = (extent - 1) * dilation + 1
        if span > MAX_WINDOW:
            raise UnsupportedError(f"its window spans {span} pixels, expected at most {MAX_WINDOW}")
    scheme = options.Padding()
    match scheme:
        case PaddingScheme.VALID:
            return NO_PADDING
        case PaddingScheme.SAME:
            return same_of(image, window, strides, dilations)
    raise ModelError(f"its padding is number {scheme}, expected 0 (SAME) or 1 (VALID)")
