# SPDX-License-Identifier: Apache-2.0
"""Cycles of pieces of code on each core, as its manual or a measurement states them; the core's file has the sources.

A piece is executed four times and fourteen times; the difference of ten is compared, so that what comes before and
after has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from cycle_cases import CASES, CORES, WITNESSES, Case
from timed_code import assemble, run

from ferrule.firmware import Image
from ferrule.timing import BoardTiming, MemoryTiming, core_timing
from ferrule.timing.core_timing import FOLDER, stated

pytestmark = [pytest.mark.cc, pytest.mark.emu]
FEW, MANY = 4, 14
WAITING = BoardTiming(source="a test", memories={"ssram23": MemoryTiming(wait_states=1)})
"""A board on which unaligned accesses are counted."""


def cases_of(core: str) -> Mapping[str, Case]:
    """Return the cases that a core can execute."""
    return {name: case for name, case in CASES.items() if core in case.cycles}


@pytest.fixture(scope="module")
def images(arm_gcc: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Image]:
    """The pieces of each core, few times and many times."""
    folder = tmp_path_factory.mktemp("cycles")
    return {
        core: assemble(
            arm_gcc,
            core,
            {
                f"{name}_{count}": f".rept {count}\n{case.code}\n.endr"
                for name, case in cases_of(core).items()
                for count in (FEW, MANY)
            },
            folder,
        )
        for core in CORES
    }


@pytest.mark.parametrize("core", CORES)
def test_ten_times_a_piece_take_what_is_stated(images: Mapping[str, Image], core: str) -> None:
    found = {
        name: run(images[core], core, f"{name}_{MANY}").cycles - run(images[core], core, f"{name}_{FEW}").cycles
        for name in cases_of(core)
    }
    assert found == {name: case.cycles[core] for name, case in cases_of(core).items()}


@pytest.mark.parametrize("core", CORES)
def test_time_does_not_depend_on_slices_and_steps(images: Mapping[str, Image], core: str) -> None:
    for name in cases_of(core):
        whole = run(images[core], core, f"{name}_{MANY}")
        assert run(images[core], core, f"{name}_{MANY}", slice_=1) == whole, name
        assert run(images[core], core, f"{name}_{MANY}", step=True) == whole, name


@pytest.mark.parametrize("core", CORES)
def test_each_number_of_a_core_matters(images: Mapping[str, Image], core: str) -> None:
    """A number that is one more or one less changes the time of a piece."""
    timing = core_timing(core)
    assert timing is not None
    image, pieces, before = images[core], cases_of(core), dict[str, int]()

    def changes(name: str, number: str, value: int) -> bool:
        piece = f"{name}_{MANY}"
        if name not in before:
            before[name] = run(image, core, piece, board=WAITING).cycles
        changed = replace(timing, **{number: value})
        return run(image, core, piece, timing=changed, board=WAITING).cycles != before[name]

    unnoticed = [
        number
        for number, value in stated(FOLDER / f"{core}.toml").items()
        if not any(
            changes(name, number, other)
            for name in sorted(pieces, key=lambda name: name not in WITNESSES.get(number, ()))
            for other in (value + 1, value - 1)
            if other >= 0
        )
    ]
    assert unnoticed == []
