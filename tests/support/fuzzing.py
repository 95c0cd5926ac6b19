# SPDX-License-Identifier: Apache-2.0
"""The frame of the fuzz campaigns: targets, the limits for one input, and what counts as a failure."""

from __future__ import annotations

import random
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from ferrule._frozen import frozen
from ferrule.errors import FerruleError

TIME_LIMIT_S = 5.0
"""Processor time for one input; a process that sleeps for longer is ended by its parent."""
MEMORY_LIMIT_BYTES = 1 << 30
"""For one input, on top of the process's memory before the first one."""

Check = Callable[[random.Random], bool]
"""Makes an input from the random numbers alone and tries it; returns whether it was accepted, and raises on a failure.

A FerruleError of the tested code is not a failure: the check catches it, with `refused`.
"""


class OutOfTimeError(BaseException):
    """An input took longer than the limit; not an Exception, so that the tested code does not catch it."""


@frozen
class Target:
    """Something that reads untrusted input."""

    name: str
    share: float
    """Inputs of a whole campaign, as a share of its number of inputs to readers."""
    prepare: Callable[[Path], Check]
    """Returns the check; the folder is empty, and the check may write there."""
    rate: float = 2000.0
    """About how many inputs a second a core tries; it decides the size of a piece."""
    sample: int = 20
    """Inputs in the slice that `make test-all` runs."""
    limit_s: float = TIME_LIMIT_S
    """Time limit for one input."""
    reads: bool = True
    """Whether it counts as a reader in the summary."""
    limits_memory: bool = True
    """Whether the memory is limited; not for programs under the address sanitizer, which reserves terabytes."""
    needs: Callable[[], object] = lambda: None
    """Skips a test without the tools that the target needs."""


def numbers(seed: int, target: str, index: int) -> random.Random:
    """Return the random numbers of one input."""
    return random.Random(f"{target} {seed} {index}")


@contextmanager
def refused() -> Iterator[None]:
    """Let a FerruleError pass as a refusal; AssertionError if its message could garble a terminal or fill it."""
    try:
        yield
    except FerruleError as error:
        check_message(error)


def check_message(error: FerruleError) -> None:
    """Raise AssertionError unless every line of an error can be printed and the whole is of a sensible length."""
    text = f"{error}{error.hint or ''}"
    if not text.replace("\n", "").replace("\t", "").isprintable() or len(text) > 20_000:
        raise AssertionError(f"the message cannot be printed or is too long: {str(error)[:500]!r}") from error


def limit_memory() -> None:
    """Make allocations of this process fail beyond the limit."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + MEMORY_LIMIT_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def limit_time() -> None:
    """Make `timed` interrupt an input that takes too long; for the main thread of a process of its own."""
    signal.signal(signal.SIGPROF, _on_alarm)


@contextmanager
def timed(limit_s: float) -> Iterator[None]:
    """Raise OutOfTimeError in the block after so much processor time; call `limit_time` before."""
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _on_alarm(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise OutOfTimeError("it took longer than the limit")
