# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the operators with weights or windows, and selects their versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any, cast

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite.emitter import Emitter, Written
from ferrule.formats.tflite.node import Node, activation
from ferrule.formats.tflite.row import Option, Row, by_type
from ferrule.formats.tflite.shapes import ROWS as PADS
from ferrule.graph import DataType, Descriptor, Layer, LayerType, TensorInfo
from ferrule.interface import option
from ferrule.operators.arithmetic.window import NO_PADDING, Padding, Window, same_padding
from ferrule.operators.movement.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.table import type_of
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor

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


def _windowed(options: Any, image: TensorInfo, height: int, width: int, *, dilated: bool) -> dict[str, Any]:  # noqa: ANN401
    """Return what the descriptors of convolutions and pools have in common, as options state it."""
    steps = strides_of(options)
    if dilated:
        rows, columns = _positive((options.dilation_h_factor, options.dilation_w_factor), "dilation factors")
        steps |= {"dilation_h": rows, "dilation_w": columns}
    padding = padding_of(options, rank_4(image), Window(height=height, width=width, **steps))
    return {**steps, "padding": padding, "activation": activation(options.fused_activation_function)}


def _read_convolution(node: Node) -> Descriptor:
    refuse_hybrid(node)
    options, (_, height, width, _) = node.options("Conv2DOptions"), rank_4(node.input(1)).shape
    return Conv2dDescriptor(**_windowed(options, node.source, height, width, dilated=True))


def _read_depthwise_convolution(node: Node) -> Descriptor:
    refuse_hybrid(node)
    options, image = node.options("DepthwiseConv2DOptions"), rank_4(node.source)
    _, height, width, channels = rank_4(node.input(1)).shape
    steps = _windowed(options, image, height, width, dilated=True)
    multiplier, rest = divmod(channels, image.shape[3])
    if rest:
        raise ModelError(f"its weights have {channels} channels, expected a multiple of {image.shape[3]}")
    if options.depth_multiplier not in {0, multiplier}:  # 0 means that the shapes decide
        raise ModelError(f"its depth multiplier is {options.depth_multiplier}, expected {multiplier} for its shapes")
    return DepthwiseConv2dDescriptor(depth_multiplier=multiplier, **steps)


def _check_fully_connected(node: Node) -> None:
    refuse_hybrid(node)
    options = node.optional_options("FullyConnectedOptions")
    if options.weights_format != 0:
        raise UnsupportedError("its weights are shuffled (SHUFFLED4x16INT8), expected the default order")


def _read_pool(node: Node) -> Descriptor:
    options = node.options("Pool2DOptions")
    height, width = options.filter_height, options.filter_width
    if min(height, width) < 1:
        raise ModelError(f"its window is {[height, width]}, expected positive extents")
    return Pool2dDescriptor(
        pool_h=height, pool_w=width, **_windowed(options, node.source, height, width, dilated=False)
    )


def _scheme(emitter: Emitter, layer: Layer) -> PaddingScheme:
    """Return SAME for the padding of a convolution or pool if it is that; VALID otherwise."""
    descriptor = layer.descriptor
    if isinstance(descriptor, Pool2dDescriptor):
        window = descriptor.window
    else:
        window = cast(Conv2dDescriptor, descriptor).window(emitter.input_info(layer, 1))
    is_same = window.padding == same_of(emitter.input_info(layer, 0), window) != NO_PADDING
    return PaddingScheme.SAME if is_same else PaddingScheme.VALID


def _sources(
    emitter: Emitter, layer: Layer, descriptor: Conv2dDescriptor | DepthwiseConv2dDescriptor | Pool2dDescriptor
) -> list[str | None]:
    """Return the inputs of a convolution or pool; padding that is neither SAME nor VALID becomes a layer before it."""
    image, padding = emitter.input_info(layer, 0), descriptor.padding
    source = image.name
    if padding != NO_PADDING and _scheme(emitter, layer) is PaddingScheme.VALID:
        source = _padded(emitter, layer, image, _pad(layer, image.dtype, padding))
    return [source, *layer.inputs[1:]]


def _padded(emitter: Emitter, layer: Layer, image: TensorInfo, descriptor: PadDescriptor | PadV2Descriptor) -> str:
    """Write a PAD or a PADV2 of an image before a layer, and return the name of its output."""
    shape = tuple(sum(extents) for extents in zip(image.shape, descriptor.before, descriptor.after, strict=True))
    output = emitter.add(replace(image, name=f"{layer.name}/padded", shape=shape))
    type_ = type_of(descriptor)
    PADS[type_].write(emitter, Layer(layer.name, type_, descriptor, inputs=(image.name,), outputs=(output,)))
    return output


def _pad(layer: Layer, dtype: DataType, padding: Padding) -> PadDescriptor | PadV2Descriptor:
    """Return the padding before a layer: zeros, and the lowest values before a pool."""
    before, after = (0, padding.top, padding.left, 0), (0, padding.bottom, padding.right, 0)
    if not isinstance(layer.descriptor, Pool2dDescriptor):
        return PadDescriptor(before=before, after=after)
    if layer.type is not LayerType.MAX_POOL_2D:
        raise UnsupportedError(
            f"layer '{layer.name}': {layer.type} with {padding} cannot be expressed in TensorFlow Lite, "
            "which has only SAME and VALID padding",
            hint="put a PAD layer before it if the padded pixels may count as zeros",
        )
    lowest = float(np.finfo(np.float32).min) if dtype.is_float else int(np.iinfo(dtype.numpy).min)
    return PadV2Descriptor(before=before, after=after, value=lowest)


def _bias_type(emitter: Emitter, layer: Layer) -> int | None:
    return _BIAS_INT32 if _bias_is_int32_with_int16(emitter.input_infos(layer)) else None


_BIAS_TYPE: Option = ("quantized_bias_type", _bias_type)


def _convolution_version(written: Written) -> int:
    if _bias_is_int32_with_int16(written.inputs):
        return 8
    if written.inputs[1].shape[-1] != written.inputs[0].shape[-1]:
        return 6
    return by_type(int8=3, int16=4)(written)


def _depthwise_version(written: Written) -> int:
    dilated = (written.descriptor.dilation_h, written.descriptor.dilation_w) != (1, 1)
    return {DataType.INT8: 3, DataType.INT16: 5}.get(written.dtype, 2 if dilated else 1)


def _fully_connected_version(written: Written) -> int:
    if _bias_is_int32_with_int16(written.inputs):
        return 11
    if written.dtype is DataType.INT16:
        return 7
    if len(written.inputs) == 2:
        return 6
    return 5 if written.descriptor.keep_num_dims else by_type(int8=4)(written)


def _bias_is_int32_with_int16(inputs: Sequence[TensorInfo]) -> bool:
    """Whether int16 activations have an int32 bias, which the options must state (`quantized_bias_type`)."""
    return len(inputs) > 2 and inputs[0].dtype is DataType.INT16 and inputs[2].dtype is DataType.INT32


def same_of(image: TensorInfo, window: Window) -> Padding:
    """Return the explicit padding for the scheme SAME and an NHWC image."""
    _, height, width, _ = image.shape
    top, bottom = same_padding(height, window.height, window.stride_h, window.dilation_h)
    left, right = same_padding(width, window.width, window.stride_w, window.dilation_w)
    return Padding(top=top, bottom=bottom, left=left, right=right)


def needs_narrow_bias(node: Node) -> bool:
    """Whether a layer has int16 sums of 32 bits and no bias: in a network, the type of the bias decides their width."""
    if node.record.type not in _NARROW or node.has_input(_BIAS) or node.source.dtype is not DataType.INT16:
        return False
    found: int = node.optional_options(_NARROW[node.record.type]).quantized_bias_type
    return found == _BIAS_INT32


def refuse_hybrid(node: Node, position: int = 0) -> None:
    """Refuse float32 activations, the input at a position, with integer weights."""
    image, weights = node.input(position), node.input(1)
    if image.dtype.is_float and weights.dtype in {DataType.INT8, DataType.INT16}:
        raise UnsupportedError(
            f"it is hybrid: float32 activations ('{image.name}') with {weights.dtype} weights ('{weights.name}'), "
            "which quantise their input anew in every run and are not supported",
            hint="convert the model without dynamic-range quantisation, quantise its activations too, or compute with "
            f"float32 weights: {option('dequantize_weights')}",
        )


def strides_of(options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the strides of the options, by attribute of descriptors; ModelError unless they are positive."""
    rows, columns = _positive((options.stride_h, options.stride_w), "strides")
    return {"stride_h": rows, "stride_w": columns}


def _positive(values: tuple[int, int], role: str) -> tuple[int, int]:
    if min(values) < 1:
        raise ModelError(f"its {role} are {list(values)}, expected positive numbers")
    return values


def rank_4(info: TensorInfo) -> TensorInfo:
    """Return a tensor's description; UnsupportedError unless it has 4 dimensions."""
    if len(info.shape) != 4:
        raise UnsupportedError(f"tensor '{info.name}' has shape {list(info.shape)}, expected 4 dimensions")
    return info


def padding_of(options: Any, image: TensorInfo, window: Window) -> Padding:  # noqa: ANN401
    """Return explicit padding for the scheme in the options; UnsupportedError if the window exceeds `MAX_WINDOW`."""
    for extent, dilation in ((window.height, window.dilation_h), (window.width, window.dilation_w)):
        span = (extent - 1) * dilation + 1
        if span > MAX_WINDOW:
            raise UnsupportedError(f"its window spans {span} pixels, expected at most {MAX_WINDOW}")
    scheme = options.padding
    match scheme:
        case PaddingScheme.VALID:
            return NO_PADDING
        case PaddingScheme.SAME:
            return same_of(image, window)
    raise ModelError(f"its padding is number {scheme}, expected 0 (SAME) or 1 (VALID)")


def _weighted(row: Row) -> Row:
    """Return the row of an operator with data, weights and an optional bias."""
    return replace(row, data_inputs=range(3), optional=frozenset({_BIAS}))


_SCHEME: Option = ("padding", _scheme)
_DILATED: Sequence[Option] = [_SCHEME, "stride_w", "stride_h", "activation", "dilation_w", "dilation_h"]
"""The options of convolutions."""
_POOL = Row(
    "Pool2DOptions",
    [_SCHEME, "stride_w", "stride_h", "pool_w", "pool_h", "activation"],
    reader=_read_pool,
    sources=_sources,
)

ROWS: Mapping[LayerType, Row] = {
    LayerType.AVERAGE_POOL_2D: replace(_POOL, version=by_type(int8=2, int16=3)),
    LayerType.CONV_2D: _weighted(
        Row(
            "Conv2DOptions",
            [*_DILATED, _BIAS_TYPE],
            reader=_read_convolution,
            sources=_sources,
            version=_convolution_version,
        )
    ),
    LayerType.DEPTHWISE_CONV_2D: _weighted(
        Row(
            "DepthwiseConv2DOptions",
            [*_DILATED, "depth_multiplier"],
            reader=_read_depthwise_convolution,
            sources=_sources,
            version=_depthwise_version,
        )
    ),
    LayerType.FULLY_CONNECTED: _weighted(
        Row(
            "FullyConnectedOptions",
            ["activation", "keep_num_dims", _BIAS_TYPE],
            version=_fully_connected_version,
            required=False,
            check=_check_fully_connected,
        )
    ),
    LayerType.L2_POOL_2D: _POOL,
    LayerType.MAX_POOL_2D: replace(_POOL, version=by_type(int8=2, int16=3)),
}
"""The operators of this module."""
