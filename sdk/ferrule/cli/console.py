# SPDX-License-Identifier: Apache-2.0
"""The console that the commands print tables on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ferrule._typing import override

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_ELSEWHERE = 160


def console() -> Console:
    """Return standard output: as wide as the terminal, wide enough for every table in a file or a pipe."""
    from rich.console import Console

    class Output(Console):
        """Leaves a closed pipe to `main`; rich's own exit code for it, 1, is that of different outputs here."""

        @override
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Output(width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE)
