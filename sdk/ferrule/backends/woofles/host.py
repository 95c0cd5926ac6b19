# SPDX-License-Identifier: Apache-2.0
"""Woofles on the host: its device model, controlled through registers and commands in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.woofles.command import COMMAND_BYTES, Command
from ferrule.backends.woofles.model import IMMEDIATE, WooflesModel
from ferrule.backends.woofles.registers import TABLE, ErrorCode
from ferrule.backends.woofles.translation import Work, translate
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.devices import Bytes, MemoryBus
from ferrule.errors import FerruleError
from ferrule.graph import Array

RING_ADDRESS = 0x1000
_FIRST_ADDRESS = 0x1_0000
_SPACING = 1 << 27
"""Distance between two arrays on the bus, in bytes; larger than any tensor."""


class Operated:
    """A model with a ring of two commands, operated from Python in the way of the driver; for tests and the host."""

    def __init__(self, model: WooflesModel | None = None) -> None:
        self.model = model or WooflesModel(IMMEDIATE)
        self.bus = MemoryBus()
        self._ring = self.bus.add(RING_ADDRESS, 2 * COMMAND_BYTES)
        self._next = _FIRST_ADDRESS
        self.model.attach(bus=self.bus)
        self.model.reset()
        self._set("QUEUE_BASE", RING_ADDRESS)
        self._set("QUEUE_LENGTH", 2)
        self._set("CONTROL", TABLE.register("CONTROL").field("ENABLE").mask)

    def place(self, array: Array) -> int:
        """Map an array's memory into the device's bus, without a copy, and return its bus address."""
        address, self._next = self._next, self._next + _SPACING
        data: Bytes = array.reshape(-1).view(np.uint8)
        self.bus.add(address, data)
        return address

    def run(self, command: Command) -> None:
        """Execute one command; FerruleError with the device's error code if it fails."""
        head = (self._get("QUEUE_HEAD") + 1) % 2
        slot = self._get("QUEUE_TAIL") * COMMAND_BYTES
        self._ring[slot : slot + COMMAND_BYTES] = np.frombuffer(command.encode(), np.uint8)
        self._set("QUEUE_HEAD", head)
        while (cycles := self.model.next_event()) is not None:
            self.model.advance(cycles)
        if self.model.field("STATUS", "ERROR"):
            code = ErrorCode(self.model.field("STATUS", "CODE"))
            raise FerruleError(f"Woofles stopped with the error {code.name} ({code.value})")

    def _get(self, register: str) -> int:
        return self.model.read(TABLE.register(register).offset, 4)

    def _set(self, register: str, value: int) -> None:
        self.model.write(TABLE.register(register).offset, 4, value)


@frozen(eq=False, kw_only=False)
class WooflesWorkload:
    """One layer, as one command."""

    _work: Work
    _info: WorkloadInfo

    def execute(self) -> None:
        """Execute the command on the model, with the memory of the tensor handles."""
        operated = Operated()
        work = self._work
        handles = [handle for handle in (*self._info.inputs, *self._info.outputs) if handle is not None]
        addresses = [operated.place(handle.map()) for handle in handles]
        constants = {
            name: operated.place(data)
            for name, data in (
                ("second", work.weights),
                ("bias", work.bias),
                ("multipliers", work.multipliers),
                ("shifts", work.shifts),
            )
            if data is not None
        }
        second = {"second": addresses[1]} if work.weights is None else {}
        operated.run(replace(work.command, input=addresses[0], output=addresses[-1], **second, **constants))
        for handle in handles:
            handle.unmap()


class WooflesWorkloadFactory(WorkloadFactory):
    """Makes the workloads of layers that can be translated into one command."""

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        constants = [None if tensor is None else tensor.data for tensor in info.constants]
        return WooflesWorkload(translate(info.layer, info.operands, constants), info)
