# SPDX-License-Identifier: Apache-2.0
"""Weighted layers that are lowered as layers of another type: both sides of each condition, and the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ckernels import NativeNetwork
from compare import assert_arrays_equal
from layer_case import layer_network, tensor
from lowered_call import lowering_of, run_lowered
from numpy.testing import assert_array_equal
from oracle import edge_inputs
from weighted_cases import within_bound

from ferrule.backends.cpu_acc.lowering.kernels.equivalent import equivalent
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import Ranges, channel_ranges, seed_ranges
from ferrule.graph import Array, DataType, Descriptor, Layer, LayerType, Quantization, Shape
from ferrule.network import Network, run_graph
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.weighted.conv2d import Conv2dDescriptor as Conv
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor as Depthwise
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor as Full
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor as Transposed
from ferrule.testing.backends.comparison import random_inputs

CONV_2D, DEPTHWISE = LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D
FULL, TRANSPOSED = LayerType.FULLY_CONNECTED, LayerType.TRANSPOSE_CONV
TALL = Padding(top=1, bottom=2)

Row = tuple[LayerType, Descriptor, Shape, Shape, LayerType, Shape]
"""Type, descriptor, image and weights of a layer, and type and image of the one that is lowered."""
ROWS: dict[str, Row] = {
    "rows": (FULL, Full(activation=Activation.RELU), (3, 5), (4, 5), CONV_2D, (1, 1, 3, 5)),
    "rows of several axes": (FULL, Full(keep_num_dims=True), (2, 3, 5), (4, 5), CONV_2D, (1, 1, 6, 5)),
    "rows that are parts of others": (FULL, Full(), (2, 6), (4, 3), CONV_2D, (1, 1, 4, 3)),
    "one row": (FULL, Full(), (1, 5), (4, 5), FULL, (1, 5)),
    "one row of several axes": (FULL, Full(), (2, 3, 5), (4, 30), FULL, (2, 3, 5)),
    "the whole image": (CONV_2D, Conv(activation=Activation.RELU6), (1, 3, 2, 2), (4, 3, 2, 2), FULL, (1, 12)),
    "several whole images": (CONV_2D, Conv(), (2, 3, 2, 2), (4, 3, 2, 2), CONV_2D, (1, 1, 2, 12)),
    "the whole image by steps": (CONV_2D, Conv(stride_h=2), (1, 3, 2, 2), (4, 3, 2, 2), FULL, (1, 12)),
    "a part of the image": (CONV_2D, Conv(), (1, 3, 3, 2), (4, 3, 2, 2), CONV_2D, (1, 3, 3, 2)),
    "the image and padding": (
        *(CONV_2D, Conv(stride_h=2, stride_w=2, padding=Padding(top=1)), (1, 3, 2, 2), (4, 3, 2, 2)),
        *(CONV_2D, (1, 3, 2, 2)),
    ),
    "the image with gaps": (
        *(CONV_2D, Conv(dilation_h=2, padding=Padding(top=2)), (1, 3, 2, 2), (4, 3, 2, 2)),
        *(CONV_2D, (1, 3, 2, 2)),
    ),
    "the whole image in groups": (CONV_2D, Conv(), (1, 3, 2, 4), (4, 3, 2, 2), CONV_2D, (1, 3, 2, 4)),
    "a column": (CONV_2D, Conv(stride_h=2, padding=TALL), (2, 9, 1, 3), (4, 3, 1, 3), CONV_2D, (2, 1, 9, 3)),
    "a column with gaps": (CONV_2D, Conv(dilation_h=3), (1, 9, 1, 3), (4, 3, 1, 3), CONV_2D, (1, 1, 9, 3)),
    "a depthwise column": (DEPTHWISE, Depthwise(padding=TALL), (1, 9, 1, 3), (1, 3, 1, 3), DEPTHWISE, (1, 1, 9, 3)),
    "a column in groups": (CONV_2D, Conv(), (1, 9, 1, 4), (4, 3, 1, 2), CONV_2D, (1, 1, 9, 4)),
    "a row": (CONV_2D, Conv(), (1, 1, 9, 3), (4, 1, 3, 3), CONV_2D, (1, 1, 9, 3)),
    "a column and padding": (
        *(CONV_2D, Conv(stride_w=2, padding=Padding(left=1)), (1, 9, 1, 3), (4, 3, 1, 3), CONV_2D, (1, 9, 1, 3)),
    ),
    "a column of wide windows": (
        *(CONV_2D, Conv(padding=Padding(left=1)), (1, 9, 1, 3), (4, 3, 2, 3), CONV_2D, (1, 9, 1, 3)),
    ),
    "groups of one channel": (CONV_2D, Conv(), (1, 4, 5, 3), (3, 2, 3, 1), DEPTHWISE, (1, 4, 5, 3)),
    "groups of one channel with several outputs": (
        *(CONV_2D, Conv(stride_w=2, dilation_h=2, padding=TALL), (2, 4, 5, 3), (6, 2, 3, 1), DEPTHWISE, (2, 4, 5, 3)),
    ),
    "groups of two channels": (CONV_2D, Conv(), (1, 4, 5, 4), (4, 2, 3, 2), CONV_2D, (1, 4, 5, 4)),
    "one channel, one output": (CONV_2D, Conv(), (1, 4, 5, 1), (1, 2, 3, 1), DEPTHWISE, (1, 4, 5, 1)),
    "one channel, several outputs": (CONV_2D, Conv(), (1, 4, 5, 1), (3, 2, 3, 1), CONV_2D, (1, 4, 5, 1)),
    "depthwise with one channel": (
        *(DEPTHWISE, Depthwise(depth_multiplier=3, stride_h=2, padding=TALL, activation=Activation.RELU)),
        *((1, 4, 5, 1), (1, 2, 3, 3), CONV_2D, (1, 4, 5, 1)),
    ),
    "depthwise with one channel and one output": (
        *(DEPTHWISE, Depthwise(), (1, 4, 5, 1), (1, 2, 3, 1), DEPTHWISE, (1, 4, 5, 1)),
    ),
    "depthwise with two channels": (
        *(DEPTHWISE, Depthwise(depth_multiplier=2), (1, 4, 5, 2), (1, 2, 3, 4), DEPTHWISE, (1, 4, 5, 2)),
    ),
    "depthwise of the whole channel": (
        *(DEPTHWISE, Depthwise(depth_multiplier=3), (1, 4, 5, 1), (1, 4, 5, 3), FULL, (1, 20)),
    ),
    "transposed": (
        *(TRANSPOSED, Transposed(output_h=5, output_w=7, activation=Activation.RELU), (1, 4, 5, 2), (3, 2, 3, 2)),
        *(CONV_2D, (1, 4, 5, 2)),
    ),
    "transposed with padding": (
        *(TRANSPOSED, Transposed(output_h=4, output_w=5, pad_top=1, pad_left=1), (2, 4, 5, 2), (3, 2, 3, 2)),
        *(CONV_2D, (2, 4, 5, 2)),
    ),
    "transposed beyond the windows": (
        *(TRANSPOSED, Transposed(output_h=6, output_w=8), (1, 4, 5, 2), (3, 2, 3, 2), CONV_2D, (1, 4, 5, 2)),
    ),
    "transposed by steps": (
        *(TRANSPOSED, Transposed(output_h=7, output_w=5, stride_h=2), (1, 4, 5, 2), (3, 2, 3, 2)),
        *(TRANSPOSED, (1, 4, 5, 2)),
    ),
    "transposed with more padding than its window": (
        *(TRANSPOSED, Transposed(output_h=3, output_w=7, pad_top=2), (1, 4, 5, 2), (3, 2, 3, 2)),
        *(TRANSPOSED, (1, 4, 5, 2)),
    ),
    "transposed without the last rows": (
        *(TRANSPOSED, Transposed(output_h=3, output_w=7), (1, 4, 5, 2), (3, 2, 3, 2), TRANSPOSED, (1, 4, 5, 2)),
    ),
}


def network_of(row: Row, dtype: DataType, *, constant: bool = True) -> Network:
    """Return a network of a row's layer, with a scale for each channel if there are several."""
    type_, descriptor, image, weights, *_ = row
    generator = np.random.default_rng(5)
    if dtype.is_float:
        return layer_network(
            *(type_, descriptor, [tensor("x", image, dtype), tensor("w", weights, dtype)]),
            constants={1: generator.normal(size=weights).astype(np.float32)} if constant else {},
        )
    axis = 3 if type_ is DEPTHWISE else 0
    scales = tuple(float(np.float32(scale)) for scale in generator.uniform(0.01, 0.03, weights[axis]))
    quantized = Quantization(scales=scales, zero_points=(0,) * len(scales), axis=axis)
    bias = DataType.INT32 if dtype is DataType.INT8 else DataType.INT64
    infos = [tensor("x", image, dtype, 0.5, 3 if dtype is DataType.INT8 else 0), tensor("w", weights, DataType.INT8)]
    infos[1:] = [replace(infos[1], quantization=quantized), tensor("b", (len(scales),), bias)]
    data = {2: generator.integers(-900, 900, len(scales)).astype(bias.numpy)}
    if constant:
        data[1] = generator.integers(-127, 128, weights, np.int8)
    return layer_network(type_, descriptor, infos, Quantization.of(0.9, 0), data)


def constant_of(network: Network, name: str) -> Array:
    data = network.tensor(name).data
    assert data is not None
    return data


@pytest.mark.parametrize("name", ROWS)
def test_the_type_and_the_image(name: str) -> None:
    changed = equivalent(lowering_of(network_of(ROWS[name], DataType.INT8)))
    assert (changed.layer.type, changed.source.shape) == ROWS[name][4:]


@pytest.mark.cc
@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16, DataType.FLOAT32], ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_the_bytes_stay(name: str, dtype: DataType) -> None:
    network = network_of(ROWS[name], dtype)
    changed = equivalent(lowering_of(network)).graph
    for inputs in (random_inputs(network), *edge_inputs(network).values()):
        wanted = network.run(inputs)
        (found,) = run_graph(changed, [inputs[0].reshape(changed.inputs[0].shape)])
        made = run_lowered(network, inputs)
        if dtype.is_float:
            assert within_bound(network, inputs, found.reshape(wanted[0].shape))
            assert within_bound(network, inputs, made[0])
        else:
            assert_array_equal(found.reshape(wanted[0].shape), wanted[0])
            assert_arrays_equal(made, wanted)


@pytest.mark.cc
@pytest.mark.parametrize(
    ("name", "type_"), [("rows", CONV_2D), ("groups of one channel", CONV_2D), ("the whole image", FULL)]
)
def test_an_operator_that_takes_no_bias_of_32_bits_gets_none(name: str, type_: LayerType) -> None:
    network = network_of(ROWS[name], DataType.INT16)
    bias = replace(network.info("b"), dtype=DataType.INT32)
    constants = {1: constant_of(network, "w"), 2: constant_of(network, "b").astype(np.int32)}
    infos = [network.info("x"), network.info("w"), bias]
    narrow = layer_network(*ROWS[name][:2], infos, Quantization.of(0.9, 0), constants)
    assert equivalent(lowering_of(narrow)).layer.type is type_
    inputs = random_inputs(narrow)
    assert_arrays_equal(run_lowered(narrow, inputs), narrow.run(inputs))


@pytest.mark.cc
@pytest.mark.parametrize("name", ["rows", "the whole image", "a column", "groups of one channel", "transposed"])
def test_weights_from_run_time_keep_their_order(name: str) -> None:
    network = network_of(ROWS[name], DataType.FLOAT32, constant=False)
    ordered = name in {"groups of one channel", "transposed"}
    changed = equivalent(lowering_of(network))
    assert changed.layer.type == ROWS[name][0 if ordered else 4]
    inputs = random_inputs(network)
    assert within_bound(network, inputs, NativeNetwork(network).run(inputs)[0])


def test_weights_with_a_zero_point_stay_where_they_are() -> None:
    network = network_of(ROWS["rows"], DataType.INT8)
    weights = replace(network.info("w"), quantization=Quantization.of(0.01, 3))
    data = {1: constant_of(network, "w"), 2: constant_of(network, "b")}
    infos = [network.info("x"), weights, network.info("b")]
    context = lowering_of(layer_network(FULL, Full(), infos, Quantization.of(0.9, 0), data))
    assert equivalent(context) is context


def test_data_that_are_also_the_weights_stay_as_they_are() -> None:
    network = Network("twice")
    network.add_input(tensor("x", (3, 3), DataType.FLOAT32))
    layer = Layer("layer", FULL, Full(), inputs=("x", "x"), outputs=("y",))
    network.add_layer(layer, [tensor("y", (3, 3), DataType.FLOAT32)])
    network.set_outputs(["y"])
    context = lowering_of(network)
    assert equivalent(context) is context


@pytest.mark.parametrize(
    ("shape", "weights", "times"), [((4, 2), (3, 2), 1), ((2, 3, 2), (4, 6), 3), ((2, 6), (4, 3), None)]
)
def test_what_is_known_of_the_channels_stays_known(shape: Shape, weights: Shape, times: int | None) -> None:
    network = network_of((FULL, Full(), shape, weights, CONV_2D, shape), DataType.INT8)
    low = np.arange(shape[-1])
    seed_ranges(network, "x", Ranges(low=low, high=low + 1))
    changed = equivalent(lowering_of(network))
    assert changed.layer.type is CONV_2D
    found = channel_ranges(changed.graph, "x")
    assert_array_equal(found.low, np.full(weights[1], -128) if times is None else np.tile(low, times))
    assert_array_equal(found.high, np.full(weights[1], 127) if times is None else np.tile(low + 1, times))
