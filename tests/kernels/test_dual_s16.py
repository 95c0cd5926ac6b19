# SPDX-License-Identifier: Apache-2.0
"""Convolutions and FULLY_CONNECTED of int16 data for the DSP extension, native and emulated, compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest
from ckernels import NativeNetwork
from compare import assert_arrays_equal
from layer_case import layer_network, tensor
from lowered_call import lower, run_overlapping
from merged import merged
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import edge_inputs

from ferrule.backends.target import CoreFeatures
from ferrule.graph import DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.testing.backends.comparison import random_inputs

CORTEX_M4 = CoreFeatures(name="cortex-m4", fpu=True, dsp=True)
SAME = Padding(top=1, bottom=1, left=1, right=1)


def network_of(
    type_: LayerType,
    descriptor: Conv2dDescriptor | DepthwiseConv2dDescriptor | FullyConnectedDescriptor,
    data: Shape,
    weights: Shape,
    *,
    narrow: bool = False,
    scale: float = 0.5,
) -> Network:
    """Return a layer with random weights; with scale 0.5, random data fills the range of the output."""
    random = np.random.default_rng(sum(weights))
    axis = 3 if type_ is LayerType.DEPTHWISE_CONV_2D else 0
    channels = weights[axis]
    products = int(np.prod(weights)) // channels
    scales = tuple(float(np.float32(each)) for each in random.uniform(0.004, 0.006, channels))
    quantization = Quantization(scales=scales, zero_points=(0,) * channels, axis=axis)
    infos = [
        tensor("data", data, DataType.INT16, 2.0**-12, 0),
        TensorInfo("weights", weights, DataType.INT8, quantization=quantization),
        tensor("bias", (channels,), DataType.INT32 if narrow else DataType.INT64, 2.0**-20),
    ]
    bias = random.integers(-(10**6), 10**6, channels)
    constants = {1: random.integers(-128, 128, weights, np.int8), 2: bias.astype(infos[2].dtype.numpy)}
    output = Quantization.of(float(np.float32(2.0**-12 * products**0.5 * scale)), 0)
    return layer_network(type_, descriptor, infos, output, constants)


def convolution(image: Shape, weights: Shape, *, narrow: bool = False, **descriptor: object) -> Network:
    return network_of(
        LayerType.CONV_2D,
        Conv2dDescriptor(**descriptor),  # type: ignore[arg-type]
        image,
        weights,
        narrow=narrow,
    )


def depthwise(image: Shape, height: int, **descriptor: object) -> Network:
    return network_of(
        LayerType.DEPTHWISE_CONV_2D,
        DepthwiseConv2dDescriptor(**descriptor),  # type: ignore[arg-type]
        image,
        (1, height, 3, image[3]),
    )


CASES = {
    "conv2d_dual_s16": [
        convolution((1, 5, 4, 3), (3, 3, 3, 3), padding=SAME, activation=Activation.RELU),
        convolution((1, 5, 4, 3), (3, 3, 3, 3), padding=SAME, activation=Activation.RELU, narrow=True),
        convolution((2, 3, 3, 8), (4, 1, 1, 8), activation=Activation.RELU6),
        convolution((1, 7, 6, 4), (2, 2, 3, 4), stride_h=2, dilation_w=2, padding=SAME, narrow=True),
        convolution((1, 2, 9, 1), (5, 3, 1, 1), padding=Padding(top=2, bottom=3, left=1)),
        network_of(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (3, 10), (7, 10)),
        network_of(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (1, 17), (2, 17), narrow=True),
    ],
    "depthwise_conv2d_dual_s16": [
        depthwise((1, 5, 6, 4), 3, padding=SAME, activation=Activation.RELU),
        depthwise((2, 4, 9, 2), 3, padding=SAME, stride_h=2, stride_w=2),
        depthwise((1, 6, 11, 6), 2, dilation_w=2, padding=Padding(left=3, right=1), activation=Activation.RELU6),
        depthwise((1, 3, 1, 2), 3, padding=Padding(top=2, left=2, right=2, bottom=3)),
    ],
}
ALL = [network for networks in CASES.values() for network in networks]


@pytest.mark.cc
def test_plain_c_is_exact() -> None:
    native = NativeNetwork(merged(ALL), core=CORTEX_M4)
    assert sorted(native.kernels) == [kernel for kernel, networks in CASES.items() for _ in networks]
    for which in range(4):
        inputs = [[random_inputs(network), *edge_inputs(network).values()][which] for network in ALL]
        results = native.run([array for some in inputs for array in some])
        for network, some, got in zip(ALL, inputs, results, strict=True):
            assert_array_equal(got, network.run(some)[0])


@pytest.mark.cc
@pytest.mark.parametrize("kernel", CASES)
def test_the_output_may_overlap_the_input_at_the_least_distance(kernel: str) -> None:
    for network in CASES[kernel]:
        op = lower(network, CORTEX_M4)
        (overlap,) = op.overlaps
        assert overlap.distance_bytes is not None
        inputs = random_inputs(network)
        got = run_overlapping(network, inputs, overlap, overlap.distance_bytes, op)
        assert_array_equal(got, network.run(inputs)[0])


@pytest.mark.emu
def test_assembler_is_exact() -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_module("ziglang", "pip install ferrule[run]")
    import ferrule

    network = merged(ALL)
    for inputs in (random_inputs(network), *edge_inputs(network).values()):
        report = ferrule.compile(network, board="mps2-an386").run(inputs, engine="unicorn")
        assert_arrays_equal(report.outputs, network.run(inputs))


@pytest.mark.parametrize(
    ("network", "kernel"),
    [
        (
            network_of(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (1, 900), (2, 900)),
            "conv2d_s16",  # sums of more than 30 bits
        ),
        (
            network_of(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (1, 10), (2, 10), scale=1e-3),
            "conv2d_s16",
        ),
        (
            network_of(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (1, 9), (2, 9), scale=2e-3, narrow=True),
            "conv2d_narrow_s16",
        ),
        (depthwise((1, 4, 4, 3), 3), "depthwise_conv2d_s16"),
    ],
)
def test_other_layers_use_the_plain_kernels(network: Network, kernel: str) -> None:
    assert lower(network, CORTEX_M4).kernel == kernel


def test_weights_are_padded_to_pairs_of_channels_and_words() -> None:
    sizes = [
        [blob.data.nbytes for blob in lower(networks[0], CORTEX_M4).blobs if blob.name.endswith("weights")]
        for networks in CASES.values()
    ]
    assert sizes == [[4 * 32], [2 * 3 * 8]]  # 3 channels of 27 products; 4 channels of 3 rows of 3
