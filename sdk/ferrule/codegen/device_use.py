# SPDX-License-Identifier: Apache-2.0
"""The devices that run layers of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ferrule.backends import BackendId, Device
from ferrule.backends.firmware import DeviceDriver, DeviceTarget, FirmwareTarget
from ferrule.codegen.names import Names
from ferrule.errors import FerruleError


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """A device that runs layers, as the generated C names it."""

    name: str
    """Its member in the devices struct; the device's own name, unless C has a word of that name."""
    index: int
    """Its number in what the executor reports."""
    backend: BackendId
    device: Device
    driver: DeviceDriver

    @property
    def lead(self) -> int:
        """Operators before its first one at which it is activated."""
        own = self.device.activation_lead
        return self.driver.activation_lead if own is None else own

    @property
    def has_memory(self) -> bool:
        """Whether its tensors lie in a memory of its own."""
        return self.driver.memory_bytes > 0


def used_devices(
    order: Sequence[str], targets: Mapping[str, tuple[BackendId, FirmwareTarget]], devices: Mapping[str, Device]
) -> dict[str, DeviceUse]:
    """Return, by layer in the order given, the devices behind the device API; layers on the core have none.

    Raises:
        FerruleError: a layer's target has devices, but the layer has none; or a binding makes no sense.
    """
    names = Names()
    known: dict[str, DeviceUse] = {}
    found = {}
    for layer in order:
        backend, target = targets[layer]
        if not isinstance(target, DeviceTarget):
            continue
        if layer not in devices:
            raise FerruleError(f"layer '{layer}' goes to {backend}, which runs on devices, but no device is given")
        device = devices[layer]
        if device.name not in known:
            known[device.name] = DeviceUse(
                name=names.take(device.name),
                index=len(known),
                backend=backend,
                device=device,
                driver=target.driver(device),
            )
        found[layer] = known[device.name]
    return found
