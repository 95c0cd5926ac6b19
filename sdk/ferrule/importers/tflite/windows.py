# SPDX-License-Identifier: Apache-2.0
"""Reading the operators with weights or windows."""

from __future__ import annotations

from typing import Any

from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import DataType, Descriptor, TensorInfo
from ferrule.importers.tflite.node import Node, activation
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.pool2d import Pool2dDescriptor
from ferrule.operators.window import NO_PADDING, Padding, same_padding

MAX_WINDOW = 1 << 14
"""Pixels along one axis that a window may span, dilation included; SAME padding is about as large."""

_SAME, _VALID = 0, 1


def convolution(node: Node) -> Descriptor:
    """Read CONV_2D."""
    _refuse_hybrid(node)
    options = node.options("Conv2DOptions")
    strides, dilations = _strides(options), _dilations(options)
    image, weights = _rank_4(node.input(0)), _rank_4(node.input(1))
    return Conv2dDescriptor(
        stride_h=strides[0],
        stride_w=strides[1],
        dilation_h=dilations[0],
        dilation_w=dilations[1],
        padding=_padding(options, image, (weights.shape[1], weights.shape[2]), strides, dilations),
        activation=activation(options.FusedActivationFunction()),
    )


def depthwise_convolution(node: Node) -> Descriptor:
    """Read DEPTHWISE_CONV_2D."""
    _refuse_hybrid(node)
    options = node.options("DepthwiseConv2DOptions")
    strides, dilations = _strides(options), _dilations(options)
    image, weights = _rank_4(node.input(0)), _rank_4(node.input(1))
    multiplier, rest = divmod(weights.shape[3], image.shape[3])
    if rest:
        raise ModelError(f"its weights have {weights.shape[3]} channels, expected a multiple of {image.shape[3]}")
    if options.DepthMultiplier() not in {0, multiplier}:  # 0: left to the shapes
        raise ModelError(f"its depth multiplier is {options.DepthMultiplier()}, expected {multiplier} for its shapes")
    return DepthwiseConv2dDescriptor(
        depth_multiplier=multiplier,
        stride_h=strides[0],
        stride_w=strides[1],
        dilation_h=dilations[0],
        dilation_w=dilations[1],
        padding=_padding(options, image, (weights.shape[1], weights.shape[2]), strides, dilations),
        activation=activation(options.FusedActivationFunction()),
    )


def fully_connected(node: Node) -> Descriptor:
    """Read FULLY_CONNECTED."""
    _refuse_hybrid(node)
    options = node.optional_options("FullyConnectedOptions")
    if options is None:
        return FullyConnectedDescriptor()
    if options.WeightsFormat() != 0:
        raise UnsupportedError("its weights are shuffled (SHUFFLED4x16INT8), expected the default order")
    return FullyConnectedDescriptor(
        keep_num_dims=bool(options.KeepNumDims()), activation=activation(options.FusedActivationFunction())
    )


def average_or_max_pool(node: Node) -> Descriptor:
    """Read AVERAGE_POOL_2D or MAX_POOL_2D."""
    options = node.options("Pool2DOptions")
    window = (options.FilterHeight(), options.FilterWidth())
    if min(window) < 1:
        raise ModelError(f"its window is {list(window)}, expected positive extents")
    strides = _strides(options)
    return Pool2dDescriptor(
        pool_h=window[0],
        pool_w=window[1],
        stride_h=strides[0],
        stride_w=strides[1],
        padding=_padding(options, _rank_4(node.input(0)), window, strides, (1, 1)),
        activation=activation(options.FusedActivationFunction()),
    )


def _refuse_hybrid(node: Node) -> None:
    image, weights = node.input(0), node.input(1)
    if image.dtype.is_float and weights.dtype in {DataType.INT8, DataType.INT16}:
        raise UnsupportedError(
            f"it is hybrid: float32 activations ('{image.name}') with {weights.dtype} weights ('{weights.name}'), "
            "which quantise their input anew in every run and are not supported",
            hint="convert the model without dynamic-range quantisation, or quantise its activations too",
        )


def _strides(options: Any) -> tuple[int, int]:  # noqa: ANN401
    return _positive((options.StrideH(), options.StrideW()), "strides")


def _dilations(options: Any) -> tuple[int, int]:  # noqa: ANN401
    return _positive((options.DilationHFactor(), options.DilationWFactor()), "dilation factors")


def _positive(values: tuple[int, int], role: str) -> tuple[int, int]:
    if min(values) < 1:
        raise ModelError(f"its {role} are {list(values)}, expected positive numbers")
    return values


def _rank_4(info: TensorInfo) -> TensorInfo:
    if len(info.shape) != 4:
        raise UnsupportedError(f"tensor '{info.name}' has shape {list(info.shape)}, expected 4 dimensions")
    return info


def _padding(
    options: Any,  # noqa: ANN401
    image: TensorInfo,
    window: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> Padding:
    """Return explicit padding for the scheme of the options; UnsupportedError if the window is absurdly large."""
    for extent, dilation in zip(window, dilations, strict=True):
        span = (extent - 1) * dilation + 1
        if span > MAX_WINDOW:
            raise UnsupportedError(f"its window spans {span} pixels, expected at most {MAX_WINDOW}")
    scheme = options.Padding()
    if scheme == _VALID:
        return NO_PADDING
    if scheme != _SAME:
        raise ModelError(f"its padding is number {scheme}, expected {_SAME} (SAME) or {_VALID} (VALID)")
    top, bottom = same_padding(image.shape[1], window[0], strides[0], dilations[0])
    left, right = same_padding(image.shape[2], window[1], strides[1], dilations[1])
    return Padding(top=top, bottom=bottom, left=left, right=right)
