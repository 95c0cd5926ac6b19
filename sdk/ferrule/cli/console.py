# SPDX-License-Identifier: Apache-2.0
"""The console for the tables that commands print."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ferrule._typing import override

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_ELSEWHERE = 160


def console() -> Console:
    """Return a console on standard output: as wide as the terminal, or wide enough for all tables in a file or pipe."""
    from rich.console import Console

    class Output(Console):
        """Leaves a closed pipe to `main`, since rich's exit code for it, 1, means different outputs here."""

        @override
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Output(width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE)
