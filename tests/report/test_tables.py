# SPDX-License-Identifier: Apache-2.0
"""Tables on consoles of all widths: nothing is cut without a note."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from ferrule.report.tables import print_table

HEADINGS = ("#", "layer", "type", "kernel", "MACs")
ROWS = (("0", "fully_connected", "FULLY_CONNECTED", "ferrule_fully_connected_s8", "1,234,567"),)
TEXTS = (*HEADINGS, *ROWS[0])


def printed(width: int, headings: Sequence[str] = HEADINGS, rows: Sequence[Sequence[str]] = ROWS) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width)
    print_table(console, headings, rows, right=("#", "MACs"), whole=("layer",), optional=("kernel", "MACs"))
    return out.getvalue()


def test_a_wide_console_shows_everything() -> None:
    text = printed(100)
    assert all(part in text for part in TEXTS)
    assert "too narrow" not in text


@pytest.mark.parametrize(("width", "left_out"), [(80, "kernel"), (50, "kernel, MACs")])
def test_columns_are_left_out_in_order_before_names_are_broken(width: int, left_out: str) -> None:
    text = printed(width)
    assert ROWS[0][1] in text
    assert text.splitlines()[-1] == f"the terminal is too narrow for: {left_out}"
    assert ("1,234,567" in text) == ("MACs" not in left_out)


@pytest.mark.parametrize("width", [24, 30, 40, 44])
def test_a_very_narrow_console_breaks_texts_and_cuts_none(width: int) -> None:
    columns = [line.split("│") for line in printed(width).splitlines() if line.startswith("│")]
    assert "".join(line[2].strip() for line in columns) == "fully_connected"
    assert "".join(line[3].strip() for line in columns) == "FULLY_CONNECTED"
    assert "".join(line[1].strip() for line in columns) == "0"


@pytest.mark.parametrize(("width", "left_out"), [(70, ""), (60, "type"), (45, "type, kernel")])
def test_spare_columns_are_left_out_before_others_become_very_narrow(width: int, left_out: str) -> None:
    out = io.StringIO()
    print_table(Console(file=out, width=width), HEADINGS, ROWS, right=("#", "MACs"), spare=("type", "kernel", "layer"))
    *table, last = out.getvalue().splitlines()
    assert last.removeprefix("the terminal is too narrow for: ") == left_out or not left_out
    cells = "".join("".join(line.split("│")[2:]) for line in table).replace(" ", "")
    assert ("FULLY_CONNE" in cells, "ferrule_" in cells) == ("type" not in left_out, "kernel" not in left_out)


def test_numbers_and_names_stay_whole_beside_long_texts() -> None:
    rows = [(str(index), f"layer_{index}", "a long text " * 5, "kernel", f"{index:,}") for index in range(9, 12)]
    text = printed(60, rows=rows)
    for index, layer, *_ in rows:
        assert any(line.split()[1:4:2] == [index, layer] for line in text.splitlines())


def test_a_row_must_have_all_cells() -> None:
    with pytest.raises(ValueError, match="zip"):
        printed(80, rows=[("0", "short")])
