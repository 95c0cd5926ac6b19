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
MOVED, OTHER_INTERRUPT = 0x4009_0000, 27
NPU = Device(
    name="npu", backend=BackendId("Woofles"), binding={"base": BASE, "interrupt": INTERRUPT, "use_interrupt": 1}
)


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.slow
@pytest.mark.timeout(TEST_TIMEOUT_S)
def test_accelerator_that_an_overlay_moves(tmp_path: Path) -> None:
    """Driver and interrupt follow the devicetree, not the numbers that the project was generated with."""
    tree = zephyr_tree()
    require_module("unicorn", "pip install 'ferrule[run]'")
    board = load_board(tree.board_name())
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
    overlay = project.folder / "boards" / f"{tree.mps2_board().replace('/', '_')}.overlay"
    text = overlay.read_text()
    for old, new in (
        (f"reg = <{BASE:#x} ", f"reg = <{MOVED:#x} "),
        (f"accelerator@{BASE:x}", f"accelerator@{MOVED:x}"),
        (f"interrupts = <{INTERRUPT} ", f"interrupts = <{OTHER_INTERRUPT} "),
    ):
        assert old in text
        text = text.replace(old, new)
    overlay.write_text(text)
    elf = tree.build(project.folder, tmp_path / "build", tree.mps2_board())
    npu = AttachedDevice(name="npu", model=WooflesModel(), address=MOVED, interrupt=OTHER_INTERRUPT)
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
