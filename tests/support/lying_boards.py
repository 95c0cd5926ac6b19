# SPDX-License-Identifier: Apache-2.0
"""Boards behind the link that are no firmware: one that answers as the firmware would, and others that lie.

They know everything that a firmware states of itself, and compute with numpy. Each lie overrides one answer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ferrule import Firmware
from ferrule._typing import override
from ferrule.firmware.identification import read_identities
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.link import Channel, Status
from ferrule.link.frame import Frame, FrameReceiver
from ferrule.link.protocol import NO_OPERATOR, PROTOCOL_VERSION, RESPONSE, TYPE_CODES, ErrorCode, MessageType

_PAYLOAD = 1024
_DWT = 1


class HonestBoard(Channel):
    """The other end of the link: answers each request at once, as the firmware would."""

    def __init__(self, firmware: Firmware) -> None:
        self.network = firmware.network
        self.artifact = firmware.artifact
        (self.identity,) = read_identities(firmware.image)
        self.version, self.digest = PROTOCOL_VERSION, self.artifact.digest[:32]
        self.inputs: list[TensorInfo] = list(self.network.inputs)
        self.outputs: list[TensorInfo] = list(self.network.outputs)
        self.operators, self.workspace = len(self.artifact.operators), self.artifact.workspace_bytes
        self.stack, self.total, self.status, self.failed = (100, 200, 1024), 1000, 0, NO_OPERATOR
        self.runs = 0
        self._receiver, self._sent = FrameReceiver(), bytearray()
        self._written = [bytearray(info.size_bytes) for info in self.network.inputs]
        self._results: list[bytes] = [bytes(info.size_bytes) for info in self.outputs]

    @override
    def write(self, data: bytes) -> None:
        for frame in self._receiver.feed(data):
            for each in self.frames(frame):
                self._sent += each.encode()

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        del timeout_s
        data = bytes(self._sent[:max_bytes])
        del self._sent[:max_bytes]
        return data

    @override
    def close(self) -> None:
        pass

    def frames(self, request: Frame) -> list[Frame]:
        """Return what the board sends for a request."""
        answer = self.answer(MessageType(request.type), request.payload)
        kind = MessageType.ERROR if answer is None else request.type | RESPONSE
        payload = bytes([ErrorCode.TYPE]) + text("unknown") if answer is None else answer
        return [Frame(version=self.version, type=kind, sequence=request.sequence, payload=payload)]

    def answer(self, kind: MessageType, payload: bytes) -> bytes | None:
        """Return the payload of a response; None for a request that is unknown."""
        match kind:
            case MessageType.HELLO:
                return struct.pack("<H", _PAYLOAD) + text("ferrule") + text("1")
            case MessageType.MODEL_INFO:
                counts = (len(self.inputs), len(self.outputs), self.operators, self.workspace, self.stack[2])
                return struct.pack("<5IB", *counts, _DWT) + text(self.network.name) + text(self.digest)
            case MessageType.TENSOR_INFO:
                is_output, index = struct.unpack("<BxH", payload)
                return _tensor((self.outputs if is_output else self.inputs)[index])
            case MessageType.BUILD_INFO:
                return self.build_info()
            case MessageType.WRITE_INPUT:
                index, offset = struct.unpack_from("<HxxI", payload)
                self._written[index][offset : offset + len(payload) - 8] = payload[8:]
                return b""
            case MessageType.RUN:
                self._results = self.computed()
                self.runs += 1
                return struct.pack("<iIQ", self.status, self.failed, self.total)
            case MessageType.STACK:
                return struct.pack("<3I", *self.stack)
            case MessageType.READ_COUNTERS:
                return self.counters()
            case MessageType.READ_OUTPUT:
                return self.piece(*struct.unpack("<HxxII", payload))
        return None

    def build_info(self) -> bytes:
        """Return the identity."""
        stated = self.identity
        digests = b"".join(map(bytes.fromhex, (stated.model, stated.plan, stated.sources)))
        texts = (stated.platform, stated.board, stated.compiler, stated.flags)
        return digests + b"\0" + b"".join(map(text, texts))

    def sample(self) -> list[Array]:
        """Return the inputs that were written last."""
        return [
            np.frombuffer(bytes(data), info.dtype.numpy).reshape(info.shape)
            for data, info in zip(self._written, self.network.inputs, strict=True)
        ]

    def computed(self) -> list[bytes]:
        """Return the outputs of a run."""
        return [each.tobytes() for each in self.network.run(self.sample())]

    def counters(self) -> bytes:
        """Return the counts of all operators."""
        return struct.pack(f"<{self.operators}I", *[self.total // max(1, self.operators)] * self.operators)

    def piece(self, index: int, offset: int, size: int) -> bytes:
        """Return a part of an output."""
        return self._results[index][offset : offset + size]


def text(value: str) -> bytes:
    """Return a text of the link."""
    data = value.encode()
    return bytes([len(data)]) + data


def _tensor(info: TensorInfo) -> bytes:
    shape = struct.pack(f"<{len(info.shape)}I", *info.shape)
    return struct.pack("<BBI", TYPE_CODES[info.dtype], len(info.shape), info.size_bytes) + shape + text(info.name)


class Zeros(HonestBoard):
    """States all digests as expected, and computes nothing."""

    @override
    def computed(self) -> list[bytes]:
        return [bytes(info.size_bytes) for info in self.outputs]


class OneBehind(HonestBoard):
    """Answers for the sample before."""

    before: Sequence[Array] | None = None

    @override
    def computed(self) -> list[bytes]:
        given = [each.copy() for each in self.sample()]
        made = self.network.run(given if self.before is None else self.before)
        self.before = given
        return [each.tobytes() for each in made]


class Repeating(HonestBoard):
    """Repeats its first answer for all runs."""

    first: list[bytes] | None = None

    @override
    def computed(self) -> list[bytes]:
        self.first = self.first or super().computed()
        return self.first


class OneBit(HonestBoard):
    """Has one bit of the last output wrong."""

    @override
    def computed(self) -> list[bytes]:
        *others, last = super().computed()
        return [*others, last[:-1] + bytes([last[-1] ^ 1])]


class Swapped(HonestBoard):
    """Answers with the outputs in another order."""

    @override
    def computed(self) -> list[bytes]:
        return super().computed()[::-1]


class NoNumber(HonestBoard):
    """Has only NaN as the numbers of floats."""

    @override
    def computed(self) -> list[bytes]:
        return [np.full(info.shape, np.nan, info.dtype.numpy).tobytes() for info in self.outputs]


class Empty(HonestBoard):
    """Claims success, and has no numbers."""

    @override
    def piece(self, index: int, offset: int, size: int) -> bytes:
        return b""


class TooMany(HonestBoard):
    """Has more bytes of outputs than were asked for."""

    @override
    def piece(self, index: int, offset: int, size: int) -> bytes:
        return super().piece(index, offset, size) + b"\0"


class NoCounters(HonestBoard):
    """Has no counts of its operators."""

    @override
    def counters(self) -> bytes:
        return b""


class OtherAnswer(HonestBoard):
    """Answers with the type of another response."""

    @override
    def frames(self, request: Frame) -> list[Frame]:
        return [replace(each, type=MessageType.STACK | RESPONSE) for each in super().frames(request)]


class OtherSequence(HonestBoard):
    """Answers with the number of another request."""

    @override
    def frames(self, request: Frame) -> list[Frame]:
        return [replace(each, sequence=(each.sequence + 1) % (1 << 16)) for each in super().frames(request)]


class OnlyStarted(HonestBoard):
    """Says that a run has begun, and nothing after."""

    @override
    def frames(self, request: Frame) -> list[Frame]:
        made = super().frames(request)
        return [replace(each, type=MessageType.STARTED) for each in made] if request.type == MessageType.RUN else made


class OlderBoard(HonestBoard):
    """Knows nothing of its build, as firmware from before BUILD_INFO; no lie."""

    @override
    def answer(self, kind: MessageType, payload: bytes) -> bytes | None:
        return None if kind is MessageType.BUILD_INFO else super().answer(kind, payload)


class NoModel(HonestBoard):
    """Has another model first, and no model among its models."""

    @override
    def answer(self, kind: MessageType, payload: bytes) -> bytes | None:
        self.digest = OTHER
        return struct.pack("<HH", 0, 0) if kind is MessageType.CHOOSE_MODEL else super().answer(kind, payload)


def stating(**facts: object) -> Callable[[Firmware], HonestBoard]:
    """Return boards that state other facts of themselves: attributes of `HonestBoard`."""

    def made(firmware: Firmware) -> HonestBoard:
        board = HonestBoard(firmware)
        for name, value in facts.items():
            assert hasattr(board, name), name
            setattr(board, name, value)
        return board

    return made


def identified(**facts: str) -> Callable[[Firmware], HonestBoard]:
    """Return boards with another identity."""

    def made(firmware: Firmware) -> HonestBoard:
        board = HonestBoard(firmware)
        board.identity = replace(board.identity, **facts)  # type: ignore[arg-type]  # texts only
        return board

    return made


def shaped(side: str, change: Callable[[list[TensorInfo]], list[TensorInfo]]) -> Callable[[Firmware], HonestBoard]:
    """Return boards that describe their inputs or outputs otherwise."""

    def made(firmware: Firmware) -> HonestBoard:
        board = HonestBoard(firmware)
        setattr(board, side, change(getattr(board, side)))
        return board

    return made


def _with(infos: list[TensorInfo], **facts: object) -> list[TensorInfo]:
    return [replace(infos[0], **facts), *infos[1:]]  # type: ignore[arg-type]


OTHER = "0123456789abcdef" * 2
DIFFERENT: dict[str, Callable[[Firmware], HonestBoard]] = {
    "zeros": Zeros,
    "one behind": OneBehind,
    "repeating": Repeating,
    "one bit": OneBit,
    "swapped": Swapped,
}
"""Boards whose answers are well-formed: only the comparison shows that they are wrong."""
REFUSED: dict[str, tuple[Callable[[Firmware], HonestBoard], str]] = {
    "empty outputs": (Empty, r"bytes of output 'sum' were requested, 0 arrived"),
    "too many bytes": (TooMany, r"6 bytes of output 'sum' were requested, 7 arrived"),
    "no counters": (NoCounters, r"counters 0 to 1 were requested, 0 arrived"),
    "another response": (OtherAnswer, r"the response to HELLO has type 0x88, expected 0x81"),
    "another request's": (OtherSequence, r"did not answer HELLO"),
    "started only": (OnlyStarted, r"the run did not end within"),
    "another model": (stating(digest=OTHER), r"was generated from another model \(two by two, 0123456789abcdef"),
    "no model": (NoModel, r"model 0 of 0 is chosen"),
    "hash of one digit": (lambda each: stating(digest=each.artifact.digest[:1])(each), r"from another model"),
    "longer hash": (lambda each: stating(digest=each.artifact.digest[:33])(each), r"from another model"),
    "no hash": (stating(digest=""), r"from another model \(two by two, \)"),
    "another version": (stating(version=2), r"speaks version 2 of the link protocol"),
    "identity of another model": (identified(model=OTHER), r"has the identity of another model \(0123456789abcdef"),
    "another plan": (identified(plan=OTHER), r"has another plan of the same model"),
    "another count of operators": (stating(operators=3), r"states 3 operators, expected 2"),
    "no operators": (stating(operators=0), r"states 0 operators, expected 2"),
    "another workspace": (stating(workspace=1 << 20), r"states a workspace of 1,048,576 B, expected"),
    "one output less": (shaped("outputs", lambda infos: infos[:1]), r"states 1 outputs, expected 2"),
    "no outputs": (shaped("outputs", lambda _: []), r"states 0 outputs, expected 2"),
    "one output more": (shaped("outputs", lambda infos: [*infos, infos[0]]), r"states 3 outputs, expected 2"),
    "empty output": (
        shaped("outputs", lambda infos: _with(infos, shape=(1, 0, 3))),
        r"'sum' has shape \[1, 0, 3\], expected positive extents",
    ),
    "another shape": (
        shaped("outputs", lambda infos: _with(infos, shape=(1, 3, 2))),
        r"'sum' as int8\[1, 3, 2\]",
    ),
    "another type": (shaped("outputs", lambda infos: _with(infos, dtype=DataType.UINT8)), r"'sum' as uint8\[1, 2, 3\]"),
    "another input": (shaped("inputs", lambda infos: _with(infos, shape=(1, 6))), r"input 'left' as int8\[1, 6\]"),
    "one input less": (shaped("inputs", lambda infos: infos[:1]), r"states 1 inputs, expected 2"),
    "success and a failed operator": (stating(failed=1), r"it states success, and that operator 1 failed"),
    "a failed run": (stating(status=int(Status.DEVICE), failed=1), r"the run failed in operator 1 .*maximum_1"),
    "a run without a cycle": (stating(total=0), r"that it took no cycle: nothing ran"),
    "more stack in the run than in all": (stating(stack=(300, 200, 1024)), r"used 300 bytes of stack, and all until"),
    "all of the stack": (stating(stack=(100, 1024, 1024)), r"used all 1024 bytes of the stack"),
}
"""Boards whose answers contradict each other or the firmware, and what the error says."""
