# SPDX-License-Identifier: Apache-2.0
"""Devices behind serial lines and the UARTs of the board that they are connected to."""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.boards import Board, Peripheral
from ferrule.codegen import Artifact, DeviceUse, Program
from ferrule.errors import FerruleError, unknown_name

UART_CLASSES = "UART."
"""Prefix of the classes of UARTs in platform descriptions."""


@frozen(eq=False)
class WireUse:
    """A device and the UART that it is connected to."""

    use: DeviceUse
    uart: Peripheral
    baud: int

    @property
    def transport(self) -> str:
        """The C symbol of the transport that the device's context points to."""
        return f"{self.use.device.name}_transport"


def spare_uarts(board: Board) -> list[Peripheral]:
    """Return the board's UARTs that are neither its link nor its console."""
    taken = {board.link_uart.name, board.console_uart.name}
    return [each for each in board.peripherals if each.type.startswith(UART_CLASSES) and each.name not in taken]


def wires(program: Program | Artifact, board: Board) -> tuple[WireUse, ...]:
    """Return the devices behind UARTs, each with its UART.

    Raises:
        FerruleError: a UART does not exist, is the link's or the console's, or is used by two devices.
    """
    spare = {each.name: each for each in spare_uarts(board)}
    found: dict[str, WireUse] = {}
    for use in program.devices:
        wire, device = use.driver.wire, use.device.name
        if wire is None:
            continue
        name = wire.uart
        if name is None:
            raise FerruleError(
                f"device '{device}' is behind a serial line, but no UART is named",
                hint=f'[devices.{device}] binding = {{ uart = "uart1" }}',
            )
        if name not in spare:
            where = f"on board {board.name} for device '{device}', beside link and console"
            raise unknown_name("UART", name, spare, where=where)
        if name in found:
            raise FerruleError(f"devices '{found[name].use.device.name}' and '{device}' are both behind {name}")
        found[name] = WireUse(use=use, uart=spare[name], baud=wire.baud)
    return tuple(found.values())
