# SPDX-License-Identifier: Apache-2.0
"""The files with the cycles of cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.errors import FerruleError
from ferrule.timing.core_timing import (
    FOLDER,
    OPTIONAL,
    PARAMETERS,
    SETS,
    core_timing,
    read_core_timing,
    stated,
    timed_cores,
)

M0 = (FOLDER / "cortex-m0.toml").read_text(encoding="utf-8")


def test_each_core_of_the_embedded_engine_has_a_model() -> None:
    assert timed_cores() == ("cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m33", "cortex-m4", "cortex-m7")
    for core in timed_cores():
        found = core_timing(core)
        assert found is not None
        assert found.core == core
        assert {name: getattr(found, name) for name in PARAMETERS if name in stated(FOLDER / f"{core}.toml")} == stated(
            FOLDER / f"{core}.toml"
        )
    assert core_timing("cortex-a9") is None


def test_the_sets_are_all_numbers() -> None:
    assert tuple(name for name in PARAMETERS if name not in OPTIONAL) == tuple(name for names in SETS for name in names)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("alu = 1", "allu = 1", "unknown key 'allu'"),
        ("alu = 1\n", "", "these keys are missing: alu"),
        ("nop = 1", "nop = 1\nshifted = 1", "these keys are missing: accumulate, multiply_long"),
        ("barrier = 4", "barrier = 4\nalu = 2", "key 'alu' is stated twice, as 1 and as 2"),
        ("alu = 1", "alu = 101", "Expected `int` <= 100"),
        ("alu = 1", "alu = -1", "Expected `int` >= 0"),
        ("alu = 1", "alu = 1\npredictor_bits = 13\nmispredict = 1", "Expected `int` <= 12"),
        ("alu = 1", "alu = 1.5", "Expected `int`, got `float`"),
        ('basis = "assumed"', 'basis = "guessed"', "Invalid enum value 'guessed'"),
        ("[group.cycles]\nbarrier", "[group.cycle]\nbarrier", "unknown field `cycle`"),
        ('core = "cortex-m0"', 'core = "cortex-m1"', "core is 'cortex-m1', expected 'cortex-m0'"),
        ('core = "cortex-m0"', "core = ", "Invalid value"),
    ],
)
def test_a_bad_file_is_one_error_that_names_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "cortex-m0.toml"
    assert old in M0
    path.write_text(M0.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FerruleError) as caught:
        read_core_timing(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
