# SPDX-License-Identifier: Apache-2.0
"""The energy of an inference and the life of a battery, as ranges, from the currents that a board states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.errors import FerruleError
from ferrule.timing.usage import Battery, Rate

Range = tuple[float, float]
"""The lowest and the highest value."""

NO_ERROR: Range = (0.0, 0.0)


@frozen
class Current:
    """A current at the board's supply voltage: the range of what its source states for different code and chips."""

    ua: Range = (0.0, 0.0)
    """Microamperes that do not depend on the clock."""
    ua_per_mhz: Range = (0.0, 0.0)
    """Microamperes per megahertz of the core's clock."""
    source: str
    """The document, its table and the conditions that were read."""

    def at(self, clock_hz: int) -> Range:
        """Return microamperes at a clock."""
        low, high = (fixed + slope * clock_hz / 1e6 for fixed, slope in zip(self.ua, self.ua_per_mhz, strict=True))
        return low, high


@frozen
class DeviceCurrents:
    """The own currents of a device, beside those of the core."""

    work_ua: Range
    """Microamperes while it works on a command."""
    idle_ua: Range
    """Microamperes at other times."""
    source: str


@frozen
class BoardEnergy:
    """The currents of a board, each with the source that was read."""

    supply_v: float
    """The supply voltage, in volts, at which the currents were measured."""
    running: Current
    """While the core runs code from the memory that has it (placement.code), that memory included."""
    asleep: Current | None = None
    """While the core sleeps until an interrupt and its clocks go on, as in a wait for a device; None if not stated."""
    stopped: Current | None = None
    """Between inferences, if the application stops the clocks; None if the board states none."""
    devices: Mapping[str, DeviceCurrents] = field(default_factory=dict)
    """By name of the device; the currents of other devices are not known."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of all currents, each once."""
        currents = (self.running, self.asleep, self.stopped, *self.devices.values())
        return tuple(dict.fromkeys(each.source for each in currents if each is not None))


@frozen
class EnergyRange:
    """The energy of one inference."""

    low_mj: float
    high_mj: float
    parts: Mapping[str, Range]
    """Millijoules of "core at work", "core asleep" and each device; their sum is the whole."""
    unstated: tuple[str, ...] = ()
    """What the board does not state: "core asleep", which counts from nothing up to the current of a core at work, and
    devices of the run, which do not count."""
    sources: tuple[str, ...] = ()

    @override
    def __str__(self) -> str:
        return f"{range_text((self.low_mj, self.high_mj))} mJ"


@frozen
class BatteryLife:
    """How long a battery lasts at a rate of inferences."""

    between: str
    """What the chip does between inferences: "asleep", or "stopped" if the application stops its clocks."""
    average_ua: Range
    hours: Range

    @override
    def __str__(self) -> str:
        unit, hours = ("days", 24.0) if self.hours[0] >= 48 else ("hours", 1.0)
        low, high = self.hours
        return f"{range_text((low / hours, high / hours))} {unit}"


def energy_of(
    energy: BoardEnergy | None,
    *,
    clock_hz: int,
    work_cycles: float,
    asleep_cycles: float = 0,
    device_cycles: Mapping[str, float] | None = None,
    error: Range = NO_ERROR,
) -> EnergyRange | None:
    """Return the energy of an inference; None for a board that states no currents.

    The core is at work or asleep, so that `work_cycles` and `asleep_cycles` add up to the whole time: a wait for a
    device belongs to the one if the core polls and to the other if it sleeps. `device_cycles` are those in which each
    device works, beside that. All are cycles of the core's clock. `error` is the range of the error of the cycles,
    relative to them, such as (-0.06, 0.09).
    """
    if energy is None:
        return None
    devices = device_cycles or {}
    elapsed = work_cycles + asleep_cycles
    running = energy.running.at(clock_hz)
    asleep = (0.0, running[1]) if energy.asleep is None else energy.asleep.at(clock_hz)

    def millijoules(current: Range, cycles: float) -> Range:
        low, high = (each * energy.supply_v * cycles / clock_hz / 1e3 for each in current)
        return low * (1 + error[0]), high * (1 + error[1])

    parts = {"core at work": millijoules(running, work_cycles)}
    if asleep_cycles:
        parts["core asleep"] = millijoules(asleep, asleep_cycles)
    for name, stated in energy.devices.items():
        if name in devices:
            busy = min(devices[name], elapsed)
            parts[name] = _sum(millijoules(stated.work_ua, busy), millijoules(stated.idle_ua, elapsed - busy))
    low, high = _sum(*parts.values())
    return EnergyRange(
        low_mj=low,
        high_mj=high,
        parts=parts,
        unstated=(
            *(("core asleep",) if asleep_cycles and energy.asleep is None else ()),
            *(name for name in devices if name not in energy.devices),
        ),
        sources=energy.sources,
    )


def battery_life(
    energy: BoardEnergy,
    inference: EnergyRange,
    *,
    clock_hz: int,
    elapsed_cycles: float,
    rate: Rate,
    battery: Battery,
) -> tuple[BatteryLife, ...]:
    """Return how long a battery lasts: with a chip that sleeps between inferences, and with one that stops its clocks.

    `inference` is the energy of an inference that takes `elapsed_cycles`. Each life is there only if the board states
    the current between inferences; to stop the clocks and start them again takes no time.

    Raises:
        FerruleError: one inference takes longer than the rate allows, or the board states no current between
            inferences.
    """
    if energy.asleep is None and energy.stopped is None:
        raise FerruleError(
            "the board states no current between inferences, so that the life of a battery is not known",
            hint="state energy.asleep or energy.stopped in its board.toml",
        )
    busy = rate.busy(elapsed_cycles, clock_hz)
    if busy > 1:
        raise FerruleError(
            f"the board cannot run {rate}: one inference takes {1e3 * elapsed_cycles / clock_hz:.3g} ms, "
            f"and every {1e3 * rate.period_s:.3g} ms one begins"
        )
    idle = _sum(*(each.idle_ua for name, each in energy.devices.items() if name in inference.parts))
    return tuple(
        _life(name, _sum(current.at(clock_hz), idle), inference, busy, energy.supply_v, rate, battery)
        for name, current in (("asleep", energy.asleep), ("stopped", energy.stopped))
        if current is not None
    )


def _life(
    between: str, rest: Range, inference: EnergyRange, busy: float, supply_v: float, rate: Rate, battery: Battery
) -> BatteryLife:
    capacity_uah, per_second = 1e3 * float(battery.milliampere_hours), float(rate.per_second)
    low, high = (
        1e3 * energy_mj / supply_v * per_second + current * (1 - busy)
        for energy_mj, current in zip((inference.low_mj, inference.high_mj), rest, strict=True)
    )
    return BatteryLife(between=between, average_ua=(low, high), hours=(capacity_uah / high, capacity_uah / low))


def range_text(values: Range) -> str:
    """Return a range with three significant digits, such as "1.23 to 1.41"; a single value if both read the same."""
    low, high = map(digits_text, values)
    return low if low == high else f"{low} to {high}"


def digits_text(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, or with all before the point."""
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def _sum(*ranges: Range) -> Range:
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)
