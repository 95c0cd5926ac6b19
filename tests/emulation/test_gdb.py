# SPDX-License-Identifier: Apache-2.0
"""GDB connected to a firmware, on each engine that has a stub."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from children import ran
from needs import require_program

from ferrule.emulation import Engine, EngineError, EngineOptions, Machine, Session, engine

pytestmark = [pytest.mark.cc, pytest.mark.emu]

Build = Callable[..., Machine]
CONTROL_C = "import os, signal, threading; threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()"


def free_port() -> int:
    """Return a port that is free at present."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def debugged(engine: Engine, machine: Machine) -> Iterator[tuple[Session, int]]:
    """Start a firmware that waits for gdb; yield the session and the port."""
    port = free_port()
    with engine.start(replace(machine, options=EngineOptions(gdb=port))) as session:
        yield session, port


def wait_for(received: bytearray, wanted: bytes) -> None:
    """Wait until the firmware has sent bytes, and check that they start with `wanted`."""
    while len(received) < len(wanted):
        time.sleep(0.01)
    assert received[: len(wanted)] == wanted


@pytest.fixture
def gdb() -> str:
    """The path of gdb-multiarch."""
    return require_program("gdb-multiarch", "apt-get install gdb-multiarch")


def script(gdb: str, machine: Machine, port: int, *commands: str) -> list[str]:
    """Run gdb with these commands, and return the lines of its output."""
    argv = [gdb, "-nx", "-q", "-batch", "-ex", "set confirm off", "-ex", "set pagination off"]
    argv += ["-ex", f"target remote 127.0.0.1:{port}", *(part for command in commands for part in ("-ex", command))]
    done = ran([*argv, str(machine.elf)], timeout=60)
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


@contextmanager
def running(session: Session) -> Iterator[bytearray]:
    """Keep reading from the firmware while gdb controls it; yield the received bytes."""
    received, over = bytearray(), threading.Event()

    def read() -> None:
        while not over.is_set():
            try:
                received.extend(session.channel().read(64, 0.1))
            except EngineError:
                return

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield received
    finally:
        over.set()
        thread.join(60)
    assert not thread.is_alive()


def test_breakpoints_steps_registers_and_memory(either: Engine, build: Build, gdb: str) -> None:
    machine = build("misdeed")
    with debugged(either, machine) as (session, port), running(session) as received:
        lines = script(
            gdb,
            machine,
            port,
            "break *main",
            "continue",
            'printf "at main %d\\n", $pc == (unsigned)&main',
            "stepi",
            'printf "stepped %d\\n", $pc - (unsigned)&main',
            "delete",
            "set $r7 = 0x1234",
            'printf "r7 %x\\n", $r7',
            "set {unsigned}0x20300000 = 0xcafe",
            'printf "memory %x\\n", *(unsigned*)0x20300000',
            'printf "xpsr %x\\n", $xpsr & 0x010001ff',
            "detach",
        )
        wait_for(received, b"!")
    text = "\n".join(lines)
    assert "at main 1" in text, text
    assert any(line in {"stepped 2", "stepped 4"} for line in lines), text
    assert "r7 1234" in text
    assert "memory cafe" in text
    assert "xpsr 1000000" in text


def test_a_step_enters_a_handler(either: Engine, build_exceptions: Build, gdb: str) -> None:
    machine = build_exceptions("calls", "mps2-an386")
    with debugged(either, machine) as (session, port), running(session) as received:
        lines = script(
            gdb,
            machine,
            port,
            "break svcall",
            "continue",
            'printf "exception %d\\n", $xpsr & 0x1ff',
            'printf "exc_return %x\\n", $lr',
            "delete",
            "break pendsv",
            "continue",
            'printf "exception %d\\n", $xpsr & 0x1ff',
            "detach",
        )
        wait_for(received, b"from the main stack")
    assert [line for line in lines if line.startswith("exc")] == [
        "exception 11",
        "exc_return fffffff9",
        "exception 14",
    ], "\n".join(lines)


def test_control_c_stops_a_loop(unicorn: Engine, build: Build, gdb: str) -> None:
    machine = build("misdeed")
    with debugged(unicorn, machine) as (session, port):
        session.channel().write(b"h")
        with running(session) as received:
            lines = script(
                gdb,
                machine,
                port,
                "set width 0",
                f"python {CONTROL_C}",
                "continue",
                "info symbol $pc",
                "kill",
            )
    text = "\n".join(lines)
    assert "spin" in text, text
    assert received == b"!"


def test_a_lockup_is_shown_before_it_ends(unicorn: Engine, build: Build, gdb: str) -> None:
    machine = build("misdeed")
    with debugged(unicorn, machine) as (session, port):
        session.channel().write(b"l")
        with running(session) as received:
            lines = script(gdb, machine, port, "continue", "info symbol $pc", "continue")
        assert "SIGSEGV" in "\n".join(lines)
        assert received == b"!"
        with pytest.raises(EngineError, match="lockup"):
            session.channel().read(1, 10)


def test_counts_do_not_notice_gdb(unicorn: Engine, build: Build, gdb: str) -> None:
    machine = build("calibrate")
    with unicorn.start(machine) as session:
        plain = session.channel().read(32, 30)
    with debugged(unicorn, machine) as (session, port), running(session) as received:
        script(gdb, machine, port, "break main", "continue", *["stepi"] * 20, "detach")
        wait_for(received, plain)


def test_a_port_that_is_taken(unicorn: Engine, build: Build) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        pytest.raises(EngineError, match="can't wait for gdb at port"),
    ):
        unicorn.start(replace(build("echo"), options=EngineOptions(gdb=listener.getsockname()[1])))


def test_a_debugger_has_the_only_server_of_qemu(qemu: str, build: Build) -> None:
    with debugged(engine("qemu"), build("echo")) as (session, _):
        assert session.memory() is None
