# SPDX-License-Identifier: Apache-2.0
"""Factors and addends per channel: which are folded into the layer before them, and its new weights and biases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from compare import assert_arrays_equal

from ferrule.formats.onnx.affine import with_affine_folded
from ferrule.graph import Array, DataType, GraphEditor, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.activation import Activation

WEIGHTS = [[1, 2], [3, 4], [5, 6]]
BIAS = [10, 20, 30]
NEGATED = [[-1, -2], [-3, -4], [-5, -6]]


def floats(values: object) -> Array:
    return np.array(values, np.float32)


def dense(weights: object = WEIGHTS, bias: object = BIAS, activation: Activation = Activation.NONE) -> Network:
    """Return a network of one layer, `fc`, of 2 inputs and an output for each row of the weights."""
    network = Network("dense")
    network.add_input(TensorInfo("x", (1, 2), DataType.FLOAT32))
    biases = None if bias is None else floats(bias)
    network.add_fully_connected_layer("x", floats(weights), biases, activation=activation, name="fc")
    return network


def with_constant(
    network: Network, type_: LayerType, constant: object, *, first: bool = False, source: str = "fc", name: str = "y"
) -> Network:
    """Add a layer of two inputs, of which the constant is the first or the second."""
    data = network.add_constant_array(f"{name}_constant", floats(constant))
    left, right = (data, source) if first else (source, data)
    add: Callable[..., str] = getattr(network, f"add_{type_.lower()}_layer")
    network.set_outputs([*(info.name for info in network.outputs), add(left, right, name=name)])
    return network


def folded(network: Network) -> Network:
    """Return the network after folding, which must not change what it computes with integers."""
    result = with_affine_folded(network)
    result.validate()
    given = [np.arange(1, 1 + np.prod(info.shape), dtype=np.float32).reshape(info.shape) for info in network.inputs]
    assert_arrays_equal(result.run(given), network.run(given))
    return result


def constants_of(network: Network, layer: str = "fc") -> list[object]:
    """Return the weights and biases of a layer."""
    found = [network.tensor(name).data for name in network.layer(layer).present_inputs[1:]]
    return [None if data is None else data.tolist() for data in found]


def types(network: Network) -> list[LayerType]:
    return [layer.type for layer in network.layers]


@pytest.mark.parametrize(
    ("type_", "first", "constant", "weights", "bias"),
    [
        (LayerType.ADD, False, [1, 2, 3], WEIGHTS, [11, 22, 33]),
        (LayerType.ADD, True, [1, 2, 3], WEIGHTS, [11, 22, 33]),
        (LayerType.SUB, False, [1, 2, 3], WEIGHTS, [9, 18, 27]),
        (LayerType.SUB, True, [1, 2, 3], NEGATED, [-9, -18, -27]),
        (LayerType.MUL, False, [2, 3, 4], [[2, 4], [9, 12], [20, 24]], [20, 60, 120]),
        (LayerType.MUL, True, [2, 3, 4], [[2, 4], [9, 12], [20, 24]], [20, 60, 120]),
        (LayerType.DIV, False, [2, 4, 8], [[0.5, 1], [0.75, 1], [0.625, 0.75]], [5, 5, 3.75]),
        (LayerType.MUL, False, 2, [[2, 4], [6, 8], [10, 12]], [20, 40, 60]),
        (LayerType.MUL, False, [2], [[2, 4], [6, 8], [10, 12]], [20, 40, 60]),
        (LayerType.MUL, False, [[2]], [[2, 4], [6, 8], [10, 12]], [20, 40, 60]),
        (LayerType.MUL, False, [0, 1, 2], [[0, 0], [3, 4], [10, 12]], [0, 20, 60]),
        (LayerType.ADD, False, [[1, 2, 3]], WEIGHTS, [11, 22, 33]),
    ],
)
def test_a_constant_per_channel_becomes_weights_and_biases(
    type_: LayerType, first: bool, constant: object, weights: object, bias: object
) -> None:
    network = folded(with_constant(dense(), type_, constant, first=first))
    assert types(network) == [LayerType.FULLY_CONNECTED]
    assert constants_of(network) == [weights, bias]
    assert network.layers[0].outputs == ("y",)


def test_the_constants_keep_their_names_and_a_missing_bias_gets_one() -> None:
    network = dense()
    names = network.layers[0].present_inputs
    assert folded(with_constant(network, LayerType.MUL, [2, 3, 4])).layers[0].present_inputs == names
    network = folded(with_constant(dense(bias=None), LayerType.ADD, [1, 2, 3]))
    assert network.layers[0].present_inputs == (*names[:2], "fc_bias")
    assert constants_of(network) == [WEIGHTS, [1, 2, 3]]


@pytest.mark.parametrize(
    ("network", "type_", "first", "constant"),
    [
        (dense(), LayerType.DIV, True, [1, 2, 3]),
        (dense(), LayerType.DIV, False, [1, 0, 4]),
        (dense(activation=Activation.RELU), LayerType.ADD, False, [1, 2, 3]),
        (dense(), LayerType.ADD, False, [[1, 2, 3], [4, 5, 6]]),  # the output is larger than what the layer writes
        (dense([[1, 2]], [10]), LayerType.ADD, False, [1, 2, 3]),
        (dense([[1, 2]], [10]), LayerType.ADD, False, [[1], [2]]),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_a_layer_cannot_take_over_stays(network: Network, type_: LayerType, first: bool, constant: object) -> None:
    network = with_constant(network, type_, constant, first=first)
    assert types(folded(network)) == [LayerType.FULLY_CONNECTED, type_]


def image(add: Callable[[Network], str], shape: Sequence[int] = (1, 2, 2, 2)) -> Network:
    network = Network("image")
    network.add_input(TensorInfo("x", tuple(shape), DataType.FLOAT32))
    assert add(network) == "fc"
    return network


@pytest.mark.parametrize(
    ("network", "weights"),
    [
        (
            image(lambda made: made.add_conv2d_layer("x", floats([[[[1, 2]]], [[[3, 4]]]]), name="fc")),
            [[[[10, 20]]], [[[300, 400]]]],
        ),
        (
            image(lambda made: made.add_depthwise_conv2d_layer("x", floats([[[[1, 2]], [[3, 4]]]]), name="fc")),
            [[[[10, 200]], [[30, 400]]]],
        ),
        (
            image(
                lambda made: made.add_transpose_conv_layer(
                    "x", floats([[[[1, 2]]], [[[3, 4]]]]), size=(2, 2), name="fc"
                )
            ),
            [[[[10, 20]]], [[[300, 400]]]],
        ),
    ],
)
def test_each_layer_scales_its_own_axis_of_channels(network: Network, weights: object) -> None:
    network = folded(with_constant(network, LayerType.MUL, [[[[10, 100]]]]))
    assert len(network.layers) == 1
    assert constants_of(network) == [weights, [0, 0]]


@pytest.mark.parametrize("constant", [[[[1], [2]]], [[[1, 2], [3, 4]]], [[[1]], [[2]]]])
def test_a_constant_per_pixel_stays(constant: object) -> None:
    made = image(lambda made: made.add_conv2d_layer("x", floats([[[[1, 2]]], [[[3, 4]]]]), name="fc"))
    assert types(folded(with_constant(made, LayerType.ADD, constant))) == [LayerType.CONV_2D, LayerType.ADD]


def test_integers_stay() -> None:
    network = Network("integers")
    scale = Quantization.of(1.0)
    network.add_input(TensorInfo("x", (1, 2), DataType.INT8, quantization=scale))
    weights = np.array(WEIGHTS, np.int8)
    network.add_fully_connected_layer("x", weights, weights_quantization=scale, quantization=scale, name="fc")
    constant = network.add_constant_array("constant", np.array([1, 2, 3], np.int8), scale)
    network.set_outputs([network.add_add_layer("fc", constant, quantization=scale)])
    assert types(with_affine_folded(network)) == [LayerType.FULLY_CONNECTED, LayerType.ADD]


def test_a_network_without_such_layers_is_returned_unchanged() -> None:
    network = dense()
    network.set_outputs(["fc"])
    assert with_affine_folded(network) is network


def test_layers_without_weights_and_tensors_with_other_readers_stay() -> None:
    network = Network("other")
    network.add_input(TensorInfo("x", (1, 2), DataType.FLOAT32))
    network.add_input(TensorInfo("v", (1, 2), DataType.FLOAT32))
    network.add_relu_layer("x", name="fc")
    assert len(folded(with_constant(network, LayerType.ADD, [1, 2])).layers) == 2
    assert len(folded(with_constant(network, LayerType.ADD, [1, 2], source="v", name="z")).layers) == 3
    assert len(folded(with_constant(dense(), LayerType.ADD, [1, 2, 3])).layers) == 1
    read_twice = with_constant(with_constant(dense(), LayerType.ADD, [1, 2, 3]), LayerType.MUL, [2, 3, 4], name="z")
    assert len(folded(read_twice).layers) == 3
    handed_out = dense()
    handed_out.set_outputs(["fc"])
    assert len(folded(with_constant(handed_out, LayerType.ADD, [1, 2, 3])).layers) == 2


def test_a_bias_that_is_not_constant_stays() -> None:
    network = dense()
    network.add_input(TensorInfo("given", (3,), DataType.FLOAT32))
    editor = GraphEditor(with_constant(network, LayerType.ADD, [1, 2, 3]))
    editor.replace_layer(replace(editor.layer("fc"), inputs=(*editor.layer("fc").inputs[:2], "given")))
    assert types(folded(network_of(editor.finish()))) == [LayerType.FULLY_CONNECTED, LayerType.ADD]


def behind_reshapes(*shapes: Sequence[int], activation: Activation = Activation.NONE) -> list[LayerType]:
    """Return the layers that are left of 4 units, RESHAPE to each shape, and an ADD of one number per channel."""
    network = dense([[1, 2], [3, 4], [5, 6], [7, 8]], None)
    source = "fc"
    for shape in shapes:
        source = network.add_reshape_layer(source, shape)
    constant = network.add_constant_array("constant", floats(range(1, 1 + shapes[-1][-1])))
    network.set_outputs([network.add_add_layer(source, constant, activation=activation, name="y")])
    result = folded(network)
    assert [info.name for info in result.outputs] == ["y"]
    return types(result)


def test_a_reshape_that_keeps_the_channels_may_be_between() -> None:
    reshape, add = LayerType.RESHAPE, LayerType.ADD
    assert behind_reshapes((1, 1, 1, 4)) == [LayerType.FULLY_CONNECTED, reshape]
    assert behind_reshapes((2, 2)) == [LayerType.FULLY_CONNECTED, reshape, add], "other channels"
    assert behind_reshapes((4, 1)) == [LayerType.FULLY_CONNECTED, reshape, add], "other channels"
    assert behind_reshapes((1, 4), (1, 1, 4)) == [LayerType.FULLY_CONNECTED, reshape, reshape, add], "two of them"
    relu = behind_reshapes((1, 1, 4), activation=Activation.RELU)
    assert relu == [LayerType.FULLY_CONNECTED, reshape, add], "the layer before has no place for the activation"


def test_the_activation_moves_to_the_layer_before() -> None:
    network = dense()
    constant = network.add_constant_array("constant", floats([-100, 2, 3]))
    network.set_outputs([network.add_add_layer("fc", constant, activation=Activation.RELU)])
    (layer,) = folded(network).layers
    assert getattr(layer.descriptor, "activation", None) is Activation.RELU


def beside(type_: LayerType, constant: object) -> Network:
    """Return a layer with a constant behind it, and another one, `z`, with the same weights and biases."""
    network = dense()
    network.add_layer(replace(network.layer("fc"), name="z", outputs=("z",)), [replace(network.info("fc"), name="z")])
    network.set_outputs(["z"])
    return folded(with_constant(network, type_, constant))


def test_constants_with_other_readers_are_copied() -> None:
    network = beside(LayerType.MUL, [2, 3, 4])
    assert constants_of(network) == [[[2, 4], [9, 12], [20, 24]], [20, 60, 120]]
    assert constants_of(network, "z") == [WEIGHTS, BIAS]


def test_an_addend_leaves_the_weights_shared() -> None:
    network = beside(LayerType.ADD, [1, 2, 3])
    assert network.layer("fc").inputs[1] == network.layer("z").inputs[1]
    assert constants_of(network) == [WEIGHTS, [11, 22, 33]]
    assert constants_of(network, "z") == [WEIGHTS, BIAS]


def test_a_constant_that_is_an_output_is_copied() -> None:
    network = dense()
    names = network.layers[0].present_inputs
    network = with_constant(network, LayerType.MUL, [2, 3, 4])
    network.set_outputs(["y", *names[1:]])
    network = folded(network)
    assert constants_of(network) == [[[2, 4], [9, 12], [20, 24]], [20, 60, 120]]
    assert [info.name for info in network.outputs] == ["y", *names[1:]]
