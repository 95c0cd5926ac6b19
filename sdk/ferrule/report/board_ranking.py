# SPDX-License-Identifier: Apache-2.0
"""Ranks the boards for a model by planned costs: what `ferrule boards --for` and `ferrule inspect --fit` show."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule._frozen import frozen
from ferrule.firmware.board_use import BoardUse
from ferrule.firmware.fitting import BoardFit
from ferrule.graph import brief
from ferrule.report.sections import Align, Cell, Column, Part, State, Table, Text, Value, joined, names

SCHEMA_VERSION = 1
PLANNED = "Times and energies are planned from the costs of kernels; none is measured on a board."


@frozen
class BoardRanking:
    """The boards for a model, the best first."""

    schema_version: int = SCHEMA_VERSION
    model: str
    by: str
    """What they are ranked by: "time", "energy", "flash" or "ram". Boards that do not suit come last."""
    rate: str = ""
    """How often an inference is to begin, such as "10/s"; empty if it was not asked."""
    battery: str = ""
    """What the board is to run from, such as "220mAh"; empty if it was not asked."""
    boards: tuple[BoardFit, ...]

    def sections(self) -> Part:
        """Return the table of boards, and what its figures rest on."""
        asked = joined(self.rate, self.battery)
        title = f"boards for {brief(self.model)}, by {self.by}{asked and f', at {asked}'}"
        return Part("Boards", (board_table(title, self.boards), *board_notes(self.boards)))


def board_table(title: str, boards: Sequence[BoardFit]) -> Table:
    """Return the table of what a model takes of boards, in their order."""
    return Table(
        title,
        (
            *names("board"),
            Column("time"),
            Column("energy", sparse=True),
            Column("rate", sparse=True),
            Column("arena", drop=1),
            Column("plan", Align.NAME, spare=2),
            Column("bytes of", spare=1, drop=2),
            "verdict",
        ),
        [_row(fit) for fit in boards],
    )


def board_notes(boards: Sequence[BoardFit]) -> tuple[Text, ...]:
    """Return what the figures of boards rest on."""
    used = [fit for fit in boards if fit.use is not None and fit.use.cycles is not None]
    notes = [Text(PLANNED, "note")] if used else []
    assumed = tuple(dict.fromkeys(each for fit in used if fit.use is not None for each in fit.use.assumed))
    return (*notes, *((Text(f"{len(assumed)} of what they rest on", "assumed", items=assumed),) if assumed else ()))


def _row(fit: BoardFit) -> Sequence[Value]:
    use = fit.use
    return (
        fit.board,
        "" if use is None else use.time_text,
        "" if use is None else use.energy_text,
        "" if use is None or not use.rate else Cell(use.rate_text, State.BAD if use.too_slow else None),
        "" if fit.arena is None else f"{fit.arena.size_bytes:,} B, {fit.arena.certificate}",
        "\n".join(f"{each.need_bytes:,} B of {each.have_bytes:,} B in {each.memory}" for each in fit.memories),
        "\n".join(" + ".join(f"{name} {size:,}" for name, size in each.parts.items()) for each in fit.memories),
        _verdict(fit, use),
    )


def _verdict(fit: BoardFit, use: BoardUse | None) -> Cell:
    if not fit.fits:
        return Cell(fit.missing, State.BAD)
    if use is not None and use.too_slow:
        return Cell(f"too slow for {use.rate}", State.BAD)
    return Cell("fits")
