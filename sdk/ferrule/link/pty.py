# SPDX-License-Identifier: Apache-2.0
"""A channel at a pseudo-terminal, which other programs open like a serial port."""

from __future__ import annotations

import contextlib
import os

from ferrule._typing import override
from ferrule.errors import UnsupportedError
from ferrule.link.channel import Channel, arrives
from ferrule.link.errors import LinkError

SCHEME = "pty"


class PtyChannel(Channel):
    """Our end of a pseudo-terminal; bytes pass unchanged, and those that nobody reads are lost once its buffer is full.

    Raises:
        UnsupportedError: the system has no pseudo-terminals.
        LinkError: none is left.
    """

    def __init__(self) -> None:
        try:
            import tty
        except ImportError:
            raise UnsupportedError(
                "this system has no pseudo-terminals", hint="--port listen://127.0.0.1:4000 waits for a connection"
            ) from None
        try:
            self._ours, self._theirs = os.openpty()
        except OSError as error:
            raise LinkError(f"no pseudo-terminal is available: {error}") from error
        tty.setraw(self._theirs)
        os.set_blocking(self._ours, False)
        self.path = os.ttyname(self._theirs)
        """The device's name, which a program opens as a serial port."""
        self._open = True

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        return os.read(self._ours, max_bytes) if arrives(self._ours, timeout_s) else b""

    @override
    def write(self, data: bytes) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._ours, data)

    @override
    def close(self) -> None:
        if self._open:
            self._open = False
            os.close(self._ours)
            os.close(self._theirs)
