# SPDX-License-Identifier: Apache-2.0
"""Reads and checks the tables `[timing]` and `[energy]` of board.toml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ferrule.boards.description import (
    CacheDescription,
    CurrentDescription,
    DeviceCurrentsDescription,
    EnergyDescription,
    MemoryTimingDescription,
    TimingDescription,
)
from ferrule.documents import convert
from ferrule.errors import FerruleError, place, unknown_name
from ferrule.rendering import check_text
from ferrule.timing import BoardTiming, CacheTiming, MemoryTiming
from ferrule.timing.energy import BoardEnergy, Current, DeviceCurrents, Range

_HINT = "docs/boards.md describes every key"
_LONGEST_SOURCE = 1_000
_LARGEST_UA = 1e8


def board_timing(tables: Mapping[str, Any] | None, memories: Iterable[str]) -> BoardTiming | None:
    """Return the timing of the memories that `[timing]` states; None without the table.

    Raises:
        FerruleError: a key or a value is not valid, or there is no such memory; the message names the key.
    """
    if tables is None:
        return None
    whole = {name: tables[name] for name in TimingDescription.__struct_fields__ if name in tables}
    known, where = sorted(memories), "timing"
    stated = convert(where, whole, TimingDescription, hint=_HINT)
    _check_source(stated.source, f"{where}.source")
    found = {}
    for name, table in tables.items():
        if name in whole:
            continue
        if name not in known:
            with place(where):
                raise unknown_name("key or memory", name, (*TimingDescription.__struct_fields__, *known))
        found[name] = _memory(convert(f"{where}.{name}", table, MemoryTimingDescription, hint=_HINT), f"{where}.{name}")
    with place("timing"):
        return BoardTiming(source=stated.source, memories=found, residual=stated.residual)


def board_energy(stated: EnergyDescription | None, memories: Iterable[str], code: str) -> BoardEnergy | None:
    """Return the currents that `[energy]` states, for code in the memory `code`; None without the table.

    Raises:
        FerruleError: a value is not valid, or there is no such memory; the message names the key.
    """
    if stated is None:
        return None
    where, known = "energy", sorted(memories)
    if not 0 < stated.supply_v <= 100:
        raise FerruleError(f"{where}.supply_v is {stated.supply_v:g}, expected volts above 0 and at most 100")
    running = {}
    for name, current in stated.running.items():
        if name not in known:
            with place(f"{where}.running"):
                raise unknown_name("memory", name, known)
        running[name] = _current(current, f"{where}.running.{name}")
    if code not in running:
        raise FerruleError(
            f"{where}.running.{code} is missing",
            hint="the code is in this memory (placement.code): state the current while the core runs from it, or "
            "leave out [energy] if no source states it",
        )
    return BoardEnergy(
        supply_v=stated.supply_v,
        running=running[code],
        asleep=None if stated.asleep is None else _current(stated.asleep, f"{where}.asleep"),
        stopped=None if stated.stopped is None else _current(stated.stopped, f"{where}.stopped"),
        devices={name: _device(each, f"{where}.devices.{name}") for name, each in stated.devices.items()},
    )


def _memory(stated: MemoryTimingDescription, where: str) -> MemoryTiming:
    caches = {name: getattr(stated, name) for name in ("instruction_cache", "data_cache")}
    made = {name: _cache(each, f"{where}.{name}") for name, each in caches.items() if each is not None}
    with place(where):
        return MemoryTiming(**msgspec.structs.asdict(stated) | made)


def _cache(stated: CacheDescription, where: str) -> CacheTiming:
    with place(where):
        return CacheTiming(**msgspec.structs.asdict(stated))


def _current(stated: CurrentDescription, where: str) -> Current:
    _check_source(stated.source, f"{where}.source")
    if stated.ua is None and stated.ua_per_mhz is None:
        raise FerruleError(f"{where} has neither ua nor ua_per_mhz", hint="state at least one of them")
    nothing: Range = (0.0, 0.0)
    return Current(
        ua=_range(stated.ua or nothing, f"{where}.ua"),
        ua_per_mhz=_range(stated.ua_per_mhz or nothing, f"{where}.ua_per_mhz"),
        source=stated.source,
    )


def _device(stated: DeviceCurrentsDescription, where: str) -> DeviceCurrents:
    _check_source(stated.source, f"{where}.source")
    return DeviceCurrents(
        work_ua=_range(stated.work_ua, f"{where}.work_ua"),
        idle_ua=_range(stated.idle_ua, f"{where}.idle_ua"),
        source=stated.source,
    )


def _range(values: Range, where: str) -> Range:
    low, high = values
    if not 0 <= low <= high <= _LARGEST_UA:
        raise FerruleError(
            f"{where} is [{low:g}, {high:g}]", hint="a lowest and a highest value in microamperes, from 0 to 1e8"
        )
    return values


def _check_source(text: str, where: str) -> None:
    if not text.strip():
        raise FerruleError(
            f"{where} is empty",
            hint="name the document and the section that were read, or say that the values are assumed",
        )
    check_text(text, where, longest=_LONGEST_SOURCE)
