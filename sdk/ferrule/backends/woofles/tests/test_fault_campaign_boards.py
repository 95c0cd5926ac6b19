# SPDX-License-Identifier: Apache-2.0
"""Every fault at every register access of one inference on an emulated board.

The network is the demo's digits, or one in which the device works beside the core.

A random sample unless FERRULE_EXHAUSTIVE=1.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np
import pytest
from campaign import all_faults, chosen
from covering import EXHAUSTIVE
from device_networks import BRANCH_HINTS, two_branches
from faulty_board import FaultyBoard
from needs import require_module

import ferrule
from ferrule._typing import override
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles.registers import TABLE
from ferrule.devices import BusErrorAt, DmaErrorAt, Fault, Flip, FlippedData, NeverDone, Transfer
from ferrule.graph import Array

pytestmark = [pytest.mark.cc, pytest.mark.emu]

DEMO = Path(__file__).parents[5] / "examples" / "digits"
LOG = logging.getLogger(__name__)
SAMPLED = 40
QUEUE_HEAD = TABLE.register("QUEUE_HEAD").offset


def digits(monkeypatch: pytest.MonkeyPatch) -> tuple[ferrule.Network, list[Array]]:
    """Return the demo's network, barely trained, and the first of its images."""
    monkeypatch.syspath_prepend(str(DEMO))
    from training import load_digits, train

    from quantization import quantized_network

    data = load_digits()
    network = quantized_network(train(data, epochs=1), data.train_images)
    return network, [network.inputs[0].quantize(data.test_images[:1])]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("polling", id="polling"),
        pytest.param("interrupt", id="interrupt"),
        pytest.param("beside", id="beside", marks=pytest.mark.nightly),
    ],
)
def built(request: pytest.FixtureRequest) -> tuple[ferrule.Firmware, list[Array]]:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    npu = Device(name="npu0", backend=BackendId("Woofles"), binding={"use_interrupt": int(request.param != "polling")})
    if request.param == "beside":
        hints = {layer: f"{name}/npu0" if name == "Woofles" else name for layer, name in BRANCH_HINTS.items()}
        network = two_branches()
        image = [np.random.default_rng(0).integers(-128, 128, network.inputs[0].shape).astype(np.int8)]
        return ferrule.compile(network, backends=["Woofles", "CpuAcc"], devices=[npu], hints=hints), image
    require_module("sklearn", "pip install scikit-learn")
    with pytest.MonkeyPatch.context() as patch:
        network, image = digits(patch)
    for module in ("quantization", "training"):
        sys.modules.pop(module, None)
    return ferrule.compile(network, backends=["Woofles", "CpuAcc"], devices=[npu]), image


def check(fault: Fault, ended: Array | str, expected: Array, *, command: bool) -> None:
    """A run gives the correct output or an error; only changed data may give a different output, which is detected."""
    if isinstance(ended, str):
        assert "status -" in ended or "of device npu0, which refuses it: injected" in ended, (fault, ended)
        assert isinstance(fault, BusErrorAt) == ("injected" in ended), (fault, ended)
    elif isinstance(fault, FlippedData):
        assert not command, fault
    else:
        assert not isinstance(fault, DmaErrorAt | BusErrorAt), fault
        assert ended.tolist() == expected.tolist(), fault


def test_each_fault_at_each_access(built: tuple[ferrule.Firmware, list[Array]]) -> None:
    firmware, image = built
    (expected,) = firmware.network.run(image)
    board = FaultyBoard(firmware)
    clean = board.run(image, None)
    assert not isinstance(clean, str)
    assert clean.tolist() == expected.tolist()
    faults = list(all_faults(board.injector))
    commands = {transfer.number for transfer in board.injector.transfers if transfer.size_bytes == 160}
    assert len(commands) == 3  # two convolutions and a fully connected layer
    ends = {"right": 0, "failed": 0, "different": 0}
    for fault in chosen(faults, SAMPLED, seed=7):
        ended = board.run(image, fault)
        check(fault, ended, expected, command=isinstance(fault, FlippedData) and fault.at in commands)
        same = not isinstance(ended, str) and ended.tolist() == expected.tolist()
        ends["failed" if isinstance(ended, str) else "right" if same else "different"] += 1
        after = board.run(image, None)
        if isinstance(ended, str) and isinstance(after, str):
            assert "(DEVICE)" in after, fault  # the device was lost, and may have written over the input
            after = board.run(image, None)
        assert not isinstance(after, str), (fault, after)
        assert after.tolist() == expected.tolist(), fault
    LOG.info("%d faults, %s, %d starts of the board", len(faults), ends, board.starts)
    assert ends["right"]
    assert ends["failed"]
    if EXHAUSTIVE:
        assert ends["different"]


def test_the_report_names_the_layer_of_changed_data(built: tuple[ferrule.Firmware, list[Array]]) -> None:
    """The second convolution's weights are changed in transit, in each run of the firmware."""
    firmware, image = built

    second = firmware.network.layers[2]
    size = firmware.network.info(second.inputs[1] or "").size_bytes

    class Weights(Fault):
        @override
        def on_transfer(self, transfer: Transfer) -> Flip | None:
            hit = not transfer.write and transfer.size_bytes == size
            return Flip(byte=5, mask=0x40) if hit else None

    report = firmware.run([np.asarray(image[0])], faults={"npu0": Weights()}, locate=True)
    assert report.verdict is ferrule.Verdict.DIFFERENT
    found = report.document.first_difference
    assert found is not None
    assert (found.layer, found.device) == (second.name, "npu0")


def test_a_hang_ends_with_the_time_out_of_the_driver(built: tuple[ferrule.Firmware, list[Array]]) -> None:
    """The device ignores its reset, too, so the run says that it could not be stopped; so does the one that stops it.

    Until then the device may write to the workspace, in which the link stores the next input.
    """
    firmware, image = built
    board = FaultyBoard(firmware)
    board.run(image, None)
    doorbell = next(access.number for access in board.injector.accesses if access.offset == QUEUE_HEAD)
    for fault in (NeverDone(since=doorbell), None):
        ended = board.run(image, fault)
        assert isinstance(ended, str)
        assert "(DEVICE)" in ended
    after = board.run(image, None)
    assert not isinstance(after, str)
    assert after.tolist() == firmware.network.run(image)[0].tolist()
