# SPDX-License-Identifier: Apache-2.0
"""Attaches the models of a board's peripherals to the guest."""

from __future__ import annotations

import ctypes

from ferrule.boards import Board, Peripheral
from ferrule.emulation.crash import EngineError
from ferrule.emulation.unicorn import layout
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.processor import NVIC_TYPE, Processor
from ferrule.emulation.unicorn.uart import KINDS, Uart

TRACE_TYPE = "Miscellaneous.DWT"
BIT_BAND_TYPE = "Miscellaneous.BitBanding"
TRACE_BYTES = 0x1000
"""Window size of the data watchpoint and trace unit (Armv7-M ARM, C1.8), of which CTRL and CYCCNT are modelled."""


def attach_cycle_counter(guest: Guest, processor: Processor, address: int) -> None:
    """Attach CYCCNT, which counts instructions while DEMCR.TRCENA and CTRL.CYCCNTENA are set and the core is awake."""
    state = layout.CycleCounterState(guest=ctypes.pointer(guest.state))
    guest.map_c(address, TRACE_BYTES, "ferrule_cycle_counter_read", "ferrule_cycle_counter_write", state)
    guest.synchronise(address, TRACE_BYTES)
    processor.attach_trace(state)


def attach_bit_band(guest: Guest, peripheral: Peripheral) -> None:
    """Attach an alias of which each word is one bit of a memory or of peripherals (Cortex-M4 TRM, 3.7)."""
    base = peripheral.properties.get("peripheralBase")
    if not isinstance(base, int):
        raise EngineError(
            f"the bit-band alias {peripheral.name} has no property peripheralBase",
            hint="it is the address of the region, such as 0x20000000 or 0x40000000",
        )

    def place(offset: int, size_bytes: int) -> tuple[int, int]:
        """Return the address of the value that contains the bit, and the bit's number in it."""
        return base + (offset >> 5 & -size_bytes), offset >> 2 & 8 * size_bytes - 1

    def read(offset: int, size_bytes: int) -> int:
        address, bit = place(offset, size_bytes)
        return guest.bus_access(address, size_bytes) >> bit & 1

    def write(offset: int, size_bytes: int, value: int) -> None:
        address, bit = place(offset, size_bytes)
        before = guest.bus_access(address, size_bytes)
        guest.bus_access(address, size_bytes, before & ~(1 << bit) | (value & 1) << bit)

    guest.map_python(peripheral.address, peripheral.size_bytes, read, write)


def interrupt_line(peripheral: Peripheral, output: str | None, board: Board) -> int | None:
    """Return the input of the interrupt controller that an output is connected to, or None if it is not connected.

    `output` is None for a peripheral with only one.
    """
    controllers = {each.name for each in board.peripherals_of(NVIC_TYPE)}
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
        elif peripheral.type == TRACE_TYPE:
            attach_cycle_counter(guest, processor, peripheral.address)
        elif peripheral.type == BIT_BAND_TYPE:
            attach_bit_band(guest, peripheral)
    for tag in board.tags:
        guest.map_silent(tag.address, tag.size_bytes)
    return uarts
