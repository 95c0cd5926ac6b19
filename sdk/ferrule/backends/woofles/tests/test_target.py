# SPDX-License-Identifier: Apache-2.0
"""The layers that Woofles refuses, with the reasons, and the bindings of its devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from layer_case import layer_network, tensor

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.firmware import PluggableTarget, Socket
from ferrule.backends.manifest import read_manifest
from ferrule.backends.registry import default_registry
from ferrule.backends.target import default_target
from ferrule.backends.woofles import Woofles, WooflesModel
from ferrule.backends.woofles.command import Command, Operation
from ferrule.backends.woofles.firmware import FOLDER, TIMEOUT_FLOOR_US, WooflesTarget, _timeout_us
from ferrule.boards import load_board
from ferrule.errors import FerruleError
from ferrule.firmware import Job, emit
from ferrule.graph import DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.rectify import ReluDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor

TARGET = default_target(BackendId("Woofles"))

INT8, FLOAT32 = DataType.INT8, DataType.FLOAT32
HALF = Quantization.of(0.5)
SUM, DENSE, CONV = BinaryDescriptor(), FullyConnectedDescriptor(), Conv2dDescriptor()


def reason(network: Network) -> str:
    (layer,) = network.layers
    return Woofles().layer_support().supports(network, layer, TARGET).reason


def q(name: str, *shape: int) -> TensorInfo:
    return tensor(name, shape, INT8, 0.5)


def elementwise(first: TensorInfo, second: TensorInfo, **constants: object) -> Network:
    known = {int(key[1:]): value for key, value in constants.items()}
    return layer_network(LayerType.ADD, SUM, [first, second], first.quantization, known)  # type: ignore[arg-type]


def test_what_it_has_not() -> None:
    network = layer_network(LayerType.RELU, ReluDescriptor(), [q("x", 4)], HALF)
    assert reason(network) == "Woofles has no RELU: it has ADD, MUL, FULLY_CONNECTED, CONV_2D"


def test_other_types() -> None:
    network = elementwise(tensor("x", (4,), FLOAT32), tensor("y", (4,), FLOAT32))
    assert reason(network) == "tensor 'x' is float32, Woofles takes int8"


def test_broadcasts() -> None:
    assert reason(elementwise(q("x", 2, 4), q("y", 4))) == (
        "tensor 'x' is [2, 4] and tensor 'y' is [4], Woofles does not broadcast"
    )


@pytest.mark.parametrize("place", [0, 1])
def test_constants_of_add(place: int) -> None:
    network = elementwise(q("x", 4), q("y", 4), **{f"c{place}": np.zeros(4, np.int8)})
    assert reason(network) == f"tensor '{'xy'[place]}' is a constant, Woofles takes what is computed"


def test_weights_and_bias_are_constants() -> None:
    data, weights = q("x", 1, 4), q("w", 3, 4)
    bias = TensorInfo("b", (3,), DataType.INT32, quantization=Quantization.of(0.25))
    known = np.ones((3, 4), np.int8)
    network = layer_network(LayerType.FULLY_CONNECTED, DENSE, [data, weights], HALF)
    assert reason(network) == "tensor 'w' is computed at run time, Woofles takes a constant"
    network = layer_network(LayerType.FULLY_CONNECTED, DENSE, [data, weights, bias], HALF, {1: known})
    assert reason(network) == "tensor 'b' is computed at run time, Woofles takes a constant"
    network = layer_network(LayerType.FULLY_CONNECTED, DENSE, [data, weights], HALF, {1: known})
    assert reason(network) == ""


def test_what_is_out_of_reach() -> None:
    shape = (1, 1, (1 << 15) + 1, 1)
    network = layer_network(
        LayerType.CONV_2D, CONV, [q("x", *shape), q("w", 1, 1, 1, 1)], HALF, {1: np.ones((1, 1, 1, 1), np.int8)}
    )
    assert reason(network) == "layer 'layer' is out of Woofles's reach: input_width is 32769"


def test_it_is_registered_with_both_faces() -> None:
    backend = default_registry().create("Woofles")
    assert backend.has_host_face()
    assert isinstance(backend.firmware_target(), PluggableTarget)
    assert [path.name for part in read_manifest(FOLDER).contributions() for path in part.source_paths] == ["woofles.c"]


def device(**binding: str | int) -> Device:
    return Device(name="npu0", backend=BackendId("Woofles"), binding=binding)


def test_the_binding() -> None:
    driver = WooflesTarget().driver(device(base=0x5000_0000, interrupt=7, use_interrupt=1, activation_lead=2))
    assert (driver.base, driver.interrupt, driver.activation_lead) == (0x5000_0000, 7, 2)
    assert [name for name, _ in driver.context_fields] == ["base", "use_interrupt"]
    assert driver.model is not None
    assert isinstance(driver.model(), WooflesModel)
    driver = WooflesTarget().driver(device(base=0x5000_0000, interrupt=7))
    assert (driver.interrupt, driver.activation_lead) == (None, 0)  # it polls
    assert WooflesTarget().driver(device()).base is None


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ({"bass": 1}, "Woofles has no 'bass'"),
        ({"base": -1}, "base is -1, expected a whole number from 0 to 0xfffff000"),
        ({"base": "high"}, "base is 'high'"),
        ({"base": True}, "base is True"),
        ({"base": 1 << 32}, "base is 4294967296"),
        ({"base": 0x5000_0002}, "base is 0x50000002, expected a multiple of 4"),
        ({"interrupt": 480}, "interrupt is 480, expected a whole number from 0 to 479"),
        ({"use_interrupt": 2}, "use_interrupt is 2, expected a whole number from 0 to 1"),
        ({"activation_lead": 1 << 17}, "activation_lead is 131072"),
        ({"base": 0, "use_interrupt": 1}, "use_interrupt is 1, but the interrupt has no number"),
    ],
)
def test_bindings_that_make_no_sense(binding: dict[str, str | int], message: str) -> None:
    with pytest.raises(FerruleError, match=message) as caught:
        WooflesTarget().driver(device(**binding))
    assert "device 'npu0'" in str(caught.value)


def test_a_socket_gives_what_the_binding_does_not() -> None:
    socket = Socket(address=0x4100_0000, interrupt=3)
    assert WooflesTarget().plugged(device(use_interrupt=1), socket).binding == {
        "base": 0x4100_0000,
        "interrupt": 3,
        "use_interrupt": 1,
    }
    assert WooflesTarget().plugged(device(interrupt=9), socket).binding["interrupt"] == 9


def test_a_board_that_has_no_place_left() -> None:
    network = ferrule.Network("many")
    network.add_input(q("x", 4))
    last, places = "x", len(load_board("mps2-an386").expansions)
    devices = [replace(device(), name=f"npu{i}") for i in range(places + 1)]
    hints = {}
    for each in devices:
        last = network.add_add_layer(last, last, quantization=HALF, name=f"sum_{each.name}")
        hints[last] = f"Woofles/{each.name}"
    network.set_outputs([last])
    job = Job(backends=("Woofles",), hints=hints, devices=tuple(devices))
    with pytest.raises(FerruleError, match=f"has {places} places for accelerators, none for 'npu{places}'"):
        emit(network, job)


def test_the_time_limit_grows_with_the_command_and_fits_32_bits() -> None:
    small = Command(operation=Operation.ADD)
    large = Command(
        operation=Operation.CONV_2D, output_channels=1 << 15, input_channels=1 << 11, output_height=1 << 11, count=1
    )
    assert TIMEOUT_FLOOR_US < _timeout_us(small) < _timeout_us(large) <= 2**31 - 1
