# SPDX-License-Identifier: Apache-2.0
"""Devices on an emulated board's second UART, on lines with faults, over ports, and with no answer."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
import tty
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from board_port import board_at_socket
from gate import every
from needs import require_module
from small_networks import SCALE, dense, int8_input

import ferrule
from ferrule._typing import override
from ferrule.backends import BackendId, Device
from ferrule.backends.uart_woofles import UartWooflesModel
from ferrule.devices import FaultyLine, LineFault, LineFaultKind, SerialModel
from ferrule.emulation import AttachedWire, EngineError, EngineOptions, Machine, engine
from ferrule.emulation.serving import open_port, serial_model, serve
from ferrule.errors import FerruleError
from ferrule.graph import Array
from ferrule.link import LinkSession, ListeningChannel, RunFailedError, SerialChannel

pytestmark = [pytest.mark.cc, pytest.mark.emu]
FAR = Device(
    name="far",
    backend=BackendId("UartWoofles"),
    binding={"memory_bytes": 1024, "store_bytes": 1024, "timeout_ms": 40, "attempts": 3},
)
FOR = {
    "unicorn": FAR,
    # a microsecond is 25 instructions on unicorn, and 1000 on QEMU
    "qemu": replace(FAR, binding={**FAR.binding, "timeout_ms": 12, "attempts": 5}),
    # the time on a port is not that of the board
    "served": replace(FAR, binding={**FAR.binding, "timeout_ms": 1000, "attempts": 5}),
}
BYTES = 2048
OK, TIMEOUT, DEVICE = 0, -9, -12


@pytest.fixture(scope="module")
def network() -> ferrule.Network:
    return dense()


Build = Callable[[str], ferrule.Firmware]


@pytest.fixture(scope="module")
def build(network: ferrule.Network, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A function that builds the firmware for an engine; for QEMU, whose clock runs on, time-outs are longer."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    built: dict[str, ferrule.Firmware] = {}

    def function(name: str) -> ferrule.Firmware:
        if name not in built:
            folder = tmp_path_factory.mktemp("wires") / "project"
            devices, backends = [FOR[name]], ["UartWoofles", "CpuAcc"]
            built[name] = ferrule.compile(network, backends=backends, devices=devices, out=folder, optimization="Os")
        return built[name]

    return function


@pytest.fixture
def firmware(build: Build) -> ferrule.Firmware:
    return build("unicorn")


@pytest.fixture(params=["unicorn", "qemu"])
def name(request: pytest.FixtureRequest) -> str:
    if request.param == "qemu":
        request.getfixturevalue("qemu")
    return str(request.param)


class Silence(SerialModel):
    @override
    def receive(self, data: bytes) -> bytes:
        return b""


class Switch(SerialModel):
    """Forwards to a model that the test can exchange."""

    def __init__(self, model: SerialModel) -> None:
        super().__init__()
        self.model = model

    @override
    def receive(self, data: bytes) -> bytes:
        return self.model.receive(data)


@contextlib.contextmanager
def running(firmware: ferrule.Firmware, name: str, model: SerialModel) -> Iterator[LinkSession]:
    wire = AttachedWire(name="far", model=model, uart="uart1")
    with engine(name).start(Machine(board=firmware.board, elf=firmware.elf, wires=(wire,))) as session:
        yield LinkSession(session.channel(), start_timeout_s=30, timeout_s=1)


def sample(network: ferrule.Network) -> list[Array]:
    return [np.arange(info.elements, dtype=info.dtype.numpy).reshape(info.shape) for info in network.inputs]


def is_right(link: LinkSession, network: ferrule.Network) -> bool:
    given = sample(network)
    pairs = zip(link.run(given).outputs, network.run(given), strict=True)
    return all(np.array_equal(ours, theirs) for ours, theirs in pairs)


def outcome(link: LinkSession, network: ferrule.Network) -> int:
    """Return the status of a run; if it is OK, the outputs are checked."""
    try:
        assert is_right(link, network)
    except RunFailedError as error:
        return error.status
    return OK


def test_it_answers(build: Build, network: ferrule.Network, name: str) -> None:
    firmware = build(name)
    report = firmware.run(sample(network), engine=name)
    assert report.verdict is ferrule.Verdict.EXACT
    assert {layer.device for layer in report.layers} >= {"far"}
    if name == "unicorn":
        assert firmware.run(sample(network)).count.per_inference == report.count.per_inference
    assert "far_transport" in (firmware.project.folder / "devices.c").read_text()


def test_nobody_answers_and_then_somebody_does(build: Build, network: ferrule.Network, name: str) -> None:
    firmware = build(name)
    switch = Switch(Silence())
    with running(firmware, name, switch) as link:
        with pytest.raises(RunFailedError) as caught:
            link.run(sample(network))
        assert caught.value.status == TIMEOUT
        switch.model = UartWooflesModel(memory_bytes=BYTES)
        assert is_right(link, network)
        switch.model = UartWooflesModel(memory_bytes=BYTES - 1)  # one byte too small
        with pytest.raises(RunFailedError, match="UNAVAILABLE"):
            link.run(sample(network))
        switch.model = UartWooflesModel(memory_bytes=BYTES)
        assert is_right(link, network)


def test_two_accelerators_behind_two_uarts(name: str, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    network = ferrule.Network("two")
    network.add_input(int8_input("x", 1, 40))
    for before, after in (("x", "y"), ("y", "z"), ("z", "last")):
        network.add_add_layer(before, "x", quantization=SCALE, name=after)
    network.set_outputs(["y", "last"])
    near, far = (replace(FOR[name], name=each) for each in ("near", "far"))
    hints = {"y": "UartWoofles/near", "z": "UartWoofles/far", "last": "UartWoofles/near"}
    firmware = ferrule.compile(network, devices=[near, far], hints=hints, out=tmp_path / "two", optimization="Os")
    report = firmware.run(engine=name, trace_devices=True)
    assert report.verdict is ferrule.Verdict.EXACT
    assert [(device.name, device.layers > 0, device.count > 0) for device in report.document.devices] == [
        ("near", True, True),
        ("far", True, True),
    ]
    assert report.document.device_trace is not None
    assert report.document.device_trace.as_planned


@pytest.mark.parametrize("kind", every(2, LineFaultKind))
@pytest.mark.parametrize("to_device", [True, False])
def test_faults_of_the_line(
    firmware: ferrule.Firmware, network: ferrule.Network, kind: LineFaultKind, to_device: bool
) -> None:
    random = np.random.default_rng(list(LineFaultKind).index(kind) + 10 * to_device)
    for rate in (300, 30):
        places = np.unique(random.integers(0, 4000, 4000 // rate))
        faults = [LineFault(at=int(at), kind=kind, to_device=to_device, mask=0x24, count=3) for at in places]
        model = UartWooflesModel(memory_bytes=BYTES, seed=1)
        switch = Switch(FaultyLine(model, faults))
        with running(firmware, "unicorn", switch) as link:
            for _ in range(3):
                assert outcome(link, network) in {OK, TIMEOUT, DEVICE}
            switch.model = model
            assert is_right(link, network)


def test_a_model_that_fails_is_told(build: Build, qemu: str) -> None:
    class Broken(SerialModel):
        @override
        def receive(self, data: bytes) -> bytes:
            if data:
                raise ZeroDivisionError("so it goes")
            return b""

    del qemu
    message = r"device far: its model raised ZeroDivisionError: so it goes in receive of \d+ B"
    with running(build("qemu"), "qemu", Broken()) as link, pytest.raises(EngineError, match=message):
        link.hello()


def test_who_cannot_have_it_says_so(firmware: ferrule.Firmware) -> None:
    wire = AttachedWire(name="far", model=Silence(), uart="uart9")
    with pytest.raises(FerruleError, match="no UART 'uart9' for device far"):
        engine("unicorn").start(Machine(board=firmware.board, elf=firmware.elf, wires=(wire,)))


# ---- served over ports


@contextlib.contextmanager
def served(url: str) -> Iterator[str]:
    """Serve an accelerator in a thread; yield the URL that the other end uses."""
    _, model = serial_model("UartWoofles", {"memory_bytes": 1024, "store_bytes": 1024})
    stopping = threading.Event()
    with contextlib.closing(open_port(url)) as channel:
        thread = threading.Thread(target=serve, args=(model, channel), kwargs={"until": stopping.is_set})
        thread.start()
        try:
            yield channel.url.replace("listen", "socket") if isinstance(channel, ListeningChannel) else url
        finally:
            stopping.set()
            thread.join(10)
    assert not thread.is_alive()


class Port(SerialModel):
    """Forwards bytes to the accelerator at a port."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.channel = SerialChannel(url)

    @override
    def receive(self, data: bytes) -> bytes:
        if data:
            self.channel.write(data)
        return self.channel.read(4096, 2 if data else 0)


def run_at(url: str, firmware: ferrule.Firmware, network: ferrule.Network) -> bool:
    port = Port(url)
    try:
        with running(firmware, "unicorn", port) as link:
            return is_right(link, network)
    finally:
        port.channel.close()


def test_served_to_whoever_connects(build: Build, network: ferrule.Network) -> None:
    firmware = build("served")
    with served("listen://127.0.0.1:0") as url:
        for _ in range(2):  # one connection after the other
            assert run_at(url, firmware, network)


@contextlib.contextmanager
def terminals() -> Iterator[tuple[str, str]]:
    """Yield two serial ports that are connected to each other."""
    pairs = [pty.openpty(), pty.openpty()]
    for _master, slave in pairs:
        tty.setraw(slave)
    stopping = threading.Event()

    def carry(source: int, target: int) -> None:
        import select

        while not stopping.is_set():
            if select.select([source], [], [], 0.02)[0]:
                os.write(target, os.read(source, 4096))

    threads = [threading.Thread(target=carry, args=(pairs[a][0], pairs[1 - a][0]), daemon=True) for a in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield os.ttyname(pairs[0][1]), os.ttyname(pairs[1][1])
    finally:
        stopping.set()
        for thread in threads:
            thread.join(5)
        for pair in pairs:
            for descriptor in pair:
                os.close(descriptor)


def test_served_by_the_command_at_a_terminal(firmware: ferrule.Firmware, network: ferrule.Network) -> None:
    with terminals() as (near, far):
        command = [sys.executable, "-m", "ferrule", "serve-accelerator", "--port", far]
        process = subprocess.Popen(
            [*command, "--binding", "memory_bytes=1024", "--binding", "store_bytes=1024"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            assert f"UartWoofles at {far}" in process.stderr.readline()
            assert run_at(near, firmware, network)
            process.send_signal(signal.SIGINT)
            _, log = process.communicate(timeout=20)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0
    lines = log.splitlines()
    assert "HELLO: a new memory" in lines[0]
    assert any("executed FULLY_CONNECTED" in line for line in lines)
    assert lines[-1].endswith("ended")


def test_a_board_behind_a_port_with_an_accelerator_of_its_own(
    firmware: ferrule.Firmware, network: ferrule.Network
) -> None:
    """Both seem real to the software under test: the engine `serial` handles the link alone."""
    wire = AttachedWire(name="far", model=UartWooflesModel(memory_bytes=BYTES), uart="uart1")
    with board_at_socket(firmware.board, firmware.elf, wires=(wire,)) as url:
        report = firmware.run(sample(network), engine="serial", options=EngineOptions(port=url))
    assert report.verdict is ferrule.Verdict.EXACT
    with (
        board_at_socket(firmware.board, firmware.elf) as url,
        pytest.raises(RunFailedError, match=r"TIMEOUT.*on UartWoofles/far"),
    ):
        firmware.run(sample(network), engine="serial", options=EngineOptions(port=url))


def test_what_cannot_be_served() -> None:
    with pytest.raises(FerruleError, match="devices of SoftNpu are not behind a serial line"):
        serial_model("SoftNpu")
    assert serial_model()[0] == "UartWoofles"
    for url in ("listen://", "listen://127.0.0.1", "listen://127.0.0.1:99999", "listen://[::"):
        with pytest.raises(FerruleError):
            open_port(url)
    with contextlib.closing(open_port("listen://127.0.0.1:0")) as first:
        assert isinstance(first, ListeningChannel)
        with pytest.raises(FerruleError, match="cannot listen at"):
            open_port(first.url)
