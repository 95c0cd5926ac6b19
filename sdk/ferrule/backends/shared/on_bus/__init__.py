# SPDX-License-Identifier: Apache-2.0
"""Devices with registers on the board's bus, whose drivers poll or wait for an interrupt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ferrule.backends.device import BindingNumber, Device
from ferrule.backends.firmware import Socket
from ferrule.devices.registers import REGISTER_BYTES
from ferrule.errors import FerruleError

BUS_BINDING = {
    "base": BindingNumber(high=0xFFFF_F000, multiple_of=REGISTER_BYTES),
    "interrupt": BindingNumber(high=479),
    "use_interrupt": BindingNumber(high=1, default=0),
    "activation_lead": BindingNumber(high=1 << 16, default=0),
}
"""The numbers in the binding of such a device."""


class OnBus:
    """What the firmware targets of such devices have in common."""

    def plugged(self, device: Device, socket: Socket) -> Device:
        """Return the device with the socket's address and interrupt, unless its binding already has its own."""
        binding = {"base": socket.address, "interrupt": socket.interrupt, **device.binding}
        return replace(device, binding=binding)


def base_and_interrupt(device: Device, numbers: Mapping[str, int]) -> tuple[int | None, int | None]:
    """Return the address of a device's registers, and the interrupt that its driver waits for; None if it has none.

    Raises:
        FerruleError: the driver is to wait for an interrupt without a number.
    """
    base, interrupt = numbers.get("base"), numbers.get("interrupt")
    if not numbers["use_interrupt"]:
        return base, None
    if interrupt is None and base is not None:
        raise FerruleError(f"device '{device.name}': use_interrupt is 1, but the interrupt has no number")
    return base, interrupt
