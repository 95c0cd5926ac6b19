# SPDX-License-Identifier: Apache-2.0
"""What a layer takes at least: the instructions of the best kernels that were measured, on shapes that suit them.

The figures are a little below the least that was measured, by either toolchain. A report marks layers that take much
more, see `LoweredOp.bound`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernels.choice import Feature, core_features
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution
from ferrule.backends.cpu_acc.lowering.kernels.equivalent import equivalent
from ferrule.backends.cpu_acc.lowering.kernels.winograd import refused as winograd_refused
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import DataType, LayerType
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.table import OPERATORS


@frozen(kw_only=False)
class _Least:
    """The least instructions of a kind of layer."""

    per_mac: float = 0
    per_element: float = 0
    """Of the first output."""
    per_tap: float = 0
    """Of a pool's window, for each element of the output."""


_I8, _I16, _F32 = DataType.INT8, DataType.INT16, DataType.FLOAT32
_Table = Mapping[tuple[LayerType, DataType], _Least]
_DSP: _Table = {
    (LayerType.CONV_2D, _I8): _Least(0.7, 4),
    (LayerType.TRANSPOSE_CONV, _I8): _Least(0.7, 4),
    (LayerType.DEPTHWISE_CONV_2D, _I8): _Least(1.22, 3),
    (LayerType.FULLY_CONNECTED, _I8): _Least(0.85, 5.8),
    (LayerType.BATCH_MATMUL, _I8): _Least(0.9, 5.8),
    (LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM, _I8): _Least(1.9, 0),
    (LayerType.SVDF, _I8): _Least(1.3, 0),
    (LayerType.ADD, _I8): _Least(per_element=5.5),
    (LayerType.SUB, _I8): _Least(per_element=5.5),
    (LayerType.MUL, _I8): _Least(per_element=8),
    (LayerType.MAX_POOL_2D, _I8): _Least(per_element=3, per_tap=0.6),
    (LayerType.AVERAGE_POOL_2D, _I8): _Least(per_element=5.5, per_tap=0.85),
    (LayerType.PRELU, _I8): _Least(per_element=9),
    (LayerType.SOFTMAX, _I8): _Least(per_element=25),
    (LayerType.LAYER_NORMALIZATION, _I8): _Least(per_element=15),
    (LayerType.CONV_2D, _I16): _Least(0.8, 5),
    (LayerType.TRANSPOSE_CONV, _I16): _Least(1, 8),
    (LayerType.DEPTHWISE_CONV_2D, _I16): _Least(2.8, 3.9),
    (LayerType.FULLY_CONNECTED, _I16): _Least(1, 8),
    (LayerType.BATCH_MATMUL, _I16): _Least(0.98, 10),
    (LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM, _I16): _Least(1.6, 0),
    (LayerType.ADD, _I16): _Least(per_element=12.5),
    (LayerType.SUB, _I16): _Least(per_element=13),
    (LayerType.MUL, _I16): _Least(per_element=11.5),
    (LayerType.RELU, _I16): _Least(per_element=8.8),
    (LayerType.LEAKY_RELU, _I16): _Least(per_element=18),
    (LayerType.MAX_POOL_2D, _I16): _Least(per_element=3, per_tap=1.6),
    (LayerType.AVERAGE_POOL_2D, _I16): _Least(per_element=5, per_tap=1.75),
    (LayerType.SOFTMAX, _I16): _Least(per_element=21),
    (LayerType.LOGISTIC, _I16): _Least(per_element=12.5),
    (LayerType.TANH, _I16): _Least(per_element=12.5),
    (LayerType.CONV_2D, _F32): _Least(1.95, 3),
    (LayerType.TRANSPOSE_CONV, _F32): _Least(1.95, 3),
    (LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM, _F32): _Least(2.1, 300),
    (LayerType.DEPTHWISE_CONV_2D, _F32): _Least(2.2, 3.5),
    (LayerType.FULLY_CONNECTED, _F32): _Least(2.2, 4),
    (LayerType.BATCH_MATMUL, _F32): _Least(2.2, 4),
    (LayerType.ADD, _F32): _Least(per_element=2.8),
    (LayerType.SUB, _F32): _Least(per_element=2.8),
    (LayerType.MUL, _F32): _Least(per_element=2.8),
    (LayerType.RELU, _F32): _Least(per_element=4.8),
    (LayerType.MAX_POOL_2D, _F32): _Least(per_element=7, per_tap=4.5),
    (LayerType.AVERAGE_POOL_2D, _F32): _Least(per_element=8.5, per_tap=1.4),
}
_MVE: _Table = {
    (LayerType.CONV_2D, _I8): _Least(0.11, 2.6),
    (LayerType.TRANSPOSE_CONV, _I8): _Least(0.11, 2.6),
    (LayerType.DEPTHWISE_CONV_2D, _I8): _Least(0.16, 6.4),
    (LayerType.FULLY_CONNECTED, _I8): _Least(0.13, 2.6),
    (LayerType.BATCH_MATMUL, _I8): _Least(0.1, 2.5),
    (LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM, _I8): _Least(0.4, 0),
    (LayerType.SVDF, _I8): _Least(0.4, 0),
    (LayerType.ADD, _I8): _Least(per_element=2.3),
    (LayerType.SUB, _I8): _Least(per_element=2.3),
    (LayerType.MUL, _I8): _Least(per_element=2.2),
    (LayerType.MAX_POOL_2D, _I8): _Least(per_element=1, per_tap=0.2),
    (LayerType.AVERAGE_POOL_2D, _I8): _Least(per_element=1.4, per_tap=0.5),
    (LayerType.PRELU, _I8): _Least(per_element=4),
    (LayerType.SOFTMAX, _I8): _Least(per_element=7),
    (LayerType.LAYER_NORMALIZATION, _I8): _Least(per_element=3.4),
    (LayerType.CONV_2D, _I16): _Least(0.23, 3),
    (LayerType.DEPTHWISE_CONV_2D, _I16): _Least(1.05, 4),
    (LayerType.FULLY_CONNECTED, _I16): _Least(0.3, 5),
    (LayerType.BATCH_MATMUL, _I16): _Least(0.3, 6),
    (LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM, _I16): _Least(0.5, 0),
    (LayerType.ADD, _I16): _Least(per_element=4.4),
    (LayerType.SUB, _I16): _Least(per_element=4.4),
    (LayerType.RELU, _I16): _Least(per_element=2.4),
    (LayerType.LEAKY_RELU, _I16): _Least(per_element=4.1),
    (LayerType.MUL, _I16): _Least(per_element=2.7),
    (LayerType.AVERAGE_POOL_2D, _I16): _Least(per_element=1.7, per_tap=0.6),
    (LayerType.SOFTMAX, _I16): _Least(per_element=6.6),
    (LayerType.LOGISTIC, _I16): _Least(per_element=2.7),
    (LayerType.TANH, _I16): _Least(per_element=2.7),
    (LayerType.CONV_2D, _F32): _Least(0.68, 2),
    (LayerType.TRANSPOSE_CONV, _F32): _Least(0.68, 2),
    (LayerType.DEPTHWISE_CONV_2D, _F32): _Least(1, 2),
    (LayerType.FULLY_CONNECTED, _F32): _Least(0.8, 2),
    (LayerType.BATCH_MATMUL, _F32): _Least(0.8, 3),
    (LayerType.ADD, _F32): _Least(per_element=1.6),
    (LayerType.SUB, _F32): _Least(per_element=1.6),
    (LayerType.MUL, _F32): _Least(per_element=1.6),
    (LayerType.RELU, _F32): _Least(per_element=1.6),
    (LayerType.MAX_POOL_2D, _F32): _Least(per_element=8, per_tap=1.35),
    (LayerType.AVERAGE_POOL_2D, _F32): _Least(per_element=11, per_tap=0.82),
}
_PLAIN: _Table = {
    (LayerType.CONV_2D, _I8): _Least(1.5, 10),
    (LayerType.TRANSPOSE_CONV, _I8): _Least(1.5, 10),
    (LayerType.DEPTHWISE_CONV_2D, _I8): _Least(3.5, 10),
    (LayerType.FULLY_CONNECTED, _I8): _Least(2, 10),
    (LayerType.BATCH_MATMUL, _I8): _Least(2, 10),
    (LayerType.ADD, _I8): _Least(per_element=6),
    (LayerType.SUB, _I8): _Least(per_element=6),
    (LayerType.MUL, _I8): _Least(per_element=15),
}
_WINOGRAD = _Least(0.4, 17)
"""A convolution by Winograd's algorithm in int8, with at least 16 channels in and out, on a core with the DSP
extension."""
_WINOGRAD_CHANNELS = 16


def bound_of(context: LoweringContext) -> int | None:
    """Return the least instructions of a layer on the context's core; None if nothing is known, as for Armv6-M."""
    core = context.target.core
    if core is None or core.baseline or not context.operands.outputs or not context.operands.inputs:
        return None
    context, features = equivalent(context), core_features(core)
    table = _MVE if Feature.MVE in features else _DSP if Feature.DSP in features else _PLAIN
    source, output = context.operands.inputs[0], context.output
    least = None if source is None else table.get((context.layer.type, source.dtype))
    if source is None or least is None or (source.dtype.is_float and not core.fpu):
        return None
    macs = OPERATORS[context.layer.type].macs(context.layer.descriptor, context.operands)
    descriptor = context.layer.descriptor
    taps = descriptor.pool_h * descriptor.pool_w if isinstance(descriptor, Pool2dDescriptor) else 0
    found = least.per_mac * macs + (least.per_element + least.per_tap * taps) * output.elements
    if table is _DSP and source.dtype is _I8 and _suits_winograd(context):
        found = min(found, _WINOGRAD.per_mac * macs + _WINOGRAD.per_element * output.elements)
    return max(round(found), 1)


def _suits_winograd(context: LoweringContext) -> bool:
    if context.layer.type is not LayerType.CONV_2D:
        return False
    layer, (outputs, _, _, depth) = Convolution.of(context), context.input(1).shape
    is_whole = depth == layer.image.shape[3]  # no groups
    return is_whole and min(outputs, depth) >= _WINOGRAD_CHANNELS and not winograd_refused(layer)
