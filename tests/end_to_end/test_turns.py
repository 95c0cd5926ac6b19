# SPDX-License-Identifier: Apache-2.0
"""A thread of lower priority runs while a generated project's driver waits for the interrupt of its accelerator.

The tests run where the variables name the trees: ZEPHYR_BASE; CMSIS_PATH with CMSIS_RTX_PATH or CMSIS_FREERTOS_PATH.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import cmsis_project
import freertos_project
import numpy as np
import pytest
import small_networks
from needs import require_module, require_variable
from zephyr_tree import TEST_TIMEOUT_S, zephyr_tree

import ferrule
from ferrule._typing import override
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles.command import Command
from ferrule.backends.woofles.model import Timing, WooflesModel
from ferrule.boards import Board, load_board
from ferrule.devices import Register
from ferrule.emulation import Machine, engine
from ferrule.emulation.engine import AttachedDevice
from ferrule.firmware import Job, read_image
from ferrule.link import LinkSession

pytestmark = [pytest.mark.cc, pytest.mark.emu, pytest.mark.slow, pytest.mark.timeout(TEST_TIMEOUT_S)]
BASE, INTERRUPT = 0x4008_0000, 28
INFERENCE_CYCLES = 53 * 25_000
"""53 ms at 25 MHz."""
BATCH = 4_000
"""So many inputs that the driver waits for more than 53 ms before it gives up."""
TURNS = 40_000
NPU = Device(
    name="npu", backend=BackendId("Woofles"), binding={"base": BASE, "interrupt": INTERRUPT, "use_interrupt": 1}
)
TURNS_VARIABLE = "low_priority_turns"
COUNT = f"""
    for (;;) {{
        {TURNS_VARIABLE}++;
    }}
}}
"""
LOW = """\
    static uint64_t stack[64];
    static const osThreadAttr_t low = {
        .stack_mem = stack,
        .stack_size = sizeof stack,
        .priority = osPriorityLow,
    };
"""
BLOCKS = """\
    static uint64_t model_block[32];
    static uint64_t low_block[32];
"""


class Slow(WooflesModel):
    """Woofles with commands that take 53 ms, which records the turns during each."""

    def __init__(self, address: int) -> None:
        super().__init__(Timing(command=INFERENCE_CYCLES))
        self._address = address
        self._before = 0
        self.turns: list[int] = []

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.name == "QUEUE_HEAD":
            self._before = self._count()
        super().on_write(register, old, new)

    @override
    def _finish(self, command: Command) -> None:
        self.turns.append(self._count() - self._before)
        super()._finish(command)

    def _count(self) -> int:
        return int.from_bytes(self.bus.read(self._address, 4), "little")


@contextmanager
def running(elf: Path, board: Board) -> Iterator[tuple[LinkSession, Slow]]:
    require_module("unicorn", "pip install 'ferrule[run]'")
    model = Slow(read_image(elf).address_of(TURNS_VARIABLE))
    npu = AttachedDevice(name="npu", model=model, address=BASE, interrupt=INTERRUPT)
    with (
        engine("unicorn").start(Machine(board=board, elf=elf, devices=(npu,))) as emulated,
        LinkSession(emulated.channel("link"), timeout_s=60) as session,
    ):
        yield session, model


def check(elf: Path, board: Board, network: ferrule.Network) -> None:
    """Check that the thread gets turns during each inference, and that the output is exact."""
    with running(elf, board) as (session, model):
        x = np.random.default_rng(1).integers(-128, 128, (BATCH, 6)).astype(np.int8)
        assert session.run([x]).outputs[0].tobytes() == network.run([x])[0].tobytes()
    assert len(model.turns) == 2  # at the start, and over the link
    assert min(model.turns) > TURNS, model.turns


def job() -> Job:
    return Job(hints={"y": "Woofles/npu"}, devices=(NPU,))


def test_zephyr(tmp_path: Path) -> None:
    tree, network = zephyr_tree(), small_networks.dense(batch=BATCH)
    board = load_board(tree.board_name())
    project = ferrule.generate(
        network, replace(job(), board=board, toolchain="arm-none-eabi-gcc", platform="zephyr", out=tmp_path / "project")
    )
    main = project.folder / "src" / "main.c"
    unused = "".join(f"    ARG_UNUSED({name});\n" for name in "abc")
    thread = f"\nvolatile uint32_t {TURNS_VARIABLE};\nstatic void count(void *a, void *b, void *c)\n{{\n{unused}{COUNT}"
    thread += "\nK_THREAD_DEFINE(counter, 512, count, NULL, NULL, NULL, 10, 0, 0);\n"
    main.write_text(main.read_text(encoding="utf-8") + thread, encoding="utf-8")
    elf = tree.build(project.folder, tmp_path / "build", tree.mps2_board())
    check(elf, replace(board, link_uart=board.peripheral("uart1")), network)


def cmsis(folder: Path, network: ferrule.Network) -> Path:
    """Write a project for CMSIS whose main program has a thread that counts, and return its folder."""
    project = cmsis_project.write(folder, network, job=job()).folder
    counting = f"static void count(void *unused)\n{{\n    (void)unused;{COUNT}"
    threads = "osThreadNew(serve, NULL, &attributes) == NULL"
    edit(
        project / "main.c",
        ("int main(void)", f"volatile uint32_t {TURNS_VARIABLE};\n{counting}\nint main(void)"),
        (threads, f"{threads} ||\n        osThreadNew(count, NULL, &low) == NULL"),
        ("    static const osThreadAttr_t attributes = {", f"{LOW}    static const osThreadAttr_t attributes = {{"),
    )
    return project


def edit(file: Path, *changes: tuple[str, str]) -> None:
    """Replace passages that occur once each."""
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def test_rtx5(tmp_path: Path) -> None:
    cmsis_project.packs()
    network = small_networks.dense(batch=BATCH)
    check(cmsis_project.build(cmsis(tmp_path / "project", network)), load_board("mps2-an386"), network)


def test_freertos(tmp_path: Path) -> None:
    require_variable("CMSIS_FREERTOS_PATH")
    network = small_networks.dense(batch=BATCH)
    project = cmsis(tmp_path / "project", network)
    edit(  # FreeRTOS's layer needs the control block of a thread whose stack is given, and its mark is longer
        project / "main.c",
        (".limit = &model_stack[1],", ".limit = &model_stack[4],"),
        ("    static uint64_t stack[64];\n", f"    static uint64_t stack[64];\n{BLOCKS}"),
        ('.name = "model",', '.name = "model", .cb_mem = model_block, .cb_size = sizeof model_block,'),
        (".stack_mem = stack,", ".stack_mem = stack, .cb_mem = low_block, .cb_size = sizeof low_block,"),
    )
    elf = freertos_project.build(project, "main.c")
    check(elf, load_board("mps2-an386"), network)
