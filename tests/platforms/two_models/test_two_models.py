# SPDX-License-Identifier: Apache-2.0
"""Two models share two devices, which they use in opposite orders: 1,000 runs in two threads of a real kernel.

The tests run where the variables name trees: FREERTOS_KERNEL_PATH, CMSIS_PATH with CMSIS_RTX_PATH, and ZEPHYR_BASE.
"""

from __future__ import annotations

import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import cmsis_project
import pytest
from guest import build_guest
from needs import require_module, require_variable
from two_models_networks import JOB, network, write_first, write_second
from zephyr_tree import TEST_TIMEOUT_S, zephyr_tree

import ferrule
from ferrule import resources
from ferrule.backends.contribution import merged
from ferrule.boards import load_board
from ferrule.codegen import Artifact
from ferrule.emulation import Machine, engine
from ferrule.firmware import emit

pytestmark = [pytest.mark.cc, pytest.mark.emu, pytest.mark.slow, pytest.mark.timeout(TEST_TIMEOUT_S)]
FOLDER = Path(__file__).parent
FREERTOS = resources.root() / "platforms" / "freertos"
NAMES = ("runs", "timeouts", "failures", "wrong", "meetings")
BY_ADDRESS = "return (uintptr_t)held->handles[device];"
BY_NUMBER = "return held->handles[device] != NULL ? device + 1u : 0u;"


def check(told: dict[str, int]) -> None:
    assert told.pop("meetings") > 300
    assert told == {"runs": 1000, "timeouts": 0, "failures": 0, "wrong": 0}


def received(machine: Machine, name: str) -> dict[str, int]:
    """Run a firmware that sends its results as words."""
    data = b""
    with engine(name).start(machine) as session:
        channel = session.channel()
        while len(data) < 4 * len(NAMES):
            chunk = channel.read(4 * len(NAMES) - len(data), 60.0)
            assert chunk, f"received only {len(data)} bytes"
            data += chunk
    return dict(zip(NAMES, struct.unpack(f"<{len(NAMES)}i", data), strict=True))


def freertos(folder: Path, model: Artifact, held: Path, arm_gcc: str) -> dict[str, int]:
    """Build the program with the kernel, run it, and return its results."""
    sources = require_variable("FREERTOS_KERNEL_PATH")
    port, kernel = sources / "portable" / "GCC" / "ARM_CM3", FOLDER.parent / "freertos"
    write_first(folder, model)
    write_second(folder)
    parts = merged(model.contributions)
    own = (path for part in parts for path in part.source_paths if path.name != "held.c")
    places = (folder, FOLDER, kernel, FREERTOS / "include", sources / "include", port)
    flags = [
        *(f"-I{path}" for path in (*places, *(path for part in parts for path in part.include_paths))),
        *("-DFERRULE_FREERTOS_OPEN_TIMEOUT_MS=200", "-DFERRULE_WEIGHTS=", "-DFERRULE_IDENTITY=", "-Wno-error"),
        *(str(sources / name) for name in ("tasks.c", "queue.c", "list.c")),
        *map(str, (port / "port.c", FREERTOS / "src" / "freertos.c", held, *own)),
        *(str(folder / name) for name in ("ferrule_first.c", "ferrule_first_weights.c")),
        "-lgcc",
    ]
    machine = build_guest(arm_gcc, "freertos", load_board("mps2-an385"), folder / "two_models.elf", FOLDER, flags)
    return received(machine, "unicorn")


def test_on_freertos(arm_gcc: str, tmp_path: Path) -> None:
    held = resources.root() / "src_c" / "device" / "held.c"
    check(freertos(tmp_path, emit(network("first"), JOB), held, arm_gcc))


def test_a_dropped_order_times_out_on_freertos(arm_gcc: str, tmp_path: Path) -> None:
    text = (resources.root() / "src_c" / "device" / "held.c").read_text(encoding="utf-8")
    assert text.count(BY_ADDRESS) == 1
    held = tmp_path / "held_mutant.c"
    held.write_text(text.replace(BY_ADDRESS, BY_NUMBER), encoding="utf-8")
    told = freertos(tmp_path, emit(network("first"), JOB), held, arm_gcc)
    assert told["timeouts"] > 0


def test_on_rtx(tmp_path: Path) -> None:
    cmsis_project.packs()
    require_module("unicorn", "pip install 'ferrule[run]'")
    folder = cmsis_project.write(tmp_path / "project", network("first"), job=JOB).folder
    shutil.copy(FOLDER / "cmsis.c", folder / "main.c")
    shutil.copy(FOLDER / "two_models.h", folder)
    write_second(folder)
    elf = cmsis_project.build(folder)
    check(received(Machine(board=load_board("mps2-an386"), elf=elf), "unicorn"))


def test_on_zephyr(tmp_path: Path) -> None:
    tree = zephyr_tree()
    require_module("unicorn", "pip install 'ferrule[run]'")
    project = tmp_path / "project"
    job = replace(JOB, toolchain="arm-none-eabi-gcc", optimization="O2", platform="zephyr", out=project)
    ferrule.generate(network("first"), job)
    shutil.copy(FOLDER / "zephyr.c", project / "src" / "main.c")
    shutil.copy(FOLDER / "two_models.h", project / "src")
    write_second(project / "src")
    elf = tree.build(project, tmp_path / "build", tree.mps2_board())
    board = load_board(tree.board_name())
    machine = Machine(board=replace(board, link_uart=board.peripheral("uart1")), elf=elf)
    text = b""
    with engine("unicorn").start(machine) as session:
        channel = session.channel("console")
        while not (found := re.search(rb"told: ([-0-9 ]+)\.", text)):
            chunk = channel.read(100, 60.0)
            assert chunk, text
            text += chunk
    check(dict(zip(NAMES, map(int, found[1].split()), strict=True)))
