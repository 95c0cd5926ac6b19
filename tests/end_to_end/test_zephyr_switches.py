# SPDX-License-Identifier: Apache-2.0
"""Context switches of a generated Zephyr project, traced by its kernel, under QEMU and in the engine unicorn.

The test runs where ZEPHYR_BASE is set.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import small_networks
import switches
from needs import require_module, require_program
from zephyr_tree import TEST_TIMEOUT_S, zephyr_tree

import ferrule
from ferrule.boards import load_board
from ferrule.emulation import Machine

pytestmark = [pytest.mark.cc, pytest.mark.emu, pytest.mark.slow, pytest.mark.timeout(TEST_TIMEOUT_S)]
PROGRAM = Path(__file__).parents[1] / "platforms" / "zephyr" / "switches"
START = "0 main, 0 high, 0 main, 0 middle, 0 main, 0 low, 0 main, 0 twin, 0 main, 0 idle"
TURNS = "5 twin, 5 low, 6 twin, 7 low, 7 idle"
"""Twin wakes while low runs; their time slices are 25 ms, and a slot has 40 ms."""


def test_threads_switch_as_under_qemu(tmp_path: Path) -> None:
    """The kernel's own trace of its switches: preemption, an inherited priority, a semaphore, time slices, sleep."""
    tree = zephyr_tree()
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    require_module("unicorn", "pip install 'ferrule[run]'")
    ferrule.generate(
        small_networks.dense(),
        toolchain="arm-none-eabi-gcc",
        optimization="O2",
        platform="zephyr",
        out=tmp_path / "project",
    )
    shutil.copy(PROGRAM / "main.c", tmp_path / "project" / "src" / "main.c")
    settings = f"-DEXTRA_CONF_FILE={PROGRAM / 'switches.conf'}"
    elf = tree.build(tmp_path / "project", tmp_path / "build", tree.mps2_board(), settings)
    board = load_board(tree.mps2_board().replace("/", "-").replace("_", "-"))
    machine = Machine(board=replace(board, link_uart=board.peripheral("uart1")), elf=elf)
    under_qemu, embedded = (switches.run(name, machine, "console") for name in ("qemu", "unicorn"))
    assert embedded == under_qemu
    assert embedded == switches.expected(START.split(", "), TURNS.split(", "), rounds=3)
