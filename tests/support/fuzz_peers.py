# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets: the peers of a connection, each of which gets hostile bytes from the other end."""

from __future__ import annotations

import io
import random
import socket
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
from copier import Copier
from fuzzing import Check, Target, refused
from host_link import HostChannel, HostFirmware, compile_host_firmware
from mutation import mutate
from needs import require_cc, require_module
from text_mutation import mutate_text
from transcript import chunks

from ferrule._typing import override
from ferrule.architectures import CORTEX_M
from ferrule.backends.uart_woofles import UartWooflesModel, protocol
from ferrule.devices import SerialModel
from ferrule.emulation.gdb import GdbStub
from ferrule.emulation.gdb.packets import Packet, PacketReader, frame
from ferrule.emulation.renode.bridge import HEADER, BridgeServer
from ferrule.emulation.renode.cosimulation import Action, CosimulationPeer, WireFormat
from ferrule.emulation.renode.external_control import ExternalControl, FramedControl, LegacyControl
from ferrule.emulation.renode.monitor import Monitor
from ferrule.emulation.renode.robot import RobotServer
from ferrule.emulation.renode.stream import Stream
from ferrule.graph import Array
from ferrule.link import Channel, LinkSession
from ferrule.link.frame import Frame, FrameReceiver
from ferrule.link.protocol import RESPONSE, MessageType

_INPUTS: list[Array] = [np.zeros((1, 1, 1, 3), np.uint8), np.zeros(3, np.int16)]
_WIDE, _NARROW = struct.pack("<I", 30900), struct.pack("<I", 3)
_NUMBERS = (0, 1, 2, 3, 4, 8, 16, 255, 256, 4096, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


class EndedError(Exception):
    """A peer has nothing more to say."""


class Line:
    """A socket whose other end has sent some pieces, and accepts anything; a read ends with a piece."""

    family = socket.AF_UNIX

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = [piece for piece in reversed(pieces) if piece]

    def settimeout(self, _seconds: float | None) -> None:
        """Do nothing: data arrives at once."""

    def sendall(self, _data: bytes) -> None:
        """Drop the data."""

    def recv(self, size_bytes: int) -> bytes:
        """Return the next bytes, up to `size_bytes`, or none at the end."""
        if not self._pieces:
            return b""
        piece = self._pieces.pop()
        if len(piece) > size_bytes:
            self._pieces.append(piece[size_bytes:])
        return piece[:size_bytes]

    def makefile(self, _mode: str) -> io.BytesIO:
        """Return the received bytes as a file."""
        return io.BytesIO(b"".join(reversed(self._pieces)))

    def close(self) -> None:
        """Do nothing."""


def _line(*pieces: bytes) -> socket.socket:
    return cast("socket.socket", Line(pieces))


def _stream(*pieces: bytes) -> Stream:
    return Stream(_line(*pieces), name="fuzz")


def damaged(pieces: Sequence[bytes], choice: random.Random) -> list[bytes]:
    """Return messages of which some are damaged, dropped, repeated or exchanged; at least one is."""
    result = list(pieces)
    for _ in range(choice.choice((1, 1, 2, 4))):
        if not result:
            result = [choice.randbytes(8)]
        place = choice.randrange(len(result))
        kind = choice.randrange(6)
        if kind == 0:
            del result[place]
        elif kind == 1:
            result.insert(place, choice.choice(result))
        elif kind == 2:
            other = choice.randrange(len(result))
            result[place], result[other] = result[other], result[place]
        elif kind == 3 and len(result[place]) >= 4:
            piece = bytearray(result[place])
            size = choice.choice([size for size in (1, 2, 4, 8) if size <= len(piece)])
            at = choice.randrange(len(piece) - size + 1)
            piece[at : at + size] = (choice.choice(_NUMBERS) % 2 ** (8 * size)).to_bytes(size, "little")
            result[place] = bytes(piece)
        else:
            result[place] = mutate(result[place], pieces, choice)
    return result


# ---- the link


class Hostile(Channel):
    """A channel whose other end answers each request by a damaged answer of a firmware."""

    def __init__(self, answers: dict[tuple[int, bytes], bytes], choice: random.Random) -> None:
        self._answers = answers
        self._choice = choice
        self._receiver = FrameReceiver()
        self._waiting = b""
        self._said = 0
        self._rate = choice.choice((0.01, 0.05, 0.25))

    @override
    def write(self, data: bytes) -> None:
        """Answer each request, mostly properly."""
        for request in self._receiver.feed(data):
            payload = self._answers.get((request.type, request.payload), b"")
            if request.type == MessageType.READ_OUTPUT:
                payload = bytes(min(struct.unpack_from("<I", request.payload[-4:])[0], 1024))
            kind, sequence = request.type | RESPONSE, request.sequence
            if self._choice.random() < self._rate:
                payload = (damaged([payload], self._choice) or [b""])[0]
            if self._choice.random() < self._rate / 8:
                kind, sequence = self._choice.choice((0xFF, kind ^ 1, 0x83)), self._choice.choice((sequence, 7))
            wire = Frame(version=1, type=kind, sequence=sequence, payload=payload[:8000]).encode()
            self._waiting += mutate(wire, [wire], self._choice) if self._choice.random() < self._rate / 4 else wire

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        """Return what is waiting."""
        del timeout_s
        self._said += 1
        if self._said > 3000:
            raise EndedError
        data, self._waiting = self._waiting[:max_bytes], self._waiting[max_bytes:]
        return data

    @override
    def close(self) -> None:
        """Do nothing."""


def _link_host(folder: Path) -> Check:
    require_module("cffi", "pip install 'ferrule[run]'")
    library = folder / "firmware.so"
    compile_host_firmware(require_cc(), library, "-shared", "-fPIC")
    answers = _recorded(HostFirmware(library))

    def check(choice: random.Random) -> bool:
        session = LinkSession(Hostile(answers, choice), timeout_s=0.0, retries=1, run_timeout_s=0.0)
        with refused():
            try:
                session.model_info()
                session.run(_INPUTS, profile=choice.random() < 0.3, trace=choice.random() < 0.1)
            except EndedError:
                return False
            return True
        return False

    return check


def _recorded(firmware: HostFirmware) -> dict[tuple[int, bytes], bytes]:
    """Return the payloads of the answers to the requests of a whole run, by type and payload of the request."""
    answers: dict[tuple[int, bytes], bytes] = {}

    def listening(data: bytes) -> bytes:
        (request,) = FrameReceiver().feed(data)
        answer = firmware.exchange(data)
        payload = list(FrameReceiver().feed(answer))[-1].payload
        for wide, narrow in ((struct.pack("<II", 100, 103), struct.pack("<II", 1, 1)), (_WIDE, _NARROW)):
            small = payload.replace(wide, narrow)  # a small image, so that a run takes few requests
            answers[request.type, request.payload] = payload = small
        return answer

    firmware.reset()
    channel = HostChannel(firmware)
    channel.to_firmware, channel.to_host = bytes, bytes
    channel._firmware = cast("HostFirmware", SimpleNamespace(exchange=listening))
    session = LinkSession(channel, timeout_s=0.0)
    session.run([np.zeros((1, 100, 103, 3), np.uint8), _INPUTS[1]])
    session.run([np.zeros((1, 100, 103, 3), np.uint8), _INPUTS[1]], profile=True)
    return answers


def _link_firmware(folder: Path) -> Check:
    require_module("cffi", "pip install 'ferrule[run]'")
    library = folder / "firmware.so"
    traps = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
    compile_host_firmware(require_cc(), library, "-shared", "-fPIC", *traps)
    firmware = HostFirmware(library)
    kinds = [int(kind) for kind in MessageType]
    payloads = [b"", bytes(4), struct.pack("<II", 0, 16), struct.pack("<HII", 0, 0, 16), b"\0\0" + bytes(100)]

    def check(choice: random.Random) -> bool:
        firmware.reset()
        answered = 0
        for number in range(choice.randrange(1, 6)):
            payload = damaged([choice.choice(payloads)], choice)[:1]
            request = Frame(
                version=choice.choice((1, 1, 1, 0, 255)),
                type=choice.choice((*kinds, choice.randrange(256))),
                sequence=number,
                payload=payload[0][:1500] if payload else b"",
            )
            wire = request.encode()
            if choice.random() < 0.2:
                wire = mutate(wire, [wire], choice)
            answered += sum(1 for _ in FrameReceiver().feed(firmware.exchange(wire)))
        return answered > 0

    return check


def _uart_woofles(folder: Path) -> Check:
    del folder
    from woofles_bench import jobs

    commands = [job.command.encode() for job in jobs().values()]
    payloads = {
        protocol.MessageType.HELLO: [protocol.HELLO.pack(0)],
        protocol.MessageType.WRITE: [protocol.ADDRESS.pack(0) + bytes(range(64)), protocol.ADDRESS.pack(1 << 15)],
        protocol.MessageType.READ: [protocol.RANGE.pack(0, 64), protocol.RANGE.pack(4096, 1024)],
        protocol.MessageType.EXECUTE: commands,
        protocol.MessageType.CHECK: [b""],
    }
    kinds = list(payloads)

    def check(choice: random.Random) -> bool:
        model = UartWooflesModel(memory_bytes=1 << 16, seed=1)
        model.receive(protocol.request(protocol.MessageType.HELLO, 0, protocol.HELLO.pack(0)).encode())
        for number in range(1, choice.randrange(2, 6)):
            kind = choice.choice(kinds)
            payload = choice.choice(payloads[kind])
            if choice.random() < 0.7:
                payload = (damaged([payload], choice) or [b""])[0][:2000]
            wire = protocol.request(kind, number, payload).encode()
            model.receive(mutate(wire, [wire], choice) if choice.random() < 0.1 else wire)
        return model.executed > 0

    return check


class Damaging(SerialModel):
    """The model of the accelerator behind a line that damages some of its answers."""

    def __init__(self, choice: random.Random) -> None:
        super().__init__()
        self._model = UartWooflesModel(memory_bytes=1 << 16, seed=1)
        self._choice = choice
        self._rate = choice.choice((0.02, 0.1, 0.5))

    @override
    def receive(self, data: bytes) -> bytes:
        answer = self._model.receive(data)
        if not answer or self._choice.random() > self._rate:
            return answer
        if self._choice.random() < 0.5:
            return b"".join(damaged([answer], self._choice))
        frames = list(FrameReceiver().feed(answer))  # a valid frame with other contents
        return b"".join(self._other(each).encode() for each in frames)

    def _other(self, answer: Frame) -> Frame:
        payload = (damaged([answer.payload], self._choice) or [b""])[0][:2000]
        return replace(answer, payload=payload, type=self._choice.choice((answer.type, answer.type, 0xFF, 0xA2)))


def _uart_driver(folder: Path) -> Check:
    del folder
    from uart_woofles_bench import DRIVER, UartBench
    from woofles_bench import jobs

    from ferrule.testing import build_adapter

    adapter = build_adapter("bare_metal", **DRIVER)
    known = list(jobs().values())

    def check(choice: random.Random) -> bool:
        adapter.reset()
        bench = UartBench(adapter, model=Damaging(choice))
        statuses = [bench.run(choice.choice(known))[0] for _ in range(2)]
        assert all(-64 < status <= 0 for status in statuses), statuses
        return not any(statuses)

    return check


# ---- gdb


class Core:
    """A core that asserts what the emulators' bindings require: numbers of 32 bits, sizes that are not negative."""

    def __init__(self) -> None:
        self._registers = dict.fromkeys(CORTEX_M.registers.all, 0)
        self._memory = bytearray(4096)

    def register(self, name: str) -> int:
        """Return a register."""
        return self._registers[name]

    def set_register(self, name: str, value: int) -> None:
        """Set a register."""
        assert 0 <= value < 2**32, value
        self._registers[name] = value

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """Return bytes of the memory."""
        assert 0 <= address < 2**32, address
        assert size_bytes >= 0, size_bytes
        return bytes(self._memory[address : address + size_bytes])

    def write_memory(self, address: int, data: bytes) -> bool:
        """Write bytes of the memory."""
        assert 0 <= address < 2**32, address
        if address + len(data) > len(self._memory):
            return False
        self._memory[address : address + len(data)] = data
        return True


_GDB = (
    *("?", "g", "G" + "00" * 68, "p0", "pf", "P0=00000000", "Pf=00010000", "m0,10", "M0,2:0102", "c", "c100", "s"),
    *("Z0,100,2", "z0,100,2", "Hg0", "T1", "D", "k", "qSupported:x", "qXfer:features:read:target.xml:0,ffb", "qC"),
    *("QStartNoAckMode", "vCont?", "vCont;c", "vCont;s:1", "vKill;1", "mffffffff,10", "Mfffffffe,4:01020304"),
)


def _gdb(folder: Path) -> Check:
    del folder

    def check(choice: random.Random) -> bool:
        stub, reader, answered = GdbStub(Core(), CORTEX_M.registers), PacketReader(), 0
        for _ in range(choice.randrange(1, 6)):
            wire = frame(mutate_text(choice.choice(_GDB), _GDB, choice)[:3000])
            if choice.random() < 0.2:
                wire = mutate(wire, [wire], choice)
            for item in reader.feed(wire):
                if isinstance(item, Packet):
                    answer = stub.answer(item.payload)
                    answered += bool(answer)
                    if isinstance(answer, bytes):
                        frame(answer)
        return answered > 0

    return check


# ---- Renode's servers


def _control(folder: Path) -> Check:
    del folder
    recorded = [chunk.data for chunk in chunks("external_control", 1) if chunk.by_renode]

    def framed(choice: random.Random) -> list[bytes]:
        numbers = range(choice.randrange(1, 8))
        size = choice.choice((0, 1, 4, 8, 16))
        return [
            struct.pack("<HIHB", 0x8000 | n, 3 + size, choice.choice((0, 2, 3, 6)), 2) + bytes(size) for n in numbers
        ]

    def check(choice: random.Random) -> bool:
        use_frames = choice.random() < 0.4
        data = damaged(framed(choice) if use_frames else recorded, choice)
        with refused():
            stream = _stream(*data)
            control = ExternalControl(FramedControl(stream) if use_frames else LegacyControl(stream))
            control.time_s()
            machine = control.machine("m")
            control.run_for(0.001)
            control.time_s()
            control.write(machine, 0x2000_2000, bytes(16))
            control.read(machine, 0x2000_2000, 16)
            if choice.random() < 0.5:
                return True
            control.pin(machine, "sysbus.gpio", 1)
            control.adc_channels(machine, "sysbus.adc")
            return True
        return False

    return check


_XML = (
    "<?xml version='1.0'?><methodResponse><params><param><value><struct><member><name>status</name><value><string>PASS"
    "</string></value></member><member><name>return</name><value><struct><member><name>Line</name><value><string>ok"
    "</string></value></member><member><name>Timestamp</name><value><double>1.5</double></value></member></struct>"
    "</value></member></struct></value></param></params></methodResponse>",
    "<?xml version='1.0'?><methodResponse><params><param><value><array><data><value><string>ExecuteCommand</string>"
    "</value><value><i4>3</i4></value><value><base64>AAEC</base64></value><value><dateTime.iso8601>20260101T00:00:00"
    "</dateTime.iso8601></value><value><boolean>1</boolean></value></data></array></value></param></params>"
    "</methodResponse>",
    "<?xml version='1.0'?><methodResponse><fault><value><struct><member><name>faultCode</name><value><int>4</int>"
    "</value></member><member><name>faultString</name><value><string>no</string></value></member></struct></value>"
    "</fault></methodResponse>",
)


def _robot(folder: Path) -> Check:
    del folder

    def answer(choice: random.Random) -> bytes:
        body = mutate_text(choice.choice(_XML), _XML, choice)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
        return (mutate_text(head, [head], choice) if choice.random() < 0.2 else head.encode()) + body

    def check(choice: random.Random) -> bool:
        data = answer(choice)
        server = RobotServer(1, connector=lambda _port, _limit: _line(data))
        with refused():
            kind = choice.randrange(4)
            if kind == 0:
                server.keywords()
            elif kind == 1:
                server.execute("version")
            elif kind == 2:
                server.terminal_tester("sysbus.uart0")
            else:
                from ferrule.emulation.renode.robot import TerminalTester

                TerminalTester(server, 1).wait_for_line("x")
            return True
        return False

    return check


_MONITOR = (
    "\xff\xfd\x1fRenode, version 1.16.1 (abc)\r\n\r\n(monitor) ",
    "mach create\r\n(machine-0) ",
    "\x1b[31mThere was an error\x1b[0m\r\n(machine-0) ",
)


def _monitor(folder: Path) -> Check:
    del folder
    pieces = [text.encode("latin-1") for text in _MONITOR]

    def check(choice: random.Random) -> bool:
        with refused():
            monitor = Monitor(_stream(*damaged(pieces, choice)))
            monitor.execute("mach create")
            monitor.execute("help")
            return True
        return False

    return check


def _bridge(folder: Path) -> Check:
    del folder
    size = Copier().size_bytes
    requests = [
        (1, 1, size, 0, 0),
        (2, 4, 4, 0, 10),
        (3, 0, 4, 1, 0),
        (3, 0, 4, 0, 1),
        (4, 0, 0, 0, 0),
        (5, 0, 0, 0, 700),
    ]
    replies = [
        HEADER.pack(18, 0, 0, 100, 0) + bytes(100),
        HEADER.pack(18, 0, 0, 0, 0),
        HEADER.pack(18, 1, 0, 2, 0) + b"no",
    ]
    known = [HEADER.pack(*request) for request in requests]

    def check(choice: random.Random) -> bool:
        pieces = [known[0], *(choice.choice((*known, *replies)) for _ in range(choice.randrange(1, 8)))]
        with refused():
            BridgeServer(Copier(), _stream(*damaged(pieces, choice))).serve()
            return True
        return False

    return check


def _cosimulation(folder: Path) -> Check:
    del folder

    def message(choice: random.Random) -> bytes:
        action = choice.choice((1, 2, 3, 4, 6, 10, 21, 22, 23, 24, 25, 26, 27, 28, 2, 31, choice.randrange(110)))
        place = choice.choice((0, 4, 8, 0x1000, choice.choice(_NUMBERS) % 2**64))
        return struct.pack("<iQQi", action, place, choice.choice((0, 1, 100, choice.choice(_NUMBERS) % 2**64)), 0)

    def check(choice: random.Random) -> bool:
        pieces = damaged([message(choice) for _ in range(choice.randrange(1, 12))], choice)
        pieces.append(struct.pack("<iQQi", Action.DISCONNECT, 0, 0, 0))
        with refused():
            peer = CosimulationPeer(Copier(), _stream(*pieces), _stream(b""), wire=WireFormat.V1_16)
            if choice.random() < 0.5:
                peer.use_ticks()
            peer.serve()
            return True
        return False

    return check


def _needs_cc() -> None:
    require_cc()
    require_module("cffi", "pip install 'ferrule[run]'")


TARGETS = (
    Target(name="link-host", share=0.04, prepare=_link_host, rate=1500, needs=_needs_cc),
    Target(name="link-firmware", share=0.05, prepare=_link_firmware, needs=_needs_cc),
    Target(name="uart-woofles", share=0.04, prepare=_uart_woofles),
    Target(name="uart-driver", share=0.01, prepare=_uart_driver, rate=30, sample=5, needs=_needs_cc),
    Target(name="gdb", share=0.04, prepare=_gdb, rate=5000),
    Target(name="control", share=0.03, prepare=_control, rate=5000),
    Target(name="robot", share=0.03, prepare=_robot),
    Target(name="monitor", share=0.02, prepare=_monitor, rate=5000),
    Target(name="bridge", share=0.02, prepare=_bridge, rate=5000),
    Target(name="cosimulation", share=0.02, prepare=_cosimulation, rate=5000),
)
