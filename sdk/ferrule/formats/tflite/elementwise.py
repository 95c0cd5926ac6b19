# SPDX-License-Identifier: Apache-2.0
"""Reads and writes elementwise operators beyond those of `operators`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.encoder import Options
from ferrule.formats.tflite.node import Node, activation
from ferrule.formats.tflite.row import MANY, Row, by_type, plain, write_options
from ferrule.formats.tflite.tensors import TYPE_NUMBERS
from ferrule.graph import DataType, Descriptor, Layer, LayerType, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.add_n import AddNDescriptor
from ferrule.operators.binary import BinaryDescriptor
from ferrule.operators.cast import CastDescriptor
from ferrule.operators.comparison import ComparisonDescriptor, LogicalDescriptor
from ferrule.operators.division import FlooredDescriptor
from ferrule.operators.elementwise_unary import ElementwiseUnaryDescriptor
from ferrule.operators.l2_normalization import L2NormalizationDescriptor
from ferrule.operators.log_softmax import LogSoftmaxDescriptor
from ferrule.operators.select import SelectV2Descriptor
from ferrule.operators.squared_difference import SquaredDifferenceDescriptor


def _read_div(node: Node) -> Descriptor:
    options = node.optional_options("DivOptions")
    if options is None:
        return BinaryDescriptor()
    return BinaryDescriptor(activation=activation(options.FusedActivationFunction()))


def _div_version(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    del descriptor
    repeats = any(info.shape != output.shape for info in inputs)
    return 2 if repeats and max(len(info.shape) for info in inputs) > 4 else 1


def _read_l2_normalization(node: Node) -> Descriptor:
    options = node.optional_options("L2NormOptions")
    found = Activation.NONE if options is None else activation(options.FusedActivationFunction())
    if found is not Activation.NONE:
        raise UnsupportedError(f"its fused activation is {found}, expected none")
    return L2NormalizationDescriptor()


def _floor_div_version(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    del descriptor, output
    return 2 if inputs[0].dtype is DataType.FLOAT32 else 1


def _write_cast(emitter: Emitter, layer: Layer, descriptor: CastDescriptor) -> None:
    del descriptor
    types = {
        "InDataType": TYPE_NUMBERS[emitter.input_info(layer, 0).dtype],
        "OutDataType": TYPE_NUMBERS[emitter.output_info(layer).dtype],
    }
    emitter.emit(layer, Options(table="CastOptions", fields=types))


def _cast_version(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    del descriptor
    return 3 if DataType.INT8 in {inputs[0].dtype, output.dtype} else 1


_COMPARISON = by_type(int8=2)
ROWS: Mapping[LayerType, Row] = {
    LayerType.ABS: plain(ElementwiseUnaryDescriptor, "AbsOptions", version=by_type(int8=2, int16=3)),
    LayerType.ADD_N: Row(
        read=lambda _: AddNDescriptor(),
        write=write_options("AddNOptions"),
        data_inputs=range(MANY),
        inputs=range(2, MANY),
    ),
    LayerType.CAST: Row(read=lambda _: CastDescriptor(), write=_write_cast, version=_cast_version),
    LayerType.COS: plain(ElementwiseUnaryDescriptor, "CosOptions"),
    LayerType.DIV: Row(
        read=_read_div,
        write=write_options("DivOptions", FusedActivationFunction="activation"),
        version=_div_version,
        data_inputs=range(2),
        inputs=range(2, 3),
    ),
    LayerType.ELU: plain(ElementwiseUnaryDescriptor),
    LayerType.EQUAL: plain(ComparisonDescriptor, "EqualOptions", version=_COMPARISON, inputs=2),
    LayerType.EXP: plain(ElementwiseUnaryDescriptor, "ExpOptions"),
    LayerType.FLOOR_DIV: plain(FlooredDescriptor, "FloorDivOptions", version=_floor_div_version, inputs=2),
    LayerType.FLOOR_MOD: plain(FlooredDescriptor, "FloorModOptions", inputs=2),
    LayerType.GREATER: plain(ComparisonDescriptor, "GreaterOptions", version=_COMPARISON, inputs=2),
    LayerType.GREATER_EQUAL: plain(ComparisonDescriptor, "GreaterEqualOptions", version=_COMPARISON, inputs=2),
    LayerType.L2_NORMALIZATION: Row(
        read=_read_l2_normalization, write=write_options("L2NormOptions"), version=by_type(int8=2)
    ),
    LayerType.LESS: plain(ComparisonDescriptor, "LessOptions", version=_COMPARISON, inputs=2),
    LayerType.LESS_EQUAL: plain(ComparisonDescriptor, "LessEqualOptions", version=_COMPARISON, inputs=2),
    LayerType.LOG: plain(ElementwiseUnaryDescriptor),
    LayerType.LOG_SOFTMAX: plain(LogSoftmaxDescriptor, "LogSoftmaxOptions", version=by_type(int8=2)),
    LayerType.LOGICAL_AND: plain(LogicalDescriptor, "LogicalAndOptions", inputs=2),
    LayerType.LOGICAL_NOT: plain(ElementwiseUnaryDescriptor, "LogicalNotOptions"),
    LayerType.LOGICAL_OR: plain(LogicalDescriptor, "LogicalOrOptions", inputs=2),
    LayerType.NOT_EQUAL: plain(ComparisonDescriptor, "NotEqualOptions", version=_COMPARISON, inputs=2),
    LayerType.ROUND: plain(ElementwiseUnaryDescriptor),
    LayerType.RSQRT: plain(ElementwiseUnaryDescriptor, version=by_type(int8=2, int16=3)),
    LayerType.SELECT_V2: replace(plain(SelectV2Descriptor, "SelectV2Options", inputs=3), any_shape=True),
    LayerType.SIN: plain(ElementwiseUnaryDescriptor),
    LayerType.SQRT: plain(ElementwiseUnaryDescriptor),
    LayerType.SQUARE: plain(ElementwiseUnaryDescriptor, "SquareOptions"),
    LayerType.SQUARED_DIFFERENCE: plain(
        SquaredDifferenceDescriptor, "SquaredDifferenceOptions", version=by_type(int8=2), inputs=2
    ),
}
"""The rows of these operators."""
