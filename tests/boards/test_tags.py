# SPDX-License-Identifier: Apache-2.0
"""Tags of the system bus."""

from __future__ import annotations

from pathlib import Path

from ferrule.boards import load_board, read_platform
from ferrule.boards.tags import Tag, tags


def read(folder: Path, *lines: str) -> tuple[Tag, ...]:
    """Return the tags of a description with these commands."""
    file = folder / "board.repl"
    file.write_text("\n".join(["sysbus:", "    init:", *(f"        {line}" for line in lines), ""]))
    return tags(read_platform(file))


def test_both_spellings_of_a_range(tmp_path: Path) -> None:
    found = read(tmp_path, 'Tag <0x40010000, 0x40010FFF> "gpio0"', 'sysbus Tag <0x40011000 4096> "gpio 1"')
    assert found == (
        Tag(name="gpio0", address=0x4001_0000, size_bytes=0x1000),
        Tag(name="gpio 1", address=0x4001_1000, size_bytes=0x1000),
    )
    assert 0x4001_0FFF in found[0]
    assert 0x4001_1000 not in found[0]


def test_other_commands_are_left_to_renode(tmp_path: Path) -> None:
    assert read(tmp_path, 'Tag <0x10, 0x20> "ready" 0x1', "SilenceRange <0 4>", 'Tag <0x20, 0x10> "backwards"') == ()


def test_a_description_without_a_bus_entry(tmp_path: Path) -> None:
    file = tmp_path / "board.repl"
    file.write_text("")
    assert tags(read_platform(file)) == ()


def test_the_pins_of_the_boards() -> None:
    assert [tag.name for tag in load_board("mps2-an386").tags] == ["gpio0", "gpio1", "gpio2", "gpio3"]
