# SPDX-License-Identifier: Apache-2.0
"""GDB's remote serial protocol for a halted core (GDB manual, E.2 to E.6)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from ferrule.architectures import RegisterNames

LARGEST_PACKET = 4096
OK, UNKNOWN, ERROR = b"OK", b"", b"E01"
_DIGITS = 8
_HEXADECIMAL = frozenset(b"0123456789abcdefABCDEF")


class GdbTarget(Protocol):
    """A halted core; addresses and values have 32 bits."""

    def register(self, name: str) -> int:
        """Return the value of a register."""

    def set_register(self, name: str, value: int) -> None:
        """Set a register."""

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """Read bytes of a memory; fewer if the memory ends earlier."""

    def write_memory(self, address: int, data: bytes) -> bool:
        """Write bytes to a memory, including code; return False if they do not lie within one memory."""


class Resume(Enum):
    """GDB's request to resume the core."""

    CONTINUE = auto()
    STEP = auto()
    DETACH = auto()
    """The core continues and GDB disconnects."""
    KILL = auto()


class GdbStub:
    """Answers GDB's packets for one target."""

    def __init__(self, target: GdbTarget, registers: RegisterNames) -> None:
        self._target = target
        self._registers = registers.all
        self._description = registers.description
        self.acknowledges = True
        """Whether packets are acknowledged; False once GDB has requested QStartNoAckMode."""
        self.breakpoints: set[int] = set()
        """The addresses of instructions before which the core halts."""
        self._handlers: dict[bytes, Callable[[bytes], bytes | Resume]] = {
            b"?": lambda _rest: b"S05",
            b"g": lambda _rest: b"".join(self._hex(name) for name in self._registers),
            b"G": self._write_registers,
            b"p": self._read_register,
            b"P": self._write_register,
            b"m": self._read_memory,
            b"M": self._write_memory,
            b"c": lambda rest: self._go(rest, Resume.CONTINUE),
            b"s": lambda rest: self._go(rest, Resume.STEP),
            b"Z": lambda rest: self._breakpoint(rest, wanted=True),
            b"z": lambda rest: self._breakpoint(rest, wanted=False),
            b"H": lambda _rest: OK,
            b"T": lambda _rest: OK,
            b"D": lambda _rest: Resume.DETACH,
            b"k": lambda _rest: Resume.KILL,
            b"q": self._query,
            b"Q": self._set,
            b"v": self._verbose,
        }

    def answer(self, payload: bytes) -> bytes | Resume:
        """Return the reply, or the request to resume the core; the reply to an unknown request is empty."""
        handler = self._handlers.get(payload[:1])
        if handler is None:
            return UNKNOWN
        try:
            return handler(payload[1:])
        except (ValueError, IndexError):
            return ERROR

    def _hex(self, name: str) -> bytes:
        return self._target.register(name).to_bytes(4, "little").hex().encode()

    def _write_registers(self, rest: bytes) -> bytes:
        data = bytes.fromhex(rest.decode("ascii"))
        if len(data) < 4 * len(self._registers):
            return ERROR
        for index, name in enumerate(self._registers):
            self._target.set_register(name, int.from_bytes(data[4 * index : 4 * index + 4], "little"))
        return OK

    def _read_register(self, rest: bytes) -> bytes:
        number = _number(rest)
        return self._hex(self._registers[number]) if number < len(self._registers) else ERROR

    def _write_register(self, rest: bytes) -> bytes:
        number, _, digits = rest.partition(b"=")
        value = int.from_bytes(bytes.fromhex(digits.decode("ascii")), "little")
        self._target.set_register(self._registers[_number(number)], value & 0xFFFF_FFFF)
        return OK

    def _read_memory(self, rest: bytes) -> bytes:
        address, _, size = rest.partition(b",")
        data = self._target.read_memory(_number(address), min(_number(size), LARGEST_PACKET // 2))
        return data.hex().encode() if data else ERROR

    def _write_memory(self, rest: bytes) -> bytes:
        place, _, digits = rest.partition(b":")
        address, _, size = place.partition(b",")
        data = bytes.fromhex(digits.decode("ascii"))
        if len(data) != _number(size):
            return ERROR
        return OK if not data or self._target.write_memory(_number(address), data) else ERROR

    def _go(self, rest: bytes, how: Resume) -> Resume:
        if rest:
            self._target.set_register("pc", _number(rest))
        return how

    def _breakpoint(self, rest: bytes, *, wanted: bool) -> bytes:
        kind, address, *_ = rest.split(b",")
        if kind not in {b"0", b"1"}:
            return UNKNOWN  # watchpoints
        (self.breakpoints.add if wanted else self.breakpoints.discard)(_number(address) & ~1)
        return OK

    def _query(self, rest: bytes) -> bytes:
        if rest.startswith(b"Supported"):
            return b"PacketSize=%x;qXfer:features:read+;QStartNoAckMode+;vContSupported+" % LARGEST_PACKET
        if rest.startswith(b"Xfer:features:read:target.xml:"):
            offset, size = (_number(each) for each in rest.rpartition(b":")[2].split(b","))
            piece = self._description[offset : offset + size]
            return (b"m" if offset + size < len(self._description) else b"l") + piece
        fixed = {b"Attached": b"1", b"C": b"QC1", b"fThreadInfo": b"m1", b"sThreadInfo": b"l", b"Symbol::": OK}
        return fixed.get(rest, UNKNOWN)

    def _set(self, rest: bytes) -> bytes:
        if rest == b"StartNoAckMode":
            self.acknowledges = False
            return OK
        return UNKNOWN

    def _verbose(self, rest: bytes) -> bytes | Resume:
        if rest == b"Cont?":
            return b"vCont;c;C;s;S"
        if rest.startswith(b"Cont;"):
            return Resume.STEP if rest[5:6] in b"sS" else Resume.CONTINUE
        return Resume.KILL if rest.startswith(b"Kill") else UNKNOWN


def _number(digits: bytes) -> int:
    """Return a hexadecimal number of 32 bits; ValueError if it is none."""
    if len(digits) > _DIGITS or not set(digits) <= _HEXADECIMAL:  # int() refuses no digits, but accepts signs
        raise ValueError(f"{digits[:_DIGITS]!r} is not a number of 32 bits")
    return int(digits, 16)
