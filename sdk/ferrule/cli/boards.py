# SPDX-License-Identifier: Apache-2.0
"""`ferrule boards`."""

from __future__ import annotations

import click

from ferrule.cli.console import console, print_json
from ferrule.cli.options import json_option


@click.command("boards")
@json_option
def command(as_json: bool) -> None:
    """List the boards: core, clock, memories and engines.

    A board is a folder with a Renode platform description and a board.toml; FERRULE_BOARDS names further folders to
    search. docs/boards.md explains how to add a board.
    """
    from ferrule.report.board_listing import list_boards
    from ferrule.report.console import print_report

    listing = list_boards()
    if as_json:
        print_json(listing)
    else:
        print_report(listing, console())
