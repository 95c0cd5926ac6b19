# SPDX-License-Identifier: Apache-2.0
"""Layers with weights in float32: the bits of a plain loop, by the plain C here and the assembler on emulated cores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise, product

import numpy as np
import pytest
from ckernels import NativeNetwork
from layer_case import layer_network
from lowered_call import lower, run_overlapping
from merged import merged, sample_outputs
from needs import require_module, require_program

import ferrule
from ferrule.backends.target import CoreFeatures
from ferrule.graph import Array, DataType, Descriptor, LayerType, Shape, TensorInfo
from ferrule.network import Network
from ferrule.network.execution import operands_of
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.elementwise.binary import float_limits
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.convolved import convolved
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor as Transposed

pytestmark = pytest.mark.cc

M4F = CoreFeatures(name="cortex-m4", fpu=True, dsp=True)
M3 = CoreFeatures(name="cortex-m3")
ONE = Padding(top=1, bottom=1, left=1, right=1)
SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-41, 1e-30, 3e38, -3e38], np.float32)
RANDOM = np.random.default_rng(8)


def layer(
    type_: LayerType,
    descriptor: Descriptor,
    image: Shape,
    weights: Shape,
) -> Network:
    """Return a layer with constant weights and a bias, which is 0 for some channels."""
    shapes = image, weights, (weights[3 if type_ is LayerType.DEPTHWISE_CONV_2D else 0],)
    infos = [TensorInfo(name, shape, DataType.FLOAT32) for name, shape in zip("xwb", shapes, strict=True)]
    constants = {index: RANDOM.normal(size=shapes[index]).astype(np.float32) for index in (1, 2)}
    constants[2][::2] = 0
    return layer_network(type_, descriptor, infos, constants=constants)


def conv2d(image: Shape, weights: Shape, descriptor: Conv2dDescriptor | None = None) -> Network:
    return layer(LayerType.CONV_2D, descriptor or Conv2dDescriptor(activation=Activation.RELU), image, weights)


def depthwise(image: Shape, kernel: tuple[int, int], descriptor: DepthwiseConv2dDescriptor | None = None) -> Network:
    chosen = descriptor or DepthwiseConv2dDescriptor(padding=ONE, activation=Activation.RELU)
    weights = (1, *kernel, image[3] * chosen.depth_multiplier)
    return layer(LayerType.DEPTHWISE_CONV_2D, chosen, image, weights)


def transposed(image: Shape, weights: Shape, descriptor: Transposed) -> Network:
    return layer(LayerType.TRANSPOSE_CONV, descriptor, image, weights)


def dense(rows: int, inputs: int, channels: int, activation: Activation) -> Network:
    descriptor = FullyConnectedDescriptor(activation=activation)
    return layer(LayerType.FULLY_CONNECTED, descriptor, (rows, inputs), (channels, inputs))


CASES: dict[str, Network] = {
    "one pixel windows": conv2d((2, 3, 5, 7), (16, 1, 1, 7)),
    "one channel": conv2d((1, 4, 5, 9), (1, 2, 2, 9)),
    "a block that is not whole": conv2d((1, 3, 3, 6), (21, 1, 1, 6), Conv2dDescriptor()),
    "3x3": conv2d((1, 5, 8, 4), (8, 3, 3, 4), Conv2dDescriptor(padding=ONE)),
    "3x3 of three channels": conv2d((2, 7, 6, 3), (12, 3, 3, 3), Conv2dDescriptor(padding=ONE, stride_h=2, stride_w=2)),
    "limits of 0 and 6": conv2d((1, 3, 4, 5), (8, 2, 2, 5), Conv2dDescriptor(activation=Activation.RELU6)),
    "limits of -1 and 1": conv2d((1, 3, 4, 5), (9, 2, 2, 5), Conv2dDescriptor(activation=Activation.RELU_N1_TO_1)),
    "dilated": conv2d((1, 7, 9, 4), (16, 2, 3, 4), Conv2dDescriptor(dilation_h=3, dilation_w=2, padding=ONE)),
    "whole rows": conv2d((1, 9, 3, 2), (8, 3, 3, 2)),
    "outside": conv2d((1, 2, 2, 4), (16, 3, 1, 4), Conv2dDescriptor(padding=Padding(top=3, bottom=3, left=2))),
    "wider than the image": conv2d((1, 2, 2, 3), (4, 1, 5, 3), Conv2dDescriptor(padding=Padding(left=3, right=3))),
    "groups": conv2d((1, 4, 5, 12), (18, 3, 3, 4), Conv2dDescriptor(padding=ONE)),
    "groups, one pixel windows": conv2d((2, 3, 5, 12), (18, 1, 1, 4), Conv2dDescriptor()),
    "groups, dilated": conv2d((1, 4, 5, 8), (8, 3, 3, 4), Conv2dDescriptor(padding=ONE, dilation_w=2)),
    "depthwise": depthwise((1, 4, 6, 16), (3, 3)),
    "depthwise, blocks that overlap": depthwise((2, 4, 5, 19), (3, 3)),
    "depthwise, stride 2": depthwise(
        (1, 7, 9, 8), (3, 3), DepthwiseConv2dDescriptor(stride_h=2, stride_w=2, activation=Activation.RELU6)
    ),
    "depthwise, dilated": depthwise((1, 6, 9, 9), (2, 3), DepthwiseConv2dDescriptor(dilation_h=3, dilation_w=2)),
    "depthwise, few channels": depthwise((1, 4, 4, 3), (3, 3)),
    "depthwise, multiplied": depthwise((1, 4, 4, 8), (3, 3), DepthwiseConv2dDescriptor(depth_multiplier=2)),
    "depthwise, multiplied much": depthwise((2, 4, 4, 3), (3, 3), DepthwiseConv2dDescriptor(depth_multiplier=9)),
    "depthwise, outside": depthwise(
        (1, 2, 2, 8), (1, 5), DepthwiseConv2dDescriptor(padding=Padding(left=5, right=6), activation=Activation.RELU)
    ),
    "transposed": transposed((2, 3, 4, 5), (12, 2, 2, 5), Transposed(output_h=6, output_w=8, stride_h=2, stride_w=2)),
    "transposed, odd": transposed(
        (1, 4, 3, 6),
        (9, 3, 3, 6),
        Transposed(output_h=8, output_w=7, stride_h=2, stride_w=2, pad_top=1, activation=Activation.RELU),
    ),
    "transposed, outputs of no weights": transposed(
        (1, 3, 3, 4), (8, 1, 2, 4), Transposed(output_h=6, output_w=4, stride_h=2, activation=Activation.RELU6)
    ),
    "transposed, cut": transposed(
        (1, 3, 5, 3), (4, 4, 3, 3), Transposed(output_h=11, output_w=8, stride_h=3, stride_w=2, pad_left=2)
    ),
    "dense": dense(1, 37, 24, Activation.NONE),
    "dense, odd": dense(1, 3, 10, Activation.RELU),
    "dense rows": dense(5, 10, 17, Activation.RELU6),
}


class Inputs(StrEnum):
    """What inputs are drawn from."""

    USUAL = "usual"
    SPECIAL = "special"
    """Infinities, NaN and the ends of the range among usual numbers."""
    TINY = "tiny"
    """Products and sums that are subnormal numbers, in parts of the image."""


def inputs_of(network: Network, kind: Inputs) -> list[Array]:
    """Return random inputs."""
    (info,) = network.inputs
    values = RANDOM.normal(size=info.shape).astype(np.float32)
    match kind:
        case Inputs.SPECIAL:
            values = np.where(RANDOM.random(info.shape) < 0.05, RANDOM.choice(SPECIAL, info.shape), values)
        case Inputs.TINY:
            values[0, info.shape[1] // 2 :] *= np.float32(1e-38)
    return [np.asarray(values, np.float32)]


def in_order(network: Network, image: Array) -> Array:
    """Return the layer's result in float32: products in the order of the image from 0 on, then the bias."""
    (node,) = network.layers
    weights, bias = (np.asarray(network.tensor(name).data) for name in node.inputs[1:])
    found = convolved(node, operands_of(network, node))
    window, shape = found.window, found.output.shape
    image = image.reshape(found.image.shape)
    if node.type is LayerType.DEPTHWISE_CONV_2D:
        weights = weights.transpose(3, 1, 2, 0)
    weights = weights.reshape(len(weights), window.height, window.width, -1)
    depth, group = weights.shape[3], shape[3] // (image.shape[3] // weights.shape[3])
    sums = np.zeros(shape, np.float32)
    spread = node.type is LayerType.TRANSPOSE_CONV  # then each pixel of the image adds a window to the output
    base, reached = (image.shape, shape) if spread else (shape, image.shape)
    order = -1 if spread else 1
    with np.errstate(all="ignore"):
        for i, j, k in product(range(window.height)[::order], range(window.width)[::order], range(depth)):
            rows = np.arange(base[1]) * window.stride_h - window.padding.top + i * window.dilation_h
            columns = np.arange(base[2]) * window.stride_w - window.padding.left + j * window.dilation_w
            inside = [
                np.flatnonzero((at >= 0) & (at < extent))
                for at, extent in zip((rows, columns), reached[1:3], strict=True)
            ]
            if not min(each.size for each in inside):
                continue
            there = rows[inside[0]], columns[inside[1]]
            (y, x), outputs = (np.ix_(*inside), there) if spread else (np.ix_(*there), inside)
            for c in range(shape[3]):
                place = np.ix_(range(shape[0]), *outputs, [c])
                element = image[:, y, x, c // group * depth + k][..., None]
                sums[place] = sums[place] + element * weights[c, i, j, k]
        sums += bias
        low, high = (np.float32(limit) for limit in float_limits(found.activation))
        sums = np.where(sums < low, low, np.where(sums > high, high, sums))
    return sums.reshape(network.outputs[0].shape)


def assert_bits(got: Array, wanted: Array, name: str) -> None:
    """Assert that two arrays have the same bits; a NaN equals a NaN."""
    assert np.array_equal(np.isnan(got), np.isnan(wanted)), name
    numbers = ~np.isnan(wanted)
    assert np.array_equal(got[numbers].view(np.int32), wanted[numbers].view(np.int32)), name


def check(outputs: Sequence[Array], inputs: Sequence[Array]) -> None:
    for (name, network), got, image in zip(CASES.items(), outputs, inputs, strict=True):
        assert_bits(got, in_order(network, image), name)


@pytest.mark.parametrize("core", [M4F, M3], ids=["in blocks", "plain"])
def test_the_c_has_the_bits_of_a_loop(core: CoreFeatures) -> None:
    native = NativeNetwork(merged(list(CASES.values())), core=core)
    for kind in Inputs:
        inputs = [array for network in CASES.values() for array in inputs_of(network, kind)]
        check(native.run(inputs), inputs)


@pytest.mark.emu
@pytest.mark.parametrize(
    ("board", "engine", "tool"),
    [
        ("mps2-an386", "unicorn", "arm-none-eabi-gcc"),
        ("mps2-an386", "unicorn", "zig"),
        ("mps3-an547", "qemu", "arm-none-eabi-gcc"),
        ("mps3-an547", "qemu", "zig"),
    ],
)
def test_cores_have_the_bits_of_a_loop(board: str, engine: str, tool: str) -> None:
    if tool == "zig":
        require_module("ziglang", "pip install ferrule[run]")
    else:
        require_program(tool, "apt install gcc-arm-none-eabi")
    if engine == "qemu":
        require_program("qemu-system-arm", "apt install qemu-system-arm")
    firmware = ferrule.compile(merged(list(CASES.values())), board=board, toolchain=tool, goal="speed")
    assert firmware.image.stack.size_bytes is not None, firmware.image.stack.reason
    samples = [[array for network in CASES.values() for array in inputs_of(network, kind)] for kind in Inputs]
    with np.errstate(all="ignore"):
        results = sample_outputs(firmware, samples, engine)
    for inputs, outputs in zip(samples, results, strict=True):
        check(outputs, inputs)


@pytest.mark.emu
def test_pixels_that_vectors_left_to_scalars_still_have_their_inputs() -> None:
    """Pixels with too small numbers are computed again after their outputs were written, maybe over inputs."""
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    require_program("qemu-system-arm", "apt install qemu-system-arm")
    single = depthwise((1, 5, 4, 8), (1, 1), DepthwiseConv2dDescriptor())
    image, (node,), (output,) = single.inputs[0], single.layers, single.outputs
    network = Network("layers")
    network.add_input(image)
    for name in node.inputs[1:]:
        tensor = single.tensor(name)
        network.add_constant(tensor.info, tensor.data)
    names = [image.name, *(f"output_{number}" for number in range(3))]
    for source, name in pairwise(names):
        chained = replace(node, name=f"layer_{name}", inputs=(source, *node.inputs[1:]), outputs=(name,))
        network.add_layer(chained, [replace(output, name=name)])
    network.set_outputs(names[-1:])
    inputs = inputs_of(single, Inputs.TINY)
    with np.errstate(all="ignore"):
        report = ferrule.compile(network, board="mps3-an547", toolchain="arm-none-eabi-gcc", goal="speed").run(
            inputs, engine="qemu"
        )
        wanted = inputs[0]
        for _ in names[1:]:
            wanted = in_order(single, wanted)
    assert_bits(report.outputs[0], wanted, "three layers")


@pytest.mark.parametrize("core", [M4F, M3], ids=["in blocks", "plain"])
def test_outputs_may_overlap_inputs_at_the_least_distance(core: CoreFeatures) -> None:
    for name, network in CASES.items():
        inputs = inputs_of(network, Inputs.USUAL)
        op = lower(network, core)
        if not op.overlaps:
            assert network.layers[0].type is LayerType.TRANSPOSE_CONV
            continue
        (overlap,) = op.overlaps
        assert overlap.distance_bytes is not None
        got = run_overlapping(network, inputs, overlap, -(-overlap.distance_bytes // 4) * 4, op)
        assert_bits(got, in_order(network, inputs[0]), name)


def test_a_table_names_the_blocks_that_the_layer_has() -> None:
    named = [set(re.findall(r"ferrule_float_\w+", str(lower(each, M4F).declarations))) for each in CASES.values()]
    each = {"ferrule_float_blocks_4", "ferrule_float_blocks_8", "ferrule_float_channels_8"}
    assert all(len(names) <= 1 for names in named)
    assert each <= set().union(*named)
