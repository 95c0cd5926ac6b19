# SPDX-License-Identifier: Apache-2.0
"""Carries bytes between a UART of a running firmware and a port, so that any program can talk to an emulated board."""

from __future__ import annotations

import time
from collections.abc import Callable

from ferrule.link import Channel

RUN_S = 0.02
"""Longest run of the firmware between two looks at the port."""
WAIT_S = 0.05
"""Longest wait for the port while the firmware waits for input."""
CHUNK_BYTES = 4096


def bridge(uart: Channel, port: Channel, *, until: Callable[[], bool] = lambda: False) -> None:
    """Carry bytes both ways until `until`, called at least 10 times a second, returns True.

    A firmware in the engine unicorn runs meanwhile; while it waits for input, nothing does.

    Raises:
        EngineError: the firmware faulted.
        LinkError: the port failed.
    """
    idle = False
    while not until():
        received = port.read(CHUNK_BYTES, WAIT_S if idle else 0.0)
        if received:
            uart.write(received)
        asked = time.monotonic()
        sent = uart.read(CHUNK_BYTES, RUN_S)
        idle = not sent and time.monotonic() < asked + RUN_S
        if sent:
            port.write(sent)
