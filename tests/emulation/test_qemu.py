# SPDX-License-Identifier: Apache-2.0
"""The QEMU process: how it starts, how it ends, and how a failure is reported."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from needs import lacking

from ferrule.architectures import CORTEX_M
from ferrule.boards import QemuMachine
from ferrule.emulation import EngineError, Machine, engine
from ferrule.emulation.qemu.session import QemuSession
from ferrule.errors import MissingToolError
from ferrule.link import LinkError

pytestmark = [pytest.mark.cc, pytest.mark.emu]


def descendants() -> set[int]:
    """Return the ids of the processes below this one, zombies included."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


@pytest.fixture
def proc() -> None:
    """Skip the test without Linux's process table."""
    if not Path("/proc/self/stat").exists():
        lacking("/proc/self/stat", "run the tests on Linux", rare=True)


@pytest.mark.usefixtures("proc")
@pytest.mark.parametrize("how", ["stop", "with", "drop", "error"])
def test_no_process_stays(qemu: str, build: Callable[..., Machine], how: str) -> None:
    machine = build("echo")
    before = descendants()
    session = engine("qemu").start(machine)
    assert descendants() > before
    if how == "stop":
        session.stop()
        session.stop()
    elif how == "with":
        with session:
            pass
    elif how == "drop":
        del session
        gc.collect()
    else:
        with pytest.raises(ZeroDivisionError), session:
            raise ZeroDivisionError
    assert descendants() == before


@pytest.mark.usefixtures("proc")
def test_dies_with_a_python_that_is_killed(qemu: str, build: Callable[..., Machine]) -> None:
    machine = build("echo")
    script = (
        "import sys, time; from pathlib import Path; from ferrule.boards import load_board\n"
        "from ferrule.emulation import Machine, engine\n"
        "session = engine('qemu').start(Machine(board=load_board('mps2-an386'), elf=Path(sys.argv[1])))\n"
        "print('up', flush=True); time.sleep(60)\n"
    )
    before = descendants()
    with subprocess.Popen([sys.executable, "-c", script, str(machine.elf)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        started = descendants() - before - {process.pid}
        process.send_signal(signal.SIGKILL)
    assert len(started) == 2  # the supervisor and QEMU
    while any(Path(f"/proc/{pid}").exists() and _alive(pid) for pid in started):
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    """Return whether the process runs and is not a zombie that init has yet to reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.usefixtures("proc")
def test_a_machine_that_qemu_does_not_know(qemu: str, build: Callable[..., Machine]) -> None:
    machine = build("echo")
    odd = QemuMachine(name="mps9-an999", instructions_per_tick=40, serial={"uart0": 0})
    before = descendants()
    with pytest.raises(EngineError, match=r"(?s)ended with 1: .*-machine mps9-an999.*unsupported machine"):
        engine("qemu").start(Machine(board=replace(machine.board, qemu=odd), elf=machine.elf))
    assert descendants() == before


def test_a_board_without_qemu(qemu: str, build: Callable[..., Machine]) -> None:
    machine = build("echo")
    board = replace(machine.board, qemu=None)
    assert engine("qemu").refuses(board) is not None
    assert engine("qemu").refuses(machine.board) is None
    with pytest.raises(EngineError, match="no QEMU machine") as caught:
        engine("qemu").start(Machine(board=board, elf=machine.elf))
    assert "unicorn" in (caught.value.hint or "")


def test_a_uart_without_a_serial_option(qemu: str, build: Callable[..., Machine]) -> None:
    machine = build("echo")
    odd = QemuMachine(name="mps2-an386", instructions_per_tick=40, serial={})
    with pytest.raises(EngineError, match="assign a -serial option to uart0"):
        engine("qemu").start(Machine(board=replace(machine.board, qemu=odd), elf=machine.elf))


@pytest.mark.usefixtures("proc")
def test_no_time_passes_while_qemu_may_not_run(qemu: str, build: Callable[..., Machine]) -> None:
    """A stopped process stands for one that waits for a processor; the time-out of 0.3 s is one of QEMU's time."""
    before = descendants()
    with engine("qemu").start(build("echo")) as session:
        _, process = sorted(descendants() - before)
        channel = session.channel()
        os.kill(process, signal.SIGSTOP)
        threading.Timer(1.0, os.kill, (process, signal.SIGCONT)).start()
        started_s, started = time.monotonic(), channel.clock()
        assert channel.read(1, 0.3) == b""
        assert time.monotonic() - started_s >= 1.0
        assert channel.clock() >= started + 0.3


@pytest.mark.usefixtures("proc")
def test_qemu_that_is_killed_is_reported(qemu: str, build: Callable[..., Machine]) -> None:
    before = descendants()
    with engine("qemu").start(build("echo")) as session:
        supervisor, *_ = sorted(descendants() - before)
        for pid in descendants() - before - {supervisor}:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(EngineError, match=r"QEMU ended with 137: .*qemu-system-arm"):
            session.channel().read(1, 10)
        with pytest.raises(EngineError, match="QEMU ended with 137"):
            session.crash_report("asked too late")
    assert descendants() == before


def test_missing_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, build: Callable[..., Machine]) -> None:
    machine = build("echo")
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = engine("qemu").missing()
    assert missing is not None
    assert "apt-get install qemu-system-arm" in (missing.hint or "")
    with pytest.raises(MissingToolError, match=CORTEX_M.qemu.program):
        engine("qemu").start(machine)


def test_late_listener_loses_nothing(qemu: str, build: Callable[..., Machine]) -> None:
    for _ in range(5):  # QEMU may miss that the receiver was switched on
        with engine("qemu").start(build("echo")) as session:
            assert isinstance(session, QemuSession)
            session.channel().write(b"hello")
            data = b""
            while len(data) < 5 and (chunk := session.channel().read(5, 10)):
                data += chunk
            assert len(data) == 5


def test_memory_is_read_and_written_while_the_firmware_runs(qemu: str, build: Callable[..., Machine]) -> None:
    """More than one packet of bytes of all values, two of which are packets' own characters."""
    machine = build("echo")
    data = (bytes(range(256)) * 9)[:-1]
    with engine("qemu").start(machine) as session:
        channel, memory = session.channel(), session.memory()
        assert memory is not None
        assert session.memory() is memory
        ram = machine.board.memory(machine.board.placement.data)
        start = ram.end - len(data) - 4096
        memory.write(start, data)
        assert memory.read(start, len(data)) == data
        channel.write(b"hello")
        heard = b""
        while len(heard) < 5 and (some := channel.read(5, 10)):
            heard += some
        assert heard == bytes(byte ^ 0x55 for byte in b"hello")


def test_what_is_not_in_a_ram_cannot_be_written(qemu: str, build: Callable[..., Machine]) -> None:
    machine = build("echo")
    code, ram = (machine.board.memory(name) for name in (machine.board.placement.code, machine.board.placement.data))
    with engine("qemu").start(machine) as session:
        memory = session.memory()
        assert memory is not None
        before = memory.read(code.address, 4)
        for address, size in ((code.address, 4), (ram.end - 2, 4), (0x9000_0000, 1)):
            with pytest.raises(LinkError, match=rf"the {size} bytes of an input at {address:#010x} do not lie within"):
                memory.write(address, bytes(size))
        assert memory.read(code.address, 4) == before != bytes(4)


def test_memory_of_a_qemu_that_has_ended(qemu: str, build: Callable[..., Machine]) -> None:
    with engine("qemu").start(build("echo")) as session:
        memory = session.memory()
        assert memory is not None
        os.kill(session._process.pid, signal.SIGKILL)
        with pytest.raises(EngineError, match="QEMU"):
            memory.read(0, 4)
