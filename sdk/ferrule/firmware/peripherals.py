# SPDX-License-Identifier: Apache-2.0
"""The registers of the devices of backends, at their places on a board."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.backends import BackendId, Device, default_device
from ferrule.backends.firmware import DeviceTarget
from ferrule.devices import Interrupt, Peripheral, RegisterTable
from ferrule.errors import FerruleError
from ferrule.firmware.job import Job
from ferrule.firmware.placement import placed


def device_peripherals(backends: Sequence[BackendId], job: Job) -> list[Peripheral]:
    """Return the devices of backends on the job's board: those that the job declares, else one of each backend.

    Raises:
        FerruleError: a backend has no device with registers on the bus, the model of a device has no register table,
            or the board has no place for it.
    """
    devices: list[Device] = []
    for backend in backends:
        devices += [each for each in job.devices if each.backend == backend] or [default_device(backend)]
    found = []
    for device, target in placed(devices, job.load_board(), job.backend_source()):
        driver = target.driver(device) if isinstance(target, DeviceTarget) else None
        if driver is None or driver.base is None or driver.model is None:
            raise FerruleError(
                f"device '{device.name}' of backend {device.backend} has no registers on the bus of {job.board}",
                hint="a backend whose DeviceDriver states `base` and `model` has them",
            )
        table = getattr(driver.model(), "table", None)
        if not isinstance(table, RegisterTable):
            raise FerruleError(
                f"the model of device '{device.name}' has no register table",
                hint="derive the model from ferrule.devices.RegisterModel",
            )
        number = device.binding.get("interrupt") if driver.interrupt is None else driver.interrupt
        interrupts = (Interrupt(name=device.name, number=number),) if isinstance(number, int) else ()
        found.append(Peripheral(name=device.name, table=table, base=driver.base, interrupts=interrupts))
    return found
