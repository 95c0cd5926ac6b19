# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers go to Vela as convolutions, whose factors have the bits of TensorFlow Lite Micro's."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from vela_campaign import compile_in_process
from vela_cases import vela_case

from ferrule.backends.ethos_u import EthosUStream
from ferrule.backends.ethos_u.dense import with_convolutions
from ferrule.backends.ethos_u.known_differences import known_difference
from ferrule.backends.ethos_u.model_file import model_file
from ferrule.formats import to_tflite
from ferrule.graph import Array, DataType, Graph, GraphEditor, Layer, LayerType, Quantization, SubgraphView, TensorInfo
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.arithmetic.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from ferrule.operators.operator import Operands
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor
from ferrule.testing.backends.comparison import random_inputs

DATA, WEIGHTS, OUTPUT = (float(np.float32(each)) for each in (0.0123456, 0.000345671, 0.4567))


def near_ties() -> Array:
    """Return sums that are rounded apart by the factors of float32 and of float64."""
    exact = DATA * WEIGHTS / OUTPUT
    ties = ((np.arange(1, 127) + 0.5) / exact).astype(np.int64)
    sums = (ties[:, None] + np.arange(-4, 5)).reshape(-1)
    rounded = float(np.float32(DATA) * np.float32(WEIGHTS)) / OUTPUT
    first, second = (multiply_by_quantized_multiplier(sums, *quantize_multiplier(each)) for each in (exact, rounded))
    return sums[first != second].astype(np.int32)


def of_near_ties() -> Network:
    network, sums = Network("near_ties"), near_ties()
    assert len(sums) > 5
    network.add_input(TensorInfo("x", (1, 1), DataType.INT8, quantization=Quantization.of(DATA)))
    output = network.add_fully_connected_layer(
        "x",
        np.ones((len(sums), 1), np.int8),
        sums,
        weights_quantization=Quantization.of(WEIGHTS),
        quantization=Quantization.of(OUTPUT),
    )
    network.set_outputs([output])
    return network


def differences(network: Network, file: bytes, given: Array) -> int:
    stream = EthosUStream.read(compile_in_process(file, "ethos-u55-128"))
    (found,) = stream.run([given]).outputs.values()
    (expected,) = network.run([given])
    return int((found.reshape(expected.shape) != expected).sum())


@pytest.mark.usefixtures("ethos_u_vela")
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_vela_scales_a_convolution_as_the_reference_does(dtype: str) -> None:
    """Vela 5.2 scales the layer itself otherwise, which is why it does not get it."""
    network = of_near_ties() if dtype == "int8" else vela_case("dense16", 3106)
    given = np.zeros((1, 1), np.int8) if dtype == "int8" else random_inputs(network, 1)[0]
    assert differences(network, to_tflite(network), given) > 5
    assert differences(network, to_tflite(with_convolutions(network)), given) == 0


def of_all_forms() -> Graph:
    """Layers with the same weights, without a bias, with scales for each channel, with several rows and all axes."""
    network, dice = Network("forms"), np.random.default_rng(0)
    scale = Quantization.of(0.05, 3)
    network.add_input(TensorInfo("x", (1, 2, 3, 4), DataType.INT8, quantization=scale))
    add = partial(network.add_fully_connected_layer, weights_quantization=Quantization.of(0.01), quantization=scale)
    first = add("x", dice.integers(-127, 128, (4, 4)).astype(np.int8), keep_num_dims=True, name="first")
    second = add(first, np.zeros((4, 4), np.int8), name="second")
    channels = Quantization(scales=(0.01, 0.02), zero_points=(0, 0), axis=0)
    third = network.add_fully_connected_layer(
        second,
        dice.integers(-127, 128, (2, 8)).astype(np.int8),
        np.array([100, -100], np.int32),
        weights_quantization=channels,
        quantization=scale,
        name="third",
    )
    network.set_outputs([third])
    editor = GraphEditor(network)
    editor.replace_layer(replace(network.layer("second"), inputs=(first, network.layer("first").inputs[1])))
    return editor.finish()


def test_layers_of_all_forms_become_convolutions() -> None:
    network = of_all_forms()
    changed = with_convolutions(network)
    assert [layer.type for layer in changed.layers] == 3 * [
        LayerType.RESHAPE, LayerType.CONV_2D, LayerType.RESHAPE,
    ]  # fmt: skip
    assert len([tensor for tensor in changed.tensors if len(tensor.info.shape) == 4 and tensor.is_constant]) == 2
    before, after = network_of(network), network_of(changed)
    for given in (random_inputs(before, seed) for seed in range(3)):
        for found, expected in zip(after.run(given), before.run(given), strict=True):
            assert_array_equal(found, expected)
            assert found.shape == expected.shape
    assert with_convolutions(changed) is changed


def test_a_file_for_vela_has_convolutions_of_the_layers() -> None:
    network = of_all_forms()
    names = [layer.name for layer in network.layers]
    file = model_file(SubgraphView.of(network, names))
    assert file.layers == tuple(name for name in names for _ in range(3))
    assert set(file.owners.values()) == set(names)
    assert b"first_pixels" in file.data


@pytest.mark.usefixtures("ethos_u_vela")
@pytest.mark.parametrize(("scale", "is_refused"), [(OUTPUT, True), (0.5, False)])
def test_products_of_matrices_are_refused_if_a_sum_is_rounded_apart(scale: float, is_refused: bool) -> None:
    """Both inputs are computed, so that no convolution can take their place."""
    sums = near_ties()
    sums = sums[sums < 300 * 127 * 127]
    left = np.full((1, 1, 301), 127, np.int8)
    left[..., -1] = 1
    whole, rest = sums // 127, sums % 127
    columns = [np.clip(whole - 127 * number, 0, 127) for number in range(300)]
    right = np.stack([*columns, rest]).astype(np.int8)[None]
    network = Network("product")
    for name, given, own in (("left", left, DATA), ("right", right, WEIGHTS)):
        quantization = Quantization.of(own if is_refused else 2.0**-6)
        network.add_input(TensorInfo(name, given.shape, DataType.INT8, quantization=quantization))
    network.set_outputs([network.add_batch_matmul_layer("left", "right", quantization=Quantization.of(scale))])
    (layer,) = network.layers
    assert bool(known_difference(layer, Operands.of(network, layer))) == is_refused
    stream = EthosUStream.read(compile_in_process(to_tflite(network), "ethos-u55-128"))
    (found,) = stream.run([left, right]).outputs.values()
    (expected,) = network.run([left, right])
    assert np.array_equal(found.reshape(expected.shape), expected) != is_refused


@pytest.mark.parametrize(
    ("dtype", "left", "right", "output", "is_refused"),
    [
        (DataType.INT8, 1e-30, 1e-30, 1.0, False),  # both factors are 0
        (DataType.INT8, 1e30, 1e30, 1e38, True),  # the product is infinite in float32
        (DataType.INT8, 0.5, 0.25, 0.3, False),
        (DataType.INT16, 2.0**-12, 2.0**-10, 2.0**-8, False),
        (DataType.INT16, 0.0007021100609563291, 0.0037551710847765207, 8.757515024626628e-05, True),
    ],
)
def test_which_products_are_refused(
    dtype: DataType, left: float, right: float, output: float, is_refused: bool
) -> None:
    infos = [
        TensorInfo(name, (1, 4, 4), dtype, quantization=Quantization.of(float(np.float32(scale)), 0))
        for name, scale in (("left", left), ("right", right), ("output", output))
    ]
    layer = Layer(
        "product",
        LayerType.BATCH_MATMUL,
        BatchMatmulDescriptor(),
        inputs=("left", "right"),
        outputs=("output",),
    )
    assert bool(known_difference(layer, Operands(tuple(infos[:2]), (infos[2],)))) == is_refused
