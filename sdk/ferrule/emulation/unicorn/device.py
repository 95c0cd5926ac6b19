# SPDX-License-Identifier: Apache-2.0
"""Device models on the guest's bus, with registers, DMA and interrupt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ferrule._typing import override
from ferrule.devices import BusError, Bytes
from ferrule.devices.hosting import Host, HostedModel
from ferrule.devices.model import Bus, MemoryView
from ferrule.emulation.crash import EngineError
from ferrule.emulation.engine import AttachedDevice, DeviceWork
from ferrule.emulation.unicorn.attachment import Attachment, TimedModel
from ferrule.emulation.unicorn.contract import DeviceContract
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.ownership import Ownership
from ferrule.emulation.unicorn.processor import Processor


@dataclass
class GuestBus(MemoryView):
    """The guest's memory as a bus for DMA, without copies."""

    _guest: Guest
    _contend: Callable[[int, int], None]
    """Lets the core wait for a transfer of so many bytes at an address."""

    @override
    def view(self, address: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        try:
            view = self._guest.memory_view(address, size_bytes)
        except EngineError as error:
            raise BusError(str(error), address=address) from error
        if writable and view.readonly:
            raise BusError(f"the memory at {address:#010x} is read-only", address=address)
        self._contend(address, size_bytes)
        return np.frombuffer(view, np.uint8)


class BoardDevice:
    """A device model on the board's bus, called by the engine.

    An access that the model refuses is a bus fault of the core; any other fault of the model ends the run.
    """

    def __init__(
        self,
        guest: Guest,
        processor: Processor,
        device: AttachedDevice,
        limit_s: float | None,
        contract: DeviceContract | None,
        ownership: Ownership | None,
        describe: Callable[[int], str],
        contend: Callable[[int, int], None],
    ) -> None:
        self._device = device
        judge = None if contract is None else contract.judge(device.name, lambda: self.model.cause)
        self.model = HostedModel(
            device.model,
            name=device.name,
            ranges=device.ranges,
            line=device.interrupt,
            limit_s=limit_s,
            host=Host(
                judge=judge if ownership is None else None,
                where=str if contract is None else lambda: contract.account.where(device.name),
                describe=describe,
                place=lambda: guest.state.accessor,
            ),
        )
        line = None if device.interrupt is None else processor.line(device.interrupt)
        bus: Bus = GuestBus(guest, contend)
        model: TimedModel = self.model
        if ownership is not None:
            bus = ownership.bus(bus, device.name, lambda: self.model.cause, judge)
            model = ownership.model(model, device.name)
        self.model.attach(bus=bus, irq=line)
        self.model.reset()
        self._size_bytes = self.model.size_bytes
        self._attachment = Attachment(processor, model, address=device.address, size_bytes=self._size_bytes)
        self._operator: int | None = None
        self._seen = DeviceWork()
        self._work: dict[int | None, DeviceWork] = {}

    @property
    def idle_since(self) -> int | None:
        """The time since when the device has had nothing to do; None while it is at work."""
        return self._attachment.idle_since

    def worked(self) -> list[tuple[int, int]]:
        """Return the pieces of work of the model since the last call; see `Attachment.worked`."""
        return self._attachment.worked()

    def begin(self, operator: int) -> None:
        """Note that an operator begins: the device works for its own operators, until the next of them begins."""
        if operator in self._device.operators:
            self.work()
            self._operator = operator

    def work(self) -> Mapping[int | None, DeviceWork]:
        """Return what the device has done so far, by operator."""
        read_bytes, written_bytes = self.model.transferred
        now = DeviceWork(read_bytes=read_bytes, written_bytes=written_bytes, busy=self._attachment.busy)
        done, self._seen = now.plus(self._seen, -1), now
        self._work[self._operator] = self._work.get(self._operator, DeviceWork()).plus(done)
        return self._work

    def where(self, address: int) -> str | None:
        """Describe an accessed address and the reason for its refusal; None if it is not in the device's window."""
        offset = address - self._device.address
        if not 0 <= offset < self._size_bytes:
            return None
        refusal = self.model.refusal
        reason = f", which refuses it: {refusal}" if refusal else ""
        return f" ({self.model.register_name(offset)} of device {self._device.name}{reason})"
