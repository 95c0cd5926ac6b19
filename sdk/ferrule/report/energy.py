# SPDX-License-Identifier: Apache-2.0
"""The energy of an inference and the life of a battery, in the report of a run."""

from __future__ import annotations

from collections.abc import Iterator

from ferrule._frozen import frozen
from ferrule.report.sections import Fact, joined
from ferrule.timing.energy import range_text


@frozen
class BatteryPart:
    """How long a battery lasts."""

    between: str
    """What the chip does between inferences: "asleep" or "stopped"."""
    low_hours: float
    high_hours: float
    low_ua: float
    """The average current, in microamperes."""
    high_ua: float
    text: str
    """The life in words."""


@frozen
class EnergyPart:
    """The energy of one inference, as a range over what the sources of the board's currents state."""

    low_mj: float
    high_mj: float
    parts: dict[str, tuple[float, float]]
    """The lowest and the highest millijoules of "core at work", "core asleep" and each device, which add up to it."""
    unstated: tuple[str, ...] = ()
    """Devices whose own currents the board does not state, and which do not count."""
    sources: tuple[str, ...] = ()
    """The documents with the currents."""
    rate: str = ""
    """How often an inference begins, as the user states it; empty if that was not asked."""
    battery: str = ""
    lives: tuple[BatteryPart, ...] = ()
    note: str = ""
    """Why there is no life of a battery; empty if there is one, or if none was asked."""

    def facts(self) -> Iterator[Fact]:
        """Yield the energy, and the life of the battery."""
        parts = (f"{what} {range_text(each)} mJ" for what, each in self.parts.items())
        more = [joined(*parts)] if len(self.parts) > 1 else []
        if self.unstated:
            more.append(f"without {joined(*self.unstated)}, of which the board states no current")
        yield Fact("energy", f"{range_text((self.low_mj, self.high_mj))} mJ per inference", "", more)
        if self.lives:
            lives = [f"{each.text} if the chip is {each.between} between inferences" for each in self.lives]
            yield Fact("battery", lives[0], f" ({self.battery}, {self.rate})", lives[1:])
        elif self.note:
            yield Fact("battery", self.note)
