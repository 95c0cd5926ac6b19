# SPDX-License-Identifier: Apache-2.0
"""Elementwise layers, SOFTMAX and pools of int16 data: plain C, the DSP extension and MVE, compared with numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from ckernels import NativeNetwork
from compare import assert_arrays_equal
from layer_case import layer_network, tensor
from merged import merged, sample_outputs
from oracle import edge_inputs

import ferrule
from ferrule.graph import Array, DataType, LayerType, Quantization, Shape
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.functions_of_two import ExtremumDescriptor
from ferrule.operators.elementwise.nonlinear import LogisticDescriptor, TanhDescriptor
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor, ReluDescriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.testing.backends.comparison import random_inputs

ONE = Padding(top=1, bottom=1, left=1, right=1)
NONE, RELU, RELU6 = Activation.NONE, Activation.RELU, Activation.RELU6


def pair(
    type_: LayerType, scales: tuple[float, float, float], activation: Activation, shape: Shape, other: Shape = ()
) -> Network:
    """Return a layer of two inputs; `scales` are those of both and of the output."""
    first, second, output = scales
    infos = [tensor("first", shape, DataType.INT16, first), tensor("second", other or shape, DataType.INT16, second)]
    return layer_network(type_, BinaryDescriptor(activation=activation), infos, Quantization.of(output, 0))


def pool(type_: LayerType, image: Shape, height: int, width: int, **fields: object) -> Network:
    descriptor = Pool2dDescriptor(pool_h=height, pool_w=width, **fields)  # type: ignore[arg-type]
    scale = 2.0**-11
    return layer_network(type_, descriptor, [tensor("x", image, DataType.INT16, scale)], Quantization.of(scale, 0))


SUMS = [
    pair(type_, scales, activation, shape, other)
    for type_ in (LayerType.ADD, LayerType.SUB)
    for scales, activation, shape, other in [
        ((0.001, 0.001, 0.002), NONE, (1, 3, 5, 7), ()),  # both terms are exact
        ((0.001, 0.0007, 0.0011), RELU, (1, 4, 4, 4), ()),
        ((0.00001, 0.003, 0.0025), NONE, (1, 43), ()),
        ((0.0003, 0.0002, 0.0004), RELU6, (1, 37), ()),
        ((0.001, 0.0009, 0.0000001), NONE, (1, 8), ()),  # the result shifts to the left, or not at all
        ((0.001, 0.002, 0.002), NONE, (2, 3, 9), (1, 9)),
        ((0.001, 0.002, 0.002), NONE, (2, 3, 4), (2, 3, 1)),
        ((0.001, 0.001, 0.0015), RELU, (2, 35), (2, 1)),  # one element for a row
        ((0.002, 0.001, 0.0025), NONE, (3, 1), (3, 70)),
        ((0.001, 0.0009, 0.0000001), NONE, (2, 9), (2, 1)),
    ]
]
PRODUCTS = [
    pair(LayerType.MUL, scales, activation, shape, other)
    for scales, activation, shape, other in [
        ((0.001, 0.001, 0.03), NONE, (1, 3, 5, 7), ()),
        ((0.001, 0.0007, 0.0211), RELU, (1, 64), ()),
        ((0.001, 0.001, 0.001 * 2**-9.0), RELU6, (1, 33), ()),
        ((1.0, 1.0, 32768.0), NONE, (1, 12), ()),  # the largest product is half of a step above the largest value
        ((1.0, 1.0, 32769.3), NONE, (1, 12), ()),
        ((1.0, 1.0, 0.5), NONE, (1, 12), ()),
        ((0.001, 0.001, 0.03), NONE, (2, 3, 9), (1, 9)),
        ((0.001, 0.001, 0.03), RELU, (2, 3, 67), (2, 3, 1)),
        ((0.001, 0.001, 0.03), NONE, (4, 1), (4, 7)),
    ]
]
POOLS = [
    network
    for type_ in (LayerType.AVERAGE_POOL_2D, LayerType.MAX_POOL_2D)
    for network in [
        pool(type_, (1, 6, 8, 8), 2, 2, stride_h=2, stride_w=2),
        pool(type_, (2, 5, 7, 13), 3, 3, padding=ONE, activation=RELU),
        pool(type_, (1, 5, 9, 3), 3, 2, stride_w=2, padding=ONE, activation=RELU6),
        pool(type_, (1, 4, 5, 17), 1, 3, padding=Padding(left=2, right=2)),
        pool(type_, (1, 4, 6, 16), 3, 3, padding=ONE),
        pool(type_, (1, 3, 9, 11), 1, 2),
        pool(type_, (1, 14, 13, 6), 14, 13),  # too many pixels for a reciprocal
        pool(type_, (1, 18, 17, 5), 17, 16),
    ]
]
SIGMOIDAL = [
    layer_network(type_, descriptor, [tensor("x", shape, DataType.INT16, scale)], Quantization.of(2.0**-15, 0))
    for type_, descriptor in [(LayerType.LOGISTIC, LogisticDescriptor()), (LayerType.TANH, TanhDescriptor())]
    for scale, shape in [
        (2.0**-12, (1, 43)),
        (2.0**-11, (1, 5, 16)),
        (1e-4, (1, 32)),
        (2.66, (1, 7)),  # nearly all positions are beyond the table
        (1e-9, (1, 9)),  # all are in its middle
    ]
]
SOFTMAXES = [
    layer_network(
        LayerType.SOFTMAX,
        SoftmaxDescriptor(beta=1),
        [tensor("x", shape, DataType.INT16, scale)],
        Quantization.of(2.0**-15, 0),
    )
    for scale, shape in [
        (1e-3, (4, 33)),
        (2.0**-15, (2, 5, 8)),  # shifts to the right
        (1e-8, (1, 18)),
        (1e-9, (1, 10)),  # by more than 14
        (0.9, (3, 7)),
        (2.4, (2, 12)),  # to the left by 14 and 15
        (4.9, (2, 9)),
        (0.01, (5, 1)),
        (0.003, (3, 2)),
    ]
]
RECTIFIERS = [
    layer_network(type_, descriptor, [tensor("x", shape, DataType.INT16, scale)], Quantization.of(output, 0))
    for type_, descriptor in [
        (LayerType.RELU, ReluDescriptor()),
        (LayerType.LEAKY_RELU, LeakyReluDescriptor(alpha=0.125)),
        (LayerType.LEAKY_RELU, LeakyReluDescriptor(alpha=-0.75)),
        (LayerType.LEAKY_RELU, LeakyReluDescriptor(alpha=20.0)),
    ]
    for scale, output, shape in [
        (0.001, 0.001, (1, 21)),
        (0.001, 0.0007, (1, 3, 8)),
        (0.0011, 0.003, (1, 33)),
        (0.001, 0.001 * 2**-11.5, (1, 9)),
        (0.001, 0.001 * 2**-14.5, (1, 10)),  # a shift of 15
        (0.001, 0.001 * 2**18.0, (1, 12)),
    ]
] + [
    layer_network(
        LayerType.RELU6, ReluDescriptor(), [tensor("x", (1, 35), DataType.INT16, 0.0003)], Quantization.of(0.0003, 0)
    )
]
EXTREMA = [
    layer_network(
        type_,
        ExtremumDescriptor(),
        [tensor("first", shape, DataType.INT16, 0.001), tensor("second", other, DataType.INT16, 0.001)],
        Quantization.of(0.001, 0),
    )
    for type_ in (LayerType.MAXIMUM, LayerType.MINIMUM)
    for shape, other in [((1, 35), (1, 35)), ((3, 5, 9), (1, 9)), ((2, 37), (2, 1)), ((2, 1), (2, 8))]
]
REDUCTIONS = [
    layer_network(
        type_,
        ReduceDescriptor(axes=axes, keep_dims=True),
        [tensor("x", shape, DataType.INT16, 0.001)],
        Quantization.of(0.0013, 0),
    )
    for type_ in (LayerType.MEAN, LayerType.SUM)
    for shape, axes in [
        ((2, 5, 6, 21), (1, 2)),  # channels in blocks, and what remains
        ((3, 4, 2, 8), (0, 2)),
        ((4, 37), (1,)),  # runs
        ((2, 5, 4, 7), (1, 3)),
        ((3, 6, 5), (1,)),
        ((3, 2, 5), (0, 1, 2)),
    ]
]
ALL = SUMS + PRODUCTS + EXTREMA + REDUCTIONS + POOLS + SIGMOIDAL + SOFTMAXES + RECTIFIERS


def inputs_of(networks: Sequence[Network], which: int) -> list[Array]:
    """Return random inputs for 0, extreme ones for others."""
    return [
        array
        for network in networks
        for array in [random_inputs(network), *edge_inputs(network).values()][which % (1 + len(edge_inputs(network)))]
    ]


@pytest.mark.cc
def test_plain_c_is_exact() -> None:
    native = NativeNetwork(merged(ALL))
    for which in range(4):
        inputs = inputs_of(ALL, which)
        assert_arrays_equal(native.run(inputs), native.network.run(inputs))


@pytest.mark.emu
@pytest.mark.parametrize(("board", "engine"), [("mps2-an386", "unicorn"), ("mps3-an547", "qemu")])
def test_the_instructions_of_the_core_are_exact(board: str, engine: str) -> None:
    network = merged(ALL)
    firmware = ferrule.compile(network, board=board)
    samples = [inputs_of(ALL, which) for which in range(4)]
    for inputs, outputs in zip(samples, sample_outputs(firmware, samples, engine), strict=True):
        assert_arrays_equal(outputs, network.run(inputs))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 9, 100, 180, 181])
def test_a_product_with_the_reciprocal_is_the_mean_with_vectors(count: int) -> None:
    """Sums near halves and wholes, and the largest; as `average_pool2d_s16.c` computes them."""
    reciprocal = (1 << 31) // count + 1 if count > 1 else (1 << 31) - 1
    sums = sums_of(count)
    assert np.array_equal((2 * sums * reciprocal + (1 << 31)) >> 32, means(sums, count))


@pytest.mark.parametrize("count", [3, 4, 7, 9, 100, 180, 181])
def test_a_product_with_the_reciprocal_is_the_mean_with_the_dsp_extension(count: int) -> None:
    sums = sums_of(count)
    assert np.array_equal((sums * (((1 << 32) - 1) // count + 2) + (1 << 31)) >> 32, means(sums, count))


def sums_of(count: int) -> Array:
    largest = count << 15
    sums = np.concatenate([np.arange(0, largest, max(count // 2, 1)) + each for each in (-1, 0, 1)])
    sums = np.append(sums[(sums >= 0) & (sums < largest)], largest - 1).astype(np.int64)
    return np.unique(np.concatenate((sums, -sums, [-largest])))


def means(sums: Array, count: int) -> Array:
    return np.asarray(np.sign(sums) * ((np.abs(sums) + count // 2) // count), np.int64)
