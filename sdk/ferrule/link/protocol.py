# SPDX-License-Identifier: Apache-2.0
"""The messages of the link and their layouts, little-endian; `docs/link.md` describes them."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from struct import Struct

from ferrule._frozen import frozen
from ferrule.graph.datatype import DataType
from ferrule.link.errors import LinkError

PROTOCOL_VERSION = 1
MAX_PAYLOAD_BYTES = 1024
MAX_RANK = 8
NO_OPERATOR = 0xFFFF_FFFF
"""The value of the failed operator's index if no operator failed."""
RESPONSE = 0x80
"""Added to a request's type to form the type of its response."""


class MessageType(IntEnum):
    """The requests, and the two other frames that are not plain responses."""

    HELLO = 0x01
    MODEL_INFO = 0x02
    TENSOR_INFO = 0x03
    WRITE_INPUT = 0x04
    RUN = 0x05
    READ_COUNTERS = 0x06
    READ_OUTPUT = 0x07
    STACK = 0x08
    DEVICE_TRACE = 0x09
    BUILD_INFO = 0x0A
    CHOOSE_MODEL = 0x0B
    SELF_TEST = 0x0C
    STATISTICS = 0x0D
    STARTED = 0x45
    ERROR = 0xFF


class ErrorCode(IntEnum):
    """The firmware's reason for refusing a request."""

    VERSION = 1
    TYPE = 2
    LENGTH = 3
    INDEX = 4
    RANGE = 5
    FLAGS = 6
    STATE = 7


class Status(IntEnum):
    """The status that C functions return: `enum ferrule_status` of include/ferrule/status.h."""

    OK = 0
    ARGUMENT = -1
    UNSUPPORTED = -2
    MEMORY = -3
    FAILED = -4
    UNAVAILABLE = -5
    HANDLE = -6
    STATE = -7
    BUSY = -8
    TIMEOUT = -9
    INTERRUPT = -10
    OWNER = -11
    DEVICE = -12
    CANCELLED = -13
    ITERATIONS = -14
    UNSTOPPABLE = -15


def status_text(status: int) -> str:
    """Return a status as readable text, such as "-9 (TIMEOUT)"; statuses other than Ferrule's have no name."""
    return f"{status} ({Status(status).name})" if status in set(Status) else str(status)


class CounterSource(StrEnum):
    """The hardware that counts on the board."""

    NONE = "none"
    DWT = "dwt"
    SYSTICK = "systick"

    @property
    def unit(self) -> str:
        """The unit of one count: a core cycle (an instruction on an emulator without cycles) or a timer tick."""
        return {CounterSource.NONE: "none", CounterSource.DWT: "cycles", CounterSource.SYSTICK: "ticks"}[self]


_SOURCES = tuple(CounterSource)  # the firmware states an index
_TYPES: Mapping[int, DataType] = {
    1: DataType.INT8,
    2: DataType.INT16,
    3: DataType.INT32,
    4: DataType.INT64,
    5: DataType.UINT8,
    6: DataType.BOOL,
    7: DataType.FLOAT32,
    8: DataType.FLOAT16,
    9: DataType.UINT32,
    10: DataType.UINT64,
}
TYPE_CODES: Mapping[DataType, int] = {dtype: code for code, dtype in _TYPES.items()}
"""The codes of the element types: `enum ferrule_link_type` in C."""

SIZES = 7
"""The value of FERRULE_SIZES in ferrule/identity.h."""

_REQUESTS: Mapping[MessageType, Struct] = {
    MessageType.TENSOR_INFO: Struct("<BxH"),  # whether it is an output, index
    MessageType.WRITE_INPUT: Struct("<HxxI"),  # index, offset; the data follow
    MessageType.RUN: Struct("<B"),  # the sum of flags
    MessageType.READ_COUNTERS: Struct("<I"),  # index of the first
    MessageType.READ_OUTPUT: Struct("<HxxII"),  # index, offset, size
    MessageType.DEVICE_TRACE: Struct("<I"),  # index of the first call
    MessageType.CHOOSE_MODEL: Struct("<H"),  # index, or NO_CHOICE
    MessageType.STATISTICS: Struct("<HH"),  # device, index of the first count
}
"""The layouts of requests that have fields."""
PROFILE, TRACE, RESET = 1, 2, 4
"""The flags of RUN."""
NO_CHOICE = 0xFFFF
"""In place of the index of a model that is chosen: the choice stays as it is."""
WRITE_HEADER_BYTES = _REQUESTS[MessageType.WRITE_INPUT].size
"""Size of the header before the data in the payload of WRITE_INPUT."""


def request(kind: MessageType, *fields: int) -> bytes:
    """Return the payload of a request with these fields, in the order of its layout."""
    return _REQUESTS.get(kind, Struct("")).pack(*fields)


@dataclass
class _Reader:
    """Decodes a payload step by step; a malformed payload is a LinkError that names the message."""

    _message: MessageType
    _payload: bytes
    _at: int = 0

    def fail(self, what: str) -> LinkError:
        return LinkError(f"the firmware's {self._message.name} response is malformed: {what}")

    def take(self, layout: str) -> tuple[int, ...]:
        try:
            values = struct.unpack_from(layout, self._payload, self._at)
        except struct.error as error:
            raise self.fail(f"{len(self._payload)} bytes are too few") from error
        self._at += struct.calcsize(layout)
        return values

    def text(self) -> str:
        rest = self._payload[self._at :]
        if not rest or len(rest) < 1 + rest[0]:
            raise self.fail(f"a text at byte {self._at} is cut off")
        self._at += 1 + rest[0]
        return rest[1 : 1 + rest[0]].decode("utf-8", errors="replace")

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._payload)

    def end(self) -> None:
        if self._at != len(self._payload):
            raise self.fail(f"it has {len(self._payload)} bytes, expected {self._at}")


@frozen
class Hello:
    """The response to HELLO: the identity of the firmware and the largest payload that it accepts."""

    firmware: str
    firmware_version: str
    max_payload_bytes: int

    @classmethod
    def decode(cls, payload: bytes) -> Hello:
        """Decode the response to HELLO."""
        reader = _Reader(MessageType.HELLO, payload)
        (size,) = reader.take("<H")
        hello = cls(max_payload_bytes=size, firmware=reader.text(), firmware_version=reader.text())
        reader.end()
        return hello


@frozen
class LinkTensor:
    """An input or an output of the model on the board."""

    name: str
    dtype: DataType
    shape: tuple[int, ...]
    size_bytes: int

    @classmethod
    def decode(cls, payload: bytes) -> LinkTensor:
        """Decode the response to TENSOR_INFO."""
        reader = _Reader(MessageType.TENSOR_INFO, payload)
        code, rank, size = reader.take("<BBI")
        if code not in _TYPES or rank > MAX_RANK:
            raise reader.fail(f"element type {code} or rank {rank} is unknown")
        dtype, shape = _TYPES[code], reader.take(f"<{rank}I")
        tensor = cls(name=reader.text(), dtype=dtype, shape=shape, size_bytes=size)
        reader.end()
        if math.prod(shape) * dtype.size_bytes != size:
            raise reader.fail(f"{size} bytes do not hold {dtype} of shape {list(shape)}")
        return tensor


@frozen
class ModelInfo:
    """The firmware's description of the model that it contains."""

    name: str
    input_hash: str
    """Hash of the graph that the firmware was generated from."""
    inputs: tuple[LinkTensor, ...]
    outputs: tuple[LinkTensor, ...]
    operator_count: int
    workspace_bytes: int
    stack_bytes: int
    counter: CounterSource


def decode_model(payload: bytes) -> tuple[ModelInfo, int, int]:
    """Return the model of a MODEL_INFO response without its tensors, which are requested one by one, and their numbers.

    The numbers are those of the inputs and of the outputs.
    """
    reader = _Reader(MessageType.MODEL_INFO, payload)
    inputs, outputs, operators, workspace, stack, source = reader.take("<IIIIIB")
    if source >= len(_SOURCES):
        raise reader.fail(f"counter source {source} is unknown")
    info = ModelInfo(
        name=reader.text(),
        input_hash=reader.text(),
        inputs=(),
        outputs=(),
        operator_count=operators,
        workspace_bytes=workspace,
        stack_bytes=stack,
        counter=_SOURCES[source],
    )
    reader.end()
    return info, inputs, outputs


class SelfTest(IntEnum):
    """The result of a firmware's self-test: the first part that is damaged; enum ferrule_self_test_part."""

    EQUAL = 0
    CODE = 1
    CONSTANTS = 2
    WEIGHTS = 3
    RECORD = 4
    NOT_RECORDED = 5

    @classmethod
    def decode(cls, payload: bytes) -> SelfTest:
        """Decode the response to SELF_TEST."""
        reader = _Reader(MessageType.SELF_TEST, payload)
        (part,) = reader.take("<I")
        reader.end()
        if part not in set(cls):
            raise reader.fail(f"the result is {part}, expected 0 to {max(cls)}")
        return cls(part)


@frozen
class BuildInfo:
    """The firmware's statement of what it was generated from and how it was compiled; unknown texts are empty."""

    model: str
    """Digest of the network, in hexadecimal, like those below: `struct ferrule_identity` describes them."""
    plan: str
    sources: str
    sizes: tuple[int, ...] | None
    """Bytes of code, constants, weights, data, bss, workspace and stack; None if the linker script states none."""
    platform: str
    board: str
    compiler: str
    """The compiler's name and version, as the compiler states them."""
    flags: str
    """The flags that select the core, and the optimization level."""

    @classmethod
    def decode(cls, payload: bytes) -> BuildInfo:
        """Decode the response to BUILD_INFO."""
        reader = _Reader(MessageType.BUILD_INFO, payload)
        model, plan, sources = (bytes(reader.take("<16B")).hex() for _ in range(3))
        (count,) = reader.take("<B")
        if count not in {0, SIZES}:
            raise reader.fail(f"it has {count} sizes, expected none or {SIZES}")
        sizes = reader.take(f"<{count}I") if count else None
        platform, board, compiler, flags = (reader.text() for _ in range(4))
        reader.end()
        return cls(
            model=model,
            plan=plan,
            sources=sources,
            sizes=sizes,
            platform=platform,
            board=board,
            compiler=compiler,
            flags=flags,
        )


@frozen
class RunResult:
    """The result of a run."""

    status: int
    """0 for success, or a negative `enum ferrule_status`."""
    failed_operator: int | None
    total: int
    """Count from call to return, in the counter's unit."""

    @classmethod
    def decode(cls, payload: bytes) -> RunResult:
        """Decode the response to RUN."""
        reader = _Reader(MessageType.RUN, payload)
        status, operator, total = reader.take("<iIQ")
        reader.end()
        if status == 0 and operator != NO_OPERATOR:
            raise reader.fail(f"it states success, and that operator {operator} failed")
        return cls(status=status, failed_operator=None if operator == NO_OPERATOR else operator, total=total)


@frozen
class StackUse:
    """Stack use of the last run, in bytes, measured by filling the stack with a pattern."""

    run_bytes: int
    """Stack used below the caller of the model."""
    peak_bytes: int
    """Stack used below the top of the stack."""
    size_bytes: int
    """Size of the whole stack; 0 if the firmware does not know it."""

    @classmethod
    def decode(cls, payload: bytes) -> StackUse:
        """Decode the response to STACK."""
        reader = _Reader(MessageType.STACK, payload)
        run, peak, size = reader.take("<III")
        reader.end()
        if run > peak:
            raise reader.fail(f"the run used {run} bytes of stack, and all until then {peak}")
        return cls(run_bytes=run, peak_bytes=peak, size_bytes=size)


@frozen
class LinkCall:
    """A device call in the last traced run."""

    operator: int
    """Index of the operator that the call belongs to."""
    device: int
    """The device's number, in the order of the devices struct."""
    call: int
    """The kind of call: `enum ferrule_device_call`."""
    status: int


@frozen
class DeviceTrace:
    """A part of the calls of the last run."""

    count: int
    """Number of all calls of the run."""
    calls: tuple[LinkCall, ...]

    @classmethod
    def decode(cls, payload: bytes) -> DeviceTrace:
        """Decode the response to DEVICE_TRACE."""
        reader = _Reader(MessageType.DEVICE_TRACE, payload)
        (count,) = reader.take("<I")
        calls = []
        while not reader.is_at_end:
            operator, device, call, status = reader.take("<IHHi")
            calls.append(LinkCall(operator=operator, device=device, call=call, status=status))
        return cls(count=count, calls=tuple(calls))


@frozen
class ModelChoice:
    """The response to CHOOSE_MODEL."""

    count: int
    """Number of models in the firmware."""
    chosen: int
    """Index of the model that all other requests are about."""

    @classmethod
    def decode(cls, payload: bytes) -> ModelChoice:
        """Decode the response to CHOOSE_MODEL."""
        reader = _Reader(MessageType.CHOOSE_MODEL, payload)
        count, chosen = reader.take("<HH")
        reader.end()
        if chosen >= count:
            raise reader.fail(f"model {chosen} of {count} is chosen")
        return cls(count=count, chosen=chosen)


def decode_statistics(payload: bytes) -> dict[str, int]:
    """Return the counts in a STATISTICS response, by name; LinkError if two have one name."""
    reader, found = _Reader(MessageType.STATISTICS, payload), dict[str, int]()
    while not reader.is_at_end:
        (count,) = reader.take("<I")
        name = reader.text()
        if name in found:
            raise reader.fail(f"it has two counts '{name}'")
        found[name] = count
    return found


def decode_counters(payload: bytes) -> tuple[int, ...]:
    """Return the counters in a READ_COUNTERS response."""
    if len(payload) % 4:
        raise LinkError(f"the firmware's READ_COUNTERS response has {len(payload)} bytes, not a multiple of 4")
    return Struct(f"<{len(payload) // 4}I").unpack(payload)


def decode_error(payload: bytes) -> tuple[int, str]:
    """Return the code and the text of an ERROR frame."""
    reader = _Reader(MessageType.ERROR, payload)
    (code,) = reader.take("<B")
    return code, reader.text()
