# SPDX-License-Identifier: Apache-2.0
"""No figure of firmware rises unnoticed: exact instructions, flash and RAM, compared with tests/figures.toml."""

from __future__ import annotations

from pathlib import Path

import figures_table
import pytest
from figures_table import (
    FLASH_LIMIT,
    MEDIAN_LIMIT,
    ROWS,
    Row,
    above,
    entry_of,
    growth,
    main,
    measured,
    median,
    read,
    rises,
    write,
)
from firmware_figures import PUBLIC, Figures, file_of
from needs import lacking, lacking_variable, require_module, require_program, require_variable

GATE = {
    *(f"{model} mps2-an386 balanced arm-none-eabi-gcc" for model in ("ic", "kws", "ad")),
    "kws mps3-an547 balanced arm-none-eabi-gcc",
    "kws stm32g0b1 balanced arm-none-eabi-gcc",
    "kws mps2-an386 balanced zig",
    "kws mps2-an386 time zig",
    "ad stm32g0b1 time zig",
}
ABOVE = {
    "keyword_scrambled": "six layers SVDF of 1,536 to 2,048 products take 2.5 to 3.7 for each",
    "magic_wand_f32": "a convolution over 3 columns, in which no two neighbours have the same taps inside the image",
    "mnist_lstm": "an LSTM of 20 units, 28 steps of 3,840 products: its gates' functions",
    "mnist_lstm_f32": "the same in float32: exponentials and tangents in software",
    "okay_nabu": "depthwise windows over one row of 5 to 29 taps, and many layers of few products",
    "umatest_f32": "convolutions of 3 channels, and maxima of float32, for which the core has no instruction",
}
"""The public models above their limits."""
ENTRY = {"instructions": 1000, "flash": 2000, "ram": 300}
ROW = ROWS[0]


def test_the_rows_of_the_gate_exist() -> None:
    assert {str(row) for row in ROWS} > GATE


@pytest.mark.emu
@pytest.mark.cc
@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=[] if str(row) in GATE else pytest.mark.nightly) for row in ROWS],
    ids=lambda row: str(row).replace(" ", "-"),
)
def test_no_figure_rises(row: Row) -> None:
    folder = require_variable(row.variable)
    if row.toolchain == "zig":
        require_module("ziglang", "pip install ferrule[run]")
    else:
        require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    if file_of(folder, row.model) is None:
        lacking_variable(row.variable, PUBLIC[row.model])
    require_module("unicorn", "pip install ferrule[run]")
    if row.board == "mps3-an547":
        require_program("qemu-system-arm", "apt install qemu-system-arm")
    version, figures = measured(row, folder)
    assert figures.exact
    known = read().get(version, {}).get(row.name)
    if known is None:
        lacking(f"figures of {version} in tests/figures.toml", "python tests/figures.py --update", rare=True)
    assert rises(row, known, entry_of(row, figures)) == []


def test_public_models_keep_their_limits() -> None:
    """The models that do not are listed with the reason: what most of their instructions are."""
    (rows,) = (rows for version, rows in read().items() if version.startswith("arm-none-eabi-gcc"))
    assert {name.split()[0] for name, entry in rows.items() if "macs" in entry} == set(PUBLIC)
    assert above(rows) == set(ABOVE)
    assert median(rows) <= MEDIAN_LIMIT
    assert growth(rows) <= FLASH_LIMIT


def test_the_limits() -> None:
    def rows(model: str, instructions: int, macs: int) -> dict[str, dict[str, int]]:
        return {f"{model} mps2-an386 speed": {"instructions": instructions, "macs": macs}}

    assert above(rows("vad", 15_000, 10_000)) == set()
    assert above(rows("vad", 15_001, 10_000)) == {"vad"}
    assert above(rows("vad", 99_999, 9_999)) == set()
    assert above(rows("face_landmarks", 24_000, 10_000)) == set()
    assert above(rows("cifar10_f32", 150_000, 50_000)) == set()
    assert above(rows("cifar10_f32", 150_001, 50_000)) == {"cifar10_f32"}
    assert above(rows("cifar10_f32", 999_999, 49_999)) == set()
    assert above({"ic mps2-an386 speed": ENTRY}) == set()
    assert median(rows("vad", 15_000, 10_000) | rows("cifar10_f32", 150_000, 50_000)) == 1.5
    assert growth({"a": {"flash": 30, "flash_before": 20}, "b": {"flash": 20, "flash_before": 40}, "c": ENTRY}) == 1


def test_only_a_rise_by_half_a_percent_fails() -> None:
    assert rises(ROW, ENTRY, ENTRY) == []
    assert rises(ROW, ENTRY, ENTRY | {"instructions": 1004, "flash": 1000, "ram": 301}) == []
    (line,) = rises(ROW, ENTRY, ENTRY | {"instructions": 1005})
    assert line == f"{ROW}: instructions rose from 1,000 to 1,005 (+0.50%)"
    assert len(rises(ROW, ENTRY, {"instructions": 2000, "flash": 4000, "ram": 600})) == 3


def test_the_command_compares_and_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "figures.toml"
    counted = {"instructions": 1000}

    def fake(row: Row, folder: Path) -> tuple[str, Figures]:
        assert folder == tmp_path
        return f"{row.toolchain} 1.2", Figures(
            exact=True, flash=2000, ram=300, activations=100, workspace=200, layers=(), **counted
        )

    monkeypatch.setattr(figures_table, "measured", fake)
    monkeypatch.setenv("FERRULE_MODELS", str(tmp_path))
    words = ["ic", "mps2-an386", "speed", "zig", "--table", str(path)]
    assert main("", words) == 0  # an unknown version is no failure
    assert not path.exists()
    assert main("", [*words, "--update"]) == 0
    assert read(path) == {"zig 1.2": {"ic mps2-an386 speed": ENTRY}}
    counted["instructions"] = 1010
    assert main("", words) == 1
    assert "ic mps2-an386 speed zig: instructions 1,010 (+1.00%); flash 2,000 (+0.00%)" in capsys.readouterr().out
    assert main("", [*words, "--update"]) == 0
    assert main("", words) == 0
    with pytest.raises(SystemExit, match="no row has all of the words"):
        main("", ["nothing"])


def test_the_committed_table_is_as_the_command_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "figures.toml"
    write(read(), path)
    assert path.read_text(encoding="utf-8") == figures_table.TABLE.read_text(encoding="utf-8")
    names = {row.name for row in ROWS}
    for version, rows in read().items():
        assert set(rows) <= names, version
