# SPDX-License-Identifier: Apache-2.0
"""The engine `renode`, end to end: with a real Renode if RENODE points to one, otherwise with a stand-in.

The stand-in is a process that speaks Renode's protocols and runs the firmware in the engine unicorn. It verifies our
side of the protocols, not Renode's.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from needs import lacking_variable
from small_networks import dense

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles.model import WooflesModel
from ferrule.backends.woofles.registers import TABLE
from ferrule.boards import load_board
from ferrule.devices import BusError, DeviceFaultError, DeviceModel
from ferrule.emulation import AttachedDevice, EngineError, Machine, Session, engine, supervisor
from ferrule.emulation.renode.script import TICK_CYCLES
from ferrule.emulation.renode.session import RenodeSession
from ferrule.errors import FerruleError
from ferrule.link import LinkSession

Build = Callable[..., Machine]


@pytest.fixture(scope="session")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> ferrule.Firmware:
    """A network that runs on the CPU alone."""
    return ferrule.compile(dense(), toolchain="arm-none-eabi-gcc", out=tmp_path_factory.mktemp("cpu") / "project")


@pytest.fixture(scope="session")
def accelerated(tmp_path_factory: pytest.TempPathFactory) -> ferrule.Firmware:
    """The same network on an accelerator."""
    folder = tmp_path_factory.mktemp("woofles") / "project"
    return ferrule.compile(dense(), toolchain="arm-none-eabi-gcc", backends=("Woofles", "CpuAcc"), out=folder)


@pytest.mark.cc
def test_a_network_on_the_core(arm_gcc: str, firmware: ferrule.Firmware, renode: Path) -> None:
    report = firmware.run(engine="renode")
    assert report.verdict == "exact"
    assert report.document.engine == "renode"
    count = report.document.count
    assert count.per_inference > 0 or count.resolution == 25_000


@pytest.mark.cc
@pytest.mark.parametrize("name", ["renode", "renode:cosimulation"])
def test_a_network_on_an_accelerator(arm_gcc: str, accelerated: ferrule.Firmware, renode: Path, name: str) -> None:
    report = accelerated.run(engine=name, trace_devices=True)
    assert report.verdict == "exact"
    assert {layer.backend for layer in report.document.layers} == {"Woofles"}


class Reads:
    """The values that firmware reads from all models of Woofles."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._values: dict[int, list[int]] = {}
        read = WooflesModel.read

        def recorded(model: WooflesModel, offset: int, width: int) -> int:
            value = read(model, offset, width)
            self._values.setdefault(offset, []).append(value)
            return value

        monkeypatch.setattr(WooflesModel, "read", recorded)

    def of(self, register: str, field: str) -> list[int]:
        """Return the values of a field that were read, in order."""
        found = TABLE.register(register)
        return [found.field(field).get(value) for value in self._values.get(found.offset, [])]


def test_without_ticks_a_device_is_never_busy(
    arm_gcc: str, accelerated: ferrule.Firmware, renode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(monkeypatch)
    assert accelerated.run(engine="renode:cosimulation").verdict == "exact"
    assert set(reads.of("STATUS", "BUSY")) == {0}


def test_with_ticks_a_driver_that_polls_sees_a_busy_device(
    arm_gcc: str, accelerated: ferrule.Firmware, renode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(monkeypatch)
    report = accelerated.run(engine="renode:cosimulation-ticks")
    assert report.verdict == "exact"
    assert set(reads.of("STATUS", "BUSY")) == {0, 1}
    assert report.document.count.resolution >= TICK_CYCLES


@pytest.mark.cc
def test_with_ticks_the_interrupt_comes_when_the_work_is_done(
    arm_gcc: str, renode: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npu = Device(name="npu0", backend=BackendId("Woofles"), binding={"use_interrupt": 1})
    firmware = ferrule.compile(
        dense(), toolchain="arm-none-eabi-gcc", backends=("Woofles", "CpuAcc"), devices=[npu], out=tmp_path / "project"
    )
    reads = Reads(monkeypatch)
    try:
        report = firmware.run(engine="renode:cosimulation-ticks")
    except EngineError as error:
        if "in Renode before 1.16" in str(error):
            lacking_variable("RENODE", "interrupts with ticks in Renode")
        raise
    assert report.verdict == "exact"
    busy = reads.of("STATUS", "BUSY")
    assert 0 < busy.count(1) < 9  # a look after each command, and none while it sleeps
    assert 1 in reads.of("INTERRUPT", "DONE")


@pytest.mark.cc
@pytest.mark.parametrize(
    ("board", "found", "message"),
    [("mps2-an386", "1.15.3", "in Renode before 1.16"), ("mps2-an505", "1.16.1", "which has TrustZone")],
)
def test_interrupts_that_ticks_can_not_bring_are_refused(
    arm_gcc: str, build: Build, stand_in: Path, monkeypatch: pytest.MonkeyPatch, board: str, found: str, message: str
) -> None:
    monkeypatch.setenv("FAKE_RENODE_VERSION", found)
    device = AttachedDevice(name="npu0", model=WooflesModel(), address=0xA000_0000, interrupt=28)
    machine = Machine(board=load_board(board), elf=build("echo").elf, devices=(device,))
    with pytest.raises(EngineError, match=f"device npu0: its interrupt cannot rise within a tick .*{message}"):
        engine("renode:cosimulation-ticks").start(machine)


@pytest.mark.parametrize("name", ["renode:cosimulation", "renode:cosimulation-ticks"])
def test_the_wire_format_of_1_15(
    arm_gcc: str, accelerated: ferrule.Firmware, stand_in: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("FAKE_RENODE_VERSION", "1.15.3")
    assert accelerated.run(engine=name).verdict == "exact"


HELLO = bytes(byte ^ 0x55 for byte in b"hello")
"""The answer of the firmware `echo` to "hello"."""


def say(session: Session, text: bytes, answer: bytes) -> bytes:
    channel, data = session.channel(), b""
    channel.write(text)
    while answer not in data:
        data += channel.read(100, 0.5)
    return data


def test_a_session(build: Build, renode: Path) -> None:
    with engine("renode").start(build("echo")) as session:
        assert isinstance(session, RenodeSession)
        assert say(session, b"hello", HELLO) == HELLO
        assert session.channel("console").read(1, 0.0) == b""
        first = session.counters()
        assert first.instructions is not None
        assert first.instructions > 0
        report = session.crash_report("somebody asked")
        assert report.summary.startswith("somebody asked at pc 0x0000_")
        assert report.registers["sp"] > 0x2000_0000
        with pytest.raises(FerruleError, match="no UART 'uart4' that is connected to Renode"):
            session.channel("uart4")
    with pytest.raises(EngineError, match="the session is over"):
        session.channel().read(1, 0)
    session.stop()


@pytest.mark.cc
def test_a_fault_is_reported(build: Build, renode: Path) -> None:
    with (
        engine("renode").start(build("misdeed")) as session,
        pytest.raises(EngineError, match="Fault") as caught,
    ):
        say(session, b"u", b"never said")
    assert caught.value.report is not None


class Stubborn(DeviceModel):
    """A register window that refuses every access."""

    size_bytes = 0x1000

    def reset(self) -> None:
        """Do nothing."""

    def read(self, offset: int, width: int) -> int:
        raise BusError(f"there is no register at {offset:#x}", address=offset)

    def write(self, offset: int, width: int, value: int) -> None:
        raise BusError(f"there is no register at {offset:#x}", address=offset)


def ended(firmware: ferrule.Firmware, name: str, model: DeviceModel, message: str) -> EngineError:
    """Run a firmware whose device ends the run, and return the error."""
    device = AttachedDevice(name="npu0", model=model, address=0xA000_0000, interrupt=28)
    machine = Machine(board=load_board("mps2-an386"), elf=firmware.elf, devices=(device,))
    with engine(name).start(machine) as session:
        link = LinkSession(session.channel(), run_timeout_s=20, start_timeout_s=20)
        with pytest.raises(EngineError, match=f"device npu0: {message}") as caught:
            link.run([np.zeros((1, 6), np.int8)])
    return caught.value


@pytest.mark.parametrize("name", ["renode", "renode:cosimulation"])
def test_what_a_device_refuses_ends_the_run(
    arm_gcc: str, accelerated: ferrule.Firmware, renode: Path, name: str
) -> None:
    ended(accelerated, name, Stubborn(), "there is no register")


class Broken(Stubborn):
    """A model with a programming error."""

    def read(self, offset: int, width: int) -> int:
        return 1 // 0


@pytest.mark.parametrize("name", ["renode", pytest.param("renode:cosimulation", marks=pytest.mark.nightly)])
def test_a_fault_of_a_model_ends_the_run_with_a_report(
    arm_gcc: str, accelerated: ferrule.Firmware, renode: Path, name: str
) -> None:
    error = ended(accelerated, name, Broken(), "its model raised ZeroDivisionError: .* in a read")
    assert isinstance(error.__cause__, DeviceFaultError)
    assert error.report is not None


class Stuck(Stubborn):
    """A model that waits in a C function, in a thread."""

    deadline_s = 0.1

    def read(self, offset: int, width: int) -> int:
        threading.Event().wait(600)
        return 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["renode", "renode:cosimulation"])
def test_a_model_that_does_not_return_does_not_hold_up_renode(
    arm_gcc: str, accelerated: ferrule.Firmware, stand_in: Path, name: str
) -> None:
    ended(accelerated, name, Stuck(), "its model did not return within .* in a read")


def test_renode_has_a_network_of_its_own(build: Build, renode: Path) -> None:
    with engine("renode").start(build("echo")) as session:
        assert isinstance(session, RenodeSession)
        assert session._server is not None
        port = session._server.process.robot_port()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), 1)


def test_nothing_is_left_of_it(build: Build, renode: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    session = engine("renode").start(build("echo"))
    assert isinstance(session, RenodeSession)
    assert session._server is not None
    process = session._server.process._process
    session.stop()
    assert process.returncode == 0
    assert list(folder.iterdir()) == []


def test_the_network_of_the_machine_is_used_when_it_is_allowed(
    build: Build, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRULE_RENODE_NETWORK", "host")
    with engine("renode").start(build("echo")) as session:
        assert say(session, b"hello", HELLO) == HELLO
        report = session.crash_report("asked")
        assert "listen on all interfaces" in str(report)


def test_without_a_namespace_it_refuses(
    build: Build, stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "supervisor.py"
    text = (
        Path(supervisor.__file__).read_text().replace("libc = ctypes.CDLL(None, use_errno=True)", "raise OSError('no')")
    )
    refusing.write_text(text)
    monkeypatch.setattr(supervisor, "__file__", str(refusing))
    with pytest.raises(EngineError, match=r"no network namespace is available \(no\).*all interfaces") as caught:
        engine("renode").start(build("echo"))
    assert caught.value.hint == "set FERRULE_RENODE_NETWORK=host to allow that"


def test_renode_is_missing(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RENODE", "/nowhere/renode")
    missing = engine("renode").missing()
    assert missing is not None
    assert missing.hint is not None
    assert "RENODE" in missing.hint
    with pytest.raises(FerruleError, match="Renode is missing"):
        engine("renode").start(build("echo"))


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("FAKE_RENODE_VERSION", "1.14.0", r"this is Renode 1\.14, at least 1\.15"),
        ("FAKE_RENODE_FAILS", "LoadELF", "Could not execute command .*it fails on purpose"),
        ("FAKE_RENODE_DIES", "LoadELF", "Renode"),
    ],
)
def test_what_goes_wrong_at_the_start(
    build: Build, stand_in: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(EngineError, match=message):
        engine("renode").start(build("echo"))


def test_a_renode_that_ends_at_once(build: Build, stand_in: Path) -> None:
    stand_in.write_text("#!/bin/sh\necho cannot open display\nexit 4\n")
    with pytest.raises(EngineError, match="Renode ended with 4") as caught:
        engine("renode").start(build("echo"))
    assert "cannot open display" in str(caught.value)


@pytest.mark.parametrize("by_itself", [True, False])
def test_a_renode_that_dies_later(build: Build, stand_in: Path, by_itself: bool) -> None:
    """It dies by itself, or ends with its supervisor."""
    with engine("renode").start(build("echo")) as session:
        assert isinstance(session, RenodeSession)
        assert session._server is not None
        process = session._server.process
        (folder,) = (process._folder / "tmp").glob("renode-*")
        number = folder.name.partition("-")[2]
        if by_itself:
            os.kill(int(number), signal.SIGKILL)
        else:
            process._process.terminate()
            process._process.wait(10)
            assert not Path(f"/proc/{number}/exe").exists()
        with pytest.raises(EngineError, match="Renode"):
            say(session, b"x", b"never said")


def test_an_accelerator_behind_another_uart(
    arm_gcc: str, renode: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("wire") / "project"
    firmware = ferrule.compile(dense(), toolchain="arm-none-eabi-gcc", backends=("UartWoofles", "CpuAcc"), out=folder)
    report = firmware.run(engine="renode")
    assert report.verdict == "exact"
    assert {layer.backend for layer in report.document.layers} == {"UartWoofles"}


@pytest.mark.cc
def test_selects_that_renode_computes_wrongly_are_refused(
    arm_gcc: str, stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elf = tmp_path / "select.elf"
    source = tmp_path / "select.c"
    source.write_text('int entry(int a) { __asm("cmp %0, #1\\n\\tcset %0, eq" : "+r"(a)); return a; }\n')
    flags = ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=soft", "-O2", "-nostdlib", "-Wl,--entry=entry"]
    subprocess.run([arm_gcc, *flags, str(source), "-o", str(elf)], check=True, timeout=60)
    machine = Machine(board=load_board("mps3-an547"), elf=elf)
    with pytest.raises(EngineError, match=r"with the zero register \(1, first at .*\(entry\+0x2\)\)") as caught:
        engine("renode").start(machine)
    assert 'engine="qemu"' in str(caught.value.hint)
    monkeypatch.setenv("FAKE_RENODE_VERSION", "1.17.0")
    with pytest.raises(EngineError) as caught:  # the stand-in has no such core, but gets as far as loading it
        engine("renode").start(machine)
    assert "zero register" not in str(caught.value)
    other = replace(machine, board=load_board("mps2-an505"))
    with pytest.raises(EngineError) as caught:
        engine("renode").start(other)
    assert "zero register" not in str(caught.value)


def test_a_kept_renode_runs_one_firmware_after_the_other(arm_gcc: str, build: Build, stand_in: Path) -> None:
    kept = engine("renode").kept()
    processes = set()
    try:
        for board in ("mps2-an386", "mps2-an385"):
            with kept.start(build("echo", board)) as session:
                assert isinstance(session, RenodeSession)
                assert session._server is not None
                processes.add(session._server.process._process.pid)
                session.channel().write(b"one")
                assert session.channel().read(1, 60) == bytes([ord("o") ^ 0x55])
                with pytest.raises(EngineError, match="runs one firmware at a time"):
                    kept.start(build("echo"))
        assert len(processes) == 1
    finally:
        kept.end()


@pytest.mark.nightly
def test_a_kept_renode_forgets_devices_and_starts_again_after_its_death(
    arm_gcc: str, build: Build, stand_in: Path
) -> None:
    kept = engine("renode").kept()
    device = AttachedDevice(name="npu0", model=WooflesModel(), address=0xA000_0000, interrupt=28)
    machine = Machine(board=load_board("mps2-an386"), elf=build("echo").elf, devices=(device,))
    try:
        for _ in range(2):
            with kept.start(machine) as session:
                session.channel().write(b"x")
                assert session.channel().read(1, 60)
        with kept.start(build("echo")) as session:
            assert isinstance(session, RenodeSession)
            assert session._server is not None
            assert session._attachments == []
            session._server.process.stop()
            with pytest.raises(EngineError):
                session.channel().read(1, 60)
        with kept.start(build("echo")) as session:
            session.channel().write(b"x")
            assert session.channel().read(1, 60)
    finally:
        kept.end()
