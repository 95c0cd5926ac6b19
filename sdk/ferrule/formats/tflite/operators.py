# SPDX-License-Identifier: Apache-2.0
"""The operator table of the format: how each operator is read and written, and its version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ferrule.formats.tflite import shapes, windows
from ferrule.formats.tflite.emitter import ACTIVATION_NUMBERS, Emitter, Version
from ferrule.formats.tflite.encoder import Options, OptionValue
from ferrule.formats.tflite.node import Node, activation, finite
from ferrule.graph import DataType, Descriptor, Layer, LayerType, TensorInfo
from ferrule.operators.binary import BinaryDescriptor, ExtremumDescriptor
from ferrule.operators.elementwise_unary import ElementwiseUnaryDescriptor
from ferrule.operators.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.quantize import DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.operators.softmax import SoftmaxDescriptor

_MANY = 1 << 12
"""Limit on the number of inputs or outputs of an operator."""

Read = Callable[[Node], Descriptor]
Write = Callable[[Emitter, Layer, Any], None]


def _first(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    """Return 1, for operators that have only one version."""
    del descriptor, inputs, output
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How one operator is read and written.

    Versions follow `tflite/tools/versioning/op_version.cc` of LiteRT, for the types that a network can have.
    Interpreters refuse unknown versions, and some select a kernel by version.
    """

    read: Read
    write: Write
    version: Version = _first
    data_inputs: range = range(1)
    """Positions of the tensors that become inputs of the layer; the others are parameters."""
    inputs: range = range(1, 2)
    """The allowed numbers of inputs in a file."""
    outputs: range = range(1, 2)
    optional: frozenset[int] = frozenset()
    """Positions of data inputs that may be absent."""


def _by_type(
    *, int8: int = 1, int16: int = 1, int32: int = 1, int64: int = 1, bool_: int = 1, wide: int = 1
) -> Version:
    """Return a function from the first input's type to the version, at least `wide` for more than 4 dimensions."""
    versions = {
        DataType.INT8: int8,
        DataType.INT16: int16,
        DataType.INT32: int32,
        DataType.INT64: int64,
        DataType.BOOL: bool_,
    }

    def version(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
        del descriptor, output
        found = versions.get(inputs[0].dtype, 1)
        return max(found, wide) if max(len(info.shape) for info in inputs) > 4 else found

    return version


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


def _write(table: str = "", constants: Mapping[str, OptionValue] | None = None, **names: str) -> Write:
    """Return a writer of options copied from the descriptor; each keyword is schema name=attribute."""

    def write(emitter: Emitter, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
        fields: dict[str, OptionValue] = {}
        for schema_name, attribute in names.items():
            value = getattr(descriptor, attribute)
            fields[schema_name] = ACTIVATION_NUMBERS[value.value] if attribute == "activation" else value
        emitter.emit(layer, Options(table=table, fields=fields | dict(constants or {})))

    return write


def _plain(descriptor: type[Descriptor], table: str = "", *, version: Version = _first, inputs: int = 1) -> Row:
    """Return the row of an operator without parameters; `table` names its options table, if the schema has one."""
    return Row(
        read=lambda _: descriptor(),
        write=_write(table),
        version=version,
        data_inputs=range(inputs),
        inputs=range(inputs, inputs + 1),
    )


def _sum_or_difference(table: str, version: Version) -> Row:
    """Return the row of ADD or SUB; int16 scales need not be powers of two, as in TensorFlow Lite Micro."""
    return Row(
        read=_read_arithmetic(table),
        write=_write(table, {"PotScaleInt16": False}, FusedActivationFunction="activation"),
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


_INT8_2_INT16_3 = _by_type(int8=2, int16=3)
_EXTREMUM = _by_type(int8=2, int16=4, wide=3)
_PADDING = _by_type(int8=2, int16=3, bool_=5, wide=4)

OPERATORS: Mapping[LayerType, Row] = {
    LayerType.ADD: _sum_or_difference("AddOptions", _by_type(int8=2, int16=3, int64=4)),
    LayerType.AVERAGE_POOL_2D: Row(read=windows.read_pool, write=windows.write_pool, version=_INT8_2_INT16_3),
    LayerType.CEIL: _plain(ElementwiseUnaryDescriptor),
    LayerType.CONCATENATION: Row(
        read=shapes.read_concatenation,
        write=_write("ConcatenationOptions", Axis="axis"),
        version=_INT8_2_INT16_3,
        data_inputs=range(_MANY),
        inputs=range(1, _MANY),
    ),
    LayerType.CONV_2D: _weighted(windows.read_convolution, windows.write_convolution, windows.convolution_version),
    LayerType.DEPTHWISE_CONV_2D: _weighted(
        windows.read_depthwise_convolution, windows.write_convolution, windows.depthwise_version
    ),
    LayerType.DEQUANTIZE: _plain(DequantizeDescriptor, "DequantizeOptions", version=_dequantize_version),
    LayerType.EXPAND_DIMS: Row(read=shapes.read_expand_dims, write=shapes.write_expand_dims, inputs=range(2, 3)),
    LayerType.FLOOR: _plain(ElementwiseUnaryDescriptor),
    LayerType.FULLY_CONNECTED: _weighted(
        windows.read_fully_connected, windows.write_fully_connected, windows.fully_connected_version
    ),
    LayerType.HARD_SWISH: _plain(HardSwishDescriptor, "HardSwishOptions"),
    LayerType.LEAKY_RELU: Row(
        read=_read_leaky_relu, write=_write("LeakyReluOptions", Alpha="alpha"), version=_by_type(int16=2)
    ),
    LayerType.LOGISTIC: _plain(LogisticDescriptor, version=_INT8_2_INT16_3),
    LayerType.MAXIMUM: _plain(ExtremumDescriptor, "MaximumMinimumOptions", version=_EXTREMUM, inputs=2),
    LayerType.MAX_POOL_2D: Row(read=windows.read_pool, write=windows.write_pool, version=_INT8_2_INT16_3),
    LayerType.MEAN: Row(
        read=shapes.read_reduce, write=shapes.write_reduce, version=_INT8_2_INT16_3, inputs=range(2, 3)
    ),
    LayerType.MINIMUM: _plain(ExtremumDescriptor, "MaximumMinimumOptions", version=_EXTREMUM, inputs=2),
    LayerType.MUL: Row(
        read=_read_arithmetic("MulOptions"),
        write=_write("MulOptions", FusedActivationFunction="activation"),
        version=_mul_version,
        data_inputs=range(2),
        inputs=range(2, 3),
    ),
    LayerType.NEG: _plain(ElementwiseUnaryDescriptor, "NegOptions"),
    LayerType.PAD: Row(read=shapes.read_pad, write=shapes.write_pad, version=_PADDING, inputs=range(2, 3)),
    LayerType.PADV2: Row(read=shapes.read_pad_v2, write=shapes.write_pad_v2, version=_PADDING, inputs=range(3, 4)),
    LayerType.PRELU: _plain(PreluDescriptor, inputs=2),
    LayerType.QUANTIZE: _plain(QuantizeDescriptor, "QuantizeOptions", version=_quantize_version),
    LayerType.RELU: _plain(ReluDescriptor, version=_INT8_2_INT16_3),
    LayerType.RELU6: _plain(ReluDescriptor, version=_INT8_2_INT16_3),
    LayerType.RELU_N1_TO_1: _plain(ReluDescriptor),
    LayerType.RESHAPE: Row(read=shapes.read_reshape, write=shapes.write_reshape, inputs=range(1, 3)),
    LayerType.SLICE: Row(
        read=shapes.read_slice,
        write=shapes.write_slice,
        version=_by_type(int8=2, int16=4, wide=5),
        inputs=range(3, 4),
    ),
    LayerType.SOFTMAX: Row(read=_read_softmax, write=_write("SoftmaxOptions", Beta="beta"), version=_INT8_2_INT16_3),
    LayerType.SPLIT: Row(
        read=shapes.read_split,
        write=shapes.write_split,
        version=_by_type(int8=2, int32=3, int16=4),
        data_inputs=range(1, 2),
        inputs=range(2, 3),
        outputs=range(1, _MANY),
    ),
    LayerType.SQUEEZE: Row(read=shapes.read_squeeze, write=_write("SqueezeOptions", SqueezeDims="axes")),
    LayerType.STRIDED_SLICE: Row(
        read=shapes.read_strided_slice,
        write=shapes.write_strided_slice,
        version=_by_type(int8=2, bool_=3, wide=4),
        inputs=range(4, 5),
    ),
    LayerType.SUB: _sum_or_difference("SubOptions", _by_type(int8=2, int64=4, int16=5, wide=3)),
    LayerType.SUM: Row(
        read=shapes.read_reduce, write=shapes.write_reduce, version=_by_type(int8=2), inputs=range(2, 3)
    ),
    LayerType.TANH: _plain(TanhDescriptor, version=_INT8_2_INT16_3),
    LayerType.TRANSPOSE: Row(
        read=shapes.read_transpose,
        write=shapes.write_transpose,
        version=_by_type(int8=2, bool_=3, int16=5, wide=4),
        inputs=range(2, 3),
    ),
}
"""The operators of the format that networks support."""
