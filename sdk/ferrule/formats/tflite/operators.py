# SPDX-License-Identifier: Apache-2.0
"""The operator table of the format: how each operator is read and written, and its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.formats.tflite import (
    calls,
    circular_buffer,
    detection,
    elementwise,
    movement,
    recurrent,
    reductions,
    shapes,
    signal,
    spatial,
    windows,
)
from ferrule.formats.tflite.emitter import Version
from ferrule.formats.tflite.node import Node, activation, finite
from ferrule.formats.tflite.row import MANY, Read, Row, Write, by_type, plain, write_options
from ferrule.graph import DataType, Descriptor, LayerType, TensorInfo
from ferrule.operators.binary import BinaryDescriptor, ExtremumDescriptor
from ferrule.operators.elementwise_unary import ElementwiseUnaryDescriptor
from ferrule.operators.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.quantize import DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.operators.softmax import SoftmaxDescriptor


def _mul_version(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    del descriptor
    first = inputs[0]
    if first.dtype is DataType.INT16:
        return 4 if first.quantization is not None else 7
    if first.dtype is DataType.INT64:
        return 5
    quantizations = [info.quantization for info in (*inputs, output)]
    if all(quantization is not None for quantization in quantizations):
        scales = [quantization.scale for quantization in quantizations if quantization is not None]
        if scales[0] * scales[-2] / scales[-1] >= 1:
            return 3
    return {DataType.INT8: 2}.get(first.dtype, 1)


def _quantize_version(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    del descriptor, inputs
    if _per_channel(output):
        return 3
    return 2 if output.dtype is DataType.INT16 else 1


def _dequantize_version(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    del descriptor, output
    return 5 if _per_channel(inputs[0]) else {DataType.INT8: 2, DataType.INT16: 3}.get(inputs[0].dtype, 1)


def _per_channel(info: TensorInfo) -> bool:
    return info.quantization is not None and info.quantization.per_channel


def _read_arithmetic(table: str) -> Read:
    """Return the reader of ADD, SUB or MUL; it ignores `pot_scale_int16`, as TensorFlow Lite Micro does."""

    def read(node: Node) -> Descriptor:
        options = node.optional_options(table)
        if options is None:
            return BinaryDescriptor()
        return BinaryDescriptor(activation=activation(options.FusedActivationFunction()))

    return read


def _read_softmax(node: Node) -> Descriptor:
    return SoftmaxDescriptor(beta=finite(node.options("SoftmaxOptions").Beta(), "beta"))


def _read_leaky_relu(node: Node) -> Descriptor:
    return LeakyReluDescriptor(alpha=finite(node.options("LeakyReluOptions").Alpha(), "alpha"))


def _sum_or_difference(table: str, version: Version) -> Row:
    """Return the row of ADD or SUB; int16 scales need not be powers of two, as in TensorFlow Lite Micro."""
    return Row(
        read=_read_arithmetic(table),
        write=write_options(table, {"PotScaleInt16": False}, FusedActivationFunction="activation"),
        version=version,
        data_inputs=range(2),
        inputs=range(2, 3),
    )


def _weighted(read: Read, write: Write, version: Version) -> Row:
    """Return the row of an operator with data, weights and an optional bias."""
    return Row(
        read=read,
        write=write,
        version=version,
        data_inputs=range(3),
        inputs=range(2, 4),
        optional=frozenset({2}),
    )


_INT8_2_INT16_3 = by_type(int8=2, int16=3)
_EXTREMUM = by_type(int8=2, int16=4, wide=3)
_PADDING = by_type(int8=2, int16=3, bool_=5, wide=4)

OPERATORS: Mapping[LayerType, Row] = {
    **calls.ROWS,
    **circular_buffer.ROWS,
    **detection.ROWS,
    **reductions.ROWS,
    **spatial.ROWS,
    LayerType.ADD: _sum_or_difference("AddOptions", by_type(int8=2, int16=3, int64=4)),
    LayerType.AVERAGE_POOL_2D: Row(read=windows.read_pool, write=windows.write_pool, version=_INT8_2_INT16_3),
    LayerType.CEIL: plain(ElementwiseUnaryDescriptor),
    LayerType.CONCATENATION: Row(
        read=shapes.read_concatenation,
        write=write_options("ConcatenationOptions", Axis="axis"),
        version=_INT8_2_INT16_3,
        data_inputs=range(MANY),
        inputs=range(1, MANY),
    ),
    LayerType.CONV_2D: _weighted(windows.read_convolution, windows.write_convolution, windows.convolution_version),
    LayerType.DEPTHWISE_CONV_2D: _weighted(
        windows.read_depthwise_convolution, windows.write_convolution, windows.depthwise_version
    ),
    LayerType.DEQUANTIZE: plain(DequantizeDescriptor, "DequantizeOptions", version=_dequantize_version),
    LayerType.EXPAND_DIMS: Row(read=shapes.read_expand_dims, write=shapes.write_expand_dims, inputs=range(2, 3)),
    LayerType.FLOOR: plain(ElementwiseUnaryDescriptor),
    LayerType.FULLY_CONNECTED: _weighted(
        windows.read_fully_connected, windows.write_fully_connected, windows.fully_connected_version
    ),
    LayerType.HARD_SWISH: plain(HardSwishDescriptor, "HardSwishOptions"),
    LayerType.LEAKY_RELU: Row(
        read=_read_leaky_relu, write=write_options("LeakyReluOptions", Alpha="alpha"), version=by_type(int16=2)
    ),
    LayerType.LOGISTIC: plain(LogisticDescriptor, version=_INT8_2_INT16_3),
    LayerType.MAXIMUM: plain(ExtremumDescriptor, "MaximumMinimumOptions", version=_EXTREMUM, inputs=2),
    LayerType.MAX_POOL_2D: Row(read=windows.read_pool, write=windows.write_pool, version=_INT8_2_INT16_3),
    LayerType.MEAN: Row(
        read=shapes.read_reduce,
        write=shapes.write_reduce,
        version=_INT8_2_INT16_3,
        inputs=range(2, 3),
        any_shape=True,
    ),
    LayerType.MINIMUM: plain(ExtremumDescriptor, "MaximumMinimumOptions", version=_EXTREMUM, inputs=2),
    LayerType.MUL: Row(
        read=_read_arithmetic("MulOptions"),
        write=write_options("MulOptions", FusedActivationFunction="activation"),
        version=_mul_version,
        data_inputs=range(2),
        inputs=range(2, 3),
    ),
    LayerType.NEG: plain(ElementwiseUnaryDescriptor, "NegOptions"),
    LayerType.PAD: Row(read=shapes.read_pad, write=shapes.write_pad, version=_PADDING, inputs=range(2, 3)),
    LayerType.PADV2: Row(read=shapes.read_pad_v2, write=shapes.write_pad_v2, version=_PADDING, inputs=range(3, 4)),
    LayerType.PRELU: plain(PreluDescriptor, inputs=2),
    LayerType.QUANTIZE: plain(QuantizeDescriptor, "QuantizeOptions", version=_quantize_version),
    LayerType.RELU: plain(ReluDescriptor, version=_INT8_2_INT16_3),
    LayerType.RELU6: plain(ReluDescriptor, version=_INT8_2_INT16_3),
    LayerType.RELU_N1_TO_1: plain(ReluDescriptor),
    LayerType.RESHAPE: Row(read=shapes.read_reshape, write=shapes.write_reshape, inputs=range(1, 3)),
    LayerType.SLICE: Row(
        read=shapes.read_slice,
        write=shapes.write_slice,
        version=by_type(int8=2, int16=4, wide=5),
        data_inputs=range(2),
        parameters=frozenset({1}),
        indices=frozenset({1}),
        inputs=range(3, 4),
        any_shape=True,
    ),
    LayerType.SOFTMAX: Row(
        read=_read_softmax, write=write_options("SoftmaxOptions", Beta="beta"), version=_INT8_2_INT16_3
    ),
    LayerType.SPLIT: Row(
        read=shapes.read_split,
        write=shapes.write_split,
        version=by_type(int8=2, int32=3, int16=4),
        data_inputs=range(1, 2),
        inputs=range(2, 3),
        outputs=range(1, MANY),
    ),
    LayerType.SQUEEZE: Row(
        read=shapes.read_squeeze, write=write_options("SqueezeOptions", SqueezeDims="axes"), any_shape=True
    ),
    LayerType.STRIDED_SLICE: Row(
        read=shapes.read_strided_slice,
        write=shapes.write_strided_slice,
        version=by_type(int8=2, bool_=3, wide=4),
        inputs=range(4, 5),
        any_shape=True,
    ),
    LayerType.SUB: _sum_or_difference("SubOptions", by_type(int8=2, int64=4, int16=5, wide=3)),
    LayerType.SUM: Row(
        read=shapes.read_reduce,
        write=shapes.write_reduce,
        version=by_type(int8=2),
        inputs=range(2, 3),
        any_shape=True,
    ),
    LayerType.TANH: plain(TanhDescriptor, version=_INT8_2_INT16_3),
    LayerType.TRANSPOSE: Row(
        read=shapes.read_transpose,
        write=shapes.write_transpose,
        version=by_type(int8=2, bool_=3, int16=5, wide=4),
        inputs=range(2, 3),
    ),
    **elementwise.ROWS,
    **movement.ROWS,
    **recurrent.ROWS,
    **signal.ROWS,
}
"""The operators of the format that networks support."""

CUSTOM: Mapping[str, LayerType] = {row.custom: type_ for type_, row in OPERATORS.items() if row.custom}
"""The types of the custom operators that networks support, by custom code."""
