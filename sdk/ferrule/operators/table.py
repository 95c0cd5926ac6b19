# SPDX-License-Identifier: Apache-2.0
"""The operators, one row per layer type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ferrule.graph import Descriptor, LayerType
from ferrule.operators.arithmetic.half import with_float16
from ferrule.operators.control_flow import IF, WHILE
from ferrule.operators.detection import DETECTION_POSTPROCESS
from ferrule.operators.elementwise.add_n import ADD_N
from ferrule.operators.elementwise.binary import ADD, BITWISE_XOR, MAXIMUM, MINIMUM, MUL, SUB
from ferrule.operators.elementwise.cast import CAST
from ferrule.operators.elementwise.comparison import COMPARISONS, LOGICAL_AND, LOGICAL_OR
from ferrule.operators.elementwise.convert import CONVERT_FP16_TO_FP32, CONVERT_FP32_TO_FP16
from ferrule.operators.elementwise.division import DIV, FLOOR_DIV, FLOOR_MOD
from ferrule.operators.elementwise.functions import ELEMENTWISE_UNARY
from ferrule.operators.elementwise.nonlinear import HARD_SWISH, LOGISTIC, TANH
from ferrule.operators.elementwise.quantize import DEQUANTIZE, QUANTIZE
from ferrule.operators.elementwise.rectify import LEAKY_RELU, PRELU, RELU, RELU6, RELU_N1_TO_1
from ferrule.operators.elementwise.select import SELECT_V2
from ferrule.operators.elementwise.squared_difference import SQUARED_DIFFERENCE
from ferrule.operators.movement.block import BATCH_TO_SPACE_ND, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, SPACE_TO_DEPTH
from ferrule.operators.movement.gather import DYNAMIC_UPDATE_SLICE, EMBEDDING_LOOKUP, GATHER, GATHER_ND
from ferrule.operators.movement.join import CONCATENATION, SPLIT, SPLIT_V
from ferrule.operators.movement.mirror import MIRROR_PAD, REVERSE_V2
from ferrule.operators.movement.pad import PAD, PADV2
from ferrule.operators.movement.repeat import BROADCAST_TO, FILL, TILE, ZEROS_LIKE
from ferrule.operators.movement.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE
from ferrule.operators.movement.slice import SLICE, STRIDED_SLICE
from ferrule.operators.movement.stack import PACK, UNPACK
from ferrule.operators.movement.transpose import TRANSPOSE
from ferrule.operators.operator import Operator
from ferrule.operators.recurrent.circular_buffer import CIRCULAR_BUFFER
from ferrule.operators.recurrent.lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from ferrule.operators.recurrent.svdf import SVDF
from ferrule.operators.reductions.arg_select import ARG_MAX, ARG_MIN
from ferrule.operators.reductions.cumsum import CUMSUM
from ferrule.operators.reductions.l2_normalization import L2_NORMALIZATION
from ferrule.operators.reductions.log_softmax import LOG_SOFTMAX
from ferrule.operators.reductions.reduce import MEAN, SUM
from ferrule.operators.reductions.reduce_select import REDUCE_SELECT
from ferrule.operators.reductions.softmax import SOFTMAX
from ferrule.operators.signal.filter_bank import (
    SIGNAL_FILTER_BANK,
    SIGNAL_FILTER_BANK_LOG,
    SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION,
    SIGNAL_FILTER_BANK_SQUARE_ROOT,
    SIGNAL_PCAN,
)
from ferrule.operators.signal.frames import (
    SIGNAL_DELAY,
    SIGNAL_FRAMER,
    SIGNAL_OVERLAP_ADD,
    SIGNAL_STACKER,
    SIGNAL_WINDOW,
)
from ferrule.operators.signal.spectrum import SIGNAL_ENERGY, SIGNAL_FFT_AUTO_SCALE, SIGNAL_IRFFT, SIGNAL_RFFT
from ferrule.operators.spatial.pool2d import AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D
from ferrule.operators.spatial.resize import RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR
from ferrule.operators.transfer import DEBUG, FALLBACK_IMPORT, MEM_COPY, MEM_IMPORT
from ferrule.operators.weighted.batch_matmul import BATCH_MATMUL
from ferrule.operators.weighted.conv2d import CONV_2D
from ferrule.operators.weighted.depthwise_conv2d import DEPTHWISE_CONV_2D
from ferrule.operators.weighted.fully_connected import FULLY_CONNECTED
from ferrule.operators.weighted.transpose_conv import TRANSPOSE_CONV

_ROWS: tuple[Operator, ...] = (
    CONV_2D,
    DEPTHWISE_CONV_2D,
    TRANSPOSE_CONV,
    FULLY_CONNECTED,
    BATCH_MATMUL,
    AVERAGE_POOL_2D,
    MAX_POOL_2D,
    L2_POOL_2D,
    RESIZE_NEAREST_NEIGHBOR,
    RESIZE_BILINEAR,
    RESHAPE,
    SQUEEZE,
    EXPAND_DIMS,
    SOFTMAX,
    LOG_SOFTMAX,
    L2_NORMALIZATION,
    LOGISTIC,
    TANH,
    HARD_SWISH,
    QUANTIZE,
    DEQUANTIZE,
    CAST,
    MEAN,
    SUM,
    *REDUCE_SELECT,
    ARG_MAX,
    ARG_MIN,
    CUMSUM,
    ADD,
    SUB,
    MUL,
    DIV,
    FLOOR_DIV,
    FLOOR_MOD,
    SQUARED_DIFFERENCE,
    ADD_N,
    MAXIMUM,
    MINIMUM,
    BITWISE_XOR,
    PAD,
    PADV2,
    TRANSPOSE,
    CONCATENATION,
    SPLIT,
    SPLIT_V,
    PACK,
    UNPACK,
    GATHER,
    GATHER_ND,
    EMBEDDING_LOOKUP,
    DYNAMIC_UPDATE_SLICE,
    TILE,
    BROADCAST_TO,
    FILL,
    ZEROS_LIKE,
    REVERSE_V2,
    MIRROR_PAD,
    SPACE_TO_DEPTH,
    DEPTH_TO_SPACE,
    SPACE_TO_BATCH_ND,
    BATCH_TO_SPACE_ND,
    SLICE,
    STRIDED_SLICE,
    RELU,
    RELU6,
    RELU_N1_TO_1,
    LEAKY_RELU,
    PRELU,
    *ELEMENTWISE_UNARY,
    *COMPARISONS,
    LOGICAL_AND,
    LOGICAL_OR,
    SELECT_V2,
    SVDF,
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    CIRCULAR_BUFFER,
    DETECTION_POSTPROCESS,
)

_SIGNAL_ROWS = (
    SIGNAL_DELAY,
    SIGNAL_ENERGY,
    SIGNAL_FFT_AUTO_SCALE,
    SIGNAL_FILTER_BANK,
    SIGNAL_FILTER_BANK_LOG,
    SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION,
    SIGNAL_FILTER_BANK_SQUARE_ROOT,
    SIGNAL_FRAMER,
    SIGNAL_IRFFT,
    SIGNAL_OVERLAP_ADD,
    SIGNAL_PCAN,
    SIGNAL_RFFT,
    SIGNAL_STACKER,
    SIGNAL_WINDOW,
)

_OPTIMIZER_ROWS: tuple[Operator, ...] = (
    CONVERT_FP16_TO_FP32,
    CONVERT_FP32_TO_FP16,
    DEBUG,
    MEM_COPY,
    MEM_IMPORT,
    FALLBACK_IMPORT,
)

OPERATORS: Mapping[LayerType, Operator] = {
    row.type: row for row in (*map(with_float16, _ROWS), *_SIGNAL_ROWS, IF, WHILE, *_OPTIMIZER_ROWS)
}
"""The operator of each layer type."""

OPTIMIZER_TYPES = frozenset(row.type for row in _OPTIMIZER_ROWS)
"""The layer types that never occur in model files, since only the optimizer inserts them."""


def type_of(descriptor: Descriptor) -> LayerType:
    """Return the type of the layers with a descriptor whose class belongs to one operator only; ValueError if not."""
    (row,) = (row for row in OPERATORS.values() if row.descriptor is type(descriptor))
    return row.type


@cache
def having(**traits: object) -> frozenset[LayerType]:
    """Return the types of the operators that have all of these traits, such as `having(moves=True, view=False)`.

    Raises:
        AttributeError: `Operator` has no trait of that name.
    """
    return frozenset(
        type_ for type_, row in OPERATORS.items() if all(getattr(row, name) == traits[name] for name in traits)
    )
