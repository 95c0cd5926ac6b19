# SPDX-License-Identifier: Apache-2.0
"""The table `[timing]` that a calibration writes, and the places that it is written to."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ferrule.boards import load_board
from ferrule.errors import FerruleError
from ferrule.running.calibration import timing_table, write_table
from ferrule.running.calibration.timing_table import with_table
from ferrule.timing import BoardTiming, CacheTiming, MemoryTiming

BOARD = load_board("stm32f4_discovery")
TIMING = BoardTiming(
    source='calibrated on 2026-11-30 by "ferrule"',
    memories={
        "flash": MemoryTiming(
            wait_states=5,
            width_bytes=16,
            prefetch=True,
            instruction_cache=CacheTiming(sets=1, ways=64, line_bytes=16),
            data_cache=CacheTiming(sets=1, ways=8, line_bytes=16),
        ),
        "sram": MemoryTiming(write_wait_states=1, dma_wait_states=2),
    },
    residual=(-0.02125, 0.030001),
)


def test_a_copy_of_a_board_has_the_timing(tmp_path: Path) -> None:
    file = write_table(timing_table(TIMING), BOARD, tmp_path / "mine")
    found = load_board(file.parent)
    assert found.timing is not None
    assert found.timing.memories == TIMING.memories
    assert found.timing.source == TIMING.source
    assert found.timing.residual == (-0.0213, 0.0301)
    assert found.memories == BOARD.memories


def test_a_board_that_includes_another_folder_is_copied_whole(tmp_path: Path) -> None:
    board = load_board("mps2-an386")
    table = timing_table(BoardTiming(source="x", memories={"ssram1": MemoryTiming(wait_states=1)}))
    file = write_table(table, board, tmp_path / "boards" / "mine")
    assert load_board(file.parent).memories == board.memories
    assert "residual" not in table


def test_the_table_replaces_the_present_one(tmp_path: Path) -> None:
    table = timing_table(TIMING)
    folder = write_table(table, BOARD, tmp_path / "mine").parent
    again = table.replace("= 5", "= 6")
    for place in (folder, folder / "board.toml"):
        text = write_table(again, BOARD, place).read_text(encoding="utf-8")
        assert text.count("[timing]") == 1
        assert tomllib.loads(text)["timing"]["flash"]["wait_states"] == 6
    assert "# Places for accelerators" in text


@pytest.mark.parametrize(
    "text",
    ["a = 1\n", "[timing]\nsource = 'x'\n[timing.flash]\nwait_states = 1\n\n[b]\nc = 2\n", "[b]\nc = 2 # end"],
)
def test_other_tables_stay(text: str) -> None:
    found = tomllib.loads(with_table(text, "[timing]\nsource = 'new'\n"))
    assert found.pop("timing") == {"source": "new"}
    assert found == {name: value for name, value in tomllib.loads(text).items() if name != "timing"}


def test_a_table_that_cannot_be_replaced_is_refused() -> None:
    text = 'timing = { source = "x" }\n'
    with pytest.raises(FerruleError, match="cannot be replaced"):
        with_table(text, "[timing]\nsource = 'new'\n")


def test_places_that_are_none(tmp_path: Path) -> None:
    table = timing_table(TIMING)
    with pytest.raises(FerruleError, match=r"is a folder without a board\.toml"):
        write_table(table, BOARD, tmp_path)
    file = write_table(table, BOARD, tmp_path / "found.toml")
    assert file.read_text(encoding="utf-8") == table
    (tmp_path / "mine").write_text("a file", encoding="utf-8")
    with pytest.raises(FerruleError, match="cannot be written"):
        write_table(table, BOARD, tmp_path / "mine")
