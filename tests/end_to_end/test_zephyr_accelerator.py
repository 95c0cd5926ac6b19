# SPDX-License-Identifier: Apache-2.0
"""An accelerator with registers and an interrupt on Zephyr: devicetree, driver, kernel and the device model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_networks
from needs import require_module
from zephyr_tree import TEST_TIMEOUT_S, zephyr_tree

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles.model import WooflesModel
from ferrule.boards import load_board
from ferrule.emulation import Machine, engine
from ferrule.emulation.engine import AttachedDevice
from ferrule.link import LinkSession

BASE, INTERRUPT = 0x4008_0000, 28
NPU = Device(
    name="npu", backend=BackendId("Woofles"), binding={"base": BASE, "interrupt": INTERRUPT, "use_interrupt": 1}
)


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.slow
@pytest.mark.timeout(TEST_TIMEOUT_S)
def test_accelerator_with_an_interrupt(tmp_path: Path) -> None:
    tree = zephyr_tree()
    require_module("unicorn", "pip install 'ferrule[run]'")
    board = load_board(tree.mps2_board().replace("/", "-").replace("_", "-"))
    network = small_networks.dense()
    project = ferrule.generate(
        network,
        board=board,
        hints={"y": "Woofles/npu"},
        devices=(NPU,),
        toolchain="arm-none-eabi-gcc",
        platform="zephyr",
        out=tmp_path / "project",
    )
    elf = tree.build(project.folder, tmp_path / "build", tree.mps2_board())
    npu = AttachedDevice(name="npu", model=WooflesModel(), address=BASE, interrupt=INTERRUPT)
    wired = replace(board, link_uart=board.peripheral("uart1"))
    with (
        engine("unicorn").start(Machine(board=wired, elf=elf, devices=(npu,))) as emulated,
        LinkSession(emulated.channel("link"), timeout_s=30) as session,
    ):
        for seed in range(3):
            x = np.random.default_rng(seed).integers(-128, 128, (1, 6)).astype(np.int8)
            run = session.run([x], trace=True)
            assert run.outputs[0].tobytes() == network.run([x])[0].tobytes()
            assert run.calls
            assert {call.status for call in run.calls} == {0}
