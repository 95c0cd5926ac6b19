# SPDX-License-Identifier: Apache-2.0
"""The published figures, the error that counts as measured, and the page that lists them."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.boards import load_board
from ferrule.errors import FerruleError
from ferrule.timing import evidence as module
from ferrule.timing.evidence import Figure, Source, Use, error_of, evidence, measured_error, read_figures

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import timing_evidence

ROOT = Path(__file__).parents[2]
SOURCE = Source(title="a paper", url="https://example.org/1", revision="1", file="a table", board="a chip", compiler="")
FIGURE = Figure(
    core="cortex-m4",
    name="a loop",
    source=SOURCE,
    program="loop",
    published=110.0,
    per=1,
    use=Use.HELD_OUT,
    board="mps2-an386",
    timing=None,
    note="",
    model=100.0,
)
FILE = """
board = "mps2-an386"

[waits.slow]
board = "stm32f4_discovery"
source = "a manual"
memories.flash = { wait_states = 5, width_bytes = 16 }

[sources.paper]
title = "a paper"
url = "https://example.org/1"
revision = "1"
file = "a table"
board = "a chip"
compiler = "none"

[[figures]]
name = "a loop"
source = "paper"
program = "loop"
published = 110.5
model = 100
use = "held out"

[[figures]]
name = "a slow loop"
source = "paper"
program = "slow"
published = 1_000
per = 16
waits = "slow"
use = "context"
note = "other arguments"
"""


def held_out(count: int, sources: int, *, use: Use = Use.HELD_OUT) -> list[Figure]:
    """Return figures whose chips take 1 %, 2 %, ... beyond the model, from several publications in turn."""
    return [
        replace(
            FIGURE,
            use=use,
            published=101.0 + index,
            source=replace(SOURCE, url=f"https://example.org/{index % sources}"),
        )
        for index in range(count)
    ]


def test_an_error_is_measured_by_eight_held_out_figures_of_three_publications() -> None:
    found = error_of(held_out(8, 3))
    assert found is not None
    assert (found.figures, found.sources) == (8, 3)
    assert (found.low, found.high, found.median) == pytest.approx((0.01, 0.08, 0.045))


@pytest.mark.parametrize(
    "figures",
    [
        held_out(7, 3),
        held_out(8, 2),
        [],
        [*held_out(7, 3), *held_out(9, 3, use=Use.FITTED), *held_out(9, 3, use=Use.CONTEXT)],
        [*held_out(7, 3), replace(FIGURE, model=None)],
        [*held_out(8, 2), replace(FIGURE, use=Use.CONTEXT, source=replace(SOURCE, url="https://example.org/3"))],
    ],
    ids=["figures", "publications", "none", "other uses", "not compared", "publication of context"],
)
def test_with_fewer_no_error_is_measured(figures: list[Figure]) -> None:
    assert error_of(figures) is None


def test_a_chip_that_takes_fewer_cycles_has_an_error_below_0() -> None:
    assert replace(FIGURE, published=95.0).error == pytest.approx(-0.05)
    assert replace(FIGURE, model=None).error is None


def test_memories_with_and_without_wait_states_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = read_text(FILE)[1].timing
    without, with_waits = held_out(8, 3), [replace(each, timing=slow) for each in held_out(9, 3)]
    monkeypatch.setattr(module, "evidence", lambda: {"cortex-m4": (*without, *with_waits)})
    measured_error.cache_clear()
    try:
        found = [measured_error("cortex-m4", waits=waits) for waits in (False, True)]
        assert [None if each is None else each.figures for each in found] == [8, 9]
        assert measured_error("cortex-m23", waits=False) is None
    finally:
        measured_error.cache_clear()


def read_text(text: str) -> tuple[Figure, ...]:
    """Return the figures of a file with this text."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "cortex-m4.toml"
        path.write_text(text, encoding="utf-8")
        return read_figures(path)


def test_a_file_is_read() -> None:
    loop, slow = read_text(FILE)
    assert (loop.core, loop.name, loop.published, loop.model, loop.per) == ("cortex-m4", "a loop", 110.5, 100.0, 1)
    assert (loop.board, loop.timing, loop.use, loop.note) == ("mps2-an386", None, Use.HELD_OUT, "")
    assert loop.source.title == "a paper"
    assert loop.source.clock_hz is None
    assert slow.timing is not None
    assert slow.timing.memories["flash"].wait_states == 5
    assert (slow.board, slow.per, slow.use, slow.note) == ("stm32f4_discovery", 16, Use.CONTEXT, "other arguments")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('source = "paper"', 'source = "papers"', "papers"),
        ('waits = "slow"', 'waits = "slower"', "slower"),
        ('use = "held out"', 'use = "good"', "good"),
        ("published = 110.5", "published = 0", "published"),
        ("model = 100", "model = -1", "model"),
        ("per = 16", "per = 0", "per"),
        ('name = "a slow loop"', 'name = "a loop"', "is listed twice"),
        ("per = 16", "every = 16", "every"),
        ("wait_states = 5", "wait_states = -5", "wait_states is -5"),
    ],
)
def test_a_malformed_file_is_an_error_that_names_it(old: str, new: str, message: str) -> None:
    assert old in FILE
    with pytest.raises(FerruleError, match=message) as caught:
        read_text(FILE.replace(old, new, 1))
    assert "cortex-m4.toml" in str(caught.value)


def test_the_figures_are_consistent() -> None:
    for core, figures in evidence().items():
        assert figures, core
        for each in figures:
            board = load_board(each.board)
            assert board.cpu.type == core, f"{each.name}: {each.board} has another core"
            assert each.timing is None or set(each.timing.memories) <= {memory.name for memory in board.memories}, (
                each.name
            )
            assert each.use is Use.CONTEXT or each.source.board, each.name
        programs = {(each.program, each.per) for each in figures}
        assert len({program for program, _ in programs}) == len(programs), f"{core}: a program with two units"
        compared = [each for each in figures if each.use is not Use.CONTEXT]
        assert len({each.program for each in compared}) == len(compared), f"{core}: a program counts twice"


@pytest.mark.parametrize(
    ("core", "waits", "most", "median"),
    [
        ("cortex-m0plus", False, 0.01, 0.001),
        ("cortex-m3", False, 0.08, 0.04),
        ("cortex-m33", False, 0.12, 0.04),
        ("cortex-m4", False, 0.08, 0.04),
        ("cortex-m4", True, 0.15, 0.08),
        ("cortex-m7", False, 0.25, 0.08),
    ],
)
def test_the_models_are_as_good_as_they_were_meant_to_be(core: str, waits: bool, most: float, median: float) -> None:
    found = measured_error(core, waits=waits)
    assert found is not None
    assert max(-found.low, found.high) <= most
    assert found.median <= median


def test_the_page_lists_every_figure() -> None:
    listed = (ROOT / "docs" / "timing.md").read_text(encoding="utf-8").partition("### Errors\n\n")[2]
    assert listed == timing_evidence.listed(evidence()), "run `python benchmarks/timing_evidence.py --update`"


def test_the_stored_cycles_of_the_model_are_rewritten() -> None:
    figures = read_text(FILE)
    text = timing_evidence.with_models(FILE, [replace(figures[0], model=123.0), replace(figures[1], model=4567.25)])
    assert "model = 100" not in text
    assert [each.model for each in read_text(text)] == [123.0, 4567.25]
    assert timing_evidence.with_models(text, read_text(text)) == text
