# SPDX-License-Identifier: Apache-2.0
"""The trees of other projects that tests need, as tests/trees.toml lists them, and what is there of them."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from children import ran

from ferrule._frozen import frozen

FILE = Path(__file__).resolve().parents[1] / "trees.toml"


@frozen
class Tree:
    """A tree that a variable names."""

    name: str
    variable: str
    repository: str
    revision: str
    """The commit that the tests passed with."""
    files: tuple[str, ...]
    """Files that tests use, relative to the tree."""
    versions: str | None
    """Which versions will do, and what else is needed."""
    source: str | None
    """Where the revision is if it is not in the repository."""

    @property
    def value(self) -> str:
        """The value that the variable needs, in words."""
        return f"a checkout of {self.repository}" + (f", {self.versions}" if self.versions else "")

    def state(self, environment: Mapping[str, str] = os.environ) -> str:
        """Return what is wrong with the tree that the variable names, or "" if it is the one of the tests."""
        value = environment.get(self.variable)
        if not value:
            return "not set"
        folder = Path(value)
        missing = [name for name in self.files if not (folder / name).is_file()]
        if missing:
            return f"{folder} lacks {', '.join(missing)}"
        found = _revision(folder)
        if found is None:
            return f"{folder} is no checkout of its own, so its revision is unknown"
        return (
            "" if found == self.revision else f"{folder} is at {found[:12]}, the tests passed with {self.revision[:12]}"
        )


@frozen
class Change:
    """What to run after a change."""

    of: tuple[str, ...]
    """Folders and files."""
    trees: tuple[str, ...]
    """Variables."""
    tests: tuple[str, ...]

    def concerns(self, paths: Iterable[str]) -> bool:
        """Return whether one of the paths is, or is in, what this is about."""
        return any(path == part or path.startswith(f"{part}/") for path in paths for part in self.of)


def _revision(folder: Path) -> str | None:
    argv = ["git", "-C", str(folder), "rev-parse", "--show-toplevel", "HEAD"]
    try:
        done = ran(argv, timeout=60)
    except FileNotFoundError:
        return None
    lines = done.stdout.split("\n")
    if done.returncode != 0 or Path(lines[0]).resolve() != folder.resolve():
        return None
    return lines[1]


@cache
def _table() -> Mapping[str, list[dict[str, object]]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def _words(row: Mapping[str, object], key: str) -> tuple[str, ...]:
    values = row[key]
    assert isinstance(values, list), f"{FILE}: {key} is no list"
    return tuple(map(str, values))


@cache
def trees() -> Mapping[str, Tree]:
    """Return the trees by variable."""
    return {
        str(row["variable"]): Tree(
            name=str(row["name"]),
            variable=str(row["variable"]),
            repository=str(row["repository"]),
            revision=str(row["revision"]),
            files=_words(row, "files"),
            versions=str(row["versions"]) if "versions" in row else None,
            source=str(row["from"]) if "from" in row else None,
        )
        for row in _table()["tree"]
    }


@cache
def changes() -> tuple[Change, ...]:
    """Return the changes after which tests with trees have to run."""
    return tuple(
        Change(of=_words(row, "of"), trees=_words(row, "trees"), tests=_words(row, "tests"))
        for row in _table()["change"]
    )
