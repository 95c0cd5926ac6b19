# SPDX-License-Identifier: Apache-2.0
"""Infinities and NaN in constants and inputs: the generated C equals the numpy kernels."""

from __future__ import annotations

import numpy as np
import pytest
from ckernels import run_native
from compare import assert_arrays_equal
from merged import merged
from sample_networks import samples

from ferrule import formats
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.network.bounds import run_bounded
from ferrule.report import Verdict, compare

UNDEFINED = {LayerType.SIGNAL_RFFT, LayerType.SIGNAL_IRFFT}
"""Which of their results are NaN depends on the algorithm."""
VALUES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 6.0, -3.0], np.float32)


def spoilt(network: Network, generator: np.random.Generator) -> Network:
    """Return the network with infinities and NaN in its float32 constants other than weights, which refuse them."""
    result = Network(network.name)
    for info in network.sources:  # states, too, as further inputs and outputs
        result.add_input(info)
    for tensor in network.tensors:
        if tensor.data is not None:
            spoil = tensor.info.dtype.is_float and tensor.info.name != "weights"
            result.add_constant(tensor.info, values(tensor.info.shape, generator) if spoil else tensor.data)
    for layer in network.layers:
        result.add_layer(layer, network.output_infos(layer))
    result.set_outputs(info.name for info in network.results)
    return result


def values(shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Return an array of which most elements are finite."""
    special: Array = generator.choice(VALUES, shape)
    usual = generator.normal(size=shape).astype(np.float32)
    return np.asarray(np.where(generator.random(shape) < 0.2, special, usual), np.float32)


@pytest.mark.cc
def test_every_float_operator_computes_with_infinities_and_nan() -> None:
    generator = np.random.default_rng(4)
    networks = [
        spoilt(formats.load(formats.to_tflite(graph)), generator)
        for graph in samples()
        if all(info.dtype.is_float for info in graph.inputs)
        and UNDEFINED.isdisjoint(layer.type for layer in graph.layers)
    ]
    network = merged(networks)
    inputs = [values(info.shape, generator) for info in network.inputs]
    with np.errstate(all="ignore"):
        expected = run_bounded(network, inputs)
    layers = {layer.outputs[0]: layer for layer in network.layers}
    for info, output, wanted in zip(network.outputs, run_native(network, inputs), expected, strict=True):
        if info.name in layers:
            compared = compare([output], [wanted.values], [wanted.error])[0]
            assert compared is not Verdict.DIFFERENT, layers[info.name]
    assert sum(np.isnan(each.values).any() for each in expected if each.values.dtype == np.float32) > 10


@pytest.mark.cc
def test_pads_of_infinity_and_nan() -> None:
    network = Network("pads")
    network.add_input(formats.load(formats.to_tflite(next(iter(samples())))).inputs[0])
    name = network.inputs[0].name
    paddings = [(0, 0), (1, 0), (0, 1), (0, 0)]
    pads = [network.add_pad_v2_layer(name, paddings, value) for value in (np.inf, -np.inf, np.nan)]
    network.set_outputs(pads)
    inputs = [np.zeros(network.inputs[0].shape, np.float32)]
    assert_arrays_equal(run_native(network, inputs), network.run(inputs))


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_weights_are_finite(value: float) -> None:
    network = Network("weights")
    network.add_input(TensorInfo("x", (1, 4, 4, 1), DataType.FLOAT32))
    weights = np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3, 1)
    wrong = np.where(weights == 5, np.float32(value), weights)
    with pytest.raises(UnsupportedError, match="have 1 infinities or NaN, the first at element 4"):
        network.add_conv2d_layer("x", wrong, padding="same")
    network.set_outputs([network.add_conv2d_layer("x", weights, padding="same")])
    data = formats.to_tflite(network)
    assert weights.tobytes() in data
    with pytest.raises(UnsupportedError, match="the first at element 4"):
        formats.load(data.replace(weights.tobytes(), wrong.tobytes()))
