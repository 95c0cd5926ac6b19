# SPDX-License-Identifier: Apache-2.0
"""Channels whose weights are 0, or tiny beside their bias, as training leaves dead channels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from covering import covering
from float_networks import FLOAT32, random, samples
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import interpreter

import ferrule
from ferrule.graph import Array, LayerType
from ferrule.quantization.biases import without_large_biases
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import Range

WEIGHTED = (
    LayerType.CONV_2D,
    LayerType.DEPTHWISE_CONV_2D,
    LayerType.TRANSPOSE_CONV,
    LayerType.FULLY_CONNECTED,
)
BIAS = np.array([30.0, 0.2, -5.0, 0.1], np.float32)


def network(type_: LayerType, tiny: float) -> ferrule.Network:
    """Return a layer with four channels, of which the first has tiny weights, and the third none."""
    made = ferrule.Network("dead")
    factors = np.array([tiny, 1, 0, 1], np.float32)

    def weights(*shape: int, axis: int) -> Array:
        return random(*shape) * factors.reshape([-1 if place == axis else 1 for place in range(len(shape))])

    flat = type_ is LayerType.FULLY_CONNECTED
    made.add_input(ferrule.TensorInfo("x", (1, 16) if flat else (1, 5, 5, 4), FLOAT32))
    match type_:
        case LayerType.CONV_2D:
            made.add_conv2d_layer("x", weights(4, 3, 3, 4, axis=0), BIAS, name="y")
        case LayerType.DEPTHWISE_CONV_2D:
            made.add_depthwise_conv2d_layer("x", weights(1, 3, 3, 4, axis=3), BIAS, name="y")
        case LayerType.TRANSPOSE_CONV:
            made.add_transpose_conv_layer("x", weights(4, 3, 3, 4, axis=0), BIAS, size=(7, 7), name="y")
        case _:
            made.add_fully_connected_layer("x", weights(4, 16, axis=0), BIAS, name="y")
    made.set_outputs(["y"])
    return made


@covering("type_,scheme,tiny", WEIGHTED, ["int8", "int16"], [0.0, 1e-38, 1e-7, 1e-4], seed=1, gate=8)
def test_biases_of_dead_channels_keep_their_value(tmp_path: Path, type_: LayerType, scheme: str, tiny: float) -> None:
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")
    model = network(type_, tiny)
    done = ferrule.quantize(model, str(samples(model, tmp_path)), scheme=scheme, compared=4)
    assert done.floats == ()
    (layer,) = done.network.layers
    weights, bias = (done.network.tensor(str(name)) for name in layer.inputs[1:])
    assert weights.data is not None
    assert bias.data is not None
    assert np.abs(bias.data.astype(np.int64)).max() <= 2**30
    assert np.abs(bias.info.dequantize(bias.data) - BIAS).max() < 1e-3
    assert (done.losses[-1].own_db or 0.0) > 35
    given = [done.network.inputs[0].quantize(random(*model.inputs[0].shape, seed=3))]
    assert_array_equal(done.network.run(given)[0], interpreter(done.network, given)[0])


def test_only_biases_that_are_too_large_are_left_out() -> None:
    model = network(LayerType.FULLY_CONNECTED, 1e-7)
    ranges = {"x": Range(low=-4.0, high=4.0)}
    kept = without_large_biases(model, ranges, {"y": Precision.FLOAT})
    biases = [each.tensor(str(each.layers[0].inputs[2])).data for each in (model, kept)]
    assert_array_equal(*biases)
    made = without_large_biases(model, ranges, {"y": Precision.INT8})
    left = made.tensor(str(made.layers[0].inputs[2])).data
    assert left is not None
    assert left.tolist() == [0.0, BIAS[1], 0.0, BIAS[3]]
