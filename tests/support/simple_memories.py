# SPDX-License-Identifier: Apache-2.0
"""A model of memories that shares no code with the engine's: it predicts the micro-programs of a calibration."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from functools import cache

from ferrule.boards import Board
from ferrule.firmware.micro_programs import Group, micro_programs
from ferrule.timing import BoardTiming, CacheTiming, MemoryTiming

_CODE_AT, _FLASH_AT, _RAM_AT = 0x1_0000, 0x8_0000, 0x2000_0000


class _Port:
    """What reads from one memory: a buffer of the last bytes, and a cache whose oldest line is replaced."""

    def __init__(self, memory: MemoryTiming, cached: CacheTiming | None, *, prefetch: bool) -> None:
        self._memory, self._cache, self._prefetch = memory, cached, prefetch
        self._sets: dict[int, OrderedDict[int, None]] = {}
        self._last, self._since = -1, 0

    def read(self, address: int, now: int) -> int:
        """Return the waits of a read that begins at a time."""
        memory = self._memory
        place = address // memory.width_bytes
        if place == self._last:
            return 0
        waits = memory.wait_states
        if self._prefetch and place == self._last + 1:
            waits = max(0, waits - (now - self._since))
        self._last, self._since = place, now
        if self._cache is None:
            return waits
        line = address // self._cache.line_bytes
        lines = self._sets.setdefault(line % self._cache.sets, OrderedDict())
        if line in lines:
            lines.move_to_end(line)
            return 0
        lines[line] = None
        if len(lines) > self._cache.ways:
            lines.popitem(last=False)
        return waits


_NUMBERED = re.compile(r"(loop|wide|hops|flash_walk|ram_walk)_(\d+)(?:_(\d+))?")


def _fetches(name: str) -> tuple[list[int], int]:
    """Return the addresses of the instructions of one pass, and the number of passes."""
    found = _NUMBERED.fullmatch(name)
    size = 64 if found is None else int(found[2])
    if found is not None and found[1] == "hops":
        return [_CODE_AT + index * size for index in range(int(found[3]) + 1)], 40
    step = 4 if found is not None and found[1] == "wide" else 2
    if name == "straight":
        return list(range(_CODE_AT, _CODE_AT + 4096, 2)), 1
    if name == "loop_unaligned":
        return list(range(_CODE_AT + 58, _CODE_AT + 80, 2)), 100
    if found is None or found[1].endswith("walk"):
        size = 64
    return list(range(_CODE_AT, _CODE_AT + size, step)), max(6, 4096 * step // size // 4)


def _reads(name: str, base: int) -> tuple[list[int], int]:
    """Return the addresses of the data of one pass, and the number of passes."""
    found = _NUMBERED.fullmatch(name)
    if found is None:
        return [base + 4 * index for index in range(16)], 40
    size, step = int(found[2]), int(found[3])
    return list(range(base, base + size, step)), max(6, 4096 * step // size // 8)


def simple_counts(board: Board, timing: BoardTiming, names: Collection[str]) -> dict[str, int]:
    """Return the cycles of some micro-programs: one for each instruction, and the waits."""
    placement, none = board.placement, MemoryTiming()
    parts = [timing.memories.get(name, none) for name in (placement.code, placement.weights, placement.data)]
    programs = {each.name: each.group for each in micro_programs(board) if each.name in names}
    return {name: _count(name, group, *parts) for name, group in programs.items()}


@cache
def _count(name: str, group: Group, code: MemoryTiming, weights: MemoryTiming, data: MemoryTiming) -> int:
    fetch = _Port(code, code.instruction_cache, prefetch=code.prefetch)
    addresses, passes = _fetches(name)
    now = _repeated(passes, 0, lambda now: _fetched(fetch, addresses, now))
    if group in {Group.FLASH, Group.RAM}:
        memory, base = (weights, _FLASH_AT) if group is Group.FLASH else (data, _RAM_AT)
        port = _Port(memory, memory.data_cache, prefetch=False)
        stores = name.startswith("store") and name != "store_load"
        reads, passes = _reads(name, base)
        if stores:
            return now + len(reads) * passes * (1 + memory.write_wait_states)
        now = _repeated(passes, now, lambda now: _fetched(port, reads, now))
    return now


def _fetched(port: _Port, addresses: list[int], now: int) -> int:
    for address in addresses:
        now += 1 + port.read(address, now)
    return now


def _repeated(passes: int, now: int, once: Callable[[int], int]) -> int:
    """Return the time after some passes, of which all behind the third take as long as it."""
    before = now
    for _ in range(min(passes, 3)):
        before, now = now, once(now)
    return now + (now - before) * max(0, passes - 3)


def timing_of(board: Board, *, code: MemoryTiming, data: MemoryTiming | None = None) -> BoardTiming:
    """Return the timing of a board whose code and weights are in one memory, and its data in another."""
    memories: Mapping[str, MemoryTiming] = {
        board.placement.code: code,
        board.placement.data: data or MemoryTiming(),
    }
    return BoardTiming(source="a test", memories=memories)
