# SPDX-License-Identifier: Apache-2.0
"""FerruleBridge.cs itself, compiled against stubs of Renode's classes and run by Mono against our server."""

from __future__ import annotations

import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from children import ran
from copier import Copier
from needs import require_program
from woofles_bench import jobs

from ferrule.backends.woofles.model import WooflesModel
from ferrule.backends.woofles.registers import TABLE
from ferrule.devices import DeviceModel
from ferrule.emulation.renode import RenodeError, Stream
from ferrule.emulation.renode.bridge import SOURCE, BridgeServer

STUBS = Path(__file__).parent / "mono" / "Stubs.cs"
MEMORY = 0x2000_0000
RELEASES = {"1.15": ["-d:RENODE_1_15"], "1.16": []}


@pytest.fixture(scope="session")
def mono() -> str:
    """The path of Mono; its compiler is installed, too."""
    require_program("mcs", "apt-get install mono-mcs", rare=True)
    return require_program("mono", "apt-get install mono-runtime", rare=True)


@pytest.fixture(scope="session", params=list(RELEASES))
def program(mono: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bridge, compiled with the signatures of one Renode release."""
    out = tmp_path_factory.mktemp("mono") / "bridge.exe"
    command = ["mcs", "-langversion:6", "-warnaserror+", "-nowarn:649", f"-out:{out}", *RELEASES[request.param]]
    done = ran([*command, str(STUBS), str(SOURCE)])
    assert done.returncode == 0, done.stdout + done.stderr
    return out


class Bridged:
    """A model behind our server, and the bridge in Mono."""

    def __init__(self, program: Path, model: DeviceModel, size_bytes: int | None = None) -> None:
        self._model = model
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.error: RenodeError | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        port = self._listener.getsockname()[1]
        self._process = subprocess.Popen(
            ["mono", str(program), str(port), str(size_bytes or model.size_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.log: list[str] = []

    def _serve(self) -> None:
        with self._listener:
            connected, _ = self._listener.accept()
        with Stream(connected, name="bridge", timeout_s=60) as stream:
            try:
                BridgeServer(self._model, stream).serve()
            except RenodeError as error:
                self.error = error

    def do(self, *words: object) -> str:
        """Send the bridge's program a line, and return its answer; lines of its log are collected."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return self.hear()

    def hear(self) -> str:
        assert self._process.stdout is not None
        while (line := self._process.stdout.readline().rstrip("\n")).startswith("log "):
            self.log.append(line)
        return line

    def put(self, address: int, data: bytes) -> None:
        assert self.do("p", address, data.hex()) == "ok"

    def get(self, address: int, size: int) -> bytes:
        return bytes.fromhex(self.do("g", address, size))

    def end(self) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()  # the same as `end`
        code = self._process.wait(20)
        self._process.stdout.close()
        self._thread.join(10)
        assert not self._thread.is_alive()
        return code


def test_registers_of_every_width(program: Path) -> None:
    bridged = Bridged(program, Copier())
    assert bridged.do("w", 4, 0, 1000) == "ok"
    assert bridged.do("r", 4, 4) == "1000"
    assert bridged.do("r", 2, 4) == "1000"
    assert bridged.do("r", 1, 4) == str(1000 & 0xFF)
    assert bridged.do("r", 4, 8) == "0"
    assert bridged.log == ["log error no register at 0x8"]
    assert bridged.do("reset") == "ok"
    assert bridged.do("r", 4, 4) == "0"
    assert bridged.end() == 0
    assert bridged.error is None


def test_blocks_and_the_interrupt(program: Path) -> None:
    bridged = Bridged(program, Copier(MEMORY + 0x1000, MEMORY + 0x2000))
    block = bytes(range(100))
    bridged.put(MEMORY + 0x1000, block)
    assert bridged.do("i") == "0"
    assert bridged.do("w", 4, 0, 0) == "ok"
    assert bridged.do("i") == "1"
    assert bridged.get(MEMORY + 0x2000, 100) == block[::-1]
    assert bridged.end() == 0


def test_dma_without_memory_is_refused(program: Path) -> None:
    bridged = Bridged(program, Copier(0x1000, 0x2000))
    assert bridged.do("w", 4, 0, 0) == "ok"
    assert bridged.log == ["log error no memory at 4096"]
    assert bridged.do("r", 4, 4) == "0"
    assert bridged.end() == 0
    assert bridged.error is None


def test_time(program: Path) -> None:
    bridged = Bridged(program, Copier(MEMORY, MEMORY + 0x1000))
    bridged.do("w", 4, 0, 1000)
    bridged.do("t", 300)
    assert bridged.do("r", 4, 4) == "700"
    bridged.do("s", 200)  # a read tells the core to report its time
    assert bridged.do("r", 4, 4) == "500"
    bridged.do("t", 499)
    assert bridged.do("i") == "0"
    bridged.do("t", 1)
    assert bridged.do("i") == "1"
    bridged.do("w", 4, 0, 1000)
    bridged.do("s", 5000)  # the event falls due during the read
    assert bridged.do("r", 4, 4) == "0"
    assert bridged.do("i") == "1"
    assert bridged.end() == 0
    assert bridged.error is None


def test_a_window_of_another_size_is_refused(program: Path) -> None:
    bridged = Bridged(program, Copier(), size_bytes=0x2000)
    assert bridged.hear().startswith("refused The model behind port")
    assert bridged.end() == 1
    assert "a window of 0x2000 B" in str(bridged.error)


class Leaving(Copier):
    """A model whose connection breaks at the first read."""

    def read(self, offset: int, width: int) -> int:
        raise RenodeError("gone")


def test_a_model_that_is_gone_aborts_the_core_once(program: Path) -> None:
    bridged = Bridged(program, Leaving())
    assert bridged.do("r", 4, 4) == "abort"
    assert bridged.do("r", 4, 4) == "0"
    assert bridged.log == ["log error The model is gone: it closed the connection"]
    assert bridged.end() == 0


@pytest.mark.parametrize("name", list(jobs()))
def test_each_operation_of_woofles(program: Path, name: str) -> None:
    job = jobs()[name]
    expected = job.expected
    bridged = Bridged(program, WooflesModel())
    addresses = {each: MEMORY + 0x1000 * number for number, each in enumerate([*job.arrays, "output", "ring"], 1)}
    for each, array in job.arrays.items():
        bridged.put(addresses[each], array.tobytes())
    names = {"weights": "second"} if "weights" in job.arrays else {}
    placed = {names.get(each, each): address for each, address in addresses.items() if each != "ring"}
    bridged.put(addresses["ring"], replace(job.command, **placed).encode())

    def write(register: str, value: int) -> None:
        assert bridged.do("w", 4, TABLE.register(register).offset, value) == "ok"

    control = TABLE.register("CONTROL")
    write("QUEUE_BASE", addresses["ring"])
    write("QUEUE_LENGTH", 2)
    write("CONTROL", control.field("ENABLE").mask | control.field("IRQ_ENABLE").mask)
    assert bridged.do("i") == "0"
    write("QUEUE_HEAD", 1)
    assert bridged.do("i") == "0"
    bridged.do("t", 1 << 30)
    assert bridged.do("i") == "1"
    assert int(bridged.do("r", 4, TABLE.register("COMPLETED").offset)) == 1
    output = np.frombuffer(bridged.get(addresses["output"], expected.size), np.int8)
    assert np.array_equal(output, expected.reshape(-1))
    assert bridged.end() == 0
    assert (bridged.error, bridged.log) == (None, [])
