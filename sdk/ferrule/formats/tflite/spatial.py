# SPDX-License-Identifier: Apache-2.0
"""Reads and writes RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR, TRANSPOSE_CONV, L2_POOL_2D and BATCH_MATMUL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite import windows
from ferrule.formats.tflite.emitter import ACTIVATION_NUMBERS, Emitter, Version
from ferrule.formats.tflite.encoder import Options, OptionValue
from ferrule.formats.tflite.node import Node, activation
from ferrule.formats.tflite.row import Read, Row, Write, by_type, write_options
from ferrule.graph import DataType, Descriptor, Layer, LayerType, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.resize import ResizeDescriptor
from ferrule.operators.transpose_conv import TransposeConvDescriptor

_WITHOUT_BIAS = 2
"""The inputs of a TRANSPOSE_CONV without a bias."""


def _read_resize(table: str) -> Read:
    def read(node: Node) -> Descriptor:
        size = node.integers(1, "new size")
        if len(size) != 2 or min(size) < 1:
            raise ModelError(f"its new size is {list(size)}, expected two numbers of 1 or more")
        options = node.optional_options(table)
        return ResizeDescriptor(
            height=size[0],
            width=size[1],
            align_corners=options is not None and bool(options.AlignCorners()),
            half_pixel_centers=options is not None and bool(options.HalfPixelCenters()),
        )

    return read


def _write_resize(table: str) -> Write:
    def write(emitter: Emitter, layer: Layer, descriptor: ResizeDescriptor) -> None:
        size = emitter.integers(layer, "size", (descriptor.height, descriptor.width))
        fields = {"AlignCorners": descriptor.align_corners, "HalfPixelCenters": descriptor.half_pixel_centers}
        emitter.emit(layer, Options(table=table, fields=fields), inputs=[*layer.inputs, size])

    return write


def _resize(table: str, *, corners_since_3: bool) -> Row:
    by_first = by_type(int8=2, int16=4)

    def version(descriptor: ResizeDescriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
        modern = descriptor.half_pixel_centers or (corners_since_3 and descriptor.align_corners)
        if modern and inputs[0].dtype is not DataType.INT16:
            return 3
        return by_first(descriptor, inputs, output)

    known: Version = version
    return Row(read=_read_resize(table), write=_write_resize(table), version=known, inputs=range(2, 3))


def _read_transpose_conv(node: Node) -> Descriptor:
    options = node.options("TransposeConvOptions")
    shape, weights = _output_shape(node), windows.rank_4(node.input(1))
    if len(shape) != 4 or min(shape) < 1:
        raise ModelError(f"its output shape is {list(shape)}, expected four numbers of 1 or more")
    windows.refuse_hybrid(node.input(2), weights)
    output = replace(node.output(), shape=shape)
    window = (weights.shape[1], weights.shape[2])
    strides = windows.strides_of(options)
    padding = windows.padding_of(options, output, window, strides, (1, 1))
    if options.Padding() == windows.PaddingScheme.VALID and not _fits(window, output):
        raise UnsupportedError(f"its window of {list(window)} is larger than its output, {list(shape[1:3])}")
    return TransposeConvDescriptor(
        output_h=shape[1],
        output_w=shape[2],
        stride_h=strides[0],
        stride_w=strides[1],
        pad_top=padding.top,
        pad_left=padding.left,
        activation=activation(options.FusedActivationFunction()),
    )


def _output_shape(node: Node) -> tuple[int, ...]:
    """Return the shape of the output, which need not be a constant: TensorFlow Lite Micro takes that of the tensor."""
    if node.is_constant(0):
        return node.integers(0, "output shape")
    return windows.rank_4(node.output()).shape


def _fits(window: tuple[int, int], output: TensorInfo) -> bool:
    """Whether the window is not larger than the output; TensorFlow Lite Micro shifts a larger one even if VALID."""
    return window[0] <= output.shape[1] and window[1] <= output.shape[2]


def _scheme(emitter: Emitter, layer: Layer, descriptor: TransposeConvDescriptor) -> windows.PaddingScheme:
    """Return the padding scheme of a layer; if both fit, that by which a convolution of the output gives the image.

    TensorFlow Lite Micro does not compare the sizes; LiteRT does.
    """
    image, weights = emitter.input_info(layer, 0), emitter.input_info(layer, 1)
    output = emitter.output_info(layer)
    window, strides = (weights.shape[1], weights.shape[2]), (descriptor.stride_h, descriptor.stride_w)
    same = windows.same_of(output, window, strides, (1, 1))
    padding = (descriptor.pad_top, descriptor.pad_left)
    schemes = []
    if padding == (same.top, same.left):
        schemes.append((windows.PaddingScheme.SAME, output.shape[1:3]))
    if padding == (0, 0) and _fits(window, output):
        places = tuple(size - length + 1 for size, length in zip(output.shape[1:3], window, strict=True))
        schemes.append((windows.PaddingScheme.VALID, places))
    if not schemes:
        raise UnsupportedError(
            f"layer '{layer.name}': a window of {list(window)} with padding {list(padding)} at the top and the left "
            "cannot be expressed in TensorFlow Lite"
        )
    for scheme, places in schemes:
        if tuple(-(-count // step) for count, step in zip(places, strides, strict=True)) == image.shape[1:3]:
            return scheme
    return schemes[0][0]


def _write_transpose_conv(emitter: Emitter, layer: Layer, descriptor: TransposeConvDescriptor) -> None:
    scheme = _scheme(emitter, layer, descriptor)
    fields: dict[str, OptionValue] = {
        "Padding": scheme.value,
        "StrideW": descriptor.stride_w,
        "StrideH": descriptor.stride_h,
        "FusedActivationFunction": ACTIVATION_NUMBERS[descriptor.activation.value],
    }
    shape = emitter.integers(layer, "shape", emitter.output_info(layer).shape)
    image, kernel, *bias = layer.inputs
    options = Options(table="TransposeConvOptions", fields=fields)
    emitter.emit(layer, options, inputs=[shape, kernel, image, *bias])


def _transpose_conv_version(
    descriptor: TransposeConvDescriptor, inputs: Sequence[TensorInfo], output: TensorInfo
) -> int:
    del output
    if descriptor.activation is not Activation.NONE:
        return 4
    if len(inputs) > _WITHOUT_BIAS:
        return 3
    return 2 if inputs[0].dtype is DataType.INT8 else 1


def _read_batch_matmul(node: Node) -> Descriptor:
    options = node.options("BatchMatMulOptions")
    windows.refuse_hybrid(node.input(0), node.input(1))
    return BatchMatmulDescriptor(adj_x=bool(options.AdjX()), adj_y=bool(options.AdjY()))


ROWS: Mapping[LayerType, Row] = {
    LayerType.BATCH_MATMUL: Row(
        read=_read_batch_matmul,
        write=write_options("BatchMatMulOptions", AdjX="adj_x", AdjY="adj_y"),
        version=by_type(int8=2, int16=3),
        data_inputs=range(2),
        inputs=range(2, 3),
    ),
    LayerType.L2_POOL_2D: Row(read=windows.read_pool, write=windows.write_pool),
    LayerType.RESIZE_BILINEAR: _resize("ResizeBilinearOptions", corners_since_3=False),
    LayerType.RESIZE_NEAREST_NEIGHBOR: _resize("ResizeNearestNeighborOptions", corners_since_3=True),
    LayerType.TRANSPOSE_CONV: Row(
        read=_read_transpose_conv,
        write=_write_transpose_conv,
        version=_transpose_conv_version,
        data_inputs=(2, 1, 3),
        inputs=range(3, 5),
        optional=frozenset({3}),
    ),
}
"""The operators of this module."""
