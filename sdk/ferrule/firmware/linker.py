# SPDX-License-Identifier: Apache-2.0
"""The linker script, derived from the board."""

from __future__ import annotations

from pathlib import Path

from ferrule.boards import Board
from ferrule.firmware.toolchain import ENTRY_SYMBOL

ADDRESS_END = 1 << 32
_TEMPLATES = Path(__file__).parent / "templates"


def linker_script(board: Board, *, roomy: bool = False) -> str:
    """Return the script for GNU ld and lld alike.

    `roomy` gives every memory all addresses above its first: a firmware that does not fit links with it (and
    `--no-check-sections`), so that its sections can be measured.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=False,  # noqa: S701 - the output is a linker script
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    lengths = {memory.name: ADDRESS_END - memory.address if roomy else memory.size_bytes for memory in board.memories}
    return environment.get_template("linker.ld.j2").render(
        header=f"Memory map of {board.name}, made by Ferrule from {board.platform.name} and board.toml.",
        entry=ENTRY_SYMBOL,
        memories=board.memories,
        lengths=lengths,
        placement=board.placement,
    )
