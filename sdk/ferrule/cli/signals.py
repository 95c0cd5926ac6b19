# SPDX-License-Identifier: Apache-2.0
"""The signals that end a command: they become exceptions, so that temporary files are removed on the way out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ferrule.finalizing import put_off

_SIGNALS = ("SIGTERM", "SIGHUP", "SIGXCPU")
"""Ctrl-C (SIGINT) is KeyboardInterrupt already; Windows has only the first of these."""


class Terminated(BaseException):
    """A signal told the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


@contextmanager
def signals_raised() -> Iterator[None]:
    """Raise Terminated in the main thread on a signal that would end the process; ignored signals stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    replaced = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> None:
    if not put_off(number, frame):
        raise Terminated(number)
