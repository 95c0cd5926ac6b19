# SPDX-License-Identifier: Apache-2.0
"""`ferrule boards`."""

from __future__ import annotations

import click

from ferrule.cli.console import console


@click.command("boards")
def command() -> None:
    """List the boards: core, clock, memories and engines.

    A board is a folder with a Renode platform description and a board.toml; FERRULE_BOARDS names further folders to
    search. docs/boards.md explains how to add a board.
    """
    from rich.table import Table

    from ferrule.boards import board_names, load_board
    from ferrule.emulation import engine, engine_names

    table = Table()
    for heading in ("board", "core", "clock", "memories", "engines", "title"):
        table.add_column(heading, justify="right" if heading == "clock" else "left")
    for name in board_names():
        board = load_board(name)
        fpu = f" + {board.cpu.fpu}" if board.cpu.hard_float else ""
        memories = "\n".join(f"{m.name} {m.size_bytes // 1024:,} KiB" for m in board.memories)
        engines = ", ".join(e for e in engine_names() if engine(e).refuses(board) is None)
        table.add_row(name, board.cpu.type + fpu, f"{board.clock_hz / 1e6:g} MHz", memories, engines, board.title)
    console().print(table)
