# SPDX-License-Identifier: Apache-2.0
"""The tables [timing] and [energy] of board.toml; the currents of these boards are made up."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.boards import load_board
from ferrule.errors import FerruleError
from ferrule.resources import root
from ferrule.timing import CacheTiming, MemoryTiming
from ferrule.timing.energy import Current, DeviceCurrents

TIMING = """
[timing]
source = "a manual"
residual = [-0.02, 0.03]

[timing.ssram1]
wait_states = 5
write_wait_states = 7
width_bytes = 8
prefetch = true
instruction_cache = { sets = 1, ways = 32, line_bytes = 32 }
data_cache = { sets = 4, ways = 2, line_bytes = 8 }
"""
ENERGY = """
[energy]
supply_v = 3.0

[energy.running.ssram1]
ua_per_mhz = [100, 120.5]
source = "a data sheet"

[energy.running.psram]
ua = [1, 2]
source = "another data sheet"

[energy.asleep]
ua = [10, 10]
ua_per_mhz = [3, 4]
source = "sleep"

[energy.stopped]
ua = [1.5, 1.5]
source = "stop"

[energy.devices.npu0]
work_ua = [5000, 6000]
idle_ua = [0, 1]
source = "npu"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a shipped board that states neither table."""
    made = tmp_path_factory.mktemp("boards") / "mine"
    shutil.copytree(root() / "boards" / "mps2-an386", made)
    path = made / "board.toml"
    text = path.read_text(encoding="utf-8")
    kept = [each for each in text.split("\n\n") if not each.startswith(("[timing", "[energy", "# Timing", "# Energy"))]
    (made / "plain.toml").write_text("\n\n".join(kept), encoding="utf-8")
    return made


def stated(folder: Path, more: str) -> Path:
    text = (folder / "plain.toml").read_text(encoding="utf-8")
    (folder / "board.toml").write_text(f"{text}\n{more}", encoding="utf-8")
    return folder


def test_a_board_that_states_nothing_has_nothing(folder: Path) -> None:
    board = load_board(stated(folder, ""))
    assert (board.timing, board.energy) == (None, None)


def test_the_timing_of_memories(folder: Path) -> None:
    timing = load_board(stated(folder, TIMING)).timing
    assert timing is not None
    assert (timing.source, timing.residual, timing.waits) == ("a manual", (-0.02, 0.03), True)
    assert timing.memory("ssram1") == MemoryTiming(
        wait_states=5,
        write_wait_states=7,
        width_bytes=8,
        prefetch=True,
        instruction_cache=CacheTiming(sets=1, ways=32, line_bytes=32),
        data_cache=CacheTiming(sets=4, ways=2, line_bytes=8),
    )
    assert timing.memory("ssram23") == MemoryTiming()
    assert not timing.memory("ssram23").waits


def test_the_currents_are_those_of_the_memory_with_the_code(folder: Path) -> None:
    energy = load_board(stated(folder, ENERGY)).energy
    assert energy is not None
    assert energy.supply_v == 3
    assert energy.running == Current(ua_per_mhz=(100, 120.5), source="a data sheet")
    assert energy.asleep == Current(ua=(10, 10), ua_per_mhz=(3, 4), source="sleep")
    assert energy.asleep.at(25_000_000) == (85, 110)
    assert energy.stopped == Current(ua=(1.5, 1.5), source="stop")
    assert energy.devices == {"npu0": DeviceCurrents(work_ua=(5000, 6000), idle_ua=(0, 1), source="npu")}
    assert energy.sources == ("a data sheet", "sleep", "stop", "npu")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('source = "a manual"\n', "", "timing: Object missing required field `source`"),
        ('"a manual"', "3", r"timing: Expected `str`, got `int` - at `\$.source`"),
        ('"a manual"', '" "', "timing.source is empty"),
        ('"a manual"', '"a\\u0007"', r"timing.source contains the character U\+0007"),
        ('"a manual"', f'"{"a" * 1001}"', "timing.source has 1001 characters, at most 1000"),
        ("[-0.02, 0.03]", "[0.02, 0.03]", r"timing: residual is \[0.02, 0.03\]"),
        ("[-0.02, 0.03]", "[-1, 0.03]", r"timing: residual is \[-1, 0.03\]"),
        ("[-0.02, 0.03]", "[-0.02, inf]", r"timing: residual is \[-0.02, inf\]"),
        ("[-0.02, 0.03]", "[nan, nan]", r"timing: residual is \[nan, nan\]"),
        ("[-0.02, 0.03]", "[-0.02]", r"timing: Expected `array` of length 2, got 1 - at `\$.residual`"),
        ("[timing.ssram1]", "[timing.flash]", "timing: there is no key or memory 'flash'"),
        ("[timing.ssram1]", "[[timing.ssram1]]", "timing.ssram1: Expected `object`, got `array`"),
        ("[timing]", "[[timing]]", r"Expected `object \| null`, got `array` - at `\$.timing`"),
        ("wait_states = 5", "waits = 5", "timing.ssram1: Object contains unknown field `waits`"),
        ("wait_states = 5", "wait_states = -1", "timing.ssram1: wait_states is -1, expected 0 to 255"),
        ("wait_states = 5", "wait_states = 256", "timing.ssram1: wait_states is 256, expected 0 to 255"),
        ("wait_states = 5", "wait_states = 0.5", r"timing.ssram1: Expected `int`, got `float` - at `\$.wait_states`"),
        ("= 7", "= true", r"timing.ssram1: Expected `int`, got `bool` - at `\$.write_wait_states`"),
        ("width_bytes = 8", "width_bytes = 12", "timing.ssram1: width_bytes is 12, expected 4, 8, 16"),
        ("width_bytes = 8", "width_bytes = 0", "timing.ssram1: width_bytes is 0, expected 4, 8, 16"),
        ("width_bytes = 8", "width_bytes = 16", "timing.ssram1: the lines of data_cache have 8 B, fewer than the 16 B"),
        ("prefetch = true", "prefetch = 1", r"timing.ssram1: Expected `bool`, got `int` - at `\$.prefetch`"),
        ("sets = 1,", "sets = 3,", "timing.ssram1.instruction_cache: sets is 3, expected a power of 2"),
        ("sets = 1,", "", r"missing required field `sets` - at `\$.instruction_cache`"),
        ("ways = 32", "ways = 0", "timing.ssram1.instruction_cache: ways is 0, expected 1 to 4096"),
        ("ways = 32", "ways = 4097", "timing.ssram1.instruction_cache: ways is 4097, expected 1 to 4096"),
        ("line_bytes = 32", "line_bytes = 33", "timing.ssram1.instruction_cache: line_bytes is 33, expected 4, 8"),
    ],
)
def test_refuses_a_wrong_timing(folder: Path, old: str, new: str, message: str) -> None:
    assert old in TIMING
    with pytest.raises(FerruleError, match=message) as caught:
        load_board(stated(folder, TIMING.replace(old, new, 1)))
    assert str(folder / "board.toml") in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("supply_v = 3.0", "supply_v = 0", "energy.supply_v is 0, expected volts"),
        ("supply_v = 3.0", "supply_v = nan", "energy.supply_v is nan, expected volts"),
        ("supply_v = 3.0", "", r"missing required field `supply_v` - at `\$.energy`"),
        ("running.ssram1", "running.flash", "energy.running: there is no memory 'flash'"),
        ("running.ssram1", "running.ssram23", "energy.running.ssram1 is missing"),
        ("[100, 120.5]", "[120, 100]", r"energy.running.ssram1.ua_per_mhz is \[120, 100\]"),
        ("[100, 120.5]", "[-1, 100]", r"energy.running.ssram1.ua_per_mhz is \[-1, 100\]"),
        ("[100, 120.5]", "[1, nan]", r"energy.running.ssram1.ua_per_mhz is \[1, nan\]"),
        ("[100, 120.5]", "[1, inf]", r"energy.running.ssram1.ua_per_mhz is \[1, inf\]"),
        ("[100, 120.5]", "100", r"Expected `array"),
        ("ua_per_mhz = [100, 120.5]\n", "", "energy.running.ssram1 has neither ua nor ua_per_mhz"),
        ('source = "a data sheet"\n', "", r"missing required field `source` - at `\$.energy.running"),
        ('"sleep"', '""', "energy.asleep.source is empty"),
        ("ua = [10, 10]", "ma = [10, 10]", r"unknown field `ma` - at `\$.energy.asleep`"),
        ("[energy.asleep]", "[energy.awake]", r"unknown field `awake` - at `\$.energy`"),
        ("ua = [1.5, 1.5]", "ua = [1.5, 1e9]", r"energy.stopped.ua is \[1.5, 1e\+09\]"),
        ("[5000, 6000]", "[6000, 5000]", r"energy.devices.npu0.work_ua is \[6000, 5000\]"),
        ("[0, 1]", "[0, 1, 2]", r"Expected `array` of length 2, got 3 - at `\$.energy.devices\[...\].idle_ua`"),
        ('"npu"', '"\\u202e"', r"source contains the character U\+202E"),
    ],
)
def test_refuses_a_wrong_energy(folder: Path, old: str, new: str, message: str) -> None:
    assert old in ENERGY
    with pytest.raises(FerruleError, match=message) as caught:
        load_board(stated(folder, ENERGY.replace(old, new, 1)))
    assert str(folder / "board.toml") in str(caught.value)


PIECES = [
    "",
    "[",
    "]",
    "{",
    "}",
    "=",
    '"',
    ".",
    "\n",
    "-",
    "0",
    "9" * 30,
    "1.5",
    "inf",
    "nan",
    "true",
    "source",
    "ssram1",
]


@settings(max_examples=150)
@given(data=st.data())
def test_any_damage_is_read_or_refused(folder: Path, data: st.DataObject) -> None:
    text = TIMING + ENERGY
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        until = data.draw(st.integers(at, min(len(text), at + 15)))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[until:]
    name, message = "", ""
    try:
        name = load_board(stated(folder, text)).name
    except FerruleError as error:
        message = str(error)
    assert (name == "mine") != bool(message)
