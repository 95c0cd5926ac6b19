# SPDX-License-Identifier: Apache-2.0
"""The console that the commands print tables on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_ELSEWHERE = 160


def console() -> Console:
    """Return standard output: as wide as the terminal, wide enough for every table in a file or a pipe."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE)
