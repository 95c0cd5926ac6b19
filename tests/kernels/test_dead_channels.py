# SPDX-License-Identifier: Apache-2.0
"""Channels that store a single value: found by intervals, left out of the C, with all tensors unchanged."""

from __future__ import annotations

import numpy as np
import pytest
from ckernels import NativeNetwork
from compare import assert_arrays_equal
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from oracle import edge_inputs

from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import channel_ranges
from ferrule.graph import Array, DataType, Descriptor, Layer, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.testing.backends.comparison import random_inputs

_SAME = Padding(top=1, bottom=1, left=1, right=1)
_DEAD_BIAS = -(2**29)


class Chain:
    """A network that grows layer by layer; every tensor is an output."""

    def __init__(self, seed: int, shape: Shape, zero_point: int) -> None:
        self.random = np.random.default_rng(seed)
        self.zero_point = zero_point
        self.network = Network("chain")
        self._last = self.network.add_input(self._info("data", shape))
        self._tensors: list[str] = []

    def weighted(
        self, type_: LayerType, descriptor: Descriptor, shape: Shape, axis: int, dead: float, bias: int = _DEAD_BIAS
    ) -> None:
        """Add a layer with weights; in a fraction `dead` of its channels, the bias clamps the output to one value."""
        number = len(self._tensors)
        channels = shape[axis]
        biases = np.where(self.random.random(channels) < dead, bias, self.random.integers(-500, 500, channels))
        weights = self.network.add_constant(
            TensorInfo(f"weights_{number}", shape, DataType.INT8, quantization=Quantization.of(2.0**-4)),
            self.random.integers(-127, 128, shape, np.int8),
        )
        scale = Quantization.of(2.0**-9)
        constant = self.network.add_constant(
            TensorInfo(f"bias_{number}", (channels,), DataType.INT32, quantization=scale),
            biases.astype(np.int32),
        )
        self.add(type_, descriptor, (weights, constant))

    def add(self, type_: LayerType, descriptor: Descriptor, constants: tuple[str, ...] = ()) -> None:
        """Add a layer that reads the last tensor."""
        inputs = (self._last, *constants)
        (shape,) = OPERATORS[type_].infer(descriptor, [self.network.info(name) for name in inputs])
        output = self._info(f"tensor_{len(self._tensors)}", shape)
        layer = Layer(output.name, type_, descriptor, inputs=inputs, outputs=(output.name,))
        (self._last,) = self.network.add_layer(layer, [output])
        self._tensors.append(output.name)
        self.network.set_outputs(self._tensors)

    def _info(self, name: str, shape: Shape) -> TensorInfo:
        quantization = Quantization.of(2.0**-5, self.zero_point)
        return TensorInfo(name, shape, DataType.INT8, quantization=quantization)


def separable(seed: int, dead: float, zero_point: int, activation: Activation, bias: int = _DEAD_BIAS) -> Network:
    """Return a network of depthwise and pointwise convolutions with dead channels."""
    chain = Chain(seed, (1, 5, 4, 8), zero_point)
    pointwise = Conv2dDescriptor(activation=activation)
    chain.weighted(LayerType.CONV_2D, pointwise, (16, 1, 1, 8), 0, dead, bias)
    depthwise = DepthwiseConv2dDescriptor(padding=_SAME, activation=activation)
    chain.weighted(LayerType.DEPTHWISE_CONV_2D, depthwise, (1, 3, 3, 16), 3, dead / 2, bias)
    chain.weighted(LayerType.CONV_2D, pointwise, (10, 1, 1, 16), 0, dead, bias)
    plain = Conv2dDescriptor(padding=_SAME, stride_h=2, stride_w=2, activation=activation)
    chain.weighted(LayerType.CONV_2D, plain, (8, 3, 3, 10), 0, dead, bias)
    chain.add(LayerType.AVERAGE_POOL_2D, Pool2dDescriptor(pool_h=3, pool_w=2))
    chain.add(LayerType.RESHAPE, ReshapeDescriptor(shape=(1, 8)))
    chain.weighted(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (5, 8), 0, 0.0, bias)
    return chain.network


def all_inputs(network: Network) -> list[list[Array]]:
    return [random_inputs(network), *edge_inputs(network).values()]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    dead=st.floats(0, 1),
    zero_point=st.sampled_from([-128, -5, 127]),
    activation=st.sampled_from([Activation.NONE, Activation.RELU]),
)
def test_values_stay_in_their_ranges(seed: int, dead: float, zero_point: int, activation: Activation) -> None:
    network = separable(seed, dead, zero_point, activation, bias=-(2**14))
    for inputs in all_inputs(network):
        for info, values in zip(network.outputs, network.run(inputs), strict=True):
            ranges = channel_ranges(network, info.name)
            assert (values >= ranges.low).all()
            assert (values <= ranges.high).all()


def test_a_dead_channel_has_one_value() -> None:
    network = separable(1, 1.0, -128, Activation.RELU)
    ranges = channel_ranges(network, "tensor_0")
    assert ranges.constant.all()
    assert (ranges.low == -128).all()


def test_what_dead_channels_feed_is_dead_where_padding_holds_the_same() -> None:
    chain = Chain(3, (1, 5, 4, 8), -128)
    relu = Conv2dDescriptor(activation=Activation.RELU)
    chain.weighted(LayerType.CONV_2D, relu, (8, 1, 1, 8), 0, 1.0)
    chain.weighted(LayerType.DEPTHWISE_CONV_2D, DepthwiseConv2dDescriptor(padding=_SAME), (1, 3, 3, 8), 3, 0.0)
    assert channel_ranges(chain.network, "tensor_1").constant.all()


@pytest.mark.cc
@pytest.mark.parametrize("zero_point", [-128, 11])
@settings(max_examples=4, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 2**32 - 1), dead=st.sampled_from([0.3, 0.7, 1.0]))
def test_every_tensor_is_exact(zero_point: int, seed: int, dead: float) -> None:
    network = separable(seed, dead, zero_point, Activation.RELU)
    native = NativeNetwork(network)
    for inputs in all_inputs(network):
        assert_arrays_equal(native.run(inputs), network.run(inputs))


@pytest.mark.cc
def test_dead_channels_take_no_weights() -> None:
    sizes = []
    for dead, kernel in ((0.0, "conv2d_1x1_paired_s8"), (0.7, "conv2d_quad_s8")):
        native = NativeNetwork(separable(5, dead, -128, Activation.RELU))
        assert native.kernels[:4] == [kernel, "depthwise_conv2d_words_s8", kernel, "conv2d_quad_s8"]
        sizes.append(sum(record.constant_bytes for record in native.artifact.operators))
    assert sizes[1] < 0.55 * sizes[0]


def test_a_scalar_is_one_channel() -> None:
    chain = Chain(1, (), -128)
    chain.add(LayerType.RESHAPE, ReshapeDescriptor(shape=(1, 1)))
    ranges = channel_ranges(chain.network, "tensor_0")
    assert (ranges.low.tolist(), ranges.high.tolist()) == ([-128], [127])
