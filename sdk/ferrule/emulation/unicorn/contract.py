# SPDX-License-Identifier: Apache-2.0
"""Checks the contract of devices: it follows the executors from layer to layer and judges each transfer of a device."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from ferrule.devices import Bytes, DeviceFaultError
from ferrule.devices.completeness import Completeness
from ferrule.devices.contract import Account, Breach, Command
from ferrule.devices.memory import Judge
from ferrule.emulation.contract import ContractPlan, ContractStep, ModelContract
from ferrule.emulation.unicorn.guest import Guest

HEALTH_OFFSET, LOST = 48, 2
"""Of `health` in struct ferrule_device_core of a 32-bit core, and FERRULE_DEVICE_LOST."""

_Commands = dict[tuple[int, frozenset[str]], Command]
"""By layer and by the inputs and outputs that lie elsewhere."""


@dataclass
class Returns:
    """Calls functions when functions of the firmware return."""

    _guest: Guest
    _waiting: dict[int, dict[int, list[Callable[[], None]]]] = field(default_factory=dict)
    """By the address to which a function returns, and by the stack pointer then, which tells threads apart."""

    def on_return(self, call: Callable[[], None]) -> None:
        """Call a function when the function that the core has just entered returns."""
        address, stack = self._guest.returns_to, self._guest.register("sp")
        if address in self._waiting:
            self._waiting[address].setdefault(stack, []).append(call)
            return
        waiting = self._waiting[address] = {stack: [call]}

        def returned() -> None:
            for each in waiting.pop(self._guest.register("sp"), ()):
                each()

        self._guest.on_call(address, returned)


class DeviceContract:
    """The check of one guest's devices."""

    def __init__(self, guest: Guest, plan: ContractPlan, describe: Callable[[int], str], returns: Returns) -> None:
        """Follow the executors; `describe` puts an address in words."""
        self._guest = guest
        self.account = Account(describe)
        self._completeness = Completeness(self.account, self._memory)
        self._entered: dict[int, _Run] = {}
        """The runs whose executors were entered, by the stack pointer then; their `struct ferrule_held` lie below."""
        self._runs: dict[int, _Run] = {}
        """The runs that are going on, by the address of their `struct ferrule_held`."""
        self._returns = returns
        self._handles = {each.name: each.handle for each in plan.devices}
        self._given_up: dict[str, list[Command]] = {}
        """By device: its commands in the last run that failed. While it is lost, it may go on with them."""
        for each in plan.devices:
            self.account.add_device(each.name, tensor=each.tensor_alignment, transfer=each.transfer_alignment)
        for model in plan.models:
            self.account.watch(((each.address, each.size_bytes) for each in model.workspace), model.tensors)
            self._follow(model)
        for address, call in (
            (plan.next, self._next),
            (plan.ran, self._ran),
            (plan.finish, self._finish),
            (plan.end, self._end),
        ):
            if address and plan.models:
                guest.on_call(address, call)

    def judge(self, device: str, cause: Callable[[], str]) -> Judge:
        """Return the judge of a device's transfers; `cause` describes the register access behind them."""
        account = self.account

        def judge(address: int, size_bytes: int, *, write: bool) -> DeviceFaultError | None:
            error = account.judge(device, address, size_bytes, write=write, cause=cause)
            late = error is not None and error.breach is Breach.LATE
            return None if late and self._goes_on(device, address, address + size_bytes, write=write) else error

        return judge

    def _goes_on(self, device: str, address: int, end: int, *, write: bool) -> bool:
        """Return whether the device is lost, which the firmware knows, and may access these bytes until it is found."""
        handle = self._handles.get(device, 0)
        health = self._guest.read_memory(handle + HEALTH_OFFSET, 4) if handle else b""
        if int.from_bytes(health, "little") != LOST:
            return False
        return any(
            each.writes(address, end) if write else each.reads(address, end) for each in self._given_up.get(device, ())
        )

    def _memory(self, address: int, size_bytes: int) -> Bytes:
        return np.frombuffer(self._guest.memory_view(address, size_bytes), np.uint8)

    def _follow(self, model: ModelContract) -> None:
        commands: _Commands = {}

        def enter() -> None:
            guest = self._guest
            tables = zip(guest.registers_of.arguments[:2], model.pointers, strict=True)
            given = {word for name, count in tables for word in guest.words(guest.register(name), count)}
            self._entered[guest.register("sp")] = _Run(model, given, commands)

        for address in model.runs:
            self._guest.on_call(address, enter)

    # ---- the announcements of executors, as in ferrule/held.h

    def _next(self) -> None:
        held, index = self._guest.argument(0), self._guest.argument(1)
        run = self._runs.get(held)
        if run is None:
            above = min((stack for stack in self._entered if stack > held), default=None)
            if above is None:
                return
            run = self._runs[held] = self._entered.pop(above)
        self._settle(run)
        run.index = index
        command = run.command()
        if command is not None:
            self.account.begin(command)
            self._completeness.begin(command)
            run.at_work[index] = command

    def _ran(self) -> None:
        run = self._runs.get(self._guest.argument(0))
        command = None if run is None or run.is_begun else run.at_work.get(run.index)
        if command is not None and self._guest.argument(2) == 0:
            self.account.end(command)

    def _finish(self) -> None:
        """Follow the collection of a layer that was begun, which is over when the function returns."""
        run, index = self._runs.get(self._guest.argument(0)), self._guest.argument(2)
        command = None if run is None else run.at_work.get(index)
        if run is None or command is None:
            return
        self._settle(run)

        def returned() -> None:
            if self._guest.argument(0) == 0:
                self.account.end(command)
                run.collected.append(index)

        self._returns.on_return(returned)

    def _end(self) -> None:
        """Follow the end of a run: it closes the devices, which are silent when it returns."""
        run, status = self._runs.pop(self._guest.argument(0), None), self._guest.argument(1)
        if run is None:
            return
        if status == 0:
            self._settle(run)
        left = list(run.at_work.values())
        for command in left:
            self._completeness.forget(command)

        def returned() -> None:
            for command in left:
                self.account.end(command, f"was aborted, since the run has failed with {ctypes.c_int32(status).value}")
            for device in {name for command in left for name in command.devices}:
                self._given_up[device] = [command for command in left if device in command.devices]

        self._returns.on_return(returned)

    def _settle(self, run: _Run) -> None:
        """Check the commands that are over: the device's, and what the core has copied for them since."""
        over = [*run.collected, *([] if run.is_begun else [run.index])]
        run.collected.clear()
        for index in over:
            command = run.at_work.pop(index, None)
            if command is not None:
                self.account.end(command)
                error = self._completeness.end(command)
                if error is not None:
                    raise error


class _Run:
    """A run of an executor."""

    def __init__(self, contract: ModelContract, pointers: Collection[int], commands: _Commands) -> None:
        """Begin a run, whose caller passes these pointers; `commands` keeps the model's commands for later runs."""
        self.index = -1
        """The number of the layer that was announced last; -1 before the first."""
        self.at_work: dict[int, Command] = {}
        """The commands that are not settled, by layer."""
        self.collected: list[int] = []
        """The layers whose results were collected."""
        self._contract = contract
        self._commands = commands
        self._elsewhere = frozenset(each.name for each in contract.given if each.address not in pointers)
        """The inputs and outputs that lie in memory of the caller's own."""

    def command(self) -> Command | None:
        """Return a new command for the layer, without operands that lie elsewhere; None for a layer of the core."""
        step = self._step
        if step is None:
            return None
        key = self.index, self._elsewhere
        if key not in self._commands:
            operands = [each for each in step.operands if each.name not in self._elsewhere]
            self._commands[key] = Command(step.label, step.devices, operands, exclusive=step.exclusive)
        return self._commands[key].again()

    @property
    def is_begun(self) -> bool:
        """Whether the layer is only begun, and collected later."""
        return self._step is not None and self._step.begun

    @property
    def _step(self) -> ContractStep | None:
        steps = self._contract.steps
        return steps[self.index] if 0 <= self.index < len(steps) else None
