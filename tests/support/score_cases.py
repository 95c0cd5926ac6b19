# SPDX-License-Identifier: Apache-2.0
"""The parts of the scoreboard that its suites share: a case, a suite, and the identity of a source."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ferrule._frozen import frozen, positional
from ferrule.graph import Array
from ferrule.network import Network


class SourceError(Exception):
    """The source of a suite is absent or is another version; the message says what to do."""


@positional
class Run:
    """The inputs and the expected outputs of one run."""

    inputs: Sequence[Array]
    outputs: Sequence[Array]


def _nothing() -> tuple[Network, Sequence[Run]]:
    """Stand for the network of a case that has a check of its own."""
    raise AssertionError("the case is run by its check")


@frozen
class Case:
    """A test case as a network; runs of a case follow each other without a reset."""

    name: str
    make: Callable[[], tuple[Network, Sequence[Run]]] = _nothing
    """Makes the network and its runs; a FerruleError is a refusal."""
    tolerance: int = 0
    """The difference of integers that the suite itself allows."""
    relative: float = 0.0
    """By how much of itself a float32 of the suite may be off beside, such as where it was written with few digits."""
    invalid: bool = False
    """Whether the suite expects an error."""
    check: Callable[[], str] | None = None
    """Runs a case that is no network of one layer, and returns what is wrong; an empty text for a pass."""


@frozen
class Suite:
    """Where the cases of a suite are, and how many there are at least."""

    name: str
    title: str
    variable: str
    """The environment variable with the path of the source; empty if the source is an installed package."""
    source: str
    """What the variable is to be set to."""
    least: int
    cases: Callable[[Path], Iterator[Case]]
    version: Callable[[Path], str]
    """Returns the version of a source; SourceError if it is not the one that is pinned."""


def pinned(files: Iterable[Path], root: Path, digest: str, version: str) -> str:
    """Return the version if the files of a source have the digest, else raise SourceError."""
    found = digest_of(files, root)
    if found != digest:
        raise SourceError(f"the digest of its files is {found}, expected {digest} ({version})")
    return version


def digest_of(files: Iterable[Path], root: Path) -> str:
    """Return the SHA-256 over the names and the contents of files, in the order of their names."""
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f"{path.relative_to(root).as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()
