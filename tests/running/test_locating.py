# SPDX-License-Identifier: Apache-2.0
"""Faults that users inject, and the search for the first layer that differs."""

from __future__ import annotations

import numpy as np
import pytest
from needs import require_module
from small_networks import int8_input

import ferrule
from ferrule._typing import override
from ferrule.devices import BusErrorAt, DmaErrorAt, Fault, Flip, FlippedData, NeverDone, Transfer, WrongId
from ferrule.emulation import EngineError, EngineOptions
from ferrule.errors import FerruleError
from ferrule.link import RunFailedError
from ferrule.report.locating import observed_network

pytestmark = [pytest.mark.cc, pytest.mark.emu]


def chain() -> ferrule.Network:
    """Return a network of two additions, each followed by a RELU."""
    network = ferrule.Network("chain")
    network.add_input(int8_input("x", 1, 8))
    network.add_add_layer("x", "x", quantization=ferrule.Quantization.of(1.0), name="first")
    network.add_relu_layer("first", name="between")
    network.add_add_layer("between", "between", quantization=ferrule.Quantization.of(2.0), name="second")
    network.add_relu_layer("second", name="y")
    network.set_outputs(["y"])
    return network


X = [np.arange(1, 9, dtype=np.int8).reshape(1, 8)]
WRITE_OF_SECOND = 7
"""The transfer's number: each addition reads its command and two operands, and writes its output."""


@pytest.fixture(scope="module")
def firmware() -> ferrule.Firmware:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    return ferrule.compile(chain(), backends=["Woofles", "CpuAcc"])


def test_flipped_data_is_noticed_and_the_layer_named(firmware: ferrule.Firmware) -> None:
    fault = FlippedData(at=WRITE_OF_SECOND, byte=3, mask=0x20)
    report = firmware.run(X, faults={"Woofles": fault}, locate=True)
    assert report.verdict is ferrule.Verdict.DIFFERENT
    assert report.document.faults == (f"Woofles: {fault}",)
    assert report.document.samples[0].max_difference == 32
    found = report.document.first_difference
    assert found is not None
    assert (found.layer, found.type, found.backend, found.tensor) == ("second", "ADD", "Woofles", "y")  # RELU is fused
    assert found.max_difference == 32
    after = firmware.run(X, locate=True)
    assert (after.verdict, after.document.first_difference) == (ferrule.Verdict.EXACT, None)


def test_without_locate_nothing_is_built(firmware: ferrule.Firmware) -> None:
    report = firmware.run(X, faults={"Woofles": FlippedData(at=WRITE_OF_SECOND, byte=3, mask=0x20)})
    assert (report.verdict, report.document.first_difference) == (ferrule.Verdict.DIFFERENT, None)


def test_what_does_not_happen_again(firmware: ferrule.Firmware) -> None:
    class Once(Fault):
        """A fault in a single run of the firmware."""

        struck = 0

        @override
        def on_transfer(self, transfer: Transfer) -> Flip | None:
            if transfer.number != WRITE_OF_SECOND or Once.struck:
                return None
            Once.struck += 1
            return FlippedData(at=WRITE_OF_SECOND, mask=0x20).on_transfer(transfer)

    found = firmware.run(X, faults={"Woofles": Once()}, locate=True).document.first_difference
    assert found is not None
    assert (found.layer, found.note) == ("", "with every tensor as an output the firmware agrees with the reference")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (WrongId(), r"status -5 \(UNAVAILABLE\): layer 'first' on Woofles"),
        (DmaErrorAt(at=4), r"status -12 \(DEVICE\): layer 'second' on Woofles"),
        (NeverDone(since=18), r"status -12 \(DEVICE\): layer 'first' on Woofles"),
    ],
)
def test_errors_name_status_and_layer(firmware: ferrule.Firmware, fault: Fault, message: str) -> None:
    with pytest.raises(RunFailedError, match=message):
        firmware.run(X, faults={"Woofles": fault})


def test_a_bus_error_names_device_and_register(firmware: ferrule.Firmware) -> None:
    with pytest.raises(EngineError, match=r"read of 4 B at 0x\w+ \(ID of device Woofles, which refuses it: injected"):
        firmware.run(X, faults={"Woofles": BusErrorAt(at=0)})


def test_devices_without_a_model(firmware: ferrule.Firmware) -> None:
    with pytest.raises(FerruleError, match="'npu7'") as caught:
        firmware.run(X, faults={"npu7": WrongId()})
    assert "Woofles" in (caught.value.hint or "")


def test_what_real_boards_can_not_do(firmware: ferrule.Firmware) -> None:
    require_module("serial", "pip install 'ferrule[serial]'")
    port = EngineOptions(port="loop://")
    with pytest.raises(FerruleError, match="the first differing layer can't be located on a real board"):
        ferrule.compile(chain()).run(X, engine="serial", options=port, locate=True)
    with pytest.raises(FerruleError, match=r"device models .* can't be put into a real board"):
        firmware.run(X, engine="serial", options=port, faults={"Woofles": WrongId()})


def test_every_tensor_that_is_left_is_an_output(firmware: ferrule.Firmware) -> None:
    observed = observed_network(firmware.network, firmware.optimized)
    written = [output for layer in firmware.optimized.graph.layers for output in layer.outputs]
    assert sorted(info.name for info in observed.outputs) == sorted(written)
    assert observed.run(X)[0].tolist() == chain().run(X)[0].tolist()
