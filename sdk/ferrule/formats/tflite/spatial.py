# SPDX-License-Identifier: Apache-2.0
"""Rows of RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR, TRANSPOSE_CONV and BATCH_MATMUL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite import windows
from ferrule.formats.tflite.emitter import Emitter, Written
from ferrule.formats.tflite.node import Node, activation
from ferrule.formats.tflite.row import TWO, Row, Vector, by_type
from ferrule.graph import DataType, Descriptor, Layer, LayerType, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Window
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor

_WITHOUT_BIAS = 2
"""The inputs of a TRANSPOSE_CONV without a bias."""


def _size(node: Node, position: int, _: str) -> tuple[int, ...]:
    size = node.integers(position, "new size")
    if len(size) != 2 or min(size) < 1:
        raise ModelError(f"its new size is {list(size)}, expected two numbers of 1 or more")
    return size


def _resize(table: str, *, corners_since_3: bool) -> Row:
    by_first = by_type(int8=2, int16=4)

    def version(written: Written) -> int:
        descriptor = written.descriptor
        modern = descriptor.half_pixel_centers or (corners_since_3 and descriptor.align_corners)
        return 3 if modern and written.dtype is not DataType.INT16 else by_first(written)

    size = Vector(["height", "width"], _size, "size")
    return Row(table, ["align_corners", "half_pixel_centers"], [size], version, required=False)


def _read_transpose_conv(node: Node) -> Descriptor:
    options = node.options("TransposeConvOptions")
    shape, weights = _output_shape(node), windows.rank_4(node.input(1))
    if len(shape) != 4 or min(shape) < 1:
        raise ModelError(f"its output shape is {list(shape)}, expected four numbers of 1 or more")
    windows.refuse_hybrid(node, 2)
    output = replace(node.output(), shape=shape)
    strides = windows.strides_of(options)
    window = Window(height=weights.shape[1], width=weights.shape[2], **strides)
    padding = windows.padding_of(options, output, window)
    if options.padding == windows.PaddingScheme.VALID and not _fits(window, output):
        raise UnsupportedError(
            f"its window of {[window.height, window.width]} is larger than its output, {list(shape[1:3])}"
        )
    return TransposeConvDescriptor(
        output_h=shape[1],
        output_w=shape[2],
        **strides,
        pad_top=padding.top,
        pad_left=padding.left,
        activation=activation(options.fused_activation_function),
    )


def _output_shape(node: Node) -> tuple[int, ...]:
    """Return the shape of the output, which need not be a constant: TensorFlow Lite Micro takes that of the tensor."""
    if node.is_constant(0):
        return node.integers(0, "output shape")
    return windows.rank_4(node.output()).shape


def _fits(window: Window, output: TensorInfo) -> bool:
    """Whether the window is not larger than the output; TensorFlow Lite Micro shifts a larger one even if VALID."""
    return window.height <= output.shape[1] and window.width <= output.shape[2]


def _scheme(emitter: Emitter, layer: Layer) -> windows.PaddingScheme:
    """Return the padding scheme of a layer; if both fit, that by which a convolution of the output gives the image.

    TensorFlow Lite Micro does not compare the sizes; LiteRT does.
    """
    image, weights = emitter.input_info(layer, 0), emitter.input_info(layer, 1)
    output, descriptor = emitter.output_info(layer), cast(TransposeConvDescriptor, layer.descriptor)
    size, strides = weights.shape[1:3], (descriptor.stride_h, descriptor.stride_w)
    window = Window(height=size[0], width=size[1], stride_h=strides[0], stride_w=strides[1])
    same = windows.same_of(output, window)
    padding = (descriptor.pad_top, descriptor.pad_left)
    schemes = []
    if padding == (same.top, same.left):
        schemes.append((windows.PaddingScheme.SAME, output.shape[1:3]))
    if padding == (0, 0) and _fits(window, output):
        places = tuple(extent - length + 1 for extent, length in zip(output.shape[1:3], size, strict=True))
        schemes.append((windows.PaddingScheme.VALID, places))
    if not schemes:
        raise UnsupportedError(
            f"layer '{layer.name}': a window of {list(size)} with padding {list(padding)} at the top and the left "
            "cannot be expressed in TensorFlow Lite"
        )
    for scheme, places in schemes:
        if tuple(-(-count // step) for count, step in zip(places, strides, strict=True)) == image.shape[1:3]:
            return scheme
    return schemes[0][0]


def _sources(emitter: Emitter, layer: Layer, _: TransposeConvDescriptor) -> list[str | None]:
    shape = emitter.integers(layer, "shape", emitter.output_info(layer).shape)
    image, kernel, *bias = layer.inputs
    return [shape, kernel, image, *bias]


def _transpose_conv_version(written: Written) -> int:
    if written.descriptor.activation is not Activation.NONE:
        return 4
    return 3 if len(written.inputs) > _WITHOUT_BIAS else by_type(int8=2)(written)


ROWS: Mapping[LayerType, Row] = {
    LayerType.BATCH_MATMUL: Row(
        "BatchMatMulOptions",
        ["adj_x", "adj_y"],
        version=by_type(int8=2, int16=3),
        data_inputs=TWO,
        check=windows.refuse_hybrid,
    ),
    LayerType.RESIZE_BILINEAR: _resize("ResizeBilinearOptions", corners_since_3=False),
    LayerType.RESIZE_NEAREST_NEIGHBOR: _resize("ResizeNearestNeighborOptions", corners_since_3=True),
    LayerType.TRANSPOSE_CONV: Row(
        "TransposeConvOptions",
        [("padding", _scheme), "stride_w", "stride_h", "activation"],
        reader=_read_transpose_conv,
        sources=_sources,
        version=_transpose_conv_version,
        data_inputs=(2, 1, 3),
        inputs=range(3, 5),
        optional=frozenset({3}),
    ),
}
"""The operators of this module."""
