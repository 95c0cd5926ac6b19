# SPDX-License-Identifier: Apache-2.0
"""Which C driver serves which UART of a platform description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferrule.backends.contribution import UART_DRIVERS, Contribution
from ferrule.boards import Board, Peripheral
from ferrule.errors import FerruleError


@dataclass(frozen=True, slots=True, kw_only=True)
class UartDriver:
    """A polling driver in `src_c/drivers`; its functions are called <prefix>_init, _read and _write."""

    prefix: str
    contribution: Contribution
    """Its C."""
    header: str
    """As it is included."""
    tells_room: bool = False
    """Whether it has <prefix>_can_write too, which drivers of devices behind the UART need."""
    clocked: bool = True
    """Whether its configuration has the frequency of the UART's clock, `clock_hz`."""
    buffer: str | None = None
    """The struct in RAM that its configuration points to as `buffer`, for DMA; None if it needs none."""


DRIVERS: Mapping[str, UartDriver] = {
    "UART.CMSDK_APB_UART": UartDriver(
        prefix="ferrule_uart_cmsdk",
        contribution=UART_DRIVERS.part("uart_cmsdk"),
        header="ferrule/drivers/uart_cmsdk.h",
        tells_room=True,
    ),
    "UART.NRF52840_UART": UartDriver(
        prefix="ferrule_uart_nrf",
        contribution=UART_DRIVERS.part("uart_nrf"),
        header="ferrule/drivers/uart_nrf.h",
        tells_room=True,
        clocked=False,
        buffer="ferrule_uart_nrf_buffer",
    ),
    "UART.STM32_UART": UartDriver(
        prefix="ferrule_uart_stm32",
        contribution=UART_DRIVERS.part("uart_stm32"),
        header="ferrule/drivers/uart_stm32.h",
        tells_room=True,
    ),
}
"""By Renode's class of the peripheral."""


def uart_driver(board: Board, uart: Peripheral | None = None) -> UartDriver:
    """Return the driver of a UART, by default the board's link UART.

    Raises:
        FerruleError: there is none for its class.
    """
    chosen = uart or board.link_uart
    driver = DRIVERS.get(chosen.type)
    if driver is None:
        role = "its link UART" if chosen == board.link_uart else "its UART"
        raise FerruleError(
            f"board {board.name}: there is no driver for {role} '{chosen.name}' of class {chosen.type}",
            hint=f"choose another UART in board.toml, or add a driver (docs/boards.md); known: {', '.join(DRIVERS)}",
        )
    return driver
