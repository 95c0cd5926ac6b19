# SPDX-License-Identifier: Apache-2.0
"""An emulated board behind a serial port: its link UART is carried to a pseudo-terminal or a TCP port."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import socket
import threading
import tty
from collections.abc import Iterator
from pathlib import Path

from ferrule.boards import Board
from ferrule.emulation import AttachedWire, Clock, Machine, engine


def _carry(
    board: Board,
    elf: Path,
    descriptor: int,
    stopping: threading.Event,
    wires: tuple[AttachedWire, ...] = (),
    clock: Clock = Clock.INSTRUCTIONS,
) -> None:
    with engine("unicorn").start(Machine(board=board, elf=elf, wires=wires, clock=clock)) as session:
        channel = session.channel()
        while not stopping.is_set():
            readable, _, _ = select.select([descriptor], [], [], 0)
            if readable:
                try:
                    data = os.read(descriptor, 4096)
                except OSError:  # no process has the other end of the terminal open
                    data = b""
                if data:
                    channel.write(data)
            reply = channel.read(4096, 0.01)
            if reply:
                os.write(descriptor, reply)
            elif not readable:
                stopping.wait(0.001)


@contextlib.contextmanager
def _running(board: Board, elf: Path, descriptor: int, clock: Clock) -> Iterator[None]:
    stopping = threading.Event()
    thread = threading.Thread(target=_carry, args=(board, elf, descriptor, stopping, (), clock), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(10)


@contextlib.contextmanager
def board_at_terminal(board: Board, elf: Path, *, clock: Clock = Clock.INSTRUCTIONS) -> Iterator[str]:
    """Yield the name of a serial port connected to the running board."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    try:
        with _running(board, elf, master, clock):
            yield os.ttyname(slave)
    finally:
        os.close(master)
        os.close(slave)


@contextlib.contextmanager
def board_at_socket(board: Board, elf: Path, *, wires: tuple[AttachedWire, ...] = ()) -> Iterator[str]:
    """Yield a pyserial URL of a TCP port connected to the running board."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"socket://127.0.0.1:{server.getsockname()[1]}"
        accepted = threading.Event()
        stopping = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            accepted.set()
            with connection:
                _carry(board, elf, connection.fileno(), stopping, wires)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield url
        finally:
            stopping.set()
            if accepted.is_set():
                thread.join(10)
