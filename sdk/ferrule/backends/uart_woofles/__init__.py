# SPDX-License-Identifier: Apache-2.0
"""UartWoofles: an accelerator with the operations of Woofles, connected over a serial line."""

from ferrule.backends.uart_woofles.backend import UartWoofles
from ferrule.backends.uart_woofles.model import UartWooflesModel

__all__ = ["UartWoofles", "UartWooflesModel"]
