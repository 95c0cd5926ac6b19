# SPDX-License-Identifier: Apache-2.0
"""The contract of devices in unit tests: calls of the device API begin and end the time in which a device may transfer.

A driver that submits has it from its first command in flight to the collection of the last; another one while the
handle is open. Memory that the test shares is what the commands have.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Literal

from ferrule._frozen import frozen
from ferrule.devices import Bytes, DeviceFaultError
from ferrule.devices.completeness import Completeness
from ferrule.devices.contract import Account, Command, Operand
from ferrule.testing.cdata import CData

Access = Literal["any", "read", "write", "both"]
ACCESSES: Sequence[Access] = ("any", "read", "write", "both")


_KEY = "the kit"


class DeviceCall(IntEnum):
    """enum ferrule_fake_device_call."""

    ACTIVATES = 0
    DEACTIVATES = 1
    RECOVERS = 2
    OPENS = 3
    CLOSES = 4
    ABORTS = 5
    SUBMITS = 6
    WAITS = 7
    FINISHES = 8


@frozen(eq=False)
class Shared:
    """Memory shared with devices."""

    data: Bytes
    address: int
    access: Access
    name: str

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.address + int(self.data.size)

    @property
    def operand(self) -> Operand:
        """The memory as an operand of commands."""
        return Operand(
            name=self.name,
            address=self.address,
            size_bytes=int(self.data.size),
            writable=self.access != "read",
            is_output=self.access == "write",
            is_input=self.access in {"any", "read"},
        )


class _Handle:
    """What is known of a handle."""

    def __init__(self) -> None:
        self.calls = 0
        """Calls of the device API that go on."""
        self.commands: list[Command] = []
        """Those that go on: one, and one for each memory that was shared since."""
        self.failed = False
        self.accesses = 0
        """The number of register accesses when the command began."""


class KitContract:
    """The check of the devices of a library under test."""

    def __init__(self, keep_error: Callable[[BaseException], None]) -> None:
        self._keep_error = keep_error
        self._one_at_a_time = threading.RLock()
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        with self._one_at_a_time:
            self._account = Account()
            self._completeness = Completeness(self._account, self._memory)
            self._shared: list[Shared] = []
            self._handles: dict[int, _Handle] = {}
            self._of: dict[str, int] = {}
            self._accesses = 0
            self._commands = 0

    # ---- what the kit tells

    def share(self, shared: Shared) -> None:
        """Add memory; of a command that goes on, too."""
        with self._one_at_a_time:
            self._shared.append(shared)
            self._account.watch([(shared.address, int(shared.data.size))], [shared.operand])
            for handle in self._handles.values():
                if handle.commands:
                    first = handle.commands[0]
                    self._add(handle, Command(first.label, first.devices, [shared.operand], key=_KEY))

    def add_device(self, device: str, *, tensor: int, transfer: int) -> None:
        """Add a device with the alignment that it needs."""
        self._account.add_device(device, tensor=tensor, transfer=transfer)

    def accessed(self, device: str) -> None:
        """Note an access to a device's registers: one in a handle's activation shows whose device it is."""
        self._accesses += 1
        if device not in self._of:
            active = [number for number, handle in self._handles.items() if handle.calls]
            if len(active) == 1:
                self._of[device] = active[0]

    def called(self, told: CData) -> None:
        """Follow a call of the device API."""
        with self._one_at_a_time:
            try:
                number = int(told.handle)
                handle = self._handles.setdefault(number, _Handle())
                if told.ended:
                    handle.calls = max(handle.calls - 1, 0)
                    self._returned(number, handle, DeviceCall(told.call), told)
                else:
                    handle.calls += 1
                    if told.call == DeviceCall.SUBMITS and not handle.commands and told.is_open:
                        self._begin(number, handle, exclusive=told.depth > 1)
            except BaseException as error:  # noqa: BLE001 C cannot pass it on
                self._keep_error(error)

    def judge(
        self, device: str, address: int, size_bytes: int, *, write: bool, cause: Callable[[], str]
    ) -> DeviceFaultError | None:
        """Return the error for a transfer that a device may not make now; None for one that it may."""
        with self._one_at_a_time:
            end = address + size_bytes
            touched = [each for each in self._shared if each.address < end and address < each.end]
            declared = any(each.access != "any" for each in touched)
            has_command = any(device in each.devices for each in self._account.running)
            # without the device API, or in a call such as the activation, roles are checked, but not the time
            timeless = not self._handles or (not has_command and self._is_called(device))
            if not declared and (not touched or not write or has_command or timeless):
                return None
            account = self._timeless(device) if timeless else self._account
            return account.judge(device, address, size_bytes, write=write, cause=cause)

    # ---- commands

    def _returned(self, number: int, handle: _Handle, call: DeviceCall, told: CData) -> None:
        if call is DeviceCall.OPENS and told.status == 0 and not told.submits:
            self._begin(number, handle, exclusive=False)
        handle.failed |= call in {DeviceCall.WAITS, DeviceCall.FINISHES} and told.status != 0
        over = told.in_flight == 0 if told.submits else not told.is_open
        if not handle.commands or not over or told.is_lost:
            return
        self._finish(handle, aborted=call in {DeviceCall.ABORTS, DeviceCall.CLOSES} and told.submits)

    def _begin(self, number: int, handle: _Handle, *, exclusive: bool) -> None:
        self._commands += 1
        handle.failed, handle.accesses = False, self._accesses
        devices = [name for name in self._account.devices if self._of.get(name, number) == number]
        operands = [each.operand for each in self._shared]
        label = f"command {self._commands}"
        self._add(handle, Command(label, devices, operands, exclusive=exclusive, key=_KEY))

    def _add(self, handle: _Handle, command: Command) -> None:
        handle.commands.append(command)
        self._account.begin(command)
        self._completeness.begin(command)

    def _finish(self, handle: _Handle, *, aborted: bool) -> None:
        commands, handle.commands = handle.commands, []
        aborted = aborted or handle.failed
        errors = []
        for command in commands:
            self._account.end(command, "was aborted" if aborted else "is over")
            if aborted or handle.accesses == self._accesses:
                self._completeness.forget(command)
            else:
                errors.append(self._completeness.end(command))
        for error in errors:
            if error is not None:
                raise error

    def _is_called(self, device: str) -> bool:
        """Return whether a call of the device API with the device goes on, such as its activation."""
        return any(each.calls and self._of.get(device, number) == number for number, each in self._handles.items())

    def _timeless(self, device: str) -> Account:
        """Return an account that judges a device's transfers without regard to their time."""
        always = Account()
        operands = [replace(each.operand, is_output=False) for each in self._shared]
        always.watch(((each.address, each.size_bytes) for each in operands), operands)
        always.begin(Command("its driver's work", [device], operands))
        return always

    def _memory(self, address: int, size_bytes: int) -> Bytes:
        shared = next(each for each in self._shared if each.address <= address < each.end)
        first = address - shared.address
        return shared.data[first : first + size_bytes]
