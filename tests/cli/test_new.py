# SPDX-License-Identifier: Apache-2.0
"""`ferrule new`: its output works unchanged, and a refused command leaves no file behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from children import ran

from ferrule.boards import Board, board_names, load_board
from ferrule.report.backend_listing import BackendListing

Ferrule = Callable[..., Any]


def run_tests(folder: Path, *paths: Path) -> str:
    """Run tests in a child pytest and return what it printed."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, paths)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = ran(argv, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_backend_passes_its_own_tests(ferrule: Ferrule, tmp_path: Path) -> None:
    """Only the tests of layer support run here; tests/docs/test_backends_document.py runs all of them."""
    outcome = ferrule("new", "backend", "HTTPNpu2", "--out", tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    folder = tmp_path / "http_npu_2"
    assert outcome.out.startswith(f"{folder}: backend HTTPNpu2; test it with: pytest {folder}\n")
    assert "2 passed" in run_tests(tmp_path, folder / "tests" / "test_http_npu_2.py")


def test_a_backend_is_listed_as_usable(ferrule: Ferrule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    advice = ferrule("new", "backend", "ListedNpu").out.splitlines()[1]
    table, entry = advice.removeprefix("to use it, add to ferrule.toml: ").split(maxsplit=1)
    (tmp_path / "ferrule.toml").write_text(f"{table}\n{entry}\n", encoding="utf-8")
    listing = msgspec.json.decode(ferrule("backends", "ListedNpu", "--json").out, type=BackendListing)
    (listed,) = [each for each in listing.backends if each.id == "ListedNpu"]
    assert (listed.reason, listed.host, listed.firmware) == ("", True, True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("acmeNpu", "'acmeNpu' is not a valid backend id"),
        ("Acme-Npu", "'Acme-Npu' is not a valid backend id"),
        ("../Acme", "'../Acme' is not a valid backend id"),
        ("", "'' is not a valid backend id"),
        ("CpuAcc", "backend 'CpuAcc' already exists"),
        ("Numpy", "would become the Python package 'numpy', a name that is in use"),
        ("Class", "would become the Python package 'class', a name that is in use"),
    ],
)
def test_an_id_that_cannot_be(ferrule: Ferrule, tmp_path: Path, name: str, words: str) -> None:
    outcome = ferrule("new", "backend", name, "--out", tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err
    assert "hint: " in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.usefixtures("zig")
def test_a_board_passes_its_own_test(ferrule: Ferrule, tmp_path: Path) -> None:
    outcome = ferrule("new", "board", "my-board", "--out", tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    folder = tmp_path / "my-board"
    assert outcome.out.startswith(f"{folder}: board my-board, based on mps2-an386; test it with: pytest")
    assert "1 passed" in run_tests(tmp_path, folder)


@pytest.mark.parametrize("base", board_names())
def test_a_board_begins_as_its_base(ferrule: Ferrule, tmp_path: Path, base: str) -> None:
    assert ferrule("new", "board", "mine", "--base", base, "--out", tmp_path).code == 0
    old, new = load_board(base), load_board(tmp_path / "mine")
    assert new.name == "mine"
    assert nameless(new) == nameless(old)
    engine = "qemu" if base == "mps3-an547" else "unicorn"
    assert f'engine="{engine}"' in (tmp_path / "mine" / "tests" / "test_mine.py").read_text(encoding="utf-8")


def nameless(board: Board) -> Board:
    """Return a board without its name and files."""
    nowhere = Path()
    return replace(board, name="", title="", folder=nowhere, platform=nowhere, files=())


def test_a_board_can_change_what_its_base_says(ferrule: Ferrule, tmp_path: Path) -> None:
    """The changes are the example in the comment of the platform description."""
    ferrule("new", "board", "mine", "--out", tmp_path)
    file = tmp_path / "mine" / "mine.repl"
    text = file.read_text(encoding="utf-8")
    example = text.split("//\n//     ")[1:]
    added = "".join("\n" + block.split("\n//\n")[0].replace("//     ", "") + "\n" for block in example)
    assert "uart0:" in added
    assert "uart5:" in added
    file.write_text(text + added, encoding="utf-8")
    peripherals = {each.name: each for each in load_board(tmp_path / "mine").peripherals}
    assert peripherals["uart0"].properties["frequency"] == 32_000_000
    assert peripherals["uart5"].address == 0x4000_A000


def test_a_base_of_ones_own(ferrule: Ferrule, tmp_path: Path) -> None:
    """The new board must be in the folder beside its base, where `using` finds the base."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    ferrule("new", "board", "first", "--out", here)
    assert ferrule("new", "board", "second", "--base", here / "first", "--out", here).code == 0
    assert nameless(load_board(here / "second")) == nameless(load_board("mps2-an386"))
    outcome = ferrule("new", "board", "third", "--base", here / "first", "--out", elsewhere)
    assert outcome.code == 2
    assert f"hint: create it beside its base: --out {here}" in outcome.err
    assert not elsewhere.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["my board"], "'my board' is not a valid board name"),
        (["../mine"], "'../mine' is not a valid board name"),
        (["mps2-an386"], "board 'mps2-an386' already exists"),
        (["mine", "--base", "mps2-an387"], "there is no board 'mps2-an387'"),
    ],
)
def test_a_board_that_cannot_be(ferrule: Ferrule, tmp_path: Path, arguments: list[str], words: str) -> None:
    outcome = ferrule("new", "board", *arguments, "--out", tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "name", "taken"), [("backend", "SomeNpu", "some_npu"), ("board", "some", "some")])
def test_what_is_there_is_left_alone(ferrule: Ferrule, tmp_path: Path, kind: str, name: str, taken: str) -> None:
    (tmp_path / taken).mkdir()
    outcome = ferrule("new", kind, name, "--out", tmp_path)
    assert outcome.code == 2
    assert f"{tmp_path / taken} already exists" in outcome.err
    assert list((tmp_path / taken).iterdir()) == []


def test_a_folder_that_cannot_be_written(ferrule: Ferrule, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    outcome = ferrule("new", "backend", "SomeNpu", "--out", tmp_path / "file")
    assert outcome.code == 2
    assert f"{tmp_path / 'file' / 'some_npu'} cannot be written" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
