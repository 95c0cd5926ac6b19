# SPDX-License-Identifier: Apache-2.0
"""Rows of elementwise operators, and of conversions."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.emitter import Version, Written
from ferrule.formats.tflite.node import Node, activation
from ferrule.formats.tflite.row import MANY, TWO, Option, Row, by_type, first_version
from ferrule.formats.tflite.tensors import TYPE_NUMBERS
from ferrule.graph import DataType, LayerType, TensorInfo
from ferrule.operators.activation import Activation

_INT8_2, _INT8_2_INT16_3 = by_type(int8=2), by_type(int8=2, int16=3)
_POT_SCALE: Option = ("pot_scale_int16", False)
"""int16 scales need not be powers of two: TensorFlow Lite Micro ignores the field."""


def _arithmetic(table: str, version: Version, *fixed: Option) -> Row:
    return Row(table, ["activation", *fixed], version=version, data_inputs=TWO, required=False)


def _two(table: str, version: Version = first_version) -> Row:
    return Row(table, version=version, data_inputs=TWO)


def _mul_version(written: Written) -> int:
    match written.dtype:
        case DataType.INT16:
            return 4 if written.inputs[0].quantization is not None else 7
        case DataType.INT64:
            return 5
    quantizations = [info.quantization for info in (*written.inputs, written.output)]
    if all(quantization is not None for quantization in quantizations):
        scales = [quantization.scale for quantization in quantizations if quantization is not None]
        if scales[0] * scales[-2] / scales[-1] >= 1:
            return 3
    return 2 if written.dtype is DataType.INT8 else 1


def _div_version(written: Written) -> int:
    repeats = any(info.shape != written.output.shape for info in written.inputs)
    return 2 if repeats and written.rank > 4 else 1


def _quantize_version(written: Written) -> int:
    if _per_channel(written.output):
        return 3
    return 2 if written.output.dtype is DataType.INT16 else 1


def _dequantize_version(written: Written) -> int:
    return 5 if _per_channel(written.inputs[0]) else _INT8_2_INT16_3(written)


def _per_channel(info: TensorInfo) -> bool:
    return info.quantization is not None and info.quantization.per_channel


def _check_l2_normalization(node: Node) -> None:
    found = activation(node.optional_options("L2NormOptions").fused_activation_function)
    if found is not Activation.NONE:
        raise UnsupportedError(f"its fused activation is {found}, expected none")


_EXTREMUM = Row("MaximumMinimumOptions", version=by_type(int8=2, int16=4, wide=3), data_inputs=TWO)
_RECTIFIER = Row(version=_INT8_2_INT16_3)

ROWS: Mapping[LayerType, Row] = {
    LayerType.ABS: Row("AbsOptions", version=_INT8_2_INT16_3),
    LayerType.ADD: _arithmetic("AddOptions", by_type(int8=2, int16=3, int64=4), _POT_SCALE),
    LayerType.ADD_N: Row("AddNOptions", data_inputs=range(MANY), inputs=range(2, MANY)),
    LayerType.BITWISE_XOR: _two("BitwiseXorOptions"),
    LayerType.CAST: Row(
        "CastOptions",
        [
            ("in_data_type", lambda emitter, layer: TYPE_NUMBERS[emitter.input_info(layer, 0).dtype]),
            ("out_data_type", lambda emitter, layer: TYPE_NUMBERS[emitter.output_info(layer).dtype]),
        ],
        version=lambda written: 3 if DataType.INT8 in {written.dtype, written.output.dtype} else 1,
    ),
    LayerType.CEIL: Row(),
    LayerType.COS: Row("CosOptions"),
    LayerType.DEQUANTIZE: Row("DequantizeOptions", version=_dequantize_version),
    LayerType.DIV: _arithmetic("DivOptions", _div_version),
    LayerType.ELU: Row(),
    LayerType.EQUAL: _two("EqualOptions", _INT8_2),
    LayerType.EXP: Row("ExpOptions"),
    LayerType.FLOOR: Row(),
    LayerType.FLOOR_DIV: _two("FloorDivOptions", lambda written: 2 if written.dtype is DataType.FLOAT32 else 1),
    LayerType.FLOOR_MOD: _two("FloorModOptions"),
    LayerType.GREATER: _two("GreaterOptions", _INT8_2),
    LayerType.GREATER_EQUAL: _two("GreaterEqualOptions", _INT8_2),
    LayerType.HARD_SWISH: Row("HardSwishOptions"),
    LayerType.L2_NORMALIZATION: Row("L2NormOptions", version=_INT8_2, check=_check_l2_normalization),
    LayerType.LEAKY_RELU: Row("LeakyReluOptions", ["alpha"], version=by_type(int16=2)),
    LayerType.LESS: _two("LessOptions", _INT8_2),
    LayerType.LESS_EQUAL: _two("LessEqualOptions", _INT8_2),
    LayerType.LOG: Row(),
    LayerType.LOG_SOFTMAX: Row("LogSoftmaxOptions", version=_INT8_2),
    LayerType.LOGICAL_AND: _two("LogicalAndOptions"),
    LayerType.LOGICAL_NOT: Row("LogicalNotOptions"),
    LayerType.LOGICAL_OR: _two("LogicalOrOptions"),
    LayerType.LOGISTIC: _RECTIFIER,
    LayerType.MAXIMUM: _EXTREMUM,
    LayerType.MINIMUM: _EXTREMUM,
    LayerType.MUL: _arithmetic("MulOptions", _mul_version),
    LayerType.NEG: Row("NegOptions"),
    LayerType.NOT_EQUAL: _two("NotEqualOptions", _INT8_2),
    LayerType.PRELU: Row(data_inputs=TWO),
    LayerType.QUANTIZE: Row("QuantizeOptions", version=_quantize_version),
    LayerType.RELU: _RECTIFIER,
    LayerType.RELU6: _RECTIFIER,
    LayerType.RELU_N1_TO_1: Row(),
    LayerType.RIGHT_SHIFT: _two("RightShiftOptions"),
    LayerType.ROUND: Row(),
    LayerType.RSQRT: Row(version=_INT8_2_INT16_3),
    LayerType.SELECT_V2: Row("SelectV2Options", data_inputs=range(3), any_shape=True),
    LayerType.SIGN: Row("SignOptions"),
    LayerType.SIN: Row(),
    LayerType.SOFTMAX: Row("SoftmaxOptions", ["beta"], version=_INT8_2_INT16_3),
    LayerType.SQRT: Row(),
    LayerType.SQUARE: Row("SquareOptions"),
    LayerType.SQUARED_DIFFERENCE: _two("SquaredDifferenceOptions", _INT8_2),
    LayerType.SUB: _arithmetic("SubOptions", by_type(int8=2, int64=4, int16=5, wide=3), _POT_SCALE),
    LayerType.TANH: _RECTIFIER,
}
"""The rows of these operators."""
