# SPDX-License-Identifier: Apache-2.0
"""Attaches the models of a board's peripherals to the guest."""

from __future__ import annotations

from ferrule.boards import Board, Peripheral
from ferrule.emulation.crash import engine_errors
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.processor import Processor
from ferrule.emulation.unicorn.uart import KINDS, Uart


def interrupt_line(peripheral: Peripheral, output: str | None, board: Board) -> int | None:
    """Return the input of the interrupt controller that an output is connected to, or None if it is not connected.

    `output` is None for a peripheral with only one.
    """
    controllers = {each.name for each in board.controllers}
    lines = (each.index for each in peripheral.interrupts if each.source == output and each.target in controllers)
    return next(lines, None)


def attach(guest: Guest, processor: Processor, board: Board) -> dict[str, Uart]:
    """Attach the board's peripherals to the guest and return its UARTs by name."""
    uarts: dict[str, Uart] = {}
    for peripheral in board.peripherals:
        kind = KINDS.get(peripheral.uart_class)
        if kind is not None:
            transmit = interrupt_line(peripheral, kind.transmit_output, board)
            receive = interrupt_line(peripheral, kind.receive_output, board)
            uarts[peripheral.name] = Uart(guest, peripheral, transmit, receive)
        else:
            with engine_errors():
                guest.model.attach(guest, processor, peripheral)
    for tag in board.tags:
        guest.map_silent(tag.address, tag.size_bytes)
    return uarts
