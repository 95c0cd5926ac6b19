# SPDX-License-Identifier: Apache-2.0
"""The tables of planned times, and the cycles that follow from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.errors import FerruleError
from ferrule.timing import planned
from ferrule.timing.planned import KernelWork, Pace, pace_of, read_kernel_timings

TABLE = """\
core = "cortex-m4"
[per_instruction]
conv2d_s8 = 1.5
sum_s8 = 1.0
svdf = 3.0
[per_element]
softmax_s8 = 40.0
pad = 2.0
"""


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
