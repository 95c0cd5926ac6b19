# SPDX-License-Identifier: Apache-2.0
"""Devices: the instances of a backend that a board or a host has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

BackendId = NewType("BackendId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device; a backend without an entry of its own has one that is called like it."""

    name: str
    """Unique; a C identifier."""
    backend: BackendId
    binding: Mapping[str, str | int] = field(default_factory=dict)
    """How the platform finds it: base address, devicetree label, port."""
    regions: tuple[str, ...] = ()
    """Memory regions that it reaches; empty for all."""
    activation_lead: int | None = None
    """Operators before its first one at which it is activated; None for what its driver says."""


def default_device(backend: BackendId) -> Device:
    """Return the device of a backend that has no entry."""
    return Device(name=str(backend), backend=backend)
