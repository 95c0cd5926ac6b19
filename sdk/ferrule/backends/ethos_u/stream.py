# SPDX-License-Identifier: Apache-2.0
"""The parser of command streams: the payload that a driver gets, and the operations in it with their registers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.commands import Elementwise, Kind, Long, Pool, Short
from ferrule.backends.ethos_u.errors import StreamError, UnsupportedModeError

Words = NDArray[np.uint32]

MAX_WORDS = 1 << 22
"""The longest stream that the NPU accepts: 16 MiB."""
_COP1 = 0x31504F43
_COP2 = 0x32504F43
_TAG_CONFIG, _TAG_STREAM, _TAG_NOP = 1, 2, 5
_MODES: dict[Kind, type[Pool | Elementwise]] = {Kind.POOL: Pool, Kind.ELEMENTWISE: Elementwise}
WORKING = frozenset({Kind.CONV, Kind.DEPTHWISE, Kind.POOL, Kind.ELEMENTWISE, Kind.DMA_START})
"""The operations that compute or copy; waits and STOP take no time of their own."""


@frozen(eq=False)
class Payload:
    """A stream with what its header states."""

    config_register: int
    """The register CONFIG of the NPU that the stream was compiled for."""
    words: Words
    """The commands, without the header."""


class Registers:
    """The registers at one operation; they keep their values from operation to operation, and are 0 at first."""

    __slots__ = ("_long", "_short")

    def __init__(self, short: dict[int, int] | None = None, long: dict[int, tuple[int, int]] | None = None) -> None:
        self._short = short or {}
        self._long = long or {}

    def __getitem__(self, code: Short) -> int:
        """Return the 16 bits of a register without payload."""
        return self._short.get(code, 0)

    def signed(self, code: Short) -> int:
        """Return the 16 bits of a register without payload as a signed number."""
        return sign_extend(self[code], 16)

    def is_set(self, code: Long) -> bool:
        """Return whether the stream has set a register with payload."""
        return code in self._long

    def payload(self, code: Long, default: int = 0) -> tuple[int, int]:
        """Return the payload, unsigned, and the parameter of a register."""
        return self._long.get(code, (default, 0))

    def address(self, code: Long) -> int:
        """Return a register as an unsigned address of 48 bits."""
        payload, parameter = self.payload(code)
        return payload | parameter << 32

    def stride(self, code: Long) -> int:
        """Return a register as a signed distance, of 32 bits if its parameter is 0, else of 40 or 48 bits."""
        value = self.address(code)
        for bits in (48, 40):
            if value >= 1 << (bits - 1):
                return value - (1 << bits)
        return value if value >> 32 else sign_extend(value, 32)


@frozen(eq=False)
class Operation:
    """An operation of a stream."""

    kind: Kind
    parameter: int
    """Mode of a pooling or an elementwise operation, limit of a wait, mask of STOP, IRQ and PMU_MASK."""
    word_offset: int
    """The place of its command, in words from the first."""
    registers: Registers

    @property
    def name(self) -> str:
        """The kind with its mode, such as "POOL MAX"."""
        mode = _MODES.get(self.kind)
        return f"{self.kind.name} {mode(self.parameter).name}" if mode is not None else self.kind.name


def sign_extend(value: int, bits: int) -> int:
    """Return the lowest `bits` of a number as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def parse_payload(data: bytes) -> Payload:
    """Return the stream in a payload that begins with COP1.

    Raises:
        StreamError: the header is malformed or the stream is truncated; offsets are those of the payload.
        UnsupportedModeError: the payload is COP2, which is for Ethos-U85.
    """
    if len(data) % 4 or not data:
        raise StreamError(f"the payload has {len(data)} bytes, expected a multiple of 4 above 0")
    words = np.frombuffer(data, "<u4")
    if words[0] == _COP2:
        raise UnsupportedModeError("the payload is COP2, expected COP1", word_offset=0)
    if words[0] != _COP1:
        raise StreamError(f"the payload begins with {int(words[0]):#010x}, expected COP1", word_offset=0)
    configuration: int | None = None
    at = 1
    while at < len(words):
        word = int(words[at])
        tag = word & 0xFF
        if tag == _TAG_NOP:
            at += 1
        elif tag == _TAG_CONFIG:
            if at + 3 > len(words):
                raise StreamError("the payload ends inside of its configuration", word_offset=at)
            configuration = int(words[at + 1])
            at += 3
        elif tag == _TAG_STREAM:
            if configuration is None:
                raise StreamError("the payload states no configuration before its stream", word_offset=at)
            length, left = (word >> 8 & 0xFF) << 16 | word >> 16, len(words) - at - 1
            if length > left:
                raise StreamError(f"the stream is truncated: it has {length} words, the payload {left}", word_offset=at)
            return Payload(config_register=configuration, words=words[at + 1 : at + 1 + length])
        else:
            raise StreamError(f"the payload has the tag {tag:#04x}, expected 0x01, 0x02 or 0x05", word_offset=at)
    raise StreamError("the payload has no command stream", word_offset=at)


def operations(words: Words) -> Iterator[Operation]:
    """Yield the operations of a stream in order, the last of them STOP.

    Raises:
        StreamError: a command is unknown, or the stream ends without STOP.
        UnsupportedModeError: the stream is longer than the NPU accepts.
    """
    if len(words) > MAX_WORDS:
        raise UnsupportedModeError(f"the stream has {len(words)} words, at most {MAX_WORDS} are accepted")
    commands: list[int] = np.asarray(words, np.uint32).tolist()
    short: dict[int, int] = {}
    long: dict[int, tuple[int, int]] = {}
    registers = Registers()
    changed = False
    at = 0
    while at < len(commands):
        word = commands[at]
        code, parameter = word & 0x3FF, word >> 16
        if word & 0x3C00 or word & 0x8000:
            raise StreamError(f"{word:#010x} is no command", word_offset=at, opcode=code)
        if word & 0x4000:
            if code not in _LONG:
                raise StreamError("no such register with payload", word_offset=at, opcode=code)
            if at + 1 == len(commands):
                raise StreamError("the stream is truncated in front of a payload", word_offset=at, opcode=code)
            long[code] = commands[at + 1], parameter
            changed = True
            at += 2
            continue
        if code in _SHORT:
            short[code] = parameter
            changed = True
        else:
            kind = _kind(code, parameter, at)
            if changed and kind in WORKING:
                registers, changed = Registers(dict(short), dict(long)), False
            yield Operation(kind=kind, parameter=parameter, word_offset=at, registers=registers)
            if kind is Kind.STOP:
                return
        at += 1
    raise StreamError("the stream ends without STOP", word_offset=at)


_SHORT = frozenset(map(int, Short))
_LONG = frozenset(map(int, Long))
_KINDS = {int(each): each for each in Kind}


def _kind(code: int, parameter: int, at: int) -> Kind:
    kind = _KINDS.get(code)
    if kind is None:
        what = "operation" if code < 0x100 else "register"
        raise StreamError(f"no such {what}", word_offset=at, opcode=code)
    modes = _MODES.get(kind)
    if modes is not None and parameter not in set(modes):
        raise StreamError(f"{kind.name} has no mode {parameter}", word_offset=at, opcode=code)
    return kind
