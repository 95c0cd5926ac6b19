# SPDX-License-Identifier: Apache-2.0
"""The device models that a firmware's devices need on an emulated board."""

from __future__ import annotations

from collections.abc import Iterator

from ferrule.codegen import Artifact
from ferrule.devices import Range
from ferrule.emulation import AttachedDevice, AttachedWire
from ferrule.firmware import Group, Image

_SHARED = {Group.WORKSPACE: True, Group.WEIGHTS: False, Group.CONSTANTS: False}
"""What every device may reach, and whether it may write there."""


def attached_devices(artifact: Artifact, image: Image) -> tuple[AttachedDevice, ...]:
    """Return a new model for each device with registers on the bus, and the memory that it may reach.

    That is the model's workspace and constants, and the context of its own driver.
    """
    return tuple(
        AttachedDevice(
            name=use.name,
            model=use.driver.model(),
            address=use.driver.base,
            interrupt=use.driver.interrupt,
            ranges=(*_shared(image), *_context(image, f"{use.name}_context")),
        )
        for use in artifact.devices
        if use.driver.model is not None and use.driver.base is not None
    )


def attached_wires(artifact: Artifact) -> tuple[AttachedWire, ...]:
    """Return a new model for each device behind a serial line that has one."""
    return tuple(
        AttachedWire(name=use.name, model=use.driver.wire.model(), uart=use.driver.wire.uart)
        for use in artifact.devices
        if use.driver.wire is not None and use.driver.wire.model is not None and use.driver.wire.uart is not None
    )


def _shared(image: Image) -> Iterator[Range]:
    for section in image.sections:
        if section.group in _SHARED and section.size_bytes:
            yield Range(
                name=str(section.group),
                address=section.address,
                size_bytes=section.size_bytes,
                writable=_SHARED[section.group],
            )


def _context(image: Image, name: str) -> Iterator[Range]:
    for symbol in image.symbols:
        if symbol.name == name and symbol.size_bytes:
            yield Range(name=name, address=symbol.address, size_bytes=symbol.size_bytes)
