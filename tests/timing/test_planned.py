# SPDX-License-Identifier: Apache-2.0
"""The tables of planned times, and the cycles that follow from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.errors import FerruleError
from ferrule.timing import planned
from ferrule.timing.memory_timing import CacheTiming, MemoryTiming
from ferrule.timing.planned import KernelTimings, KernelWork, Pace, pace_of, read_kernel_timings

TABLE = """\
core = "cortex-m4"
per_mac = 2.5
per_output = 6.0
[per_instruction]
conv2d_s8 = 1.5
sum_s8 = 1.0
svdf = 3.0
[per_weight_byte]
conv2d_s8 = 0.5
[per_element]
softmax_s8 = 40.0
pad = 2.0
[accesses]
"conv2d_s8" = { code_bytes = 3.2, jumps = 0.1, misses = 0.02, reads = 0.4 }
"pad" = { code_bytes = 6.4, jumps = 0.3, misses = 0.0, reads = 0.0 }
"""
CONVOLUTION = KernelWork(kernel="conv2d_s8", instructions=1000)
SMALL = CacheTiming(sets=32, ways=4, line_bytes=8)
LARGE = CacheTiming(sets=128, ways=4, line_bytes=8)
TINY = CacheTiming(sets=1, ways=2, line_bytes=8)


@pytest.fixture
def pace(tmp_path: Path) -> Pace:
    """Return the pace of a made-up table."""
    path = tmp_path / "cortex-m4.toml"
    path.write_text(TABLE, encoding="utf-8")
    return Pace(timings=read_kernel_timings(path))


def work(kernel: str, instructions: int | None = None, elements: int = 10) -> KernelWork:
    """Return the work of a kernel."""
    return KernelWork(kernel=kernel, instructions=instructions, elements=elements)


def test_kernels_with_an_estimate_take_cycles_for_each_instruction(pace: Pace) -> None:
    assert pace.cycles(work("conv2d_s8", 1000)) == 1500
    assert pace.knows(work("conv2d_s8", 1000))


def test_bytes_of_weights_add_cycles_where_the_kernel_has_a_rate(pace: Pace) -> None:
    assert pace.cycles(KernelWork(kernel="conv2d_s8", instructions=1000, weight_bytes=100)) == 1550
    assert pace.cycles(KernelWork(kernel="sum_s8", instructions=1000, weight_bytes=100)) == 1000
    assert pace.cycles(KernelWork(kernel="softmax_s8", instructions=None, elements=10, weight_bytes=100)) == 400


def test_kernels_without_an_estimate_take_cycles_for_each_element(pace: Pace) -> None:
    assert pace.cycles(work("softmax_s8")) == 400
    assert pace.knows(work("softmax_s8"))


def test_unknown_kernels_take_the_median_of_their_unit(pace: Pace) -> None:
    assert pace.cycles(work("new", 1000)) == 1500
    assert pace.cycles(work("new")) == 210
    assert not pace.knows(work("new", 1000))
    assert not pace.knows(work("softmax_s8", 1000)), "it was measured without an estimate"


def test_every_layer_takes_a_cycle(pace: Pace) -> None:
    assert pace.cycles(work("conv2d_s8", 0)) == 1


def test_a_layer_without_a_kernel_takes_the_figures_of_the_core(pace: Pace) -> None:
    assert pace.rough_cycles(100, 10) == 310
    assert pace.rough_cycles(0, 0) == 1


@pytest.mark.parametrize(
    ("memory", "fetches", "reads"),
    [
        (MemoryTiming(wait_states=2), 0.9, 0.4),
        (MemoryTiming(wait_states=2, width_bytes=16), 0.3, 0.4),
        (MemoryTiming(wait_states=2, width_bytes=8, instruction_cache=TINY), 0.5, 0.4),
        (MemoryTiming(wait_states=2, width_bytes=8, instruction_cache=SMALL), 0.02, 0.4),
        (MemoryTiming(wait_states=2, width_bytes=8, instruction_cache=LARGE), 0.0, 0.4),
        (MemoryTiming(wait_states=2, width_bytes=8, instruction_cache=LARGE, data_cache=SMALL), 0.0, 0.2),
    ],
)
def test_accesses_wait_for_memories(pace: Pace, memory: MemoryTiming, fetches: float, reads: float) -> None:
    def cycles(code: MemoryTiming, weights: MemoryTiming) -> int:
        return Pace(timings=pace.timings, code=code, weights=weights).cycles(CONVOLUTION)

    plain = MemoryTiming()
    assert cycles(plain, plain) == 1500
    assert cycles(memory, plain) == pytest.approx(1500 + 2000 * fetches, abs=1)
    assert cycles(plain, memory) == pytest.approx(1500 + 2000 * reads, abs=1)
    assert cycles(memory, memory) == pytest.approx(1500 + 2000 * (fetches + reads), abs=1)


def test_a_prefetch_buffer_hides_what_the_core_takes_longer_than_the_memory(pace: Pace) -> None:
    def cycles(wait_states: int) -> int:
        memory = MemoryTiming(wait_states=wait_states, width_bytes=16, prefetch=True)
        return Pace(timings=pace.timings, code=memory).cycles(CONVOLUTION)

    assert cycles(3) == 1500 + 300, "five cycles for each line: only jumps wait"
    assert cycles(6) == 1500 + 600 + 2 * 200


def test_a_kernel_whose_accesses_were_not_counted_has_the_median_for_a_cycle(pace: Pace) -> None:
    found = pace.timings.accesses_of(work("svdf", 1000))
    assert found is not None
    of_a_cycle = (3.2 / 1.5 + 6.4 / 2) / 2, (0.1 / 1.5 + 0.3 / 2) / 2, 0.02 / 1.5 / 2, 0.4 / 1.5 / 2
    assert (found.code_bytes, found.jumps, found.misses, found.reads) == pytest.approx(
        [3 * rate for rate in of_a_cycle]
    )
    none = KernelTimings(core="x", per_instruction={"a": 1.0}, per_element={"b": 1.0}, per_mac=1.0, per_output=1.0)
    waiting = Pace(timings=none, code=MemoryTiming(wait_states=5))
    assert waiting.cycles(work("a", 10)) == 10


def test_a_core_without_a_table_has_no_pace() -> None:
    assert pace_of("cortex-a53", None, code="flash", weights="flash") is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sum_s8 = 1.0", "sum_s8 = 0", "Expected `float` > 0"),
        ("sum_s8 = 1.0", 'sum_s8 = "fast"', "Expected `float`, got `str`"),
        ("[per_element]", "[per_pixel]", "unknown field `per_pixel`"),
        ('core = "cortex-m4"', "", "missing required field `core`"),
        ("sum_s8 = 1.0", "sum_s8 = 2e6", "Expected `float` <= 1000000.0"),
        ("reads = 0.4", "reads = -1", "Expected `float` >= 0.0"),
        ("jumps = 0.1, ", "", "missing required field `jumps`"),
    ],
)
def test_malformed_tables_are_errors_that_name_the_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "core.toml"
    path.write_text(TABLE.replace(old, new), encoding="utf-8")
    with pytest.raises(FerruleError, match=message) as caught:
        read_kernel_timings(path)
    assert str(path) in str(caught.value)


def test_a_core_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made-up.toml").write_text(TABLE, encoding="utf-8")
    monkeypatch.setattr(planned, "FOLDER", tmp_path)
    found = pace_of("made-up", None, code="flash", weights="flash")
    planned.kernel_timings.cache_clear()
    assert found is not None
    assert not found.code.waits
