# SPDX-License-Identifier: Apache-2.0
"""Reads from measured counts how large a cache can be: where programs of growing size begin to take longer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from ferrule.running.calibration.candidates import CACHES, WAYS
from ferrule.running.calibration.measurement import Counts

_RISE = 1.04
"""The ratio from which on a larger program takes longer."""
_TRANSITION = (0.4, 0.9)
"""The parts of the rise up to which a size fits, and from which on it does not."""
_NEAR = 64
"""Bytes from one branch to the next up to which a chain is in all sets of a cache."""
_FAR = 1024
"""Bytes from one branch to the next in the chains that are in one set."""
_LOOP, _WIDE = re.compile(r"loop_(\d+)"), re.compile(r"wide_(\d+)")
_ENOUGH_BYTES = 1024
"""Bytes of loops that show a memory without a cache."""
_HOPS = re.compile(r"hops_(\d+)_(\d+)")


def instruction_cache_sizes(measured: Counts, unwaited: Counts) -> tuple[int, ...]:
    """Return the sizes that a cache of instructions may have; none if no program shows one.

    `unwaited` has the cycles that each program would take without wait states.
    """
    loops, wide = (
        {int(found[1]): name for name in measured if (found := pattern.fullmatch(name))} for pattern in (_LOOP, _WIDE)
    )
    hops = {
        int(found[1]) * int(found[2]): name
        for name in measured
        if (found := _HOPS.fullmatch(name)) and found[2] == "32"
    }
    return _sizes([_costs(names, measured, unwaited) for names in (loops, wide, hops)])


def small_programs(names: Iterable[str], sizes: Collection[int]) -> tuple[str, ...]:
    """Return some programs without the loops that are far larger than a cache of one of these sizes."""
    most = max(_ENOUGH_BYTES, 2 * max(sizes, default=0))
    loops = ((name, _LOOP.fullmatch(name) or _WIDE.fullmatch(name)) for name in names)
    return tuple(name for name, found in loops if found is None or int(found[1]) <= most)


def data_cache_sizes(measured: Counts, unwaited: Counts, kind: str) -> tuple[int, ...]:
    """Return the sizes that a cache of data may have for a kind of memory, `flash` or `ram`."""
    found = []
    for stride in (4, 32):
        pattern = re.compile(rf"{kind}_walk_(\d+)_{stride}")
        walks = {int(size[1]): name for name in measured if (size := pattern.fullmatch(name))}
        found.append(_costs(walks, measured, unwaited))
    return _sizes(found)


def _costs(names: Mapping[int, str], measured: Counts, unwaited: Counts) -> list[tuple[int, float]]:
    """Return the measured cycles by those without wait states, by size, in rising order."""
    return [(size, measured[name] / unwaited[name]) for size, name in sorted(names.items())]


def cache_ways(measured: Counts, unwaited: Counts) -> tuple[int, ...]:
    """Return the ways that a cache of instructions with sets may have; none if no lines are in one another's way.

    A chain of branches that are far from one another, and the end of its loop, are lines of one set.
    """
    hops = [(int(found[1]), int(found[2]), name) for name in measured if (found := _HOPS.fullmatch(name))]
    least = min((measured[name] / unwaited[name] for _, _, name in hops), default=0.0)
    costs = {count: measured[name] / unwaited[name] for stride, count, name in hops if stride == _FAR}
    slow = [count for count, cost in costs.items() if cost > least * _RISE]
    if not slow:
        return ()
    most, fewer = min(slow), [count for count in costs if count < min(slow)]
    return tuple(ways for ways in WAYS if max(fewer, default=0) < ways <= most)


def _sizes(series: Iterable[list[tuple[int, float]]]) -> tuple[int, ...]:
    bounds = [bound for costs in series if (bound := _knee(costs)) is not None]
    if not bounds:
        return ()
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    return tuple(size for size in CACHES if low // 2 <= size <= high)


def _knee(costs: list[tuple[int, float]]) -> tuple[int, int] | None:
    """Return the largest size with little more than the least cost, and the smallest with nearly that of the largest.

    The first pass over code or data, which fills the cache, makes even what fits take a little longer.
    """
    if len(costs) < 2:
        return None
    least, most = min(cost for _, cost in costs), costs[-1][1]
    if most < least * _RISE:
        return None
    low, high = (least + part * (most - least) for part in _TRANSITION)
    return (
        max((size for size, cost in costs if cost <= low), default=costs[0][0]),
        min((size for size, cost in costs if cost >= high), default=costs[-1][0]),
    )
