# SPDX-License-Identifier: Apache-2.0
"""Random networks of one elementwise layer."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from layer_case import layer_network, tensor

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.add_n import AddNDescriptor
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.cast import CastDescriptor
from ferrule.operators.elementwise.comparison import COMPARISONS, ComparisonDescriptor
from ferrule.operators.elementwise.functions import ElementwiseUnaryDescriptor
from ferrule.operators.elementwise.functions_of_two import ElementwiseBinaryDescriptor, ExtremumDescriptor
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.operators.elementwise.select import SelectV2Descriptor
from ferrule.operators.elementwise.squared_difference import SquaredDifferenceDescriptor
from ferrule.operators.table import family
from ferrule.testing.backends.layers import shared_case

ARITHMETIC = (LayerType.ADD, LayerType.SUB, LayerType.MUL)
EXTREMA = (LayerType.MAXIMUM, LayerType.MINIMUM)
RECTIFIERS = (LayerType.RELU, LayerType.RELU6, LayerType.RELU_N1_TO_1, LayerType.LEAKY_RELU)
FLOORED = (LayerType.FLOOR_DIV, LayerType.FLOOR_MOD)
FUNCTIONS_OF_TWO = family(ElementwiseBinaryDescriptor)
STORED = {
    LayerType.ABS: (DataType.INT8, DataType.INT16),
    LayerType.RSQRT: (DataType.INT8, DataType.INT16),
    LayerType.ELU: (DataType.INT8,),
}
TYPES = (DataType.FLOAT32, DataType.INT8, DataType.INT16)
EXACT = tuple(dtype for dtype in DataType if dtype is not DataType.FLOAT16)
"""The types for which the oracles have kernels."""

SCALES = st.one_of(
    st.sampled_from([0.5, 0.25, 1 / 256, 0.1, 1.0]), st.floats(1e-3, 2.0).map(lambda scale: float(np.float32(scale)))
)


@st.composite
def broadcast_shapes(draw: st.DrawFn, most_axes: int = 5) -> tuple[Shape, Shape]:
    """Draw two shapes that broadcast to a common shape."""
    whole = draw(st.lists(st.integers(1, 4), min_size=1, max_size=most_axes))
    pair = []
    for _ in range(2):
        kept = [draw(st.sampled_from([extent, extent, 1])) for extent in whole]
        pair.append(tuple(kept[draw(st.integers(0, len(kept))) if draw(st.booleans()) else 0 :]))
    return pair[0], pair[1]


def quantization(draw: st.DrawFn, dtype: DataType) -> Quantization | None:
    if dtype is DataType.INT8:
        return Quantization.of(draw(SCALES), draw(st.sampled_from([-128, 127, 0, -5, 17])))
    return Quantization.of(draw(SCALES)) if dtype is DataType.INT16 else None


def info(name: str, shape: Shape, dtype: DataType, quantization_: Quantization | None) -> TensorInfo:
    return TensorInfo(name, shape, dtype, quantization=quantization_)


@st.composite
def arithmetic(draw: st.DrawFn, type_: LayerType) -> Network:
    dtype = draw(st.sampled_from([*TYPES, DataType.INT32]))
    activation = Activation.NONE if dtype is DataType.INT32 else draw(st.sampled_from(Activation))
    shapes = draw(broadcast_shapes())
    infos = [info(f"input_{i}", shape, dtype, quantization(draw, dtype)) for i, shape in enumerate(shapes)]
    network = layer_network(type_, BinaryDescriptor(activation=activation), infos, quantization(draw, dtype))
    return _valid(network)


@st.composite
def extrema(draw: st.DrawFn, type_: LayerType) -> Network:
    dtype = draw(st.sampled_from([*TYPES, DataType.INT32]))
    common = quantization(draw, dtype)
    infos = [info(f"input_{i}", shape, dtype, common) for i, shape in enumerate(draw(broadcast_shapes()))]
    return layer_network(type_, ExtremumDescriptor(), infos, common)


@st.composite
def rectifiers(draw: st.DrawFn, type_: LayerType) -> Network:
    types = TYPES[:2] if type_ is LayerType.RELU_N1_TO_1 else TYPES
    dtype = draw(st.sampled_from(types))
    own = quantization(draw, dtype)
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    output = own if type_ is LayerType.RELU6 else quantization(draw, dtype)
    alpha = float(np.float32(draw(st.sampled_from([0.0, 0.01, 0.3, 1.0, -0.5, 2.5]))))
    descriptor = LeakyReluDescriptor(alpha=alpha) if type_ is LayerType.LEAKY_RELU else ReluDescriptor()
    return _valid(layer_network(type_, descriptor, [info("input", shape, dtype, own)], output))


@st.composite
def prelus(draw: st.DrawFn) -> Network:
    dtype = draw(st.sampled_from(TYPES))
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    kept = tuple(draw(st.sampled_from([extent, 1])) for extent in shape)
    factors = kept[draw(st.integers(0, len(kept) - 1)) :]
    alpha_type = DataType.INT8 if dtype is DataType.INT16 else dtype
    infos = [
        info("input", shape, dtype, quantization(draw, dtype)),
        info("alpha", factors, alpha_type, quantization(draw, alpha_type)),
    ]
    return layer_network(LayerType.PRELU, PreluDescriptor(), infos, quantization(draw, dtype))


@st.composite
def divisions(draw: st.DrawFn) -> Network:
    dtype = draw(st.sampled_from([DataType.FLOAT32, DataType.INT32, DataType.INT8]))
    activation = Activation.NONE if dtype is DataType.INT32 else draw(st.sampled_from(Activation))
    infos = [
        info(f"input_{i}", shape, dtype, quantization(draw, dtype)) for i, shape in enumerate(draw(broadcast_shapes()))
    ]
    return layer_network(LayerType.DIV, BinaryDescriptor(activation=activation), infos, quantization(draw, dtype))


@st.composite
def squared_differences(draw: st.DrawFn) -> Network:
    dtype = draw(st.sampled_from([*TYPES, DataType.INT32]))
    shapes = draw(broadcast_shapes())
    infos = [info(f"input_{i}", shape, dtype, quantization(draw, dtype)) for i, shape in enumerate(shapes)]
    descriptor = SquaredDifferenceDescriptor()
    return layer_network(LayerType.SQUARED_DIFFERENCE, descriptor, infos, quantization(draw, dtype))


@st.composite
def functions_of_two(draw: st.DrawFn, type_: LayerType) -> Network:
    dtype = draw(st.sampled_from([dtype for dtype in EXACT if not shared_case(type_, dtype, 0)[1]]))
    infos = [
        info(f"input_{i}", shape, dtype, quantization(draw, dtype)) for i, shape in enumerate(draw(broadcast_shapes()))
    ]
    return layer_network(type_, FUNCTIONS_OF_TWO[type_].descriptor(), infos, quantization(draw, dtype))


@st.composite
def casts(draw: st.DrawFn) -> Network:
    types = [DataType.FLOAT32, DataType.INT8, DataType.INT16, DataType.INT32]
    types += [DataType.UINT8, DataType.UINT32, DataType.BOOL]
    source, output = draw(st.permutations(types))[:2]
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    return layer_network(
        LayerType.CAST, CastDescriptor(), [info("input", shape, source, None)], None, output_dtype=output
    )


@st.composite
def stored_functions(draw: st.DrawFn, type_: LayerType) -> Network:
    """Draw a function of quantised values."""
    dtype = draw(st.sampled_from(STORED[type_]))
    shape = tuple(draw(st.lists(st.integers(1, 20), min_size=1, max_size=2)))
    infos = [info("input", shape, dtype, quantization(draw, dtype))]
    return layer_network(type_, ElementwiseUnaryDescriptor(), infos, quantization(draw, dtype))


@st.composite
def comparisons(draw: st.DrawFn, type_: LayerType) -> Network:
    dtype = draw(st.sampled_from([DataType.FLOAT32, DataType.INT8, DataType.INT32, DataType.INT64]))
    infos = []
    for index, shape in enumerate(draw(broadcast_shapes())):
        own = quantization(draw, dtype)
        if own is not None and own.scale >= 1:
            own = Quantization.of(0.25, own.zero_point)
        infos.append(info(f"input_{index}", shape, dtype, own))
    return layer_network(type_, ComparisonDescriptor(), infos, output_dtype=DataType.BOOL)


@st.composite
def selections(draw: st.DrawFn) -> Network:
    dtype = draw(st.sampled_from([*TYPES, DataType.INT32, DataType.INT64, DataType.UINT8]))
    own = quantization(draw, dtype)
    shapes = draw(broadcast_shapes())
    whole = np.broadcast_shapes(*shapes)
    condition = whole[draw(st.integers(0, len(whole))) :]
    infos = [
        info("condition", condition, DataType.BOOL, None),
        *(info(f"input_{i}", shape, dtype, own) for i, shape in enumerate(shapes)),
    ]
    return layer_network(LayerType.SELECT_V2, SelectV2Descriptor(), infos, own, output_dtype=dtype)


@st.composite
def sums(draw: st.DrawFn) -> Network:
    dtype = draw(st.sampled_from([DataType.FLOAT32, DataType.INT8]))
    own = quantization(draw, dtype)
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    infos = [info(f"input_{i}", shape, dtype, own) for i in range(draw(st.integers(2, 5)))]
    return layer_network(LayerType.ADD_N, AddNDescriptor(), infos, quantization(draw, dtype))


def defined(network: Network, inputs: list[Array]) -> list[Array]:
    """Return the inputs without those for which the reference kernels end with an error: divisions by 0, roots below 0.

    Large int32 values would overflow in the reference kernels, which is undefined in C.
    """
    (layer,) = network.layers
    given = [array >> 16 if array.dtype == np.int32 else array for array in inputs]
    zero = network.inputs[-1].zero_point if network.inputs[-1].quantization is not None else 0
    if layer.type in {LayerType.DIV, *FLOORED}:
        given[1] = np.where(given[1] == zero, given[1] ^ 1 if given[1].dtype.kind == "i" else 1, given[1])
    if layer.type is LayerType.RSQRT:
        given[0] = np.maximum(given[0], zero).astype(given[0].dtype)
    return [given_.astype(array.dtype) for given_, array in zip(given, inputs, strict=True)]


def has_tflm_kernel(network: Network) -> bool:
    """Return whether TensorFlow Lite Micro supports the layer's types; otherwise LiteRT does."""
    (layer,) = network.layers
    types = {item.dtype for item in (*network.inputs, *network.outputs)}
    if layer.type in FUNCTIONS_OF_TWO:
        return types < {DataType.FLOAT32, DataType.BOOL}
    if layer.type is LayerType.SELECT_V2 and DataType.INT32 in types:
        return False
    if layer.type in {row.type for row in COMPARISONS}:
        return True
    return layer.type is not LayerType.RELU_N1_TO_1 and not types & {DataType.UINT8, DataType.INT64}


def _valid(network: Network) -> Network:
    """Return the network; if it is refused, give the output a scale 1.5 times the larger input scale."""
    try:
        network.validate()
    except UnsupportedError:
        (layer,) = network.layers
        output = network.outputs[0]
        scale = 1.5 * max(item.scale for item in network.inputs)
        network = layer_network(layer.type, layer.descriptor, network.inputs, Quantization.of(scale, output.zero_point))
        network.validate()
    return network


ELEMENTWISE: dict[LayerType, st.SearchStrategy[Network]] = {
    **{type_: arithmetic(type_) for type_ in ARITHMETIC},
    **{type_: extrema(type_) for type_ in EXTREMA},
    **{type_: rectifiers(type_) for type_ in RECTIFIERS},
    LayerType.PRELU: prelus(),
    LayerType.CAST: casts(),
    LayerType.DIV: divisions(),
    **{type_: functions_of_two(type_) for type_ in FUNCTIONS_OF_TWO},
    LayerType.SQUARED_DIFFERENCE: squared_differences(),
    **{type_: comparisons(type_) for type_ in (row.type for row in COMPARISONS)},
    LayerType.SELECT_V2: selections(),
    LayerType.ADD_N: sums(),
    **{type_: stored_functions(type_) for type_ in STORED},
}

__all__ = [
    "ARITHMETIC",
    "ELEMENTWISE",
    "EXTREMA",
    "RECTIFIERS",
    "STORED",
    "defined",
    "has_tflm_kernel",
    "info",
    "tensor",
]
