# SPDX-License-Identifier: Apache-2.0
"""The calls of the device API on one device, whose driver is compiled for this host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from ferrule.testing import CData

by_interrupt_and_polled = pytest.mark.parametrize("interrupt", [False, True])
"""Marks tests of a driver that waits for the interrupt, or looks at the device again and again."""


class DeviceCalls:
    """A bound device: its library and its handle; each call returns the status."""

    lib: Any
    handle: CData

    def activate(self) -> int:
        """Activate the device."""
        return int(self.lib.ferrule_device_activate(self.handle))

    def deactivate(self) -> int:
        """Deactivate the device."""
        return int(self.lib.ferrule_device_deactivate(self.handle))

    def open(self) -> int:
        """Open the device."""
        return int(self.lib.ferrule_device_open(self.handle))

    def close(self) -> int:
        """Close the device."""
        return int(self.lib.ferrule_device_close(self.handle))

    def recover(self) -> int:
        """Try to stop the device if it is lost."""
        return int(self.lib.ferrule_device_recover(self.handle))

    def run_open(self, execute: Callable[[], int]) -> int:
        """Open the device, execute and close the device, as an executor does; an opened device is always closed."""
        status = self.open()
        if status != 0:
            return status
        try:
            status = execute()
        finally:
            closed = self.close()
        return status or closed


_Calls = TypeVar("_Calls", bound=DeviceCalls)


def ready(device: _Calls) -> _Calls:
    """Activate and open a device, and return it."""
    assert device.activate() == 0
    assert device.open() == 0
    return device
