# SPDX-License-Identifier: Apache-2.0
"""`ferrule boards`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import console, print_json
from ferrule.cli.options import GOALS, json_option
from ferrule.cli.parameters import FILE, option
from ferrule.cli.usage import UsageOptions, usage_options
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.report.board_ranking import BoardRanking


@click.command("boards")
@option(
    "--for",
    "Rank the boards for a model (.tflite, .onnx or .pt2) by planned costs, without a build.",
    "model",
    kind=FILE,
)
@usage_options
@option("--goal", "With --for: the cost that the choice of kernels minimises.", kind=GOALS, shown=GOALS[1])
@json_option
def command(model: Path | None, usage: UsageOptions, goal: str | None, as_json: bool) -> None:
    """List the boards: core, clock, memories and engines.

    A board is a folder with a Renode platform description and a board.toml; FERRULE_BOARDS names further folders to
    search. docs/boards.md explains how to add a board.

    With --for, rank them for a model instead, by the planned time of an inference, its energy, flash or RAM. Those that
    it does not fit come last, and with --rate those that are too slow. `ferrule inspect --fit` has the same for other
    backends.
    """
    from ferrule.report.board_listing import list_boards
    from ferrule.report.console import print_report

    usage.refuse_unless(model is not None, "--for")
    if model is None and goal is not None:
        raise FerruleError("--goal: only valid with --for")
    shown = list_boards() if model is None else _ranking(model, usage, goal)
    if as_json:
        print_json(shown)
    else:
        print_report(shown, console())


def _ranking(model: Path, usage: UsageOptions, goal: str | None) -> BoardRanking:
    from ferrule import formats
    from ferrule.firmware import Job
    from ferrule.firmware.board_use import Usage
    from ferrule.firmware.fitting import fits, rank
    from ferrule.report.board_ranking import BoardRanking

    asked, by = Usage(rate=usage.parsed_rate, battery=usage.parsed_battery), usage.rank_by
    network = formats.load(model)
    boards = rank(fits(network, Job(goal=goal or GOALS[1]), asked), by)
    return BoardRanking(
        model=network.name, by=by.value, rate=usage.rate or "", battery=usage.battery or "", boards=boards
    )
