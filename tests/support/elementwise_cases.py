# SPDX-License-Identifier: Apache-2.0
"""Random networks of one elementwise layer."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from layer_case import layer_network, tensor

from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.binary import BinaryDescriptor, ExtremumDescriptor
from ferrule.operators.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor

ARITHMETIC = (LayerType.ADD, LayerType.SUB, LayerType.MUL)
EXTREMA = (LayerType.MAXIMUM, LayerType.MINIMUM)
RECTIFIERS = (LayerType.RELU, LayerType.RELU6, LayerType.RELU_N1_TO_1, LayerType.LEAKY_RELU)
TYPES = (DataType.FLOAT32, DataType.INT8, DataType.INT16)

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
    return TensorInfo(name=name, shape=shape, dtype=dtype, quantization=quantization_)


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
}

__all__ = ["ARITHMETIC", "ELEMENTWISE", "EXTREMA", "RECTIFIERS", "info", "tensor"]
