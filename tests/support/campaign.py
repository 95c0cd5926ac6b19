# SPDX-License-Identifier: Apache-2.0
"""Fault campaigns over the accesses of a fault-free run: a random few faults, or all with FERRULE_EXHAUSTIVE=1."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from covering import EXHAUSTIVE

from ferrule._frozen import frozen
from ferrule.devices import (
    BusErrorAt,
    DmaErrorAt,
    Fault,
    FaultInjector,
    FlippedData,
    FlippedValue,
    NeverDone,
    RegisterAccess,
    SpuriousInterrupt,
    StuckBit,
    WrongId,
)

BITS = (0, 1, 2, 7, 31)
"""Register bits that are faulted; small devices have their fields at the low end."""


@frozen
class Case:
    """A fault and its target: a register's offset, or a transfer's number."""

    fault: Fault
    target: int


def all_faults(injector: FaultInjector) -> Iterator[Case]:
    """Yield every fault at every access and transfer that the injector has seen."""
    for offset in sorted({access.offset for access in injector.accesses}):
        yield Case(fault=WrongId(offset=offset), target=offset)
    for access in injector.accesses:
        for fault in _of_access(access):
            yield Case(fault=fault, target=access.offset)
    for transfer in injector.transfers:
        yield Case(fault=DmaErrorAt(at=transfer.number), target=transfer.number)
        for byte in (0, transfer.size_bytes // 2, transfer.size_bytes - 1):
            for mask in (0x01, 0x80):
                fault = FlippedData(at=transfer.number, byte=byte, mask=mask)
                yield Case(fault=fault, target=transfer.number)


def _of_access(access: RegisterAccess) -> Iterator[Fault]:
    at = access.number
    yield NeverDone(since=at)
    yield SpuriousInterrupt(at=at)
    yield BusErrorAt(at=at)
    yield FlippedValue(at=at, mask=0xFFFF_FFFF)
    for bit in BITS:
        yield FlippedValue(at=at, mask=1 << bit)
        if not access.write:
            yield StuckBit(offset=access.offset, bit=bit, level=False, since=at)
            yield StuckBit(offset=access.offset, bit=bit, level=True, since=at)


def chosen(cases: Sequence[Case], count: int, seed: int) -> list[Fault]:
    """Return all faults, or `count` drawn at random: first the fault's kind, then its target, each with equal chances.

    Registers that a driver polls therefore do not crowd out the others.
    """
    if EXHAUSTIVE or len(cases) <= count:
        return [case.fault for case in cases]
    lots = random.Random(seed)
    kinds: dict[type[Fault], dict[int, list[Fault]]] = {}
    for case in cases:
        kinds.setdefault(type(case.fault), {}).setdefault(case.target, []).append(case.fault)
    picked: list[Fault] = []
    while len(picked) < count:
        for targets in kinds.values():
            fault = lots.choice(targets[lots.choice(list(targets))])
            if fault not in picked and len(picked) < count:
                picked.append(fault)
    return picked
