# SPDX-License-Identifier: Apache-2.0
"""Devices: the instances of a backend that a board or a host has, and the check of their bindings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NewType

from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.rendering import check_text

BackendId = NewType("BackendId", str)


@frozen
class Device:
    """One device; a backend for which no device is declared has one of the backend's own name."""

    name: str
    """Unique; a C identifier."""
    backend: BackendId
    binding: Mapping[str, str | int] = field(default_factory=dict)
    """How the platform finds the device: base address, devicetree label, port."""
    regions: tuple[str, ...] = ()
    """Memory regions that the device can access; empty for all."""
    activation_lead: int | None = None
    """Number of operators by which the activation precedes the device's first one; None for the driver's value."""
    timeout_us: int | None = None
    """Limit of the wait for one of its commands, from 1 to 2^31 - 1 microseconds; None for the driver's value."""
    pool: bool = False
    """Whether it is one of the backend's interchangeable devices, of which any free one runs the layers of all."""

    def __post_init__(self) -> None:
        check_text(self.name, "the name of a device")
        if self.timeout_us is not None and not 0 < self.timeout_us < 1 << 31:
            raise FerruleError(
                f"device '{self.name}': timeout_us is {self.timeout_us}, expected a whole number from 1 to 2147483647"
            )


@frozen
class BindingNumber:
    """A whole number that the devices of a backend may have in their bindings."""

    low: int = 0
    high: int
    """Limits, included."""
    default: int | None = None
    """The value where a binding lacks it; None if there is none."""
    multiple_of: int | None = None
    """For an address: its alignment in bytes; messages show addresses in hexadecimal. None for other numbers."""


@frozen
class Binding:
    """A device's binding after the check."""

    numbers: Mapping[str, int]
    """The given numbers, and the defaults of the others; a number without a default may be absent."""
    texts: Mapping[str, str]
    """The given texts."""


def read_binding(
    device: Device, numbers: Mapping[str, BindingNumber], texts: Mapping[str, str] | None = None
) -> Binding:
    """Return a device's binding, checked against the fields that its backend knows.

    `numbers` and `texts` have these fields by name; the value of a text's entry is its meaning, for messages.

    Raises:
        FerruleError: the binding has an unknown field, or a value has the wrong type or is out of range.
    """
    texts = texts or {}
    for name in device.binding:
        if name not in numbers and name not in texts:
            raise FerruleError(
                f"device '{device.name}': {device.backend} has no '{name}'",
                hint=f"its binding may have {', '.join((*texts, *numbers))}",
            )
    given = {name: _number(device, name, number) for name, number in numbers.items()}
    return Binding(
        numbers={name: value for name, value in given.items() if value is not None},
        texts={name: _text(device, name, texts[name]) for name in device.binding if name in texts},
    )


def _number(device: Device, name: str, number: BindingNumber) -> int | None:
    value = device.binding.get(name, number.default)
    if value is None:
        return None
    form = "#x" if number.multiple_of else "d"
    if isinstance(value, bool) or not isinstance(value, int) or not number.low <= value <= number.high:
        limits = f"from {number.low} to {number.high:{form}}"
        raise FerruleError(f"device '{device.name}': {name} is {value!r}, expected a whole number {limits}")
    if value % (number.multiple_of or 1):
        raise FerruleError(
            f"device '{device.name}': {name} is {value:{form}}, expected a multiple of {number.multiple_of}"
        )
    return value


def _text(device: Device, name: str, meaning: str) -> str:
    value = device.binding[name]
    if not isinstance(value, str):
        raise FerruleError(f"device '{device.name}': {name} is {value!r}, expected {meaning}")
    return value


def default_device(backend: BackendId) -> Device:
    """Return the device of a backend for which none is declared."""
    return Device(name=str(backend), backend=backend)
