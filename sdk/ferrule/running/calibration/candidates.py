# SPDX-License-Identifier: Apache-2.0
"""The timings of a memory that a calibration considers, from the simple to the complex."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ferrule.timing import CacheTiming, MemoryTiming

MOST_WAITS = 31
"""Most wait states that are tried."""
WIDTHS = (4, 8, 16, 32)
"""Bytes that a memory delivers at once."""
LINES = (8, 16, 32, 64)
"""Bytes of a cache's line."""
WAYS = (1, 2, 4, 8)
"""Ways of a cache with sets; all others are fully associative."""
CACHES = tuple(1 << log2 for log2 in range(4, 17))
"""Bytes of the caches of the first round, from a buffer of a flash to the caches of large Cortex-M7."""
_USUAL_LINES = (8, 16, 32)
_CACHED_WIDTHS = (8, 16)
"""Widths of memories with caches in the first round."""


def associative(size_bytes: int, line_bytes: int) -> CacheTiming:
    """Return a cache of that size in which each line may have each address."""
    return CacheTiming(sets=1, ways=max(1, size_bytes // line_bytes), line_bytes=line_bytes)


def size_of(cache: CacheTiming) -> int:
    """Return the bytes of a cache."""
    return cache.sets * cache.ways * cache.line_bytes


def first_caches(sizes: Collection[int], width_bytes: int, ways: Collection[int] = ()) -> Iterator[CacheTiming]:
    """Yield caches of some sizes, for a memory of that width: fully associative ones, and some with these ways."""
    for line in sorted({max(each, width_bytes) for each in _USUAL_LINES}):
        for size in sizes:
            if size >= line:
                yield associative(size, line)
                yield from in_sets(size, line, ways)


def in_sets(size_bytes: int, line_bytes: int, ways: Collection[int] = WAYS) -> Iterator[CacheTiming]:
    """Yield the caches of a size that have several sets, with some numbers of ways."""
    for each in ways:
        sets, rest = divmod(size_bytes, each * line_bytes)
        if sets > 1 and not rest and sets & (sets - 1) == 0:
            yield CacheTiming(sets=sets, ways=each, line_bytes=line_bytes)


def other_caches(cache: CacheTiming, width_bytes: int) -> Iterator[CacheTiming]:
    """Yield caches that differ from one in its size, its lines, or its sets and ways."""
    size, line = size_of(cache), cache.line_bytes
    for each in (size // 2, size * 3 // 4, size * 3 // 2, size * 2):
        if each >= line and each % (line * cache.sets) == 0:
            yield CacheTiming(sets=cache.sets, ways=each // (line * cache.sets), line_bytes=line)
    for other in LINES:
        if other != line and width_bytes <= other <= size and size % other == 0:
            yield associative(size, other)
            yield from in_sets(size, other, (cache.ways,))
    yield associative(size, line)
    yield from in_sets(size, line)


def first_fetches(sizes: Collection[int], ways: Collection[int]) -> Iterator[MemoryTiming]:
    """Yield memories of code to begin with, whose waits are still to be found, from the simple to the complex.

    `sizes` are the bytes of the caches that they may have, and `ways` the numbers of ways of those with sets.
    """
    for cached in (False, True):
        for prefetch in (False, True):
            for width in _CACHED_WIDTHS if cached else WIDTHS[:3]:
                plain = MemoryTiming(wait_states=1, width_bytes=width, prefetch=prefetch)
                if not cached:
                    yield plain
                    continue
                for cache in first_caches(sizes, width, ways):
                    yield replace(plain, instruction_cache=cache)


def other_fetches(memory: MemoryTiming) -> Iterator[MemoryTiming]:
    """Yield memories that differ from one in one property that a fetch of code shows."""
    cache = memory.instruction_cache
    if cache is not None:
        yield replace(memory, instruction_cache=None)
    yield replace(memory, prefetch=not memory.prefetch)
    for width in WIDTHS:
        lines = [each for each in (cache, memory.data_cache) if each is not None and each.line_bytes < width]
        if width != memory.width_bytes and not lines:
            yield replace(memory, width_bytes=width)
    for each in () if cache is None else other_caches(cache, memory.width_bytes):
        if each != cache:
            yield replace(memory, instruction_cache=each)


def first_reads(memory: MemoryTiming, sizes: Collection[int]) -> Iterator[MemoryTiming]:
    """Yield a memory with data caches of some sizes to begin with."""
    yield replace(memory, data_cache=None)
    for cache in first_caches(sizes, memory.width_bytes):
        yield replace(memory, data_cache=cache)


def other_reads(memory: MemoryTiming) -> Iterator[MemoryTiming]:
    """Yield memories that differ from one in its data cache."""
    if memory.data_cache is None:
        return
    yield replace(memory, data_cache=None)
    for each in other_caches(memory.data_cache, memory.width_bytes):
        if each != memory.data_cache:
            yield replace(memory, data_cache=each)
