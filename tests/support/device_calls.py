# SPDX-License-Identifier: Apache-2.0
"""The calls of the device API on one device, whose driver is compiled for this host."""

from __future__ import annotations

from typing import Any

from ferrule.testing import CData


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
