# SPDX-License-Identifier: Apache-2.0
"""The refusals of `ferrule serve-accelerator`; tests/emulation/test_wires.py tests the serving itself."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ferrule.cli import signals

Ferrule = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing option '--port'"),
        (("--port", "listen://127.0.0.1"), "names no port to listen at"),
        (("--port", "/dev/ttyNONE"), "cannot be opened"),
        (("--port", "x", "--backend", "Woofles"), "devices of Woofles are not behind a serial line"),
        (("--port", "x", "--backend", "Woof"), "no backend 'Woof'"),
        (("--port", "x", "--binding", "memory_bytes"), "is not KEY=VALUE"),
        (("--port", "x", "--binding", "=1"), "is not KEY=VALUE"),
        (("--port", "x", "--binding", "memory_bytes=lots"), "memory_bytes is 'lots'"),
        (("--port", "x", "--binding", "colour=1"), "UartWoofles has no 'colour'"),
    ],
)
def test_what_it_refuses(ferrule: Ferrule, arguments: tuple[str, ...], message: str) -> None:
    outcome = ferrule("serve-accelerator", *arguments)
    assert outcome.code == 2
    assert message in outcome.err


class LateReads:
    """The module `os` for a thread that goes on long after it has read."""

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def read(self, descriptor: int, count: int) -> bytes:
        data = os.read(descriptor, count)
        time.sleep(0.5)
        return data


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_asked_to(ferrule: Ferrule, number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the thread that watches over the signals is late, as on a loaded machine."""
    before = signal.getsignal(number)
    ended: list[int] = []
    monkeypatch.setattr(signals, "_end", ended.append)  # which would end pytest
    monkeypatch.setattr(signals, "os", LateReads())

    def ask() -> None:
        while signal.getsignal(signal.SIGINT) is not signal.getsignal(signal.SIGTERM):  # until the command has both
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    asking = threading.Thread(target=ask)
    asking.start()
    outcome = ferrule("serve-accelerator", "--port", "listen://127.0.0.1:0", "--binding", "memory_bytes=0x100")
    asking.join()
    assert (outcome.code, ended) == (0, [])
    assert "UartWoofles at listen://127.0.0.1:" in outcome.err
    assert outcome.err.endswith("ended\n")
    assert signal.getsignal(number) is before
    assert ferrule("serve-accelerator", "--port", "listen://127.0.0.1:99999999").err
