# SPDX-License-Identifier: Apache-2.0
"""Which model stands for which class of the platform description."""

from __future__ import annotations

from collections.abc import Callable

from ferrule.boards import Board
from ferrule.emulation.unicorn.cycle_counter import CycleCounter
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.system_control import SystemControl
from ferrule.emulation.unicorn.uart import Uart

UART_TYPES = ("UART.CMSDK_APB_UART",)
SYSTEM_TYPES = ("IRQControllers.NVIC",)
TRACE_TYPES = ("Miscellaneous.DWT",)
MODELLED = (*UART_TYPES, *SYSTEM_TYPES, *TRACE_TYPES)


def _ignore(_enabled: bool) -> None:
    """Stand in for a trace unit on a board without one."""


def attach(guest: Guest, board: Board, vector_table: int) -> dict[str, Uart]:
    """Give the guest the board's peripherals; return its UARTs by name."""
    uarts: dict[str, Uart] = {}
    trace: Callable[[bool], None] = _ignore
    for peripheral in board.peripherals:
        if peripheral.type in UART_TYPES:
            uarts[peripheral.name] = Uart(guest, peripheral)
        elif peripheral.type in TRACE_TYPES:
            trace = CycleCounter(guest, peripheral.address).enable_trace
    for peripheral in board.peripherals:
        if peripheral.type in SYSTEM_TYPES:
            SystemControl(guest, peripheral.address, board.cpu.type, vector_table, trace)
    return uarts
