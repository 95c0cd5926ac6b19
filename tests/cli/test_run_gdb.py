# SPDX-License-Identifier: Apache-2.0
"""`ferrule run --gdb`."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Ferrule = Callable[..., Any]


def detach_from(port: int) -> None:
    """Connect as gdb would, detach, and so let the firmware run."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as peer:
                peer.sendall(b"$D#44")
                while peer.recv(64):
                    pass
                return
        except OSError:
            time.sleep(0.05)


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize("engine", ["unicorn", "qemu"])
def test_the_firmware_waits_for_gdb(
    ferrule: Ferrule, dense: Path, zig: None, engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "qemu":
        request.getfixturevalue("qemu")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    thread = threading.Thread(target=detach_from, args=(port,))
    thread.start()
    outcome = ferrule("run", dense, "--engine", engine, "--gdb", port)
    thread.join()
    assert outcome.code == 0, outcome.err
    assert re.search(rf"firmware\.elf -ex 'directory \S+/project' -ex 'target remote localhost:{port}'", outcome.err)


def test_engines_without_gdb_say_so(ferrule: Ferrule, dense: Path) -> None:
    outcome = ferrule("run", dense, "--engine", "serial", "--port", "socket://localhost:1", "--gdb", 1234)
    assert outcome.code == 2
    assert "gdb cannot attach to engine serial" in outcome.err
    assert "unicorn, qemu" in outcome.err


def test_what_an_engine_needs_is_asked_for_before_anything_is_built(ferrule: Ferrule, dense: Path) -> None:
    outcome = ferrule("run", dense, "--engine", "serial")
    assert outcome.code == 2
    assert "needs the board's port" in outcome.err
    assert "building" not in outcome.err


def test_a_port_is_a_number(ferrule: Ferrule, dense: Path) -> None:
    assert ferrule("run", dense, "--gdb", 0).code == 2
