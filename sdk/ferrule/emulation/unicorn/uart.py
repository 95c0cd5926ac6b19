# SPDX-License-Identifier: Apache-2.0
"""The CMSDK UART (Arm DDI 0479); its data path is in the C hooks."""

from __future__ import annotations

import ctypes

from ferrule.boards import Peripheral
from ferrule.emulation.unicorn import layout
from ferrule.emulation.unicorn.guest import Guest

REGISTERS_BYTES = 0x1000
NO_LINE = -1
RECEIVE_ENABLE, RECEIVE_INTERRUPT = 1 << 1, 1 << 3
"""Bits of CTRL."""


class Uart:
    """Both ends of a UART: the guest's registers and the host's bytes."""

    def __init__(
        self, guest: Guest, peripheral: Peripheral, transmit_line: int | None, receive_line: int | None
    ) -> None:
        self.name = peripheral.name
        self.receive_line = receive_line
        self.state = layout.UartState(
            guest=ctypes.pointer(guest.state),
            transmit_line=NO_LINE if transmit_line is None else transmit_line,
            receive_line=NO_LINE if receive_line is None else receive_line,
        )
        self._hooks = guest.hooks
        self._input = b""
        self._output = memoryview(self.state.output)
        for address in (peripheral.address, *peripheral.aliases):
            guest.map_c(address, REGISTERS_BYTES, "ferrule_uart_read", "ferrule_uart_write", self.state)

    def give(self, data: bytes) -> None:
        """Append bytes to what the guest will receive; it takes the next one when it has read the last."""
        state = self.state
        self._input = self._input[state.input_taken :] + data
        state.input = ctypes.cast(ctypes.c_char_p(self._input), ctypes.c_void_p)
        state.input_bytes = len(self._input)
        state.input_taken = 0
        self._hooks.ferrule_uart_update(ctypes.byref(state))

    @property
    def interrupts_on_input(self) -> bool:
        """Whether the next byte that is given would raise the receive interrupt."""
        wanted = RECEIVE_ENABLE | RECEIVE_INTERRUPT
        return self.receive_line is not None and int(self.state.control) & wanted == wanted

    @property
    def ready_bytes(self) -> int:
        """How many bytes the guest has sent that nobody took."""
        return int(self.state.output_bytes)

    def take(self, max_bytes: int) -> bytes:
        """Return and remove the oldest bytes that the guest has sent."""
        ready = self.ready_bytes
        count = min(max_bytes, ready)
        data = bytes(self._output[:count])
        if count < ready:
            ctypes.memmove(self.state.output, ctypes.byref(self.state.output, count), ready - count)
        self.state.output_bytes = ready - count
        return data

    def notes(self) -> list[str]:
        """Return what a crash report should say of it."""
        lost, waiting = self.state.output_lost, self.state.input_bytes - self.state.input_taken
        notes = []
        if lost:
            notes.append(
                f"{self.name} dropped {lost} B: the transmitter was off (CTRL bit 0, BAUDDIV at least 16) or full"
            )
        if waiting:
            notes.append(f"{waiting} B wait in {self.name} for the firmware")
        return notes
