# SPDX-License-Identifier: Apache-2.0
"""The integers of layers with state, as TensorFlow Lite Micro's kernels of LSTM and SVDF have them.

Weights have one scale each. A cell state is int16 with a scale that is a power of two; the state of SVDF is int16, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ferrule.graph import Array, DataType, Graph, Layer, LayerType, Quantization, Tensor
from ferrule.operators.interpreter import operator_of
from ferrule.operators.operator import Operands
from ferrule.operators.recurrent import svdf
from ferrule.operators.recurrent.lstm import (
    BIASES,
    CELL,
    HIDDEN,
    INPUT_WEIGHTS,
    RECURRENT_WEIGHTS,
    LstmDescriptor,
)
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import Range

KEPT: Mapping[LayerType, Mapping[int, int]] = {
    LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM: {HIDDEN: 1, CELL: 2},
    LayerType.SVDF: {svdf.STATE: 1},
}
"""By type of layer: the output with the new value of each input that is a state."""
Integers = dict[int, tuple[DataType, Quantization]]
"""The type and the quantisation of inputs, by position; the outputs with new values of states have those of states."""
_WIDE = 2**15 - 1
_SUM = 2.0**30
"""The largest sum of products, and the largest bias: half of int32 each."""


def integers_of(
    layer: Layer, operands: Operands, constants: Sequence[Array | None], ranges: Sequence[Range], precision: Precision
) -> Integers:
    """Return the types of all inputs of a layer with state except the data, whose type `operands` has, and the output.

    `ranges` are those of the outputs of the float layer. The output is position -1.
    """
    if layer.type is LayerType.SVDF:
        return _svdf(operands, constants, ranges, precision)
    return _lstm(operands, constants, ranges, precision)


def _lstm(
    operands: Operands, constants: Sequence[Array | None], ranges: Sequence[Range], precision: Precision
) -> Integers:
    hidden = ranges[0].joined(ranges[1]).quantization(precision)
    reach = max(-ranges[2].low, ranges[2].high, 2.0**-15)
    cell = Quantization.of(2.0 ** math.ceil(math.log2(reach / _WIDE)))
    bias_type = DataType.INT64 if precision is Precision.INT16 else DataType.INT32
    found: Integers = {-1: (precision.dtype, hidden), HIDDEN: (precision.dtype, hidden), CELL: (DataType.INT16, cell)}
    data = operands.source.scale
    for weights, bias in zip(INPUT_WEIGHTS, BIASES, strict=True):
        scale = max(_reach(constants[weights]) / 127, _reach(constants[bias]) / (_SUM * data))
        own = Quantization.of(scale)
        found[weights] = (DataType.INT8, own)
        found[bias] = (bias_type, Quantization.of(data * own.scale))
    for weights in RECURRENT_WEIGHTS:
        found[weights] = (DataType.INT8, Quantization.of(_reach(constants[weights]) / 127))
    return found


def _svdf(
    operands: Operands, constants: Sequence[Array | None], ranges: Sequence[Range], precision: Precision
) -> Integers:
    """The scale of the weights over time is so large that no sum over time leaves int32."""
    feature, time, bias = constants[1:4]
    state = Quantization.of(max(-ranges[1].low, ranges[1].high, 2.0**-15) / _WIDE)
    assert time is not None
    units = ranges[0].quantization(precision)
    per_unit = np.abs(time.astype(np.float64)).reshape(operands.output.shape[-1], -1).sum(axis=1).max()
    wanted = (_reach(time) / _WIDE, float(per_unit) * (_WIDE + 1) / _SUM, _reach(bias) / (_SUM * state.scale))
    over_time = Quantization.of(max(wanted))
    return {
        -1: (precision.dtype, units),
        1: (DataType.INT8, Quantization.of(_reach(feature) / 127)),
        2: (DataType.INT16, over_time),
        3: (DataType.INT32, Quantization.of(float(np.float32(state.scale) * np.float32(over_time.scale)))),
        svdf.STATE: (DataType.INT16, state),
    }


def _reach(data: Array | None) -> float:
    """Return the largest magnitude of a constant, at least one that a scale can have."""
    return max(2.0**-30, 0.0 if data is None else float(np.max(np.abs(data))))


def cells(
    graph: Graph, values: Mapping[str, Array], begins: Sequence[bool], states: dict[str, Array]
) -> dict[str, Range]:
    """Return the range of the cell states of each LSTM over all time steps, by the tensor with the new cell state.

    `values` has the tensors of as many samples as `begins` has elements, joined along the first axis; `begins` says
    which sample begins with the initial state. `states` has the states behind the samples before, and gets new ones.
    """
    found: dict[str, Range] = {}
    for layer in graph.layers:
        if layer.type is LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM:
            found[layer.outputs[2]] = _cells(graph, layer, values, begins, states)
    return found


def _cells(
    graph: Graph, layer: Layer, values: Mapping[str, Array], begins: Sequence[bool], states: dict[str, Array]
) -> Range:
    descriptor, operands = layer.descriptor, Operands.of(graph, layer)
    assert isinstance(descriptor, LstmDescriptor)
    advance = _advance(graph, layer, operands)
    samples = np.split(values[str(layer.inputs[0])], len(begins))
    initial = {state.source: state.initial for state in graph.states}
    names = [str(layer.inputs[position]) for position in (HIDDEN, CELL)]
    low = high = 0.0
    for sample, begin in zip(samples, begins, strict=True):
        hidden, cell = (initial[name] if begin or name not in states else states[name] for name in names)
        for step in sample if descriptor.time_major else sample.swapaxes(0, 1):
            hidden, cell = advance(step, hidden, cell)
            low, high = min(low, float(cell.min())), max(high, float(cell.max()))
        states |= dict(zip(names, (hidden, cell), strict=True))
    return Range(low=low, high=high)


def _advance(graph: Graph, layer: Layer, operands: Operands) -> Callable[[Array, Array, Array], tuple[Array, Array]]:
    """Return the function from the values of a step and the states before it to the states behind it."""
    kernel = operator_of(layer.type).kernel
    given: list[Array | None] = [None if name is None else graph.tensor(name).data for name in layer.inputs]
    axis = 0 if isinstance(layer.descriptor, LstmDescriptor) and layer.descriptor.time_major else 1

    def advance(step: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
        arrays = list(given)
        arrays[0], arrays[HIDDEN], arrays[CELL] = np.expand_dims(step, axis), hidden, cell
        _, shown, kept = kernel(layer.descriptor, operands, arrays)
        return shown, kept

    return advance


def stored(tensor: Tensor, dtype: DataType, quantization: Quantization) -> Array | None:
    """Return the integers of a constant; None for a tensor that has none."""
    if tensor.data is None:
        return None
    steps = np.rint(tensor.data.astype(np.float64) / quantization.scale)
    limits = np.iinfo(dtype.numpy)
    lowest = -limits.max if dtype is DataType.INT8 else limits.min
    return np.asarray(np.clip(steps, lowest, limits.max).astype(dtype.numpy))
