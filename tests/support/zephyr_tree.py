# SPDX-License-Identifier: Apache-2.0
"""Builds with a real Zephyr tree, which the variable ZEPHYR_BASE names."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from needs import lacking, require_variable

from ferrule._frozen import frozen
from ferrule.firmware.platforms.zephyr_tools import ZEPHYR_BOARDS, ZephyrTools, ZephyrTree

BUILD_TIMEOUT_S = 1500
"""A build takes about a minute on an idle machine with two cores, and about ten on a busy one."""
TEST_TIMEOUT_S = 1700
"""Time limit of a test with such a build; it must be less than `faulthandler_timeout` in pyproject.toml."""
_WARNING = re.compile(r"warning: .*|.*is not a known vendor prefix.*|.*orphan section.*")


@frozen
class Tree:
    """A Zephyr tree and its version."""

    base: Path
    version: tuple[int, int]
    source: ZephyrTree

    @property
    def native_board(self) -> str:
        """The name of native_sim for a 64-bit host."""
        return "native_sim/native/64" if self.version >= (3, 7) else "native_sim_64"

    def board_name(self) -> str:
        """Return Ferrule's name of the first of the supported MPS2 boards in this tree: AN386, otherwise AN385."""
        return "mps2-an386" if self.source.has(ZEPHYR_BOARDS["mps2-an386"].name) else "mps2-an385"

    def mps2_board(self) -> str:
        """Return that board's name as the tree spells it."""
        return self.spelt(self.board_name())

    def spelt(self, board: str) -> str:
        """Return the name of one of Ferrule's boards as the tree spells it."""
        name = self.source.name_of(ZEPHYR_BOARDS[board])
        assert name is not None, f"the tree has no board for {board}"
        return name

    def build(self, source: Path, folder: Path, board: str, *options: str) -> Path:
        """Build an application, check that there was no warning, and return the program's path."""
        log = self.try_build(source, folder, board, *options)
        assert log.returncode == 0, log.stdout[-6000:]
        warnings = _WARNING.findall(log.stdout)
        assert warnings == [], "\n".join(warnings)
        native = board.startswith("native")
        return folder / "zephyr" / ("zephyr.exe" if native else "zephyr.elf")

    def try_build(self, source: Path, folder: Path, board: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Build an application with the commands of `ferrule run`, and return the finished process with its output."""
        configure, build = (argv for _, argv in self.source.steps(source, folder, board, *options))
        done = _run(configure)
        if done.returncode != 0:
            return done
        built = _run(build)
        return subprocess.CompletedProcess(built.args, built.returncode, done.stdout + built.stdout)


def zephyr_tree() -> Tree:
    """Return the tree, or skip the test."""
    base = require_variable("ZEPHYR_BASE")
    for need in ZephyrTools().needs():
        if not need.found:
            lacking(need.name, need.remedy, rare=True)
    source = ZephyrTree.read(base)
    return Tree(base=base, version=source.version[:2], source=source)


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=BUILD_TIMEOUT_S,
    )
