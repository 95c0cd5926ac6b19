# SPDX-License-Identifier: Apache-2.0
"""The registers of a CMSDK UART (DDI 0479, section 4.3) and its two interrupt lines, for tests of its driver."""

from __future__ import annotations

from typing import Any

from ferrule.testing import Adapter
from ferrule.testing.fakes import Fakes

DATA, STATE, CTRL, INTERRUPT, BAUDDIV = 0x00, 0x04, 0x08, 0x0C, 0x10
TX, RX = 1, 2
TX_FULL, RX_FULL, RX_OVERRUN = 1, 2, 8


class CmsdkUart:
    """The UART that the driver in `lib` controls at `base`; interrupts are taken only in `interrupt` and `settle`."""

    def __init__(self, lib: Any, base: int, rx_line: int, tx_line: int) -> None:  # noqa: ANN401 cffi is not typed
        self._lib = lib
        self._base = base
        self._lines = {RX: rx_line, TX: tx_line}
        self.ctrl = self.divider = self.interrupts = 0
        self.received: int | None = None
        self.sending: int | None = None
        self.overrun = False
        self.sent = bytearray()

    def access(self, address: int, width: int, write: int, value: int) -> int:
        """Serve a 32-bit register access within the UART."""
        assert width == 4
        offset = address - self._base
        if write:
            self._write(offset, value)
            return 0
        return self._read(offset)

    def _read(self, offset: int) -> int:
        match offset:
            case 0x00:
                byte, self.received = self.received or 0, None
                return byte
            case 0x04:
                full = TX_FULL * (self.sending is not None) | RX_FULL * (self.received is not None)
                return full | RX_OVERRUN * self.overrun
            case 0x08:
                return self.ctrl
        raise AssertionError(f"unexpected read of the register at {offset:#x}")

    def _write(self, offset: int, value: int) -> None:
        match offset:
            case 0x00:
                assert self.sending is None, "a byte overwrites one that is still being sent"
                assert self.ctrl & TX, "the transmitter is off"
                self.sending = value
            case 0x04:
                self.overrun = self.overrun and not value & RX_OVERRUN
            case 0x08:
                self.ctrl = value
            case 0x0C:
                self.interrupts &= ~value
            case 0x10:
                assert 16 <= value < 1 << 20, "the baud rate divider is out of range"
                self.divider = value
            case _:
                raise AssertionError(f"unexpected write to the register at {offset:#x}")

    def shift(self) -> None:
        """Send the byte in the data register."""
        assert self.sending is not None
        self.sent.append(self.sending)
        self.sending = None
        if self.ctrl & TX << 2:
            self.interrupts |= TX

    def receive(self, byte: int) -> None:
        """Receive a byte; it is lost if the receiver is off or full."""
        if not self.ctrl & RX:
            return
        if self.received is not None:
            self.overrun = True
            return
        self.received = byte
        if self.ctrl & RX << 2:
            self.interrupts |= RX

    def interrupt(self) -> bool:
        """Take the pending interrupts; return whether there were any."""
        assert self._lib.cmsdk_masked() == 0
        taken = False
        for kind, number in self._lines.items():
            line = self._lib.cmsdk_line(number)
            if line.enabled and (line.pending or self.interrupts & kind):
                line.pending = 0
                self._lib.cmsdk_handle(number)
                taken = True
        return taken

    def settle(self) -> None:
        """Take interrupts and send bytes until nothing is pending."""
        for _ in range(10_000):
            moved = self.interrupt()
            if self.sending is not None:
                self.shift()
                moved = True
            if not moved:
                return
        raise AssertionError("the interrupts never end")


class Bench:
    """Two UARTs and the driver instance of each."""

    lines = ((0, 1), (32, 33))
    """The receive and transmit interrupt numbers of each UART."""
    _bases = (0x4000_4000, 0x5020_0000)

    def __init__(self, machine: Adapter[Fakes]) -> None:
        self.machine = machine
        self._access = machine.callback("uint32_t (uintptr_t, uint32_t, uint32_t, uint32_t)", self._serve)
        self.reset()

    def reset(self) -> None:
        """Make new UARTs and switch the driver instances off."""
        self.machine.fakes.reset()
        pairs = zip(self._bases, self.lines, strict=True)
        self._uarts = [CmsdkUart(self.machine.lib, base, *lines) for base, lines in pairs]
        self.machine.lib.ferrule_fake_use_mmio(self._access)
        for number in range(2):
            self.machine.lib.cmsdk_driver(number).Uninitialize()

    def uart(self, number: int) -> CmsdkUart:
        return self._uarts[number]

    def _serve(self, address: int, width: int, write: int, value: int) -> int:
        uart = self._uarts[address >= self._bases[1]]
        return uart.access(address, width, write, value)
