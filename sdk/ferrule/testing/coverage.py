# SPDX-License-Identifier: Apache-2.0
"""Line and branch coverage of C under test, as counted by gcov."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import TypeVar

import msgspec

from ferrule._frozen import frozen
from ferrule.child_process import run
from ferrule.errors import FerruleError, MissingToolError
from ferrule.testing.fakes import Fakes
from ferrule.testing.loaded import Adapter

_TIMEOUT_S = 120
_K = TypeVar("_K")


@frozen
class FileCoverage:
    """Line and branch counts of one file."""

    path: Path
    lines: dict[int, int]
    """Execution count of each line with code."""
    branches: dict[tuple[int, int], int]
    """Execution count of each branch, by line and by branch number from 0."""

    @property
    def missed_lines(self) -> list[int]:
        """Lines that were not executed."""
        return [line for line, count in sorted(self.lines.items()) if not count]

    @property
    def missed_branches(self) -> list[tuple[int, int]]:
        """Branches that were not taken, by line and number."""
        return [branch for branch, count in sorted(self.branches.items()) if not count]

    @property
    def is_full(self) -> bool:
        """Whether every line was executed and every branch was taken."""
        return not self.missed_lines and not self.missed_branches

    def merged(self, other: FileCoverage) -> FileCoverage:
        """Return the sum of both counts; builds with different macros may have different lines."""
        return FileCoverage(
            path=self.path, lines=_sum(self.lines, other.lines), branches=_sum(self.branches, other.branches)
        )


@frozen
class CoverageReport:
    """Coverage of the files under test."""

    files: dict[str, FileCoverage] = field(default_factory=dict)
    """By file name, without folders."""

    def __or__(self, other: CoverageReport) -> CoverageReport:
        """Return the combined coverage, for example of two builds with different macros."""
        files = dict(self.files)
        for name, each in other.files.items():
            files[name] = files[name].merged(each) if name in files else each
        return CoverageReport(files=files)

    def file(self, name: str) -> FileCoverage:
        """Return the coverage of a file, such as "zephyr.c"."""
        if name not in self.files:
            raise FerruleError(f"there is no coverage of {name}", hint=f"known files: {', '.join(sorted(self.files))}")
        return self.files[name]

    def table(self) -> str:
        """Return a table with one row per file: covered lines and branches, and the missing ones."""
        return "\n".join(_row(name, self.files[name]) for name in sorted(self.files))


def coverage(*adapters: Adapter[Fakes]) -> CoverageReport:
    """Return the coverage of the C under test up to now, in builds with `coverage=True`.

    Raises:
        MissingToolError: gcov is missing.
        FerruleError: an adapter was built without coverage.
    """
    gcov = shutil.which(os.environ.get("GCOV", "gcov"))
    if gcov is None:
        raise MissingToolError("gcov is missing, which reads the coverage data of gcc", hint="install gcc, or set GCOV")
    report = CoverageReport()
    for adapter in adapters:
        if not adapter.build.coverage:
            raise FerruleError(f"{adapter.build.title} was built without coverage", hint="build it with coverage=True")
        adapter.lib.ferrule_fake_dump_coverage()
        for source in adapter.build.tested:
            report |= _of_source(gcov, adapter.build.object_of(source), source)
    return report


class _Branch(msgspec.Struct):
    count: int


class _Line(msgspec.Struct):
    line_number: int
    count: int
    branches: list[_Branch] = []


class _File(msgspec.Struct):
    file: str
    lines: list[_Line]


class _Output(msgspec.Struct):
    files: list[_File]
    current_working_directory: str


def _of_source(gcov: str, compiled: Path, source: Path) -> CoverageReport:
    argv = [gcov, "--branch-probabilities", "--json-format", "--stdout", str(compiled)]
    done = run(argv, _TIMEOUT_S, cwd=compiled.parent)
    try:
        read = msgspec.json.decode(done.stdout.partition("\n")[0], type=_Output)
    except msgspec.DecodeError as error:
        raise FerruleError(
            f"{gcov} does not write the expected JSON: {error}", hint="use the gcov of gcc 9 or newer"
        ) from error
    return CoverageReport(files=dict(_matching(read, source)))


def _matching(read: _Output, source: Path) -> Iterator[tuple[str, FileCoverage]]:
    for file in read.files:
        if (Path(read.current_working_directory) / file.file).resolve() == source.resolve():
            lines: dict[int, int] = {}
            branches: dict[tuple[int, int], int] = {}
            for line in file.lines:
                lines[line.line_number] = lines.get(line.line_number, 0) + line.count
                for branch in line.branches:
                    number = sum(1 for at, _ in branches if at == line.line_number)
                    branches[line.line_number, number] = branch.count
            yield source.name, FileCoverage(path=source, lines=lines, branches=branches)


def _sum(first: dict[_K, int], second: dict[_K, int]) -> dict[_K, int]:
    return {key: first.get(key, 0) + second.get(key, 0) for key in first | second}


def _row(name: str, file: FileCoverage) -> str:
    lines = f"{len(file.lines) - len(file.missed_lines)}/{len(file.lines)} lines"
    branches = f"{len(file.branches) - len(file.missed_branches)}/{len(file.branches)} branches"
    missing = _missing("lines", file.missed_lines) + _missing(
        "branches of lines", [at for at, _ in file.missed_branches]
    )
    return f"{name}: {lines}, {branches}{missing}"


def _missing(what: str, numbers: Iterable[int]) -> str:
    texts = [str(number) for number in dict.fromkeys(numbers)]
    return f"; missing {what} {', '.join(texts)}" if texts else ""
