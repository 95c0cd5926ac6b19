# SPDX-License-Identifier: Apache-2.0
"""The fit of a board's timing, with a model of memories that shares no code with the engine's."""

from __future__ import annotations

from functools import partial

import pytest
from simple_memories import simple_counts, timing_of

from ferrule.boards import load_board
from ferrule.firmware.micro_programs import micro_programs
from ferrule.running.calibration.fit import Fit, fit
from ferrule.timing import CacheTiming, MemoryTiming

BOARD = load_board("mps2-an386")
GROUPS = {each.name: each.group for each in micro_programs(BOARD)}
CACHE = CacheTiming(sets=1, ways=64, line_bytes=16)


def fitted(code: MemoryTiming, data: MemoryTiming | None = None, *, slower: float = 1.0) -> Fit:
    """Return what is found for a board with hidden timings, which is slower by a factor than its model."""
    hidden = timing_of(BOARD, code=code, data=data)
    measured = {name: round(count * slower) for name, count in simple_counts(BOARD, hidden, GROUPS).items()}
    return fit(measured, GROUPS, BOARD, partial(simple_counts, BOARD))


def test_no_wait_states_are_found_at_once() -> None:
    found = fitted(MemoryTiming())
    assert set(found.memories.values()) == {MemoryTiming()}
    assert found.residual == (0, 0)
    assert found.candidates < 100


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (MemoryTiming(wait_states=2), None),
        (MemoryTiming(wait_states=5, width_bytes=16), MemoryTiming(wait_states=1, write_wait_states=2)),
        (MemoryTiming(wait_states=3, width_bytes=8, prefetch=True), None),
        (MemoryTiming(wait_states=5, width_bytes=16, prefetch=True, instruction_cache=CACHE), None),
        (
            MemoryTiming(
                wait_states=4,
                width_bytes=8,
                instruction_cache=CacheTiming(sets=32, ways=2, line_bytes=32),
                data_cache=CacheTiming(sets=1, ways=8, line_bytes=16),
            ),
            MemoryTiming(wait_states=1),
        ),
    ],
)
def test_hidden_timings_are_found(code: MemoryTiming, data: MemoryTiming | None) -> None:
    found = fitted(code, data)
    assert max(map(abs, found.errors.values())) < 0.03
    assert found.memories[BOARD.placement.code].wait_states == code.wait_states
    assert found.memories[BOARD.placement.data] == (data or MemoryTiming())


def test_what_the_model_lacks_remains() -> None:
    found = fitted(MemoryTiming(wait_states=2), slower=1.1)
    low, high = found.residual
    assert low < -0.01
    assert high >= 0
    assert min(found.errors.values()) == low
