# SPDX-License-Identifier: Apache-2.0
"""What closing does to a device that has not come to rest: the same checks for the drivers of several devices."""

from __future__ import annotations

from typing import Protocol

from ferrule.devices import Fault, RegisterModel, WrongId
from ferrule.link.protocol import Status
from ferrule.testing import CData


class ClosingBench(Protocol):
    """An open device with its model, in which faults can be injected."""

    @property
    def model(self) -> RegisterModel: ...
    @property
    def lib(self) -> CData: ...
    @property
    def handle(self) -> CData: ...
    def open(self) -> int: ...
    def close(self) -> int: ...
    def recover(self) -> int: ...
    def inject(self, fault: Fault | None) -> None: ...


def check_work_is_stopped(device: ClosingBench, busy: str) -> None:
    """Check that closing stops a device that works, whoever gave it work; `busy` is a field of its STATUS."""
    device.model.set_field("STATUS", busy, 1)
    assert device.close() == Status.OK
    assert device.model.field("STATUS", busy) == 0


def check_silence_is_loss(device: ClosingBench, identity: str) -> None:
    """Check that a device that does not answer at the close is lost until it does; `identity` names its register.

    It might still work.
    """
    device.inject(WrongId(offset=device.model.table.register(identity).offset))
    assert device.close() == Status.DEVICE
    assert device.lib.ferrule_device_is_lost(device.handle)
    device.inject(None)
    assert device.recover() == Status.OK
    assert device.open() == Status.OK
