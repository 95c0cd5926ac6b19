# SPDX-License-Identifier: Apache-2.0
"""Progress of long steps: one live line on a terminal, plain lines elsewhere, always on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str], None]


@contextmanager
def progress(*, quiet: bool) -> Iterator[Progress]:
    """Give a function that tells which step runs now."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("starting") as status:
            yield status.update
    else:
        yield lambda text: print(text, file=sys.stderr, flush=True)  # noqa: T201
