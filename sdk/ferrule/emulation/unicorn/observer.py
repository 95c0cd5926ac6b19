# SPDX-License-Identifier: Apache-2.0
"""Observes the waits and interrupts of devices: what a run lost, although its results may be right."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.emulation.contract import ContractPlan
from ferrule.emulation.engine import Observation
from ferrule.emulation.unicorn.contract import Returns
from ferrule.emulation.unicorn.device import BoardDevice
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.processor import Processor

TIMEOUT = -9
"""FERRULE_ERR_TIMEOUT."""


class Observer:
    """The observations of one guest."""

    def __init__(
        self,
        guest: Guest,
        processor: Processor,
        plan: ContractPlan,
        devices: Mapping[str, BoardDevice],
        returns: Returns,
        unit: str,
    ) -> None:
        self._guest = guest
        self._processor = processor
        self._devices = devices
        rules = [each for each in plan.devices if each.name in devices]
        self._lines = {each.name: each.interrupt for each in rules if each.interrupt is not None}
        self._of = {each.handle: each.name for each in rules if each.handle and each.name in self._lines}
        self._returns = returns
        self._unit = unit
        self._enabled: set[str] = set()
        self._masked: set[str] = set()
        self._late: dict[str, list[int]] = {}
        """By device: the times for which waits went on after the work was done."""
        if self._lines and plan.end:
            guest.on_call(plan.next, self._look)
            guest.on_call(plan.end, self._judge)
        if self._of and plan.wait:
            guest.on_call(plan.wait, self._wait)

    def _look(self) -> None:
        """Note which interrupts are enabled while layers run."""
        for name, line in self._lines.items():
            if self._processor.is_enabled(line):
                self._enabled.add(name)

    def _judge(self) -> None:
        """Note which interrupts are masked when a run ends, before it closes its devices."""
        for name, line in self._lines.items():
            if self._processor.is_enabled(line):
                self._masked.discard(name)
            elif self._devices[name].model.rises:
                self._masked.add(name)

    def _wait(self) -> None:
        name = self._of.get(self._guest.argument(0))
        if name is None:
            return
        begun, device = self._processor.now, self._devices[name]

        def returned() -> None:
            idle = device.idle_since
            if self._guest.argument(0) == TIMEOUT & 0xFFFF_FFFF and idle is not None:
                self._late.setdefault(name, []).append(self._processor.now - max(idle, begun))

        self._returns.on_return(returned)

    def late(self) -> dict[str, tuple[int, int]]:
        """Return, by device, how many waits ended by their limit although the work was done, and how late in all."""
        return {name: (len(times), sum(times)) for name, times in self._late.items()}

    def observations(self) -> dict[str, Observation]:
        """Return what was observed so far, of devices of which there is something to say."""
        found = {}
        for name, line in self._lines.items():
            notes, model = [], self._devices[name].model
            if name in self._masked:
                what = "masked and not enabled again" if name in self._enabled else "never enabled"
                rises = "once" if model.rises == 1 else f"{model.rises:,} times"
                notes.append(f"interrupt {line} was {what}; the device has raised it {rises}")
            late = self._late.get(name, [])
            if late:
                waits = "1 wait" if len(late) == 1 else f"{len(late):,} waits"
                notes.append(
                    f"{waits} ended by the limit although the work was done, {sum(late):,} {self._unit} late in all: "
                    "no interrupt ended them"
                )
            if notes:
                found[name] = Observation(notes=tuple(notes), registers=model.registers())
        return found
