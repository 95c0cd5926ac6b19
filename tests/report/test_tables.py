# SPDX-License-Identifier: Apache-2.0
"""Tables on consoles of all widths: nothing is cut without a note."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console

from ferrule.report import tables
from ferrule.report.sections import Align, Column, names, numbers, runner
from ferrule.report.tables import print_table

HEADINGS = ("#", "layer", "type", "kernel", "MACs")
KERNELS = (
    *numbers("#"),
    *names("layer"),
    Column("type"),
    Column("kernel", drop=1),
    Column("MACs", Align.NUMBER, drop=2),
)
SPARE = (
    *numbers("#"),
    Column("layer", spare=3),
    Column("type", spare=1),
    Column("kernel", spare=2),
    *numbers("MACs"),
)
ROWS = (("0", "fully_connected", "FULLY_CONNECTED", "ferrule_fully_connected_s8", "1,234,567"),)
TEXTS = (*HEADINGS, *ROWS[0])


def printed(width: int, rows: Sequence[Sequence[str]] = ROWS) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width)
    print_table(console, KERNELS, rows)
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
    print_table(Console(file=out, width=width), SPARE, ROWS)
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
    with pytest.raises(IndexError):
        printed(80, rows=[("0", "short")])


def long_table(count: int, width: int, *, styled: bool, title: str = "", encoding: str = "utf-8") -> bytes:
    """Return a table with cells of all kinds that need no style."""
    dice = random.Random(count)
    rows = [
        (
            str(index),
            dice.choice(["layer", "é", "日本", ":0", "\\[a]"]) * dice.randrange(1, 4) + " " * dice.randrange(3),
            "\n".join("int8 1x4"[: dice.randrange(9)] for _ in range(dice.randrange(4))),
            "a kernel",
            f"{dice.randrange(10**7):,} ",
        )
        for index in range(count)
    ]
    out = io.BytesIO()
    stream = io.TextIOWrapper(out, encoding=encoding, errors="replace")
    console = Console(file=stream, width=width, force_terminal=styled, color_system="standard" if styled else None)
    print_table(console, KERNELS, rows, title=title)
    stream.flush()
    return out.getvalue()


@pytest.mark.parametrize("width", [100, 60, 45, 30])
@pytest.mark.parametrize("title", ["", "a [bold]title[/]"])
@pytest.mark.parametrize(("styled", "encoding"), [(True, "utf-8"), (False, "utf-8"), (False, "ascii")])
def test_a_long_table_is_what_rich_would_draw(
    width: int, title: str, styled: bool, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in (6, 12):
        by_rich = long_table(count, width, styled=styled, title=title, encoding=encoding)
        with monkeypatch.context() as patch:
            patch.setattr(tables, "_LONG", 5)
            assert long_table(count, width, styled=styled, title=title, encoding=encoding) == by_rich


def test_each_row_of_a_long_table_costs_rich_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    render = Console.render

    def counted(self: Console, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 rich's types
        nonlocal calls
        calls += 1
        return render(self, *arguments, **keywords)

    monkeypatch.setattr(Console, "render", counted)
    found = []
    for count in (200, 400):
        calls = 0
        assert long_table(count, 100, styled=False).count("│".encode()) > count
        found.append(calls)
    assert found[0] == found[1] > 0


def test_a_style_in_a_long_table_is_drawn() -> None:
    out = io.StringIO()
    rows = [(str(index), "a", "[bold red]wrong[/]" if index == 150 else "right", "k", "1") for index in range(200)]
    print_table(Console(file=out, width=100, force_terminal=True, color_system="standard"), KERNELS, rows)
    assert "\x1b[1;31mwrong\x1b[0m" in out.getvalue()


@pytest.mark.parametrize(
    ("device", "said"), [(None, "Woofles"), ("", "Woofles"), ("Woofles", "Woofles"), ("npu0", "Woofles/npu0")]
)
def test_a_device_of_another_name_is_said_beside_its_backend(device: str | None, said: str) -> None:
    assert runner("Woofles", device) == said
