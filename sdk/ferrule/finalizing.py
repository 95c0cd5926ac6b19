# SPDX-License-Identifier: Apache-2.0
"""Signals that arrive while Python finalizes an object: it would print their exception and go on."""

from __future__ import annotations

import _thread
import signal
import threading
import weakref
from types import FrameType

_AGAIN_S = 0.02


def put_off(number: int, frame: FrameType | None) -> bool:
    """Return whether a signal's handler must not raise an exception, since its frame is in a finalizer.

    The signal then comes again soon, and as often as needed. For handlers, which run in the main thread.
    """
    if not _is_finalizing(frame):
        return False
    timer = threading.Timer(_AGAIN_S, _send, (number,))
    timer.daemon = True
    timer.start()
    return True


def _is_finalizing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is weakref.finalize.__call__.__code__ or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _send(number: int) -> None:
    """Send a signal to the main thread, to end what it waits for; Windows has only the handler called.

    Nothing happens if the handler has been taken away meanwhile.
    """
    main = threading.main_thread().ident
    if not callable(signal.getsignal(number)):
        return
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, number)
    else:
        _thread.interrupt_main(signal.Signals(number))
