# SPDX-License-Identifier: Apache-2.0
"""Execution, validation and observation of networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest
import small_networks
import state_networks
from numpy.testing import assert_array_equal

from ferrule import formats
from ferrule.errors import FerruleError, InputError, ModelError
from ferrule.graph import Array, DataType, Layer, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.functions_of_two import ExtremumDescriptor
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.testing.backends.comparison import random_inputs

SHAPE = (2, 3)


def info(name: str, shape: tuple[int, ...] = SHAPE) -> TensorInfo:
    return TensorInfo(name, shape, DataType.FLOAT32)


def diamond() -> Network:
    """Return (a + b) * (a - b), in which one layer reads both branches."""
    network = Network("diamond")
    network.add_input(info("a"))
    network.add_input(info("b"))
    total = network.add_add_layer("a", "b", name="total")
    difference = network.add_sub_layer("a", "b", name="difference")
    network.set_outputs([network.add_mul_layer(total, difference, name="product")])
    return network


A = np.arange(6, dtype=np.float32).reshape(SHAPE)
B = np.ones(SHAPE, np.float32)


def test_inputs_come_in_order_or_by_name() -> None:
    network = diamond()
    (by_order,) = network.run([A, B])
    (by_name,) = network.run({"b": B, "a": A})
    assert_array_equal(by_order, A * A - 1)
    assert_array_equal(by_name, by_order)


def test_outputs_may_repeat_and_may_be_inputs_or_constants() -> None:
    network = diamond()
    network.add_constant_array("c", np.array([7], np.float32))
    network.set_outputs(["product", "a", "c", "total", "product"])
    product, a, c, total, again = network.run([A, B])
    assert_array_equal(product, again)
    assert_array_equal(a, A)
    assert_array_equal(total, A + B)
    assert c.tolist() == [7]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([A], "got 1 inputs, expected 2"),
        ([A, B, B], "got 3 inputs"),
        ({"a": A}, "input 'b' is missing"),
        ({"a": A, "b": B, "c": B}, "no input 'c'"),
        ([A, B.astype(np.float64)], "input 'b' is float64[2, 3], expected float32[2, 3]"),
        ([A.T, B], "input 'a' is float32[3, 2], expected float32[2, 3]"),
    ],
)
def test_wrong_inputs(inputs: list[Array] | dict[str, Array], message: str) -> None:
    with pytest.raises(InputError) as caught:
        diamond().run(inputs)
    assert message in str(caught.value)


def test_samples_divide_the_first_axis_and_are_joined_again() -> None:
    a, b = np.arange(24, dtype=np.float32).reshape(8, 3), np.full((8, 3), 2, np.float32)
    seen: list[str] = []
    (product,) = diamond().run({"b": b, "a": a}, observe=lambda layer, _: seen.append(layer.name))
    assert_array_equal(product, a * a - 4)
    assert seen == ["total", "difference", "product"] * 4
    with pytest.raises(InputError, match=r"different numbers of samples \('a' 4, 'b' 1\)"):
        diamond().run([a, b[:2]])


def test_real_numbers_are_quantised_and_dequantised() -> None:
    network = small_networks.dense()
    real = np.linspace(-3, 3, 18).reshape(3, 6)
    stored = network.run([network.inputs[0].quantize(real)])
    (found,) = network.run([real.tolist()], real=True)
    assert found.dtype == np.float32
    assert found.tobytes() == network.outputs[0].dequantize(stored[0]).tobytes()


@pytest.mark.parametrize(
    ("array", "real", "hint"),
    [
        (np.zeros((1, 6), np.float32), False, "for real numbers, give real=True"),
        (np.zeros((1, 6), np.uint8), False, "for pixels, scale them as in training"),
        (np.zeros((1, 6), np.int64), False, "convert stored values with .astype('int8')"),
        (np.zeros((1, 6), np.uint8), True, "scale the values as in training"),
        (np.zeros((1, 6), np.int8), True, "values that are stored ones already need no conversion"),
    ],
)
def test_arrays_of_another_type_are_never_reinterpreted(array: Array, real: bool, hint: str) -> None:
    with pytest.raises(InputError, match="input 'x'") as caught:
        small_networks.dense().run([array], real=real)
    assert hint in str(caught.value.hint)


def test_samples_of_a_network_with_state_are_one_sequence_or_begin_anew() -> None:
    network, x = state_networks.running_sum(), np.array([[2, 3]] * 3, np.float32)
    assert network.run([x])[0].tolist() == [[3, 2], [5, 5], [7, 8]]
    assert network.run([x], reset_each=True)[0].tolist() == [[3, 2]] * 3
    assert network.run([x], reset_each=[False, False, True])[0].tolist() == [[3, 2], [5, 5], [3, 2]]
    with pytest.raises(InputError, match="reset_each has 2 values, expected one for each of the 3 samples"):
        network.run([x], reset_each=[True, False])
    state = network.initial_state()
    network.run([x], state=state)
    assert state["sum"].tolist() == [[7, 8]]
    assert network.run([x], state=state, reset_each=True)[0].tolist() == [[9, 11]] * 3
    assert state["sum"].tolist() == [[9, 11]]


def test_a_sequence_that_fails_leaves_the_state_as_it_was() -> None:
    network, x = state_networks.running_sum(), np.array([[2, 3]] * 3, np.float32)
    state = network.initial_state()

    def fail(layer: Layer, arrays: object) -> None:
        seen.append(layer.name)
        if len(seen) == 2:
            raise ValueError(layer.name)

    seen: list[str] = []
    with pytest.raises(ValueError, match="total"):
        network.run([x], state=state, observe=fail)
    assert state["sum"].tolist() == [[1, -1]]


def test_inputs_are_not_changed() -> None:
    a, b = A.copy(), B.copy()
    a.setflags(write=False)
    b.setflags(write=False)
    diamond().run([a, b])


def test_observed_tensors_equal_those_of_shorter_networks(models: Path) -> None:
    network = formats.load(models / "kws_ref_model.tflite")
    inputs = random_inputs(network)
    seen: dict[str, Array] = {}
    (scores,) = network.run(inputs, observe=lambda layer, arrays: seen.update(zip(layer.outputs, arrays, strict=True)))
    names = [layer.outputs[0] for layer in network.layers]
    network.set_outputs(names)
    for name, array in zip(names, oracle.tflm(network, inputs), strict=True):
        assert_array_equal(seen[name], array, err_msg=name)
    assert_array_equal(seen[names[-1]], scores)


def test_macs(models: Path) -> None:
    known = {"ad01_int8": 264_192, "kws_ref_model": 2_656_768, "pretrainedResnet_quant": 12_501_632}
    for stem, macs in known.items():
        assert formats.load(models / f"{stem}.tflite").macs() == macs
    assert diamond().macs() == 0


def add(network: Network, layer: Layer, *outputs: TensorInfo) -> Network:
    network.add_layer(layer, outputs)
    return network


def test_validation_names_layer_type_and_place() -> None:
    wrong_shape = Layer(
        "flat",
        LayerType.RESHAPE,
        ReshapeDescriptor(shape=(6,)),
        inputs=("product",),
        outputs=("y",),
    )
    with pytest.raises(ModelError, match=r"layer 'flat' RESHAPE: output 'y' has shape \[5\], expected \[6\]"):
        add(diamond(), wrong_shape, info("y", (5,))).validate()
    wrong_descriptor = Layer("sum", LayerType.ADD, ExtremumDescriptor(), inputs=("a", "b"), outputs=("y",))
    with pytest.raises(ModelError, match="layer 'sum' ADD: its descriptor is a ExtremumDescriptor"):
        add(diamond(), wrong_descriptor, info("y")).validate()
    no_broadcast = Layer("sum", LayerType.ADD, BinaryDescriptor(), inputs=("a", "t"), outputs=("y",))
    network = diamond()
    network.add_constant_array("t", np.zeros((4, 4), np.float32))
    with pytest.raises(FerruleError, match="layer 'sum' ADD: "):
        add(network, no_broadcast, info("y")).validate()


def test_a_run_checks_layers_that_were_added_since() -> None:
    network = diamond()
    network.run([A, B])
    wrong = Layer("flat", LayerType.RESHAPE, ReshapeDescriptor(shape=(6,)), inputs=("a",), outputs=("y",))
    add(network, wrong, info("y", (5,)))
    for _ in range(2):
        with pytest.raises(ModelError, match="layer 'flat' RESHAPE"):
            network.run([A, B])


@pytest.mark.parametrize("stem", ["ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8"])
def test_trained_models_equal_tensorflow_lite_micro(models: Path, stem: str) -> None:
    path = models / f"{stem}.tflite"
    network = formats.load(path)
    cases = {f"random {seed}": random_inputs(network, seed) for seed in range(2)} | oracle.edge_inputs(network)
    for name, inputs in cases.items():
        (wanted,) = oracle.tflm(path.read_bytes(), inputs)
        assert_array_equal(network.run(inputs)[0], wanted, err_msg=name)
