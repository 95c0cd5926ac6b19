# SPDX-License-Identifier: Apache-2.0
"""Progress on standard error: one live line on a terminal, otherwise one line per phase."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.progress import Progress, Step

_LEAST_S = 2.0
"""Seconds of a phase before its end is estimated."""


@dataclass(slots=True)
class TimeLeft:
    """Estimates how long a counted phase still takes, by the pace since its beginning."""

    _phase: str = ""
    _since_s: float = 0.0

    def text(self, step: Step, now_s: float) -> str:
        """Return the step with the time that its phase still takes, where that can be estimated."""
        if step.begins or step.phase != self._phase:
            self._phase, self._since_s = step.phase, now_s
        spent_s = now_s - self._since_s
        if not 0 < step.done < step.total or spent_s < _LEAST_S:
            return str(step)
        return f"{step}, {_duration(spent_s * (step.total - step.done) / step.done)} left"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


@contextmanager
def progress(*, quiet: bool) -> Iterator[Progress]:
    """Yield a function that shows the current step."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape

        from ferrule.rendering import shown

        left = TimeLeft()
        with Console(stderr=True).status("starting") as status:
            yield lambda step: status.update(escape(shown(left.text(step, time.monotonic()))))
    else:
        yield _print_phase


def _print_phase(step: Step) -> None:
    from ferrule.rendering import shown

    if step.begins:
        print(shown(step.phase), file=sys.stderr, flush=True)  # noqa: T201
