# SPDX-License-Identifier: Apache-2.0
"""The stack that each function of a linked firmware uses, and where it calls others, from its instructions."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ferrule.architectures import Effect, Flow, Instructions
from ferrule.firmware.elf32 import FUNCTION, Elf32

_ADDRESS_END = 1 << 32


@dataclass(slots=True)
class Frame:
    """What a function does to the stack, in bytes below the stack pointer at its entry."""

    deepest: int = 0
    calls: dict[int, int] = field(default_factory=dict)
    """The depth at which each function is called or jumped to, by its address."""
    pointer_depth: int | None = None
    """The greatest depth of a call through a pointer; None if it makes none."""
    returns: bool = False
    """Whether some path returns to the caller."""
    problem: str = ""
    """Why the depth is not known; empty if it is."""

    def call(self, target: int, depth: int) -> None:
        """Note a call."""
        self.calls[target] = max(depth, self.calls.get(target, 0))


class Code:
    """The code of a firmware, by function."""

    def __init__(self, path: Path, instructions: Instructions) -> None:
        self.set = instructions
        elf = Elf32(path)
        self._sections = [
            (section.address, elf.contents(section))
            for section in elf.sections
            if section.is_code and section.is_allocated
        ]
        marks = {}
        self.keys: dict[int, list[str]] = {}
        """The names of each function, as in `ElfSymbol.key`, by address."""
        for symbol in elf.symbols:
            if symbol.type == FUNCTION and symbol.section:
                self.keys.setdefault(symbol.value & ~1, []).append(symbol.key)
            elif symbol.name[:2] in {instructions.mark, "$d"} and symbol.name[2:3] in {"", "."}:
                marks[symbol.value] = symbol.name[:2] == instructions.mark
        self._marks = sorted(marks.items())
        self._mark_places = [place for place, _ in self._marks]
        self._frames: dict[int, Frame] = {}
        self.symbols: Mapping[str, int] = {symbol.name: symbol.value for symbol in elf.symbols if symbol.section}

    def name(self, address: int) -> str:
        """Return a function's name for a message."""
        return min(self.keys.get(address, (f"{address:#x}",))).rpartition(":")[2]

    def word(self, address: int) -> int | None:
        """Return a word of the sections with code, or None outside them."""
        for start, data in self._sections:
            if 0 <= address - start <= len(data) - 4:
                value: int = struct.unpack_from("<I", data, address - start)[0]
                return value
        return None

    def instruction(self, address: int) -> tuple[int, int] | None:
        """Return the two halfwords at an address, the second 0 for a short instruction; None if there is no code."""
        mark = bisect.bisect_right(self._mark_places, address) - 1
        if mark < 0 or not self._marks[mark][1]:
            return None
        for start, data in self._sections:
            at = address - start
            if 0 <= at <= len(data) - 2:
                first = data[at] | data[at + 1] << 8
                wide = self.set.is_wide(first) and at + 4 <= len(data)
                return first, data[at + 2] | data[at + 3] << 8 if wide else 0
        return None

    def instructions(self) -> Iterator[tuple[int, int, int]]:
        """Yield the address of each instruction with its two halfwords, by address."""
        for (start, is_code), end in zip(self._marks, [*self._mark_places[1:], _ADDRESS_END], strict=True):
            at = start
            while is_code and at < end and (words := self.instruction(at)) is not None:
                yield at, *words
                at += 4 if self.set.is_wide(words[0]) else 2

    def table(self, address: int, entry_bytes: int) -> list[int] | None:
        """Return the targets of a table of offsets that follows a table branch; None if it is not marked as data."""
        mark = bisect.bisect_right(self._mark_places, address) - 1
        if mark < 0 or self._marks[mark] != (address, False) or mark + 1 == len(self._marks):
            return None
        places = range(address, self._marks[mark + 1][0] - entry_bytes + 1, entry_bytes)
        mask = 0xFF if entry_bytes == 1 else 0xFFFF
        offsets = [(self.word(at & ~3) or 0) >> 8 * (at & 3) & mask for at in places]
        return [address + 2 * offset for offset in offsets if offset]

    def is_inside(self, entry: int, address: int) -> bool:
        """Return whether an address lies in a function, after its first instruction."""
        return entry < address and address not in self.keys and not any(entry < each < address for each in self.keys)

    def frame(self, entry: int) -> Frame:
        """Follow all paths through a function, and return what it does to the stack."""
        if entry not in self._frames:
            self._frames[entry] = Frame(returns=True)  # for a function that calls itself
            self._frames[entry] = _Walk(self, entry).follow()
        return self._frames[entry]


class _Walk:
    """All paths through one function; the depth at each instruction is the greatest one of any path."""

    def __init__(self, code: Code, entry: int) -> None:
        self._code = code
        self._set = code.set
        self._entry = entry
        self._frame = Frame()
        self._depths: dict[int, int] = {}
        self._waiting = [(entry, 0)]
        self._pushes: dict[int, int] = {}

    def follow(self) -> Frame:
        thunk = self._set.thunk(self._code, self._entry)
        if thunk is not None:
            self._leave(thunk, 0)
            return self._frame
        while self._waiting and not self._frame.problem:
            self._path(*self._waiting.pop())
        return self._frame

    def _path(self, address: int, depth: int) -> None:
        """Follow instructions until the path ends, or joins one that is at least as deep."""
        while self._depths.get(address, -1) < depth and not self._frame.problem:
            if address != self._entry and address in self._code.keys:
                self._leave(address, depth)
                return
            self._depths[address] = depth
            does, following = self._decode(address)
            if does.conditional:
                for taken in (True, False):
                    self._block(following, depth, does.conditional, taken=taken)
                return
            after = self._step(address, following, depth, does)
            if after is None:
                return
            address, depth = following, after

    def _block(self, address: int, depth: int, conditions: tuple[bool, ...], *, taken: bool) -> None:
        """Follow the instructions of an IT block that are executed if its condition holds, or if it does not."""
        for then in conditions:
            does, following = self._decode(address)
            if then is taken:
                after = self._step(address, following, depth, does)
                if after is None:
                    return
                depth = after
            address = following
        self._waiting.append((address, depth))

    def _decode(self, address: int) -> tuple[Effect, int]:
        """Return an instruction's effect and the next address."""
        words = self._code.instruction(address)
        if words is None:
            self._fail(address, "runs into data")
            return Effect(Flow.END), address
        return self._set.effect(address, *words), address + (4 if self._set.is_wide(words[0]) else 2)

    def _step(self, address: int, following: int, depth: int, does: Effect) -> int | None:
        """Return the depth after an instruction, or None if the next one cannot follow it."""
        if does.sets_sp:
            self._fail(address, "sets the stack pointer to a value that is not constant")
        if does.pushed:
            depth = self._push(address, depth, does)
        flow = does.flow
        if flow is Flow.NEXT:
            return depth
        if flow is Flow.CALL and self._code.is_inside(self._entry, does.target):
            flow = Flow.BRANCH  # GCC's far jump where branches are short, as on Armv6-M
        if flow is Flow.CALL:
            self._frame.call(does.target, depth)
            return depth if self._code.frame(does.target).returns else None
        if flow is Flow.BRANCH or flow is Flow.BRANCH_IF:
            self._waiting.append((does.target, depth))
        elif flow is Flow.POINTER_CALL or flow is Flow.POINTER_JUMP:
            self._frame.pointer_depth = max(depth, self._frame.pointer_depth or 0)
        elif flow is Flow.TABLE:
            targets = self._code.table(following, does.target)
            if targets is None:
                self._fail(address, "branches through a table that is not known")
            self._waiting.extend((target, depth) for target in targets or ())
        self._frame.returns |= flow is Flow.END or flow is Flow.POINTER_JUMP
        return depth if flow is Flow.BRANCH_IF or flow is Flow.POINTER_CALL else None

    def _push(self, address: int, depth: int, does: Effect) -> int:
        """Return the depth after an instruction that changes it by a constant."""
        if does.pushed > 0:
            self._pushes[address] = does.pushed
        depth += does.pushed
        if depth > sum(self._pushes.values()):
            self._fail(address, "uses more stack with each pass of a loop")
        if depth < 0 or (does.flow is Flow.END and depth):
            self._fail(address, "does not restore the stack pointer")
        self._frame.deepest = max(self._frame.deepest, depth)
        return depth

    def _leave(self, target: int, depth: int) -> None:
        """Note a jump to another function, which returns to this one's caller."""
        self._frame.call(target, depth)
        self._frame.returns |= self._code.frame(target).returns

    def _fail(self, address: int, problem: str) -> None:
        self._frame.problem = self._frame.problem or f"{problem} at {address:#x}"
