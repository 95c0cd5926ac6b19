# SPDX-License-Identifier: Apache-2.0
"""Devices behind the guest's UARTs: bytes are carried while the guest stands."""

from __future__ import annotations

from ferrule.devices import SerialModel
from ferrule.emulation.unicorn.uart import Uart

MOST_BYTES = 1 << 20


class BoardWire:
    """A serial line between a UART of the guest and a model."""

    def __init__(self, uart: Uart, model: SerialModel) -> None:
        self._uart = uart
        self._model = model
        uart.state.wired = 1

    def carry(self) -> bool:
        """Give each end what the other has sent; return whether the guest got anything."""
        answer = self._model.receive(self._uart.take(MOST_BYTES))
        if answer:
            self._uart.give(answer)
        return bool(answer)
