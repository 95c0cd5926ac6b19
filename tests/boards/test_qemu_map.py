# SPDX-License-Identifier: Apache-2.0
"""The memories and UARTs in a board's files are compared with QEMU's map of its machine."""

from __future__ import annotations

import bisect
import re
from functools import cache

import pytest
from children import ran

from ferrule.boards import Board, Memory, board_names, load_board

pytestmark = pytest.mark.emu
ON_QEMU = [name for name in board_names() if load_board(name).qemu is not None]
RANGE = re.compile(r"\s*([0-9a-f]{16})-([0-9a-f]{16}) \(prio -?\d+, ([^)]+)\): (.*)")
UARTS = {"UART.CMSDK_APB_UART": "uart", "UART.STM32_UART": "stm32f2xx-usart", "UART.NRF52840_UART": "nrf51_soc.uart"}
"""QEMU's names of the UART models, by Renode's class."""
Span = tuple[int, int, str, str]
"""First and last address, kind and name."""


@cache
def views(qemu: str, machine: str) -> tuple[str, ...]:
    """Return the flat views of all address spaces."""
    argv = [qemu, "-machine", machine, "-nodefaults", "-display", "none", "-S", "-monitor", "stdio"]
    done = ran(argv, stdin="info mtree -f\nquit\n", timeout=60, check=True)
    return tuple(re.split(r"^FlatView #\d+\s*$", done.stdout.replace("\r", ""), flags=re.MULTILINE))


def flat_map(qemu: str, machine: str) -> tuple[Span, ...]:
    """Return the first core's map, in secure state if it has states, as spans that do not overlap."""
    spaces = ("cpu-secure-memory-0", "cpu-memory-0")
    wanted = [view for space in spaces for view in views(qemu, machine) if f'AS "{space}"' in view]
    spans = [RANGE.match(line) for line in wanted[0].splitlines()]
    return tuple(sorted((int(m[1], 16), int(m[2], 16), m[3], m[4]) for m in spans if m))


def at(spans: tuple[Span, ...], address: int) -> Span | None:
    """Return the span that contains an address."""
    index = bisect.bisect_right(spans, address, key=lambda span: span[0]) - 1
    return spans[index] if index >= 0 and spans[index][1] >= address else None


def has_memory(spans: tuple[Span, ...], memory: Memory, base: int) -> bool:
    """Return whether QEMU has memory at all of the addresses; memory protected block by block counts."""
    address = base
    while address < base + memory.size_bytes:
        span = at(spans, address)
        if span is None or not (span[2] in ("ram", "rom", "romd") or span[3].startswith("tz-mpc-upstream")):
            return False
        address = span[1] + 1
    return True


def is_uart(qemu: str, machine: str, name: str, kind: str) -> bool:
    """Return whether a span is a UART, or a TrustZone gate in front of one."""
    if not name.startswith("tz-ppc-port"):
        return name == kind
    return any(
        f'AS "{name}"' in view and re.search(rf"\): {kind}\s*$", view, re.MULTILINE) for view in views(qemu, machine)
    )


@pytest.fixture(params=ON_QEMU)
def board(request: pytest.FixtureRequest) -> Board:
    """The boards that QEMU runs, in turn."""
    return load_board(str(request.param))


def test_the_memories_are_qemus(board: Board, qemu: str) -> None:
    assert board.qemu is not None
    spans = flat_map(qemu, board.qemu.name)
    for memory in board.memories:
        for base in (memory.address, *memory.aliases):
            assert has_memory(spans, memory, base) is (memory.name not in board.qemu.lacks), (memory.name, hex(base))


def test_the_uarts_are_qemus(board: Board, qemu: str) -> None:
    assert board.qemu is not None
    spans = flat_map(qemu, board.qemu.name)
    uarts = [peripheral for peripheral in board.peripherals if peripheral.type.startswith("UART.")]
    assert set(board.qemu.serial) == {uart.name for uart in uarts} - set(board.qemu.lacks)
    for uart in uarts:
        span = at(spans, uart.address)
        found = (
            span is not None and span[0] == uart.address and is_uart(qemu, board.qemu.name, span[3], UARTS[uart.type])
        )
        assert found is (uart.name not in board.qemu.lacks), (uart.name, span)


def test_expansions_are_free_in_qemu(board: Board, qemu: str) -> None:
    assert board.qemu is not None
    spans = flat_map(qemu, board.qemu.name)
    for expansion in board.expansions:
        behind = expansion.address + expansion.size_bytes
        assert not any(first < behind and expansion.address <= last for first, last, *_ in spans), hex(
            expansion.address
        )
