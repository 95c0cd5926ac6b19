# SPDX-License-Identifier: Apache-2.0
"""UARTs that are not Arm's, each with its driver on its board."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate import every
from guest import receive
from needs import require_module, require_program

from ferrule.architectures import CORTEX_M
from ferrule.boards import load_board
from ferrule.emulation import EngineError, Machine, engine
from ferrule.firmware import SourceSet, execute, plan_build, toolchain
from ferrule.firmware.uart import uart_driver
from ferrule.resources import root

pytestmark = [pytest.mark.cc, pytest.mark.emu]
FIRMWARE = Path(__file__).parent / "firmware"
STM32, STM32G0, NRF, NRF51 = "stm32f4_discovery", "stm32g0b1", "nrf52840dk", "microbit"
INTERRUPTS = {
    STM32: {"TEST_ENABLE": "0xCu", "TEST_INTERRUPT": "0x20u", "TEST_LINE": "38u"},  # CR1.RXNEIE
    STM32G0: {"TEST_ENABLE": "0x0u", "TEST_INTERRUPT": "0x20u", "TEST_LINE": "28u"},  # CR1.RXNEIE
    NRF: {"TEST_ENABLE": "0x304u", "TEST_INTERRUPT": "0x10u", "TEST_LINE": "2u"},  # INTENSET.ENDRX
    NRF51: {"TEST_ENABLE": "0x304u", "TEST_INTERRUPT": "0x4u", "TEST_LINE": "2u"},  # INTENSET.RXDRDY
}
BROKEN = {
    STM32: {"TEST_BROKEN": "0xCu", "TEST_BROKEN_VALUE": "0x2004u"},  # CR1 without TE
    STM32G0: {"TEST_BROKEN": "0x0u", "TEST_BROKEN_VALUE": "0x5u"},  # CR1 without TE
    NRF: {"TEST_BROKEN": "0x50Cu", "TEST_BROKEN_VALUE": "0xFFFFFFFFu"},  # PSEL.TXD without a pin
    NRF51: {"TEST_BROKEN": "0x50Cu", "TEST_BROKEN_VALUE": "0xFFFFFFFFu"},
}
RUNS = [
    (STM32, "unicorn"),
    (STM32, "qemu"),
    (STM32G0, "unicorn"),
    (NRF, "unicorn"),
    (NRF51, "unicorn"),
    (NRF51, "qemu"),
]


def machine(name: str, folder: Path, **more: str) -> Machine:
    """Build the firmware for a board."""
    require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    board = load_board(name)
    driver = uart_driver(board)
    defines = {
        "TEST_UART": f"{board.link_uart.address:#x}u",
        "TEST_HEADER": f'"{driver.header}"',
        "TEST_DRIVER": driver.prefix,
        **({"TEST_BUFFER": driver.buffer} if driver.buffer else {}),
        **({"TEST_PINS": "1"} if name == NRF51 else {}),
        **more,
    }
    adapter = root() / "platforms" / "bare_metal"
    sources = [
        FIRMWARE / "uart_echo.c",
        *driver.contribution.source_paths,
        *CORTEX_M.bare_metal.part("interrupt").source_paths,
    ]
    plan = plan_build(
        SourceSet(sources=sources, include_dirs=[adapter / "include"], defines=defines),
        board,
        toolchain("arm-none-eabi-gcc"),
        folder / "build",
    )
    return Machine(board=board, elf=execute(plan))


def need(name: str) -> None:
    """Skip the test unless the engine is installed."""
    if name == "qemu":
        require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    else:
        require_module("unicorn", "pip install 'ferrule[run]'")


@pytest.mark.parametrize(
    ("board", "name", "interrupt"),
    every(2, [(*run, interrupt) for interrupt in (False, True) for run in (RUNS if interrupt else RUNS[::-1])]),
)
def test_bytes_are_echoed(board: str, name: str, interrupt: bool, tmp_path: Path) -> None:
    need(name)
    data = bytes(range(256)) * 4
    with engine(name).start(machine(board, tmp_path, **(INTERRUPTS[board] if interrupt else {}))) as session:
        channel = session.channel()
        assert channel.read(1, 0.3) == b""  # it waits for input, asleep or polling
        channel.write(data)
        assert receive(channel, len(data)) == bytes(byte ^ 0x55 for byte in data)
        for byte in b"one":
            channel.write(bytes([byte]))
            assert channel.read(9, 10) == bytes([byte ^ 0x55])


@pytest.mark.parametrize("board", [STM32, STM32G0, NRF, NRF51])
def test_more_than_the_buffers_hold(board: str, tmp_path: Path) -> None:
    need("unicorn")
    data = bytes(index * 7 & 0xFF for index in range(150_000))
    with engine("unicorn").start(machine(board, tmp_path)) as session:
        session.channel().write(data)
        assert receive(session.channel(), len(data)) == bytes(byte ^ 0x55 for byte in data)


@pytest.mark.parametrize(
    ("board", "why"),
    [
        (STM32, "UE and TE of CR1"),
        (STM32G0, "UE and TE of CR1"),
        (NRF, "a pin in PSEL.TXD"),
        (NRF51, "a pin in PSELTXD"),
    ],
)
def test_a_transmitter_that_is_off_is_told(board: str, why: str, tmp_path: Path) -> None:
    need("unicorn")
    with engine("unicorn").start(machine(board, tmp_path, **BROKEN[board])) as session:
        channel = session.channel()
        channel.write(b"abc")
        assert channel.read(3, 0.5) == b""
        report = session.crash_report("nothing came")
    assert report is not None
    assert [note for note in report.notes if "dropped 3 B" in note and why in note]


@pytest.mark.parametrize("board", [STM32, STM32G0, NRF, NRF51])
def test_an_interrupt_that_nobody_enabled_wakes_nobody(board: str, tmp_path: Path) -> None:
    need("unicorn")
    settings = {**INTERRUPTS[board], "TEST_INTERRUPT": "0u"}
    with engine("unicorn").start(machine(board, tmp_path, **settings)) as session:
        session.channel().write(b"a")
        with pytest.raises(EngineError, match=r"sleeps \(wfi\) and nothing is left that could wake it"):
            session.channel().read(1, 10)
