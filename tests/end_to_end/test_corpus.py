# SPDX-License-Identifier: Apache-2.0
"""No shape of the corpus takes more instructions unnoticed, nor more than it may beside CMSIS-NN: tests/corpus.toml."""

from __future__ import annotations

from pathlib import Path

import corpus_table
import pytest
from corpus_picture import picture
from corpus_shapes import CASES, KINDS, WITHOUT, corpus
from corpus_table import (
    CORES,
    GROUPS,
    MOST,
    PICTURE,
    RISE,
    TOOLCHAINS,
    Group,
    Shape,
    above,
    main,
    measured,
    ratios,
    read,
    write,
)
from needs import require_module, require_program

import ferrule
from ferrule.emulation import Clock

FEW = ("c3x3_16_32", "c3x3_group4", "dw5x5_s2_32", "fc_odd_77_33", "bmm_4x32x16_qkT", "maxpool_2x2", "softmax_32rows")


def check(group: Group, words: tuple[str, ...] = ()) -> None:
    known = read()[group.toolchain]
    found = {f"{group.prefix} {name}": shape.instructions for name, shape in measured(group, words).items()}
    assert {row: count for row, count in found.items() if count > (1 + RISE) * known[row]} == {}


@pytest.mark.emu
@pytest.mark.parametrize("kind", KINDS)
def test_a_few_shapes_take_no_more_instructions(kind: str) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    check(Group(core="m4", kind=kind, toolchain="zig"), FEW)


@pytest.mark.emu
@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_the_clock_changes_no_result(toolchain: str) -> None:
    """In cycles, where memories wait, hooks see each access, also those of gcc's softmax in IT blocks."""
    require_module("unicorn", "pip install ferrule[run]")
    if toolchain != "zig":
        require_program(toolchain, "apt install gcc-arm-none-eabi")
    words = ("softmax_32rows", "dw5x5_s2_32", "maxpool_2x2", "add")
    firmware = ferrule.compile(corpus("int8", words), board="nucleo_l4r5zi", toolchain=toolchain, goal="speed")
    plain, timed = (firmware.run(engine="unicorn", clock=clock) for clock in (Clock.INSTRUCTIONS, Clock.CYCLES))
    assert plain.verdict == timed.verdict == "exact"
    assert timed.count.per_inference > plain.count.per_inference


@pytest.mark.nightly
@pytest.mark.emu
@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_no_shape_takes_more_instructions(group: Group) -> None:
    require_program("qemu-system-arm", "apt install qemu-system-arm")
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    check(group)


def test_the_table_has_every_shape_and_the_shapes_above_cmsis_nn() -> None:
    table = read()
    names = {
        f"{core} {kind} {name}" for core in CORES for kind in KINDS for name, *_ in CASES if name not in WITHOUT[kind]
    }
    for title in (*TOOLCHAINS, "work"):
        assert table[title].keys() == names
    assert table["cmsis-nn"].keys() < names
    assert above(table) == table["above"].keys()
    assert all(reason for reason in table["above"].values())


def test_the_picture_is_that_of_the_table() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(ratios(read()), MOST)


def test_the_command_tells_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, counts = tmp_path / "corpus.toml", {"zig": 700, "arm-none-eabi-gcc": 600}

    def fake(group: Group, words: tuple[str, ...]) -> dict[str, Shape]:
        del words
        return {"mul": Shape(kernel="mul_s8", instructions=counts[group.toolchain], work=100)}

    monkeypatch.setattr(corpus_table, "measured", fake)
    write({"cmsis-nn": {"m4 int8 mul": 1000}}, path)
    arguments = ["m4", "int8", "--table", str(path)]
    assert main("", [*arguments, "--update"]) == 0  # the better of both toolchains takes 0.6 times as many
    assert "new  0.70 of CMSIS-NN" in capsys.readouterr().out
    counts["zig"] = 706
    assert main("", arguments) == 0
    counts["zig"] = 708
    assert main("", arguments) == 1
    counts["arm-none-eabi-gcc"] = 606
    assert main("", [*arguments, "--update"]) == 1
    assert "m4 int8 mul: 0.61 of CMSIS-NN, against [above]" in capsys.readouterr().out
    write({**read(path), "above": {"m4 int8 mul": "a reason"}}, path)
    assert main("", arguments) == 0
