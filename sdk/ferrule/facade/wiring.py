# SPDX-License-Identifier: Apache-2.0
"""Gives devices behind serial lines the UARTs that the board has to spare."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.backends import BackendId, Device
from ferrule.backends.firmware import FirmwareTarget, WiredTarget
from ferrule.boards import Board
from ferrule.errors import FerruleError
from ferrule.firmware import spare_uarts


def wired(
    devices: Mapping[str, Device], targets: Mapping[BackendId, tuple[BackendId, FirmwareTarget]], board: Board
) -> dict[str, Device]:
    """Return the devices; those behind a serial line that name no UART get the next that nobody has.

    Raises:
        FerruleError: the board has too few.
    """
    named = {device.binding["uart"] for device in devices.values() if "uart" in device.binding}
    spare = iter([uart.name for uart in spare_uarts(board) if uart.name not in named])
    found = dict(devices)
    for name, device in devices.items():
        target = targets[device.backend][1]
        if isinstance(target, WiredTarget) and "uart" not in device.binding:
            uart = next(spare, None)
            if uart is None:
                raise FerruleError(
                    f"board {board.name} has no UART left for device '{name}': "
                    f"{len(spare_uarts(board))} are neither link nor console"
                )
            found[name] = target.wired(device, uart)
    return found
