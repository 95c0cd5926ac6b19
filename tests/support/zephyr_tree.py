# SPDX-License-Identifier: Apache-2.0
"""Builds with a real Zephyr tree, which the variable ZEPHYR_BASE names."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from needs import require_program, require_variable

BUILD_TIMEOUT_S = 1500
"""A build takes about a minute on an idle machine with two cores, and about ten on a busy one."""
TEST_TIMEOUT_S = 1700
"""Time limit of a test with such a build; it must be less than `faulthandler_timeout` in pyproject.toml."""
PROGRAMS = {"cmake": "cmake", "ninja": "ninja-build", "dtc": "device-tree-compiler"}
"""Programs that a build runs, with the packages that provide them."""
_WARNING = re.compile(r"warning: .*|.*is not a known vendor prefix.*|.*orphan section.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A Zephyr tree and its version."""

    base: Path
    version: tuple[int, int]

    @property
    def native_board(self) -> str:
        """The name of native_sim for a 64-bit host."""
        return "native_sim/native/64" if self.version >= (3, 7) else "native_sim_64"

    def mps2_board(self) -> str:
        """Return the first of the supported MPS2 boards in this tree: AN386, otherwise AN385."""
        if (self.base / "boards" / "arm" / "mps2" / "mps2_an386.dts").is_file():
            return "mps2/an386"
        return "mps2/an385" if self.version >= (3, 7) else "mps2_an385"

    def build(self, source: Path, folder: Path, board: str, *options: str) -> Path:
        """Build an application, check that there was no warning, and return the program's path."""
        log = self.try_build(source, folder, board, *options)
        assert log.returncode == 0, log.stdout[-6000:]
        assert _WARNING.findall(log.stdout) == []
        native = board.startswith("native")
        return folder / "zephyr" / ("zephyr.exe" if native else "zephyr.elf")

    def try_build(self, source: Path, folder: Path, board: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Build an application, and return the finished process with its output."""
        environment = {**os.environ, "ZEPHYR_BASE": str(self.base)}
        if board.startswith("native"):
            environment["ZEPHYR_TOOLCHAIN_VARIANT"] = "host"
        elif "ZEPHYR_TOOLCHAIN_VARIANT" not in environment:
            gcc = require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
            environment["ZEPHYR_TOOLCHAIN_VARIANT"] = "gnuarmemb"
            environment["GNUARMEMB_TOOLCHAIN_PATH"] = str(Path(gcc).parents[1])
        configure = ["cmake", "-G", "Ninja", "-S", str(source), "-B", str(folder), f"-DBOARD={board}", *options]
        done = _run(configure, environment)
        if done.returncode != 0:
            return done
        built = _run(["ninja", "-C", str(folder)], environment)
        return subprocess.CompletedProcess(built.args, built.returncode, done.stdout + built.stdout)


def zephyr_tree() -> Tree:
    """Return the tree, or skip the test."""
    base = require_variable("ZEPHYR_BASE")
    text = (base / "VERSION").read_text(encoding="utf-8")
    major, minor = (re.search(rf"{name} *= *(\d+)", text) for name in ("VERSION_MAJOR", "VERSION_MINOR"))
    assert major is not None, text
    assert minor is not None, text
    for program, package in PROGRAMS.items():
        require_program(program, f"apt-get install {package}", rare=True)
    return Tree(base=base, version=(int(major[1]), int(minor[1])))


def _run(argv: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=BUILD_TIMEOUT_S,
    )
