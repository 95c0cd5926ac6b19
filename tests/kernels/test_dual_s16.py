# SPDX-License-Identifier: Apache-2.0
"""Layers with weights and int16 data, for the DSP extension and MVE, native and emulated, compared with numpy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from ckernels import NativeNetwork
from compare import assert_arrays_equal
from layer_case import layer_network, tensor
from lowered_call import lower, run_lowered, run_overlapping
from merged import merged, sample_outputs
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import edge_inputs

from ferrule.backends.cpu_acc.lowering.kernels import choice
from ferrule.backends.firmware import LoweringContext
from ferrule.backends.target import CoreFeatures
from ferrule.graph import DataType, Descriptor, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor
from ferrule.testing.backends.comparison import random_inputs

CORTEX_M4 = CoreFeatures(name="cortex-m4", fpu=True, dsp=True)
CORTEX_M55 = CoreFeatures(name="cortex-m55", fpu=True, dsp=True, mve=True)
SAME = Padding(top=1, bottom=1, left=1, right=1)


def network_of(
    type_: LayerType,
    descriptor: Descriptor,
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


def convolution(
    image: Shape, weights: Shape, *, narrow: bool = False, scale: float = 0.5, **descriptor: object
) -> Network:
    return network_of(
        LayerType.CONV_2D,
        Conv2dDescriptor(**descriptor),  # type: ignore[arg-type]
        image,
        weights,
        narrow=narrow,
        scale=scale,
    )


def depthwise(
    image: Shape, height: int, width: int = 3, *, multiplier: int = 1, narrow: bool = False, **descriptor: object
) -> Network:
    return network_of(
        LayerType.DEPTHWISE_CONV_2D,
        DepthwiseConv2dDescriptor(depth_multiplier=multiplier, **descriptor),  # type: ignore[arg-type]
        image,
        (1, height, width, image[3] * multiplier),
        narrow=narrow,
    )


def transposed(image: Shape, weights: Shape, *, scale: float = 0.5, **descriptor: object) -> Network:
    return network_of(
        LayerType.TRANSPOSE_CONV,
        TransposeConvDescriptor(**descriptor),  # type: ignore[arg-type]
        image,
        weights,
        scale=scale,
    )


def is_narrow(network: Network) -> bool:
    return network.info("bias").dtype is DataType.INT32


WHOLE = FullyConnectedDescriptor()
CASES = {
    "conv2d_dual_s16": [
        convolution((1, 5, 4, 3), (3, 3, 3, 3), padding=SAME, activation=Activation.RELU),
        convolution((1, 5, 4, 3), (3, 3, 3, 3), padding=SAME, activation=Activation.RELU, narrow=True),
        convolution((2, 3, 3, 8), (4, 1, 1, 8), activation=Activation.RELU6),
        convolution((1, 7, 6, 4), (7, 2, 3, 4), stride_h=2, dilation_w=2, padding=SAME, narrow=True),
        convolution((1, 2, 9, 1), (5, 3, 1, 1), padding=Padding(top=2, bottom=3, left=1)),
        convolution((1, 4, 4, 7), (9, 2, 2, 7), padding=Padding(right=1)),
        convolution((1, 2, 3, 8), (6, 2, 2, 8), scale=2e-3),  # sums of 64 bits
        network_of(LayerType.FULLY_CONNECTED, WHOLE, (3, 9), (7, 9)),
        network_of(LayerType.FULLY_CONNECTED, WHOLE, (1, 17), (2, 17), narrow=True),
        network_of(LayerType.FULLY_CONNECTED, WHOLE, (1, 1025), (5, 1025)),
    ],
    "fully_connected_dual_s16": [
        network_of(LayerType.FULLY_CONNECTED, WHOLE, (1, 10), (7, 10)),
        network_of(LayerType.FULLY_CONNECTED, WHOLE, (1, 1026), (3, 1026)),
        network_of(LayerType.FULLY_CONNECTED, WHOLE, (1, 16), (6, 16), scale=1e-3),
    ],
    "depthwise_conv2d_dual_s16": [
        depthwise((1, 5, 6, 4), 3, padding=SAME, activation=Activation.RELU),
        depthwise((2, 4, 9, 2), 3, padding=SAME, stride_h=2, stride_w=2),
        depthwise((1, 6, 11, 6), 2, dilation_w=2, padding=Padding(left=3, right=1), activation=Activation.RELU6),
        depthwise((1, 3, 1, 2), 3, padding=Padding(top=2, left=2, right=2, bottom=3)),
        depthwise((1, 6, 9, 17), 3, padding=SAME, activation=Activation.RELU),
        depthwise((2, 6, 8, 3), 5, 4, padding=Padding(top=2, bottom=2, left=2, right=2), stride_w=2),
        depthwise((1, 3, 12, 5), 2, 7, padding=Padding(left=6, right=5)),
        depthwise((1, 4, 4, 6), 2, 1, padding=Padding(left=1)),
    ],
}
CASES |= {
    "conv2d_unpacked_s16": [network for network in CASES["conv2d_dual_s16"] if not is_narrow(network)],
    "fully_connected_unpacked_s16": CASES["fully_connected_dual_s16"],
}
VECTORS = {
    "conv2d_mve_s16": [
        *CASES["conv2d_dual_s16"],
        convolution((1, 3, 5, 4), (6, 1, 1, 4)),
        convolution((1, 4, 17, 18), (5, 3, 3, 18), padding=SAME, activation=Activation.RELU),
        convolution((2, 1, 9, 5), (2, 1, 4, 5), padding=Padding(left=3, right=1)),
        convolution((1, 2, 3, 160), (9, 2, 2, 160)),
        convolution((1, 3, 4, 64), (3, 3, 3, 64), scale=2e-3),  # sums of 64 bits
        network_of(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (1, 71), (22, 71), narrow=True),
        network_of(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (5, 24), (12, 24)),
    ],
    "depthwise_conv2d_mve_s16": [
        *CASES["depthwise_conv2d_dual_s16"],
        depthwise((1, 9, 21, 8), 3, padding=SAME, activation=Activation.RELU),
        depthwise((1, 6, 11, 6), 2, dilation_w=2, padding=Padding(left=3, right=1), activation=Activation.RELU6),
        depthwise((1, 9, 12, 8), 3, padding=Padding(top=4, left=2, right=2, bottom=5)),
        depthwise((1, 7, 9, 17), 3, padding=SAME, activation=Activation.RELU),
        depthwise((2, 6, 8, 3), 5, 4, padding=Padding(top=2, bottom=2, left=2, right=2), stride_w=2),
        depthwise((1, 4, 5, 6), 2, multiplier=3, padding=Padding(top=1, left=3), activation=Activation.RELU6),
        depthwise((1, 3, 5, 8), 1, 5, multiplier=2, padding=Padding(left=1, right=3)),
    ],
    "fully_connected_mve_s16": [
        network_of(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (1, 64), (10, 64)),
        network_of(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (1, 2050), (3, 2050)),
    ],
}
PARTS = [
    convolution((1, 5, 4, 12), (12, 3, 3, 3), padding=SAME, activation=Activation.RELU6),
    convolution((2, 3, 5, 8), (6, 1, 1, 4), padding=SAME, narrow=True),
    convolution((1, 4, 5, 6), (8, 2, 3, 3), dilation_w=2, padding=Padding(left=3, top=1)),
    convolution((1, 3, 4, 8), (8, 3, 3, 4), padding=SAME, scale=2e-3),  # sums of 64 bits
    transposed((2, 3, 4, 5), (12, 2, 2, 5), output_h=6, output_w=8, stride_h=2, stride_w=2),
    transposed((1, 4, 3, 6), (5, 3, 3, 6), output_h=8, output_w=7, stride_h=2, stride_w=2, pad_top=1),
    transposed((1, 3, 3, 4), (8, 1, 2, 4), output_h=6, output_w=4, stride_h=2, activation=Activation.RELU6),
    transposed((1, 3, 5, 3), (4, 4, 3, 3), output_h=11, output_w=8, stride_h=3, stride_w=2, pad_left=2, scale=2e-3),
    convolution((2, 3, 5, 8), (6, 1, 2, 4), activation=Activation.RELU),
    depthwise((1, 4, 5, 6), 2, multiplier=3, padding=Padding(top=1, left=3), activation=Activation.RELU6),
    depthwise((2, 3, 5, 7), 1, 1, multiplier=2, stride_w=2),
    depthwise((1, 3, 5, 8), 1, 1),
]
"""Grouped and transposed convolutions and depthwise ones of one pixel or with a multiplier; vectors compute few."""
POINTS = [
    convolution((2, 3, 5, 8), (6, 1, 1, 4), activation=Activation.RELU),
    convolution((1, 3, 4, 32), (16, 1, 1, 8), activation=Activation.RELU6),
    convolution((1, 5, 2, 15), (10, 1, 1, 3)),
    convolution((1, 2, 3, 15), (9, 1, 1, 5)),
    depthwise((1, 4, 5, 7), 1, 1, multiplier=3, activation=Activation.RELU6),
    depthwise((2, 3, 3, 5), 1, 1, multiplier=2),
    depthwise((1, 3, 5, 8), 1, 1),
    depthwise((1, 3, 1, 3), 1, 1, multiplier=5),
]
"""Windows of one pixel over few channels."""
CASES["conv2d_points_s16"] = POINTS
CASES["depthwise_conv2d_repeated_s16"] = [
    depthwise((1, 4, 5, 6), 2, multiplier=3, padding=Padding(top=1, left=3), activation=Activation.RELU6),
    depthwise((2, 9, 6, 3), 3, multiplier=2, padding=SAME, stride_h=2, stride_w=2),
    depthwise((1, 7, 8, 2), 3, multiplier=2, padding=SAME, activation=Activation.RELU),
    depthwise((1, 19, 5, 2), 2, multiplier=4, dilation_w=2),
    depthwise((1, 3, 1, 2), 3, multiplier=2, padding=Padding(top=5, left=2, right=2, bottom=6)),
]
CASES["conv2d_dual_s16"] += [*PARTS, convolution((1, 2, 3, 12), (8, 1, 3, 3), scale=2e-3)]  # groups, sums of 64 bits
CASES["conv2d_unpacked_s16"] += [network for network in PARTS if not is_narrow(network)]
EACH = pytest.mark.parametrize("kernel", [*CASES, *VECTORS])


@pytest.fixture
def networks(kernel: str, monkeypatch: pytest.MonkeyPatch) -> list[Network]:
    """The networks of a kernel, which lowerings choose where it can run."""
    explain = choice.explain

    def preferring(context: LoweringContext, rows: Sequence[choice.Row]) -> tuple[choice.Considered, ...]:
        found = explain(context, rows)
        able = [each for each in found if each.candidate is not None and each.candidate.kernel == kernel]
        return tuple(
            replace(each, stated=replace(each.stated, chosen=each is able[0] if able else each.stated.chosen))
            for each in found
        )

    monkeypatch.setattr(choice, "explain", preferring)
    return (CASES | VECTORS)[kernel]


def core_of(kernel: str) -> CoreFeatures:
    return CORTEX_M55 if kernel in VECTORS else CORTEX_M4


@EACH
@pytest.mark.cc
def test_plain_c_is_exact(kernel: str, networks: list[Network]) -> None:
    native = NativeNetwork(merged(networks), core=core_of(kernel))
    assert set(native.kernels) == {kernel}
    for which in range(4):
        inputs = [[random_inputs(network), *edge_inputs(network).values()][which] for network in networks]
        results = native.run([array for some in inputs for array in some])
        for network, some, got in zip(networks, inputs, results, strict=True):
            assert_array_equal(got, network.run(some)[0])


@EACH
@pytest.mark.cc
def test_the_output_may_overlap_the_input_at_the_least_distance(kernel: str, networks: list[Network]) -> None:
    for network in networks:
        op = lower(network, core_of(kernel))
        none = (
            "fully_connected" in kernel
            or "points" in kernel
            or "repeated" in kernel
            or network.layers[0].type is LayerType.TRANSPOSE_CONV
        )
        assert len(op.overlaps) == (0 if none else 1)
        inputs = random_inputs(network)
        for overlap in op.overlaps:
            assert overlap.distance_bytes is not None
            got = run_overlapping(network, inputs, overlap, overlap.distance_bytes, op)
            assert_array_equal(got, network.run(inputs)[0])


@EACH
@pytest.mark.emu
def test_assembler_is_exact(kernel: str, networks: list[Network]) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_module("ziglang", "pip install ferrule[run]")
    import ferrule

    board, engine = ("mps3-an547", "qemu") if kernel in VECTORS else ("mps2-an386", "unicorn")
    network = merged(networks)
    firmware = ferrule.compile(network, board=board)
    assert firmware.image.stack.size_bytes is not None, firmware.image.stack.reason
    samples = [random_inputs(network), *edge_inputs(network).values()]
    for inputs, outputs in zip(samples, sample_outputs(firmware, samples, engine), strict=True):
        assert_arrays_equal(outputs, network.run(inputs))


@pytest.mark.cc
@pytest.mark.parametrize(("outputs", "narrow"), [(1, False), (2, True), (3, False)])
def test_neighbouring_pixels_fill_the_blocks_of_few_outputs(outputs: int, *, narrow: bool) -> None:
    network = convolution((1, 24, 27, 5), (outputs, 3, 3, 5), padding=SAME, narrow=narrow)
    op = lower(network, CORTEX_M4)
    (chosen,) = (each.kernel for each in op.considered if each.chosen)
    assert chosen == ("conv2d_dual_s16" if narrow else "conv2d_unpacked_s16")
    assert [blob.name for blob in op.blobs if blob.name.endswith("stream")] != []  # those of parts
    for inputs in (random_inputs(network), *edge_inputs(network).values()):
        assert_arrays_equal(run_lowered(network, inputs, CORTEX_M4), network.run(inputs))


def test_a_table_names_the_part_of_the_kernel_for_groups_or_for_none() -> None:
    named = [set(re.findall(r"ferrule_conv2d_\w+_s16\b", str(lower(each, CORTEX_M4).declarations))) for each in PARTS]
    assert named.pop(0) == {"ferrule_conv2d_unpacked_groups_s16"}
    assert named.pop() == named.pop(-2) == set()  # depthwise ones, by the kernels of such
    wholes = {f"ferrule_conv2d_{form}_whole_s16" for form in ("dual", "unpacked")}  # two groups are parts of their own
    assert all(len(each) == 1 and each <= wholes for each in named)


@pytest.mark.parametrize(
    ("network", "kernel"),
    [
        (
            network_of(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (1, 9), (2, 9), scale=2e-3, narrow=True),
            "conv2d_narrow_s16",
        ),
        (depthwise((1, 6, 4, 3), 3, multiplier=2, narrow=True), "conv2d_dual_s16"),
    ],
)
def test_other_layers_use_other_kernels(network: Network, kernel: str) -> None:
    assert lower(network, CORTEX_M4).kernel == kernel


@pytest.mark.parametrize(
    ("kernel", "size"),
    [
        ("conv2d_dual_s16", 4 * (28 + 8)),  # 3 channels of 27 products
        ("conv2d_unpacked_s16", 4 * (2 * 28 + 8)),
        ("depthwise_conv2d_dual_s16", 4 * (3 * 4 + 8)),  # 4 channels of 3 rows of 3
    ],
)
def test_weights_are_padded_to_blocks_of_channels_and_pairs_of_products(
    kernel: str, size: int, networks: list[Network]
) -> None:
    op = lower(networks[0], core_of(kernel))
    assert [blob.data.nbytes for blob in op.blobs if blob.name.endswith("weights")] == [size]
