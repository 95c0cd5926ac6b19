# SPDX-License-Identifier: Apache-2.0
"""UARTs between the guest and the host, whose registers the C hooks model."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass

from ferrule._frozen import frozen
from ferrule.boards import Peripheral
from ferrule.devices.hosting import HostedSerialModel
from ferrule.emulation.unicorn import layout
from ferrule.emulation.unicorn.guest import Guest

NO_LINE = -1
MOST_BYTES = 1 << 20
"""Largest number of bytes that a wire takes from its UART at once."""


@frozen
class UartKind:
    """The properties of a kind of UART that the host needs."""

    prefix: str
    """Prefix of its functions in the C hooks."""
    receive_interrupt: int
    """The bits of UartState.control that must all be set for a received byte to raise an interrupt."""
    transmits_if: str
    """The condition for transmitting, in words, for crash reports."""
    transmit_output: str | None = None
    """Name of its transmit interrupt in the platform description; None if it has only one interrupt."""
    receive_output: str | None = None
    resets: bool = True
    """Whether its reset state is not all zero, so that it has a reset function."""


KINDS: Mapping[str, UartKind] = {
    "UART.CMSDK_APB_UART": UartKind(
        prefix="ferrule_uart",
        transmit_output="TxInterrupt",
        receive_output="RxInterrupt",
        receive_interrupt=1 << 1 | 1 << 3,
        transmits_if="CTRL bit 0, BAUDDIV at least 16",
        resets=False,
    ),
    "UART.STM32_UART": UartKind(
        prefix="ferrule_uart_stm32",
        receive_interrupt=1 << 2 | 1 << 5 | 1 << 13,
        transmits_if="UE and TE of CR1, BRR at least 16",
    ),
    "UART.STM32F7_USART": UartKind(
        prefix="ferrule_uart_stm32f7",
        receive_interrupt=1 << 0 | 1 << 2 | 1 << 5,
        transmits_if="UE and TE of CR1, BRR at least 16",
    ),
    "UART.NRF52840_UART": UartKind(
        prefix="ferrule_uart_nrf",
        receive_interrupt=1 << 4,
        transmits_if="ENABLE 8, a pin in PSEL.TXD, TXD.PTR in RAM",
    ),
    "UART.NRF52840_UART without EasyDMA": UartKind(
        prefix="ferrule_uart_nrf",
        receive_interrupt=1 << 2,
        transmits_if="ENABLE 4, a pin in PSELTXD, STARTTX",
    ),
}
"""The kinds of UARTs by `Peripheral.uart_class`."""


class Uart:
    """A UART with its registers for the guest and its bytes for the host."""

    def __init__(
        self, guest: Guest, peripheral: Peripheral, transmit_line: int | None, receive_line: int | None
    ) -> None:
        self.name = peripheral.name
        self.kind = KINDS[peripheral.uart_class]
        self.receive_line = receive_line
        self.state = layout.UartState(
            guest=ctypes.pointer(guest.state),
            transmit_line=NO_LINE if transmit_line is None else transmit_line,
            receive_line=NO_LINE if receive_line is None else receive_line,
        )
        prefix = self.kind.prefix
        self._update = getattr(guest.hooks, f"{prefix}_update")
        self._input = b""
        self._output = memoryview(self.state.output).cast("B")
        for address in (peripheral.address, *peripheral.aliases):
            guest.map_c(address, peripheral.size_bytes, f"{prefix}_read", f"{prefix}_write", self.state)
        if self.kind.resets:
            getattr(guest.hooks, f"{prefix}_reset")(ctypes.byref(self.state))

    def give(self, data: bytes) -> None:
        """Append bytes to the guest's input; the guest receives each byte once it has read the previous one."""
        state = self.state
        self._input = self._input[state.input_taken :] + data
        state.input = ctypes.cast(ctypes.c_char_p(self._input), ctypes.c_void_p)
        state.input_bytes = len(self._input)
        state.input_taken = 0
        self._update(ctypes.byref(state))

    @property
    def interrupts_on_input(self) -> bool:
        """Whether the next input byte would raise the receive interrupt."""
        wanted = self.kind.receive_interrupt
        return self.receive_line is not None and int(self.state.control) & wanted == wanted

    @property
    def ready_bytes(self) -> int:
        """Number of bytes sent by the guest and not yet taken."""
        return int(self.state.output_bytes)

    def take(self, max_bytes: int) -> bytes:
        """Remove and return the oldest bytes that the guest has sent."""
        ready = self.ready_bytes
        count = min(max_bytes, ready)
        data = bytes(self._output[:count])
        self._output[: ready - count] = self._output[count:ready]
        self.state.output_bytes = ready - count
        return data

    def append(self, data: bytes) -> None:
        """Add bytes to those that the guest has sent; what does not fit is lost and counted."""
        room = layout.UART_OUTPUT_BYTES - self.ready_bytes
        kept = data[:room]
        self._output[self.ready_bytes : self.ready_bytes + len(kept)] = kept
        self.state.output_bytes += len(kept)
        self.state.output_lost += len(data) - len(kept)

    def notes(self) -> list[str]:
        """Return the notes on the UART for a crash report."""
        lost, waiting = self.state.output_lost, self.state.input_bytes - self.state.input_taken
        notes = []
        if lost:
            notes.append(f"{self.name} dropped {lost} B: the transmitter was off ({self.kind.transmits_if}) or full")
        if waiting:
            notes.append(f"{waiting} B wait in {self.name} for the firmware")
        return notes


@dataclass
class UartWire:
    """A serial line between a UART of the guest and a device model; bytes are carried while the guest is stopped."""

    _uart: Uart
    _model: HostedSerialModel

    def carry(self) -> bool:
        """Deliver the bytes that each end has sent to the other; return whether the guest received any."""
        answer = self._model.receive(self._uart.take(MOST_BYTES))
        if answer:
            self._uart.give(answer)
        return bool(answer)
