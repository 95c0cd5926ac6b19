# SPDX-License-Identifier: Apache-2.0
"""Progress on standard error: one live line on a terminal, otherwise one line per phase."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.progress import Progress, Step


@contextmanager
def progress(*, quiet: bool) -> Iterator[Progress]:
    """Yield a function that shows the current step."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape

        with Console(stderr=True).status("starting") as status:
            yield lambda step: status.update(escape(str(step)))
    else:
        yield _print_phase


def _print_phase(step: Step) -> None:
    if step.begins:
        print(step.phase, file=sys.stderr, flush=True)  # noqa: T201
