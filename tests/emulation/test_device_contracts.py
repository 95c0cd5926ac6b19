# SPDX-License-Identifier: Apache-2.0
"""The contract of device models, on every way of attaching one: pulses, levels, storms, faults, deadlines, DMA, resets.

A row of ATTACHMENTS or LINES names the module that attaches models; `test_every_attachment_is_here` finds the modules
that have no row.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract_boards import (
    NAME,
    NOWHERE,
    Board,
    HostBoard,
    RenodeBoard,
    UnicornBoard,
    bridge,
    cosimulation,
    host,
    host_driver,
    raised,
    unicorn,
)
from contract_device import CLEAR, DMA, LEVEL, PULSE, RESET, VALUE, ContractDevice, ContractLine, hang, raises, stuck
from needs import require_module

import ferrule
from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.cli.serve_accelerator import interrupted
from ferrule.cli.signals import Terminated, signals_raised
from ferrule.devices import BusError, DeviceFaultError, SerialModel
from ferrule.devices.hosting import HostedModel
from ferrule.emulation import AttachedWire, EngineError, Machine
from ferrule.emulation.serving import serve
from ferrule.emulation.socket_wire import SocketWire
from ferrule.emulation.unicorn.session import UnicornSession
from ferrule.errors import FerruleError
from ferrule.link import Channel
from ferrule.testing import Adapter

pytestmark = [pytest.mark.cc, pytest.mark.emu]
Tools = pytest.FixtureRequest
DEADLINE_S = 0.05


@frozen
class Row:
    """One way of attaching a device model."""

    module: str
    """The module that hosts the model."""
    attach: Callable[[Tools, ContractDevice], contextlib.AbstractContextManager[Board]]
    has_time: bool = True
    """Whether time passes for the model; otherwise a write is answered when its work is complete."""
    in_main_thread: bool = True
    """Whether the model is called by the thread that uses the session."""


def _machine(tools: Tools) -> Machine:
    require_module("unicorn", "pip install 'ferrule[run]'")
    machine = tools.getfixturevalue("build_exceptions")("contracts", "mps2-an386")
    assert isinstance(machine, Machine)
    return machine


ATTACHMENTS = {
    "unicorn": Row(module="emulation/unicorn/device.py", attach=lambda tools, model: unicorn(_machine(tools), model)),
    "unicorn with gdb": Row(
        module="emulation/unicorn/device.py", attach=lambda tools, model: unicorn(_machine(tools), model, gdb=True)
    ),
    "unit test": Row(
        module="testing/registers.py", attach=lambda tools, model: host(tools.getfixturevalue("driver"), model)
    ),
    "renode": Row(module="emulation/renode/bridge.py", attach=lambda _, model: bridge(model), in_main_thread=False),
    "renode:cosimulation": Row(
        module="emulation/renode/cosimulation.py",
        attach=lambda _, model: cosimulation(model),
        has_time=False,
        in_main_thread=False,
    ),
    "renode:cosimulation-ticks": Row(
        module="emulation/renode/cosimulation.py",
        attach=lambda _, model: cosimulation(model, ticks=True),
        in_main_thread=False,
    ),
}


@pytest.fixture(scope="module")
def driver() -> Adapter[Any]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    return host_driver()


@pytest.fixture(params=ATTACHMENTS)
def row(request: pytest.FixtureRequest) -> Row:
    return ATTACHMENTS[request.param]


@pytest.fixture
def model() -> ContractDevice:
    return ContractDevice()


@pytest.fixture
def board(request: pytest.FixtureRequest, row: Row, model: ContractDevice) -> Iterator[Board]:
    with row.attach(request, model) as found:
        yield found


# ---- what models may rely on


@pytest.mark.parametrize("cycles", [0, 500])
def test_each_pulse_is_one_interrupt(board: Board, cycles: int) -> None:
    for count in range(1, 4):
        board.write(PULSE, cycles)
        board.let_pass(2000)
        assert board.interrupts == count


def test_two_pulses_at_once_are_one_interrupt(board: Board, model: ContractDevice) -> None:
    """The core runs its handler after the access; an interrupt that is pending already cannot become so twice."""
    model.on_clear = lambda: None

    def pulses() -> int:
        for level in (True, False, True, False):
            model.irq.set(level)
        return 9

    model.on_value = pulses
    assert board.read(VALUE) == 9
    board.let_pass(100)
    assert board.interrupts == 1


@pytest.mark.parametrize("cycles", [0, 500])
def test_a_level_is_an_interrupt_until_it_is_cleared(board: Board, model: ContractDevice, cycles: int) -> None:
    left = [3]

    def third_time() -> None:
        left[0] -= 1
        if not left[0]:
            model.irq.set(False)

    model.on_clear = third_time
    board.write(LEVEL, cycles)
    board.let_pass(2000)
    assert board.interrupts == 3


def test_a_reset_ends_the_command_in_progress(board: Board, row: Row, model: ContractDevice) -> None:
    board.write(PULSE, 500)
    board.write(RESET, 1)
    board.let_pass(2000)
    assert board.interrupts == (0 if row.has_time else 1)
    board.write(PULSE, 500)
    board.let_pass(2000)
    assert board.interrupts == (1 if row.has_time else 2)
    assert model.left == 0


def test_dma_within_its_buffers(board: Board) -> None:
    before = board.byte(board.memory + 3)
    board.write(DMA, board.memory + 3)
    assert board.byte(board.memory + 3) == before + 1


@pytest.mark.parametrize("value", [0, 0xFFFF_FFFF, np.uint32(7), True])
def test_an_integer_of_any_type_is_a_value(board: Board, model: ContractDevice, value: int) -> None:
    model.on_value = lambda: value
    assert board.read(VALUE) == int(value)


# ---- what ends a run


def test_a_storm_names_its_line(
    row: Row, model: ContractDevice, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UnicornBoard, "PATIENCE_S", 0.05)
    model.on_clear = lambda: None
    with row.attach(request, model) as board:
        monkeypatch.setattr(RenodeBoard, "MOST", 20)
        if isinstance(board, HostBoard):
            error = raised(board, ("write", LEVEL, 0))
            assert "interrupt storm: the handler ran a thousand times" in str(error)
            assert "line of ContractDevice at 0x4f000000 is still high" in str(error)
            return
        with pytest.raises(TimeoutError):
            raised(board, ("write", LEVEL, 0), ("read", CLEAR, 0))
        assert f"interrupt line 26 of device {NAME} is high" in board.report()


READ = ("read", VALUE, 0)
WRITE = ("write", VALUE, 1)
START = ("write", PULSE, 500)
BREACHES: dict[str, tuple[str, Callable[[], object], tuple[str, int, int], str]] = {
    "an exception in a read": (
        *("on_value", raises(ZeroDivisionError("oh")), READ),
        "raised ZeroDivisionError: oh in a read of VALUE (offset 0x10)",
    ),
    "an exception in a write": (
        *("on_value", raises(KeyError("k")), WRITE),
        "raised KeyError: 'k' in a write of VALUE (offset 0x10)",
    ),
    "an exception in advance": ("on_time", raises(RuntimeError()), START, "raised RuntimeError in advance by"),
    "an exception in next_event": ("on_event", raises(OSError("o")), WRITE, "raised OSError: o in next_event"),
    "an exception in reset": (
        *("on_reset", raises(OSError("o")), ("write", RESET, 1)),
        "raised OSError: o in a write of RESET (offset 0x14)",
    ),
    "SystemExit": ("on_value", raises(SystemExit(0)), READ, "raised SystemExit: 0 in a read"),
    "KeyboardInterrupt": ("on_value", raises(KeyboardInterrupt()), READ, "raised KeyboardInterrupt in a read"),
    "a bus error in advance": ("on_time", raises(BusError("b", address=1)), START, "raised BusError: b in advance by"),
    "a fraction of a cycle": ("on_event", lambda: 1.5, WRITE, "returned 1.5, expected None or a number of cycles"),
    "a word as time": ("on_event", lambda: "soon", WRITE, "returned 'soon', expected None or a number of cycles"),
    "an event in the past": ("on_event", lambda: -1, WRITE, "returned -1, expected None or a number of cycles"),
    "an event now": (
        "on_event",
        lambda: 0,
        WRITE,
        "returned 0, expected None or a number of cycles from 1 on, in next",
    ),
    "a negative value": (
        *("on_value", lambda: -1, READ),
        "returned -1, expected a number of 0 to 0xffffffff, in a read of VALUE (offset 0x10)",
    ),
    "a value that is too wide": ("on_value", lambda: 1 << 32, READ, "returned 0x100000000, expected a number of 0 to"),
    "no value": ("on_value", lambda: None, READ, "returned None, expected a number of 0 to"),
    "a call that hangs": ("on_value", hang, READ, "did not return within "),
}


def fault_of(error: FerruleError | None) -> DeviceFaultError:
    assert error is not None
    fault = error if isinstance(error, DeviceFaultError) else error.__cause__
    assert isinstance(fault, DeviceFaultError)
    return fault


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_names_device_register_and_place(
    row: Row, model: ContractDevice, request: pytest.FixtureRequest, breach: str
) -> None:
    hook, action, access, text = BREACHES[breach]
    if "hang" in breach:
        model.deadline_s = DEADLINE_S
    with row.attach(request, model) as board:
        setattr(model, hook, action)
        error = raised(board, access)
        assert raised(board, ("read", CLEAR, 0)) is not None  # the run is over
    fault = fault_of(error)
    where = "ContractDevice at 0x4f000000" if isinstance(board, HostBoard) else NAME
    assert fault.device == where
    assert str(error).startswith(f"device {where}: its model {text}")
    if "(offset" in text:
        assert (fault.register, fault.offset) == ("RESET", RESET) if access[1] == RESET else ("VALUE", VALUE)
    if isinstance(board, UnicornBoard):
        assert isinstance(error, EngineError)
        assert error.report is not None
        assert fault.pc == error.report.pc


def test_dma_outside_of_its_buffers(board: Board) -> None:
    with pytest.raises(FerruleError) as caught:
        board.write(DMA, NOWHERE)
    if isinstance(board, HostBoard):  # there the memory that a test shares is the limit
        assert str(caught.value) == "the device reads 1 B at 0x30000000, where there is no memory"
        return
    asked = "read of 1 B at 0x30000000, asked for by a write of 0x30000000 to DMA"
    assert str(caught.value).startswith(f"device {NAME}: DMA outside of its buffers: {asked}")
    assert fault_of(caught.value).device == NAME


def _read_in_vain(board: Board) -> None:
    with pytest.raises(OSError, match="the peer closed the connection"):
        board.read(VALUE)


def test_a_wait_in_c_is_ended_in_the_main_thread_and_reported_in_others(
    row: Row, model: ContractDevice, request: pytest.FixtureRequest
) -> None:
    model.deadline_s = DEADLINE_S
    model.on_value = stuck
    with row.attach(request, model) as board:
        if row.in_main_thread:
            error = raised(board, READ)
        else:
            assert isinstance(board, RenodeBoard)
            core = threading.Thread(target=_read_in_vain, args=(board,), daemon=True)
            core.start()
            core.join()  # Renode does not wait for the model
            error = board._attachment.failure
    assert re.match(r"device .*: its model did not return within \d+\.\d s in a read of VALUE", str(error))


@pytest.mark.parametrize(("number", "raised_by_it"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_within_a_model_is_no_fault(
    request: pytest.FixtureRequest, model: ContractDevice, number: signal.Signals, raised_by_it: type[BaseException]
) -> None:
    model.on_value = lambda: os.kill(os.getpid(), number)
    with signals_raised(), unicorn(_machine(request), model) as board, pytest.raises(raised_by_it):
        board.read(VALUE)


def test_a_slow_model_does_not_extend_a_read(model: ContractDevice, request: pytest.FixtureRequest) -> None:
    """Each call is short, but a slice of the emulation has hundreds of thousands of them."""
    model.on_event = lambda: 1
    calls = [0]

    def count() -> None:
        calls[0] += 1
        time.sleep(0.001)

    with unicorn(_machine(request), model) as board:
        assert isinstance(board, UnicornBoard)
        model.on_time = count
        assert board._channel.read(1, 0.1) == b""
    assert 0 < calls[0] < 20_000


@pytest.mark.parametrize("row", ["renode:cosimulation"], indirect=True)
def test_events_that_do_not_end_are_a_fault_where_there_is_no_time(
    board: Board, model: ContractDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferrule.devices.hosting.MOST_EVENTS", 1000)
    model.on_event = lambda: 10
    with pytest.raises(EngineError, match=f"device {NAME}: its events do not end, 1,000 of them"):
        board.write(VALUE, 1)


def test_a_storm_of_pulses_is_counted() -> None:
    class Silent:
        def set(self, level: bool) -> None: ...

    model = ContractDevice()
    hosted = HostedModel(model, name=NAME, line=3)
    hosted.attach(irq=Silent())
    for _ in range(10_000):
        hosted.write(PULSE, 4, 0)
    assert hosted.notes == [f"interrupt storm: device {NAME} raised its line 3 10,000 times"]


# ---- devices behind serial lines


class Endless(Channel):
    """A channel on which a byte always arrives."""

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        return b"x"

    @override
    def write(self, data: bytes) -> None:
        raise AssertionError(data)

    @override
    def close(self) -> None: ...


def _unicorn_wire(tools: Tools, line: SerialModel) -> None:
    wire = AttachedWire(name=NAME, model=line, uart="uart1")
    with UnicornSession(replace(_machine(tools), wires=(wire,))) as session:
        session.channel().read(1, 10)


def _socket_wire(_: Tools, line: SerialModel) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"x")
        wire = SocketWire(NAME, theirs, line)
        try:
            while True:
                wire.check()
                time.sleep(0.01)
        finally:
            wire.stop()


LINES = {
    "unicorn": ("emulation/unicorn/session.py", _unicorn_wire),
    "qemu and renode": ("emulation/socket_wire.py", _socket_wire),
    "serve-accelerator": ("emulation/serving.py", lambda _, line: serve(line, Endless())),
}
LINE_BREACHES: dict[str, tuple[Callable[[], object], str]] = {
    "an exception": (raises(ZeroDivisionError("oh")), "raised ZeroDivisionError: oh in receive of"),
    "SystemExit": (raises(SystemExit(0)), "raised SystemExit: 0 in receive of"),
    "text": (lambda: "text", "returned 'text', expected bytes, in receive"),
    "nothing": (lambda: None, "returned None, expected bytes, in receive"),
    "a call that hangs": (hang, r"did not return within \d+\.\d s in receive"),
}


@pytest.mark.parametrize("breach", LINE_BREACHES)
@pytest.mark.parametrize("line", LINES)
def test_a_breach_behind_a_serial_line(request: pytest.FixtureRequest, line: str, breach: str) -> None:
    action, text = LINE_BREACHES[breach]
    model = ContractLine(action)
    model.deadline_s = DEADLINE_S
    with pytest.raises(FerruleError, match=f"device .*: its model {text}") as caught:
        LINES[line][1](request, model)
    assert fault_of(caught.value).device == ("ContractLine" if line == "serve-accelerator" else NAME)


def test_a_wait_in_c_is_ended_although_the_command_handles_ctrl_c() -> None:
    model = ContractLine(stuck)
    model.deadline_s = DEADLINE_S
    with interrupted() as stopped, pytest.raises(DeviceFaultError, match="did not return within"):
        serve(model, Endless(), until=stopped)
    assert not stopped()
    with interrupted() as stopped:
        os.kill(os.getpid(), signal.SIGINT)
        serve(ContractLine(hang), Endless(), until=stopped)


# ---- the suite is complete


HOSTS = {"HostedModel", "HostedSerialModel", "hosted"}
MODELS = {"DeviceModel", "SerialModel", "AttachedDevice", "AttachedWire"}
CALLS = {"advance", "next_event", "receive"}
OWN_MODELS = {"backends/woofles/host.py"}
"""Modules that call a model which ships with Ferrule, and attach none of a user's."""


def _uses(path: Path) -> tuple[set[str], set[str], set[str]]:
    """Return the imported names, the called functions and the called methods of a module."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    return (
        {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names},
        {each.id for each in called if isinstance(each, ast.Name)},
        {each.attr for each in called if isinstance(each, ast.Attribute)},
    )


def test_every_attachment_is_here() -> None:
    """A module that hosts a model has a row, and no other module that knows of models calls one."""
    package = Path(ferrule.__file__).parent
    listed = {row.module for row in ATTACHMENTS.values()} | {module for module, _ in LINES.values()}
    hosting, bare = set(), set()
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if name.startswith("devices/") or "/tests/" in name:
            continue
        imported, functions, methods = _uses(path)
        if functions & HOSTS:
            hosting.add(name)
        elif imported & MODELS and methods & CALLS:
            bare.add(name)
    assert hosting == listed
    assert bare <= OWN_MODELS
