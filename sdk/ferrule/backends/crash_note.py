# SPDX-License-Identifier: Apache-2.0
"""Notes what is asked of a backend, so that a crash of its code names it."""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from ferrule.errors import FerruleError
from ferrule.nativelib import NativeLibrary

_LOG = logging.getLogger(__name__)
_SOURCE = Path(__file__).with_name("src") / "crash_note.c"
_LIBRARY = NativeLibrary(
    name="crash_note",
    title="handler of crashes",
    purpose="a message that names a crashed backend",
    sources=(_SOURCE,),
    flags=("-std=c11", "-O2", "-fvisibility=hidden"),
)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.texts = [""]
        """The note that holds now is the last one."""


class _Handler:
    """The handler in C, which is installed once in a process."""

    def __init__(self) -> None:
        self.note: Any = None
        """The function that passes a thread's note to the handler; None without a handler."""
        self._tried = False
        self._lock = threading.Lock()

    def install(self) -> None:
        with self._lock:
            if self._tried:
                return
            self._tried = True
            if sys.platform == "win32":
                return
            try:
                # PyDLL keeps the GIL: each call only copies a text, and surrounds every question to a backend
                library = ctypes.PyDLL(str(_LIBRARY.file()))
            except (FerruleError, OSError) as error:
                _LOG.info("a crash of a backend will not be named: %s", error)
                return
            if library.ferrule_crash_note_install() != 0:
                _LOG.info("a crash of a backend will not be named: the system refuses the signal handlers")
                return
            library.ferrule_crash_note.argtypes = (ctypes.c_char_p,)
            library.ferrule_crash_note.restype = None
            self.note = library.ferrule_crash_note


_thread = _Thread()
_handler = _Handler()


def name_crashes() -> None:
    """From now on, write the note of the running thread to standard error if a fault or exit() ends the process.

    Does nothing without a C compiler. Handlers that were installed before, such as faulthandler's, run afterwards.
    """
    _handler.install()


def current_note() -> str:
    """Return the note of this thread that holds now; "" if there is none."""
    return _thread.texts[-1]


class noted:  # noqa: N801 used like a function
    """A context manager: notes `text` for this thread; with `inner`, adds the note that holds already.

    It can be entered again, and in several threads.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str, *, inner: bool = False) -> None:
        self._text = f"{text}, for {current_note()}" if inner and current_note() else text

    def __enter__(self) -> None:
        _thread.texts.append(self._text)
        _tell()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _thread.texts.pop()
        _tell()


def _tell() -> None:
    if _handler.note is not None:
        _handler.note(current_note().encode(errors="replace").replace(b"\0", b" "))
