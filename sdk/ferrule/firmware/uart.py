# SPDX-License-Identifier: Apache-2.0
"""The C drivers for the UARTs of platform descriptions."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule._frozen import positional
from ferrule.backends.contribution import UART_DRIVERS, Contribution
from ferrule.boards import Board, Peripheral
from ferrule.errors import FerruleError


@positional
class UartDriver:
    """A polling driver in `src_c/drivers` with the functions <prefix>_init, _read, _write and _can_write."""

    name: str
    """The name of its C file, and of its header in `ferrule/drivers`."""
    clocked: bool = True
    """Whether the driver's configuration has a field `clock_hz` for the frequency of the UART's clock."""
    buffer: str | None = None
    """Name of the struct for DMA that the configuration's field `buffer` points to; None if there is none."""

    @property
    def prefix(self) -> str:
        """The prefix of its functions."""
        return f"ferrule_{self.name}"

    @property
    def contribution(self) -> Contribution:
        """The driver's C files."""
        return UART_DRIVERS.part(self.name)

    @property
    def header(self) -> str:
        """The driver's header, as written in an #include."""
        return f"ferrule/drivers/{self.name}.h"


DRIVERS: Mapping[str, UartDriver] = {
    "UART.CMSDK_APB_UART": UartDriver("uart_cmsdk"),
    "UART.NRF52840_UART": UartDriver("uart_nrf", clocked=False, buffer="ferrule_uart_nrf_buffer"),
    "UART.NRF52840_UART without EasyDMA": UartDriver("uart_nrf51", clocked=False),
    "UART.STM32_UART": UartDriver("uart_stm32"),
    "UART.STM32F7_USART": UartDriver("uart_stm32f7"),
}
"""Drivers by the UART's class, as in `Peripheral.uart_class`."""


def uart_driver(board: Board, uart: Peripheral | None = None) -> UartDriver:
    """Return the driver for a UART, by default the board's link UART.

    Raises:
        FerruleError: there is no driver for the UART's class.
    """
    chosen = uart or board.link_uart
    driver = DRIVERS.get(chosen.uart_class)
    if driver is None:
        role = "its link UART" if chosen == board.link_uart else "its UART"
        raise FerruleError(
            f"board {board.name}: there is no driver for {role} '{chosen.name}' of class {chosen.uart_class}",
            hint=f"choose another UART in board.toml, or add a driver (docs/boards.md); known: {', '.join(DRIVERS)}",
        )
    return driver
