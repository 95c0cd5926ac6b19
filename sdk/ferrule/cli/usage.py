# SPDX-License-Identifier: Apache-2.0
"""The options by which boards are ranked for a model: how often it runs, what from, and by which cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._frozen import frozen
from ferrule.cli.parameters import collected, option
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.firmware.fitting import RankBy
    from ferrule.timing.usage import Battery, Rate

RANKS = ("time", "energy", "flash", "ram")
"""The values of ferrule.firmware.fitting.RankBy, copied so that --help does not import it; a test compares them."""


@frozen
class UsageOptions:
    """The options as typed by the user."""

    rate: str | None
    battery: str | None
    by: str | None

    def refuse_unless(self, wanted: bool, needed: str) -> None:
        """Raise FerruleError if options are given without the one that they belong to, or a battery without a rate."""
        given = [f"--{name}" for name in ("rate", "battery", "by") if getattr(self, name) is not None]
        if given and not wanted:
            raise FerruleError(f"{' and '.join(given)}: only valid with {needed}")
        if self.battery is not None and self.rate is None:
            raise FerruleError("--battery needs a rate of inferences to last for", hint="add --rate 10/s")

    @property
    def parsed_rate(self) -> Rate | None:
        """The rate; FerruleError if it is malformed."""
        from ferrule.timing.usage import parse_rate

        return None if self.rate is None else parse_rate(self.rate)

    @property
    def parsed_battery(self) -> Battery | None:
        """The battery; FerruleError if it is malformed."""
        from ferrule.timing.usage import parse_battery

        return None if self.battery is None else parse_battery(self.battery)

    @property
    def rank_by(self) -> RankBy:
        """What boards are ranked by."""
        from ferrule.firmware.fitting import RankBy

        return RankBy(self.by or RANKS[0])


usage_options = collected(
    "usage",
    UsageOptions,
    option("--rate", "How often an inference begins, such as 10/s; mark the boards that are too slow.", metavar="RATE"),
    option(
        "--battery",
        "With --rate: what a board runs from, such as 220mAh, to state how long it lasts where currents are stated.",
        metavar="CAPACITY",
    ),
    option("--by", "What the boards are ranked by.", kind=RANKS, shown=RANKS[0]),
)
"""Passed as one argument `usage`."""
