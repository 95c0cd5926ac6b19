# SPDX-License-Identifier: Apache-2.0
"""One driver and one device model in three places: on this host, on an emulated board, and behind Renode's socket."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

import ferrule
from ferrule import override
from ferrule.backends import BackendId, Device, woofles
from ferrule.backends.woofles import Command, translate_in
from ferrule.devices import BusError, DeviceModel, DmaErrorAt, Fault, FaultInjector, NeverDone, WrongId
from ferrule.emulation.renode import GETS, PUSHES, Action, CosimulationPeer, Message, Stream, WireFormat
from ferrule.link import RunFailedError
from ferrule.testing import Adapter, build_adapter

FOLDER = Path(woofles.__file__).parent
BASE = 0x4010_0000
OK, UNAVAILABLE, DEVICE = 0, -5, -12  # ferrule/status.h


class Rig(Protocol):
    """A place where the driver runs with the model."""

    def run(self, first: np.ndarray, second: np.ndarray, fault: Fault | None = None) -> tuple[int, np.ndarray | None]:
        """Add two arrays on the device; return the driver's status, and the sum if that is FERRULE_OK."""


def network() -> ferrule.Network:
    """One addition."""
    made = ferrule.Network("sum")
    for name in ("x", "y"):
        quantization = ferrule.Quantization.of(0.5, 3)
        info = ferrule.TensorInfo(name=name, shape=(1, 16), dtype=ferrule.DataType.INT8, quantization=quantization)
        made.add_input(info)
    made.set_outputs([made.add_add_layer("x", "y", quantization=ferrule.Quantization.of(1.0, -4), name="sum")])
    return made


# ---- on this host


class HostRig:
    """The driver compiled for this host, with the bare-metal adapter; its register accesses go to the model."""

    def __init__(self, adapter: Adapter[Any], *, use_interrupt: bool) -> None:
        adapter.reset()
        self.adapter = adapter
        self.injector = FaultInjector(woofles.WooflesModel())
        self.context = adapter.new("struct woofles *", {"base": BASE, "use_interrupt": use_interrupt})
        adapter.share(self.context)
        adapter.attach(BASE, self.registers(), interrupt=self._interrupt)
        self.handle = adapter.new("struct ferrule_device *")
        lib, address = adapter.lib, adapter.ffi.cast("void *", BASE)
        assert lib.ferrule_device_init(self.handle) == OK
        driver = adapter.address("woofles_driver")
        assert lib.ferrule_device_bind(self.handle, address, adapter.ffi.NULL, driver, self.context) == OK

    def _interrupt(self) -> bool:
        """Do what the handler in a generated project does; False masks the interrupt."""
        fine: bool = self.adapter.lib.woofles_interrupt(self.context)
        self.adapter.lib.ferrule_device_notify(self.handle)
        return fine

    def registers(self) -> DeviceModel:
        """Return the device model that receives the driver's register accesses."""
        return self.injector

    def run(self, first: np.ndarray, second: np.ndarray, fault: Fault | None = None) -> tuple[int, np.ndarray | None]:
        """Call the driver as an executor does."""
        self.injector.inject(fault)
        arrays = [self._shared(array) for array in (first, second, np.zeros_like(first))]
        (layer,) = network().layers
        command = translate_in(network(), layer).command
        members = {each.name: getattr(command, each.name) for each in fields(Command)}
        work = self.adapter.new("struct woofles_layer *", {"command": members, "timeout_us": 4000})
        status = self._held(lambda: self.adapter.lib.woofles_execute(self.handle, work, *arrays))
        output = np.frombuffer(bytes(self.adapter.ffi.buffer(arrays[2])), np.int8).reshape(first.shape)
        return status, output if status == OK else None

    def _shared(self, array: np.ndarray) -> object:
        value = self.adapter.new("int8_t[]", array.reshape(-1).tolist())
        self.adapter.share(value)
        return value

    def _held(self, work: Callable[[], int]) -> int:
        lib = self.adapter.lib
        status: int = lib.ferrule_device_activate(self.handle)
        if status != OK:
            return status
        status = lib.ferrule_device_open(self.handle)
        if status == OK:
            status = work()
            lib.ferrule_device_close(self.handle)
        lib.ferrule_device_deactivate(self.handle)
        return status


# ---- behind Renode's co-simulation socket


class RenodeSide(DeviceModel):
    """Renode's side of the socket: sends the core's register accesses, receives the device's DMA and interrupts."""

    def __init__(self, main: socket.socket, asynchronous: socket.socket) -> None:
        super().__init__()
        self._main, self._async = main, asynchronous

    @property
    @override
    def size_bytes(self) -> int:
        return 0x1000

    @override
    def reset(self) -> None:
        self._send(Message(action=Action.RESET_PERIPHERAL))  # which has no reply

    @override
    def read(self, offset: int, width: int) -> int:
        assert width == 4
        return self._ask(Message(action=Action.READ_DOUBLE_WORD, address=offset)).data

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        assert width == 4
        self._ask(Message(action=Action.WRITE_DOUBLE_WORD, address=offset, data=value))

    def disconnect(self) -> None:
        """End the session."""
        self._send(Message(action=Action.DISCONNECT))

    def close(self) -> None:
        """Close both connections."""
        self._main.close()
        self._async.close()

    def _ask(self, request: Message) -> Message:
        self._send(request)
        while True:
            ready, _, _ = select.select([self._main, self._async], [], [], 10)
            assert ready, "the peripheral is silent"
            if self._async in ready:
                self._serve(self._receive(self._async))
                continue
            reply = self._receive(self._main)
            if reply.action == Action.ERROR:
                raise BusError("the peripheral refuses", address=request.address)
            return reply

    def _serve(self, message: Message) -> None:
        if message.action == Action.INTERRUPT:
            self.irq.set(bool(message.data))
        elif message.action in GETS.values():
            width = {action: width for width, action in GETS.items()}[Action(message.action)]
            self._send(Message(action=Action.WRITE_TO_BUS, data=self._memory(message.address, width)))
        else:
            width = {action: width for width, action in PUSHES.items()}[Action(message.action)]
            self.bus.write(message.address, (message.data & ((1 << 8 * width) - 1)).to_bytes(width, "little"))
            self._send(Message(action=Action.PUSH_CONFIRMATION))

    def _memory(self, address: int, width: int) -> int:
        try:
            return int.from_bytes(self.bus.read(address, width), "little")
        except BusError:
            return 0  # as Renode does, after a warning

    def _send(self, message: Message) -> None:
        self._main.sendall(message.encode(WireFormat.V1_16))

    @staticmethod
    def _receive(channel: socket.socket) -> Message:
        size = WireFormat.V1_16.size_bytes
        data = channel.recv(size, socket.MSG_WAITALL)
        return Message.decode(data, WireFormat.V1_16)


class RenodeRig(HostRig):
    """The same driver, with the protocol of Renode's co-simulation between driver and model."""

    @override
    def registers(self) -> DeviceModel:
        ours, theirs = zip(socket.socketpair(), socket.socketpair(), strict=True)
        streams = [Stream(end, name=name, timeout_s=20) for name, end in zip(("main", "async"), theirs, strict=True)]
        self.peer = CosimulationPeer(self.injector, *streams)
        self.thread = threading.Thread(target=self.peer.serve, daemon=True)
        self.thread.start()
        self.side = RenodeSide(*ours)
        return self.side

    def stop(self) -> None:
        """End the session, and check that the peripheral ended too."""
        self.side.disconnect()
        self.thread.join(20)
        assert not self.thread.is_alive()
        self.side.close()
        self.peer.close()


# ---- on an emulated board


@cache
def firmware(*, use_interrupt: bool) -> ferrule.Firmware:
    """Return the firmware of the addition, built for a board."""
    device = Device(name="npu0", backend=BackendId("Woofles"), binding={"use_interrupt": int(use_interrupt)})
    return ferrule.compile(network(), board="mps2-an386", backends=["Woofles"], devices=[device])


class BoardRig:
    """The firmware that Ferrule generates for the addition, on the embedded engine."""

    def __init__(self, *, use_interrupt: bool) -> None:
        self.firmware = firmware(use_interrupt=use_interrupt)

    def run(self, first: np.ndarray, second: np.ndarray, fault: Fault | None = None) -> tuple[int, np.ndarray | None]:
        """Run the firmware once."""
        try:
            report = self.firmware.run([first, second], faults={} if fault is None else {"npu0": fault})
        except RunFailedError as error:
            return error.status, None
        return OK, report.outputs[0]


# ---- one set of tests for all


@pytest.fixture(params=["host", "board", "renode"])
def place(request: pytest.FixtureRequest) -> str:
    """The name of the place where the driver runs."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def adapter() -> Adapter[Any]:
    """The driver and the device API for this host."""
    headers, folders = ["woofles/command.h", "woofles/woofles.h"], [FOLDER / "include"]
    return build_adapter("bare_metal", sources=[FOLDER / "src" / "woofles.c"], headers=headers, include_dirs=folders)


@pytest.fixture(params=[False, True], ids=["polling", "interrupt"])
def rig(request: pytest.FixtureRequest, place: str) -> Iterator[Rig]:
    """The place where the driver runs, ready to use."""
    if place == "board":
        yield BoardRig(use_interrupt=request.param)
        return
    kind = HostRig if place == "host" else RenodeRig
    made = kind(request.getfixturevalue("adapter"), use_interrupt=request.param)
    yield made
    if isinstance(made, RenodeRig):
        made.stop()


FIRST = np.arange(-128, 128, 16, dtype=np.int8).reshape(1, 16)
SECOND = np.linspace(127, -128, 16).astype(np.int8).reshape(1, 16)


@pytest.mark.cc
@pytest.mark.emu
def test_the_sum_is_that_of_the_reference(rig: Rig) -> None:
    """The sums are equal bit for bit."""
    status, output = rig.run(FIRST, SECOND)
    assert status == OK
    assert output is not None
    assert output.tolist() == network().run([FIRST, SECOND])[0].tolist()


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("fault", "expected"),
    [(WrongId(), UNAVAILABLE), (NeverDone(since=18), DEVICE), (DmaErrorAt(at=1), DEVICE)],
    ids=["another device", "never done", "dma refused"],
)
def test_every_failure_has_its_status_and_the_next_run_works(rig: Rig, fault: Fault, expected: int) -> None:
    """The same fault of the device has the same effect everywhere."""
    assert rig.run(FIRST, SECOND, fault) == (expected, None)
    status, output = rig.run(FIRST, SECOND)
    assert status == OK
    assert output is not None
    assert output.tolist() == network().run([FIRST, SECOND])[0].tolist()
