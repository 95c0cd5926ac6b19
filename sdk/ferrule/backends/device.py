# SPDX-License-Identifier: Apache-2.0
"""Devices: the instances of a backend that a board or a host has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

BackendId = NewType("BackendId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
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


def default_device(backend: BackendId) -> Device:
    """Return the device of a backend for which none is declared."""
    return Device(name=str(backend), backend=backend)
