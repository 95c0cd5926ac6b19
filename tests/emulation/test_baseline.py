# SPDX-License-Identifier: Apache-2.0
"""Armv6-M: the same trace of exceptions as on qemu, and a HardFault for each misdeed."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate import every
from guest import trace
from needs import require_module, require_program

from ferrule.architectures import CORTEX_M
from ferrule.boards import load_board
from ferrule.emulation import EngineError, Machine, engine
from ferrule.firmware import SourceSet, execute, plan_build, toolchain
from ferrule.firmware.uart import uart_driver
from ferrule.resources import root

pytestmark = [pytest.mark.cc, pytest.mark.emu]
PROGRAM = Path(__file__).parent / "firmware" / "baseline.c"
MISDEEDS = {
    "an unaligned word": "ldr r2, [r1]",
    "an unaligned halfword": "ldrh r2, [r0, r1]",
    "unaligned multiple words": "ldm r1!, {r2}",
    "an unaligned store": "str r0, [r1]",
    "an instruction of Armv7-M": ".inst.n 0xFAB0, 0xF280",
    "a supervisor call while interrupts are masked": "cpsid i\\n\\tsvc 1",
    "an address without a memory": "movs r2, #7\\n\\tlsls r2, r2, #28\\n\\tldr r2, [r2]",
}


def machine(folder: Path, board_name: str, **more: str) -> Machine:
    """Build the program for a board."""
    require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    board = load_board(board_name)
    driver = uart_driver(board)
    defines = {
        "TEST_UART": f"{board.link_uart.address:#x}u",
        "TEST_HEADER": f'"{driver.header}"',
        "TEST_DRIVER": driver.prefix,
        **more,
    }
    adapter = root() / "platforms" / "bare_metal"
    sources = [PROGRAM, *driver.contribution.source_paths, *CORTEX_M.bare_metal.part("interrupt").source_paths]
    plan = plan_build(
        SourceSet(sources=sources, include_dirs=[adapter / "include"], defines=defines),
        board,
        toolchain("arm-none-eabi-gcc"),
        folder / "build",
    )
    return Machine(board=board, elf=execute(plan))


def test_the_trace_equals_qemus(qemu: str, tmp_path: Path) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
    built = machine(tmp_path, "microbit", TEST_PINS="1")
    traces = []
    for name in ("unicorn", "qemu"):
        with engine(name).start(built) as session:
            traces.append(trace(session))
    assert traces[0] == traces[1]
    assert traces[0][:5] == ["cpuid 410cc200", "ccr 00000208", "cfsr 00000000", "ipr c0c0c0c0", "shpr2 c0000000"]
    lines = [line for line in traces[0] if line.startswith(("enter", "leave"))]
    order = ["enter 20", "enter 22", "leave 22", "enter 21", "enter 23", "leave 23", "leave 21"]
    assert lines[: len(order)] == [f"{each[:6]}{int(each[6:]):08x}" for each in order]


@pytest.mark.parametrize("misdeed", every(2, MISDEEDS))
def test_a_misdeed_is_a_hard_fault(misdeed: str, tmp_path: Path) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
    text = MISDEEDS[misdeed].replace('"', "")
    built = machine(tmp_path, "stm32g0b1", TEST_FAULT=f'"{text}"')
    with engine("unicorn").start(built) as session, pytest.raises(EngineError, match="HardFault") as caught:
        session.channel().read(1, 10)
    report = caught.value.report
    assert report is not None
    assert report.registers["r0"] == 0x600D_600D
