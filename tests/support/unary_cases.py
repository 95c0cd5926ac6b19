# SPDX-License-Identifier: Apache-2.0
"""Networks of one layer with one input, drawn by Hypothesis, with inputs that reach the limits of their types."""

from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from layer_case import layer_network, tensor

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization, Shape
from ferrule.network import Network
from ferrule.operators.elementwise.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.elementwise.quantize import DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.operator import Operands
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.operators.table import OPERATORS

Case = tuple[Network, Array]

SOFTMAX_OUTPUTS = {
    (DataType.INT8, DataType.INT8): Quantization.of(1 / 256, -128),
    (DataType.INT8, DataType.INT16): Quantization.of(1 / 65536, -32768),
    (DataType.INT16, DataType.INT16): Quantization.of(1 / 32768),
}
SIGMOIDAL = {
    (LayerType.LOGISTIC, DataType.INT8): (LogisticDescriptor(), Quantization.of(1 / 256, -128)),
    (LayerType.LOGISTIC, DataType.INT16): (LogisticDescriptor(), Quantization.of(1 / 32768)),
    (LayerType.TANH, DataType.INT8): (TanhDescriptor(), Quantization.of(1 / 128)),
    (LayerType.TANH, DataType.INT16): (TanhDescriptor(), Quantization.of(1 / 32768)),
}
QUANTIZE_PAIRS = [
    (source, output)
    for source in (DataType.INT8, DataType.INT16, DataType.INT32)
    for output in (DataType.INT8, DataType.INT16, DataType.INT32)
    if (source, output) != (DataType.INT32, DataType.INT32)
] + [(DataType.INT8, DataType.UINT8), (DataType.UINT8, DataType.INT8)]


def every(dtype: DataType) -> Array:
    """Return every value of int8, uint8 or int16, in one row."""
    limits = np.iinfo(dtype.numpy)
    return np.arange(limits.min, limits.max + 1, dtype=np.int64).astype(dtype.numpy)[None]


def scales(lowest: float, highest: float) -> st.SearchStrategy[float]:
    """Return a strategy for float32 scales: log-uniform values, and powers of two."""
    any_scale = st.floats(np.log10(lowest), np.log10(highest)).map(lambda power: float(np.float32(10.0**power)))
    exponents = st.integers(int(np.ceil(np.log2(lowest))), int(np.floor(np.log2(highest))))
    return any_scale | exponents.map(lambda exponent: 2.0**exponent)


def zero_points(dtype: DataType) -> st.SearchStrategy[int]:
    """Return a strategy for zero points of the type that favours its limits; only 0 for int32."""
    limits = np.iinfo(dtype.numpy)
    if dtype is DataType.INT32:
        return st.just(0)
    return st.sampled_from([int(limits.min), 0, int(limits.max)]) | st.integers(int(limits.min), int(limits.max))


@st.composite
def data(draw: st.DrawFn, shape: Shape, dtype: DataType) -> Array:
    """Draw an array: uniform over the type, from a narrow range, or of one value."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    limits = np.iinfo(dtype.numpy)
    low, high = draw(st.sampled_from([(int(limits.min), int(limits.max)), (-9, 9), (100, 127)]))
    if draw(st.booleans()) and draw(st.booleans()):
        low = high = draw(st.sampled_from([int(limits.min), int(limits.max)]))
    return generator.integers(low, high, shape, dtype=dtype.numpy, endpoint=True)


def network_of(
    type_: LayerType,
    descriptor: Descriptor,
    source: tuple[Shape, DataType, Quantization | None],
    output_dtype: DataType,
    output: Quantization | None,
) -> Network:
    """Return the network of one layer if its check accepts it; otherwise drop the example."""
    shape, dtype, quantization = source
    scale, zero_point = (None, 0) if quantization is None else (quantization.scale, quantization.zero_point)
    info = tensor("x", shape, dtype, scale, zero_point)
    network = layer_network(type_, descriptor, [info], output, output_dtype=output_dtype)
    try:
        OPERATORS[type_].check(descriptor, Operands((info,), network.outputs))
    except UnsupportedError:
        assume(False)
    return network


@st.composite
def softmax_cases(draw: st.DrawFn, types: tuple[DataType, DataType]) -> Case:
    """Draw a SOFTMAX; rows stay below 512 elements, from which TensorFlow Lite Micro's int8 kernel can abort."""
    source, output = types
    shape = (draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 12, 100, 500])))
    wide = source is DataType.INT8
    quantization = Quantization.of(
        draw(scales(1e-7, 1e3) if wide else scales(1e-7, 4.0)), draw(zero_points(source)) if wide else 0
    )
    descriptor = SoftmaxDescriptor(beta=draw(st.sampled_from([1.0, 0.5, 2.0, 0.125])))
    network = network_of(
        LayerType.SOFTMAX, descriptor, (shape, source, quantization), output, SOFTMAX_OUTPUTS[source, output]
    )
    return network, draw(data(shape, source))


@st.composite
def sigmoidal_cases(draw: st.DrawFn, type_: LayerType, dtype: DataType) -> Case:
    """Draw a LOGISTIC or TANH over all values of its type."""
    descriptor, output = SIGMOIDAL[type_, dtype]
    wide = dtype is DataType.INT8
    source = Quantization.of(
        draw(scales(1e-8, 1e8) if wide else scales(1e-12, 2.6)), draw(zero_points(dtype)) if wide else 0
    )
    values = every(dtype)
    return network_of(type_, descriptor, (values.shape, dtype, source), dtype, output), values


@st.composite
def hard_swish_cases(draw: st.DrawFn) -> Case:
    """Draw a HARD_SWISH over all int8 values."""
    scale = draw(scales(1e-5, 1e5))
    source = Quantization.of(scale, draw(zero_points(DataType.INT8)))
    output = Quantization.of(scale * draw(scales(0.01, 400)), draw(zero_points(DataType.INT8)))
    values = every(DataType.INT8)
    network = network_of(
        LayerType.HARD_SWISH, HardSwishDescriptor(), (values.shape, DataType.INT8, source), DataType.INT8, output
    )
    return network, values


@st.composite
def quantize_cases(draw: st.DrawFn, types: tuple[DataType, DataType]) -> Case:
    """Draw a QUANTIZE from integers to integers."""
    source, output = types
    scale = draw(scales(1e-4, 1e4))
    quotient = draw(scales(1e-10, 1e8) | scales(0.1, 10) | st.just(1.0))
    given = Quantization.of(scale, draw(zero_points(source)))
    wanted = Quantization.of(scale * quotient, draw(zero_points(output)))
    values = draw(data((1, 2000), source)) if source is DataType.INT32 else every(source)
    network = network_of(LayerType.QUANTIZE, QuantizeDescriptor(), (values.shape, source, given), output, wanted)
    return network, values


@st.composite
def quantize_float_cases(draw: st.DrawFn, output: DataType) -> Case:
    """Draw a QUANTIZE from floats, half of them midway between two steps."""
    wanted = Quantization.of(draw(scales(1e-6, 1e6)), draw(zero_points(output)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = 2.0 ** draw(st.integers(2, 17))
    steps = np.concatenate([generator.normal(0, spread, 500), np.round(generator.normal(0, spread, 500)) + 0.5])
    values = np.asarray(steps * wanted.scale, np.float32)[None]
    network = network_of(
        LayerType.QUANTIZE, QuantizeDescriptor(), (values.shape, DataType.FLOAT32, None), output, wanted
    )
    return network, values


@st.composite
def dequantize_cases(draw: st.DrawFn, dtype: DataType) -> Case:
    """Draw a DEQUANTIZE over all values of its type, with scales down to the denormal numbers."""
    source = Quantization.of(draw(scales(1e-40, 1e30)), draw(zero_points(dtype)))
    values = every(dtype)
    network = network_of(
        LayerType.DEQUANTIZE, DequantizeDescriptor(), (values.shape, dtype, source), DataType.FLOAT32, None
    )
    return network, values


@st.composite
def reductions(draw: st.DrawFn, *, least_axes: int = 1) -> tuple[Shape, ReduceDescriptor]:
    """Draw a shape and the axes over which it is reduced."""
    shape = draw(
        st.sampled_from([(1, 25, 5, 8), (2, 7, 7, 3), (1, 1, 1, 1)])
        | st.lists(st.integers(1, 5), min_size=1, max_size=5).map(tuple)
    )
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=least_axes))
    if len(shape) == 4 and draw(st.booleans()):
        axes = {1, 2}
    return shape, ReduceDescriptor(axes=tuple(sorted(axes)), keep_dims=draw(st.booleans()))


@st.composite
def reduce_cases(draw: st.DrawFn, type_: LayerType, dtype: DataType) -> Case:
    """Draw a MEAN or SUM of integers."""
    shape, descriptor = draw(reductions())
    scale = draw(scales(1e-4, 10))
    quotient = draw(scales(1e-9, 1e8) | scales(0.5, 200) | st.just(1.0))
    source = Quantization.of(scale, draw(zero_points(dtype)))
    output = Quantization.of(scale * quotient, draw(zero_points(dtype)))
    network = network_of(type_, descriptor, (shape, dtype, source), dtype, output)
    return network, draw(data(shape, dtype))
