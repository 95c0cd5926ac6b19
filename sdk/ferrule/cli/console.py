# SPDX-License-Identifier: Apache-2.0
"""The two forms of a command's output: tables on a console, and JSON."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ferrule._typing import override

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_ELSEWHERE = 160


def console() -> Console:
    """Return a console on standard output: as wide as the terminal, or wide enough for most tables in a file or pipe.

    COLUMNS overrides the width, and NO_COLOR turns colours off.
    """
    from rich.console import Console

    class Output(Console):
        """Leaves a closed pipe to `main`, since rich's exit code for it, 1, means different outputs here."""

        @override
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Output(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH_ELSEWHERE)


def print_json(document: object) -> None:
    """Print a document of dataclasses or msgspec structs as indented JSON."""
    import click
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
