# SPDX-License-Identifier: Apache-2.0
"""UartWoofles as a backend: supported layers, bindings, and agreement of C and Python."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
from small_networks import SCALE, dense, float_dense, int8_input

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.firmware import PluggableTarget, WiredTarget
from ferrule.backends.manifest import read_manifest
from ferrule.backends.registry import default_registry
from ferrule.backends.target import Face, default_target
from ferrule.backends.uart_woofles import UartWoofles, UartWooflesModel, firmware
from ferrule.backends.uart_woofles.firmware import DEFAULT_MEMORY_BYTES, DEFAULT_STORE_BYTES, UartWooflesTarget
from ferrule.backends.uart_woofles.protocol import MAX_PAYLOAD_BYTES, VERSION, ErrorCode, MessageType
from ferrule.codegen import Artifact, Program
from ferrule.errors import FerruleError
from ferrule.firmware import Job, emit

TARGET = default_target(BackendId("UartWoofles"), Face.FIRMWARE)

FOLDER = Path(__file__).parents[1]


def device(**binding: str | int) -> Device:
    return Device(name="far", backend=BackendId("UartWoofles"), binding=binding)


def emitted(network: ferrule.Network, **binding: str | int) -> Artifact:
    job = Job(backends=("UartWoofles", "CpuAcc"), devices=(device(**binding),))
    return emit(network, job)


def test_it_is_registered_and_has_a_firmware_face_only() -> None:
    backend = default_registry().create("UartWoofles")
    assert isinstance(backend, UartWoofles)
    assert not backend.has_host_face()
    assert isinstance(backend.firmware_target(), WiredTarget)
    assert not isinstance(backend.firmware_target(), PluggableTarget)
    assert {path.name for part in read_manifest(FOLDER).contributions() for path in part.source_paths} == {
        "uart_woofles.c",
        "request.c",
    }


def test_it_takes_what_woofles_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    support = UartWoofles().layer_support()
    network = dense()
    assert support.supports(network, network.layers[0], TARGET)
    floats = float_dense()
    assert "Woofles takes int8" in support.supports(floats, floats.layers[0], TARGET).reason
    monkeypatch.setattr("ferrule.backends.uart_woofles.backend.MAX_STORE_BYTES", 71)
    assert support.supports(network, network.layers[0], TARGET).reason == "its constants take 72 B, more than 71"


def test_the_driver_and_its_model() -> None:
    driver = UartWooflesTarget().driver(device())
    assert (driver.memory_bytes, driver.activation_lead) == (DEFAULT_MEMORY_BYTES, 0)
    assert driver.wire is not None
    assert (driver.wire.uart, driver.wire.baud) == (None, 115_200)
    wired = UartWooflesTarget().wired(device(baud=9600, memory_bytes=512), "uart4")
    wire = UartWooflesTarget().driver(wired).wire
    assert wire is not None
    assert (wire.uart, wire.baud) == ("uart4", 9600)
    assert wire.model is not None
    assert isinstance(wire.model(None), UartWooflesModel)
    kept = UartWooflesTarget().driver(UartWooflesTarget().wired(device(uart="uart2"), "uart4")).wire
    assert kept is not None
    assert kept.uart == "uart2"


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ({"base": 0x40000000}, "device 'far': UartWoofles has no 'base'"),
        ({"uart": 1}, "uart is 1, expected the name of a UART"),
        ({"baud": "fast"}, "baud is 'fast', expected a whole number from 50 to 12000000"),
        ({"memory_bytes": 15}, "memory_bytes is 15"),
        ({"store_bytes": -1}, "store_bytes is -1"),
        ({"timeout_ms": 0}, "timeout_ms is 0"),
        ({"attempts": True}, "attempts is True"),
        ({"activation_lead": -1}, "activation_lead is -1"),
        ({"clock_hz": 1 << 40}, "clock_hz is 1099511627776"),
    ],
)
def test_bindings_that_make_no_sense(binding: dict[str, str | int], message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        UartWooflesTarget().driver(device(**binding))


def test_a_store_that_is_too_small_is_told_before() -> None:
    assert emitted(dense(), store_bytes=72).devices
    with pytest.raises(FerruleError, match="'y' has 72 B of constants, the store of device 'far' holds 71 B") as caught:
        emitted(dense(), store_bytes=71)
    assert "store_bytes = 72" in (caught.value.hint or "")
    assert DEFAULT_STORE_BYTES > 72


def test_a_layer_in_c() -> None:
    artifact = emitted(dense())
    text = artifact.files["ferrule_dense.c"]
    assert "static const struct uart_woofles_layer ferrule_dense_y_params = {" in text
    assert ".weights_bytes = 24," in text
    call = "uart_woofles_execute(held->handles[DEVICE_FAR], &ferrule_dense_y_params, X_COPY_OFFSET, 0, Y_OUT_OFFSET);"
    assert call in " ".join(text.split())
    assert ".transport = &far_transport," in Program(artifacts=(artifact,)).device_c("far")


def test_both_operands_lie_in_the_accelerator() -> None:
    network = ferrule.Network("sum")
    network.add_input(int8_input("a", 1, 8))
    network.add_input(int8_input("b", 1, 8))
    network.add_add_layer("a", "b", quantization=SCALE, name="y")
    network.set_outputs(["y"])
    artifact = emitted(network)
    text = " ".join(artifact.files["ferrule_sum.c"].split())
    found = re.search(r"uart_woofles_execute\(\S+ \S+ (\w+_OFFSET), (\w+_OFFSET), (\w+_OFFSET)\)", text)
    assert found is not None
    places = {name: int(re.findall(rf"\b{name} = (\d+)", text)[0]) for name in found.groups()}
    assert places[found[1]] != places[found[2]]
    assert all(place % firmware.ALIGNMENT == 0 for place in places.values())


def test_patience_grows_with_the_work() -> None:
    def patience(channels: int) -> int:
        network = ferrule.Network("big")
        network.add_input(replace(int8_input("x", 1, channels)))
        network.add_fully_connected_layer(
            "x",
            np.ones((100, channels), np.int8),
            weights_quantization=ferrule.Quantization.of(0.02),
            quantization=SCALE,
            name="y",
        )
        network.set_outputs(["y"])
        found = re.search(r"\.patience_ms = (\d+)", emitted(network).files["ferrule_big.c"])
        assert found is not None
        return int(found[1])

    assert 0 < patience(10) < patience(2000)


def c_numbers(prefix: str) -> dict[str, int]:
    text = (FOLDER / "include" / "uart_woofles" / "request.h").read_text()
    return {name: int(value, 0) for name, value in re.findall(rf"\b{prefix}(\w+) = (0x[0-9A-F]+|\d+)", text)}


def members(kind: type[IntEnum]) -> dict[str, int]:
    return {each.name: each.value for each in kind}


def test_c_and_python_agree() -> None:
    errors = c_numbers("UART_WOOFLES_ERROR_")
    assert errors == members(ErrorCode)
    messages = c_numbers("UART_WOOFLES_")
    assert {name: messages[name] for name in members(MessageType)} == members(MessageType)
    headers = "".join(path.read_text() for path in (FOLDER / "include" / "uart_woofles").glob("*.h"))
    assert f"#define UART_WOOFLES_VERSION {VERSION}u" in headers
    assert re.search(rf"#define UART_WOOFLES_PAYLOAD +{MAX_PAYLOAD_BYTES}u", headers)
