# SPDX-License-Identifier: Apache-2.0
"""How long a run of a model took, and what for: the core's work, its sleep, and its waits for devices.

All times are in units of the clock of the machine that ran it, instructions or cycles. The parts of a run, and those of
each layer, add up to its total.
"""

from __future__ import annotations

from enum import Enum

from ferrule._frozen import frozen


class DataWaits(Enum):
    """Where the core's waits for the data of memories come from, in the order of `enum ferrule_waits_origin`."""

    MEASURED = "measured"
    """Each access was followed, or no memory lets the core wait."""
    REPEATED = "repeated"
    """They are those of the last inference that was measured, with which this one agrees."""
    ESTIMATED = "estimated"
    """As above, but then the inference turned out to differ."""


@frozen
class Wait:
    """The time in which the core waited for a device."""

    device: str
    awake: int = 0
    """Time in which it looked for the end of the work, handled the interrupt and collected the result."""
    asleep: int = 0
    waits: int = 0
    """How often it waited."""
    limited: int = 0
    """How many of these waits ended by their limit, although the work was done."""
    late: int = 0
    """The time for which these went on after the work was done."""

    @property
    def total(self) -> int:
        """The whole time."""
        return self.awake + self.asleep


@frozen
class Pause:
    """One of the waits for a device."""

    device: str
    start: int
    """Since the start of the run."""
    end: int


@frozen
class Step:
    """The time of one layer: from its announcement to that of the next one, or to the end of the last one."""

    index: int
    """Its number in the order of execution."""
    start: int
    """Since the start of the run."""
    total: int
    work: int
    asleep: int
    """Time asleep outside of waits for devices."""
    waited: int
    """Time of waits for devices."""


@frozen
class Command:
    """A command of a device, from its submission to the collection of its result."""

    device: str
    index: int
    """The layer that submitted it; -1 for a command outside of layers."""
    start: int
    """Since the start of the run, like the times below."""
    end: int
    begun: int | None = None
    """When the device's model began to work on it; None without a model, or if its work cannot be told from others'."""
    done: int | None = None
    """When the model had done the work."""


@frozen
class Duration:
    """One run of a model, from the first instruction of the executor's function to its return."""

    total: int
    work: int
    """Time in which the core was at work, but for waits."""
    asleep: int
    """Time in which it slept, but for waits."""
    waits: tuple[Wait, ...] = ()
    """By device, in the order of the first waits."""
    steps: tuple[Step, ...] = ()
    """The layers, where the firmware announces them, as one with devices does."""
    pauses: tuple[Pause, ...] = ()
    """Each wait."""
    commands: tuple[Command, ...] = ()
    """In the order of their starts."""
    data_waits: DataWaits = DataWaits.MEASURED

    @property
    def waited(self) -> int:
        """The time of all waits."""
        return sum(each.total for each in self.waits)
