# SPDX-License-Identifier: Apache-2.0
"""Which model stands for which class of the platform description."""

from __future__ import annotations

from ferrule.boards import Board, Peripheral
from ferrule.emulation.unicorn.cycle_counter import CycleCounter
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.processor import NVIC_TYPE, Processor
from ferrule.emulation.unicorn.uart import KINDS, Uart

UART_TYPES = tuple(KINDS)
TRACE_TYPES = ("Miscellaneous.DWT",)
MODELLED = (*UART_TYPES, NVIC_TYPE, *TRACE_TYPES)


def interrupt_line(peripheral: Peripheral, output: str | None, board: Board) -> int | None:
    """Return the line of the interrupt controller that an output leads to; None where it leads nowhere.

    `output` is None for a peripheral that has only one.
    """
    controllers = {each.name for each in board.peripherals if each.type == NVIC_TYPE}
    for interrupt in peripheral.interrupts:
        if interrupt.source == output and interrupt.target in controllers:
            return interrupt.index
    return None


def attach(guest: Guest, processor: Processor, board: Board) -> dict[str, Uart]:
    """Give the guest the board's peripherals; return its UARTs by name."""
    uarts: dict[str, Uart] = {}
    for peripheral in board.peripherals:
        if peripheral.type in UART_TYPES:
            kind = KINDS[peripheral.type]
            transmit = interrupt_line(peripheral, kind.transmit_output, board)
            receive = interrupt_line(peripheral, kind.receive_output, board)
            uarts[peripheral.name] = Uart(guest, peripheral, transmit, receive)
        elif peripheral.type in TRACE_TYPES:
            CycleCounter(guest, processor, peripheral.address)
    for tag in board.tags:
        guest.map_silent(tag.address, tag.size_bytes)
    return uarts
