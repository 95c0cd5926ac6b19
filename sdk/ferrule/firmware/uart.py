# SPDX-License-Identifier: Apache-2.0
"""Which C driver serves which UART of a platform description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferrule.boards import Board
from ferrule.errors import FerruleError


@dataclass(frozen=True, slots=True, kw_only=True)
class UartDriver:
    """A polling driver in `src_c/drivers`; its functions are called <prefix>_init, _read and _write."""

    prefix: str
    source: str
    """Below the resources' root."""
    header: str
    """As it is included."""


DRIVERS: Mapping[str, UartDriver] = {
    "UART.CMSDK_APB_UART": UartDriver(
        prefix="ferrule_uart_cmsdk",
        source="src_c/drivers/uart_cmsdk.c",
        header="ferrule/drivers/uart_cmsdk.h",
    ),
}
"""By Renode's class of the peripheral."""


def uart_driver(board: Board) -> UartDriver:
    """Return the driver of the board's link UART.

    Raises:
        FerruleError: there is none for its class.
    """
    uart = board.link_uart
    driver = DRIVERS.get(uart.type)
    if driver is None:
        raise FerruleError(
            f"board {board.name}: there is no driver for its link UART '{uart.name}' of class {uart.type}",
            hint=f"choose another UART in board.toml, or add a driver (docs/boards.md); known: {', '.join(DRIVERS)}",
        )
    return driver
