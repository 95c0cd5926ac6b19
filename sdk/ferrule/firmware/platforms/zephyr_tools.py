# SPDX-License-Identifier: Apache-2.0
"""Builds with a Zephyr tree, which the variable ZEPHYR_BASE names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferrule._typing import override
from ferrule.errors import FerruleError
from ferrule.firmware.platforms.tools import CMAKE, NINJA, PlatformTools, Tree, cmake_steps
from ferrule.firmware.probe import ToolStatus, probe_program
from ferrule.reading import is_file, is_folder, read_text
from ferrule.rendering import Verbatim

NEWEST_TRIED = "4.0.0"
"""The newest release that generated projects were tested with, as in docs/zephyr.md."""
_OLDEST = (3, 5)
_QUALIFIED = (3, 7)
"""The first release in which names of boards have qualifiers behind a slash."""
_VARIANT = "ZEPHYR_TOOLCHAIN_VARIANT"
_SDK = "ZEPHYR_SDK_INSTALL_DIR"
_MODULES = "ZEPHYR_MODULES"
_GNUARMEMB = "gnuarmemb"
_GCC = "arm-none-eabi-gcc"
_PYTHON = "Python of Zephyr"
_PACKAGES: Mapping[str, str] = {
    "elftools": "pyelftools",
    "jsonschema": "jsonschema",
    "packaging": "packaging",
    "pykwalify": "pykwalify",
    "yaml": "PyYAML",
}
"""What the scripts of a build may import, with the packages' names on PyPI."""
_SCRIPTS = (
    "scripts/build/gen_kobject_list.py",
    "scripts/dts/gen_defines.py",
    "scripts/list_boards.py",
    "scripts/list_hardware.py",
    "scripts/zephyr_module.py",
)
"""Scripts that every build runs."""
_IMPORT = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ZephyrBoard:
    """The names of a board in Zephyr."""

    name: str
    """Name with qualifiers, as used since 3.7; file names, and names before 3.7, have `_` in place of `/`."""
    link: str
    """Devicetree label of a UART that is not the console's."""
    since: str | None = None
    """The first release with the board, if it is behind `NEWEST_TRIED`."""
    before: tuple[str, Verbatim] | None = None
    """For releases without this board: the closest board and a text that names the releases."""

    @property
    def stems(self) -> tuple[str, ...]:
        """Names of the board's files, without suffix."""
        own = self.name.replace("/", "_")
        return (own,) if self.before is None else tuple(dict.fromkeys((own, self.before[0])))


ZEPHYR_BOARDS: Mapping[str, ZephyrBoard] = {
    "mps2-an385": ZephyrBoard(name="mps2/an385", link="uart1", before=("mps2_an385", Verbatim("Zephyr 3.5 and 3.6"))),
    "mps2-an386": ZephyrBoard(
        name="mps2/an386", link="uart1", since="4.1.0", before=("mps2_an385", Verbatim("Zephyr 3.5 and 3.6: an M3"))
    ),
    "mps2-an500": ZephyrBoard(name="mps2/an500", link="uart1"),
}
"""Zephyr's boards by Ferrule's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZephyrTree:
    """A Zephyr tree and its version."""

    base: Path
    version: tuple[int, int, int]

    @classmethod
    def read(cls, base: Path) -> ZephyrTree:
        """Return the tree in a folder; FerruleError if its file VERSION states none."""
        text = read_text(base / "VERSION", errors="replace")
        numbers = [re.search(rf"{name} *= *(\d+)", text) for name in ("VERSION_MAJOR", "VERSION_MINOR", "PATCHLEVEL")]
        found = [int(number[1]) for number in numbers if number is not None]
        if len(found) != len(numbers):
            raise FerruleError(f"{base / 'VERSION'} states no version of Zephyr")
        return cls(base=base, version=(found[0], found[1], found[2]))

    @property
    def release(self) -> str:
        """The version as text."""
        return ".".join(map(str, self.version))

    def has(self, board: str) -> bool:
        """Return whether the tree has a board, by its name with qualifiers."""
        return any(self.base.glob(f"boards/*/*/{board.replace('/', '_')}.dts"))

    def spelt(self, board: str) -> str:
        """Return a board's name as this tree spells it."""
        return board if self.version[:2] >= _QUALIFIED else board.replace("/", "_")

    def steps(
        self, source: Path, build: Path, board: str, *options: str
    ) -> tuple[tuple[str, Sequence[str]], tuple[str, Sequence[str]]]:
        """Return the commands that build an application for a board as this tree spells it."""
        python, _ = _interpreter(self.base)
        given = [f"-DBOARD={board}", f"-DPython3_EXECUTABLE={python}", *_toolchain(board)]
        return cmake_steps(source, build, f"Zephyr {self.release}", (*given, *options))


def _version(base: Path) -> str | None:
    try:
        return ZephyrTree.read(base).release
    except FerruleError:
        return None


ZEPHYR_BASE = Tree(variable="ZEPHYR_BASE", what="a tree of Zephyr 3.5 or later", marker="VERSION", version=_version)


class ZephyrTools(PlatformTools):
    """Builds Zephyr applications for Ferrule's boards with CMake and the tree that ZEPHYR_BASE names."""

    @property
    @override
    def platform(self) -> str:
        return "zephyr"

    @override
    def needs(self) -> list[ToolStatus]:
        programs = [probe_program(name) for name in (CMAKE, NINJA, "dtc")]
        if _users_toolchain() is None:
            programs.append(probe_program(_GCC))
        base = ZEPHYR_BASE.find()
        parts = () if base is None else (_modules_status(base), _python_status(base))
        return [ZEPHYR_BASE.status("zephyr"), *programs, *parts]

    @override
    def compiler(self) -> str:
        return _users_toolchain() or _GCC

    @override
    def check(self, board: str) -> None:
        tree = ZephyrTree.read(ZEPHYR_BASE.require())
        if tree.version[:2] < _OLDEST:
            raise FerruleError(f"ZEPHYR_BASE names Zephyr {tree.release}, expected 3.5 or later")
        known = ZEPHYR_BOARDS.get(board)
        if known is not None and tree.has(known.name):
            return
        able = [name for name, each in ZEPHYR_BOARDS.items() if tree.has(each.name)]
        lacks = f"no Zephyr board is known for {board}" if known is None else f"this tree has no board {known.name}"
        raise FerruleError(
            f"Zephyr {tree.release} (ZEPHYR_BASE) cannot be built for {board}: {lacks}",
            hint=f"boards that it has: {', '.join(able) or 'none'}; or set ZEPHYR_BASE to another release",
        )

    @override
    def steps(self, folder: Path, build: Path, board: str) -> Sequence[tuple[str, Sequence[str]]]:
        tree = ZephyrTree.read(ZEPHYR_BASE.require())
        return tree.steps(folder, build, tree.spelt(ZEPHYR_BOARDS[board].name))

    @override
    def program(self, build: Path) -> Path:
        return build / "zephyr" / "zephyr.elf"


def _users_toolchain() -> str | None:
    """Return the toolchain that the user's variables choose, by Zephyr's name; None if they choose none."""
    return os.environ.get(_VARIANT) or ("zephyr" if os.environ.get(_SDK) else None)


def _toolchain(board: str) -> list[str]:
    """Return the options that select the compiler, unless the user has set a variable of Zephyr's own."""
    if board.startswith("native_"):
        return [f"-D{_VARIANT}=host"]
    gcc = shutil.which(_GCC)
    if _users_toolchain() is not None or gcc is None:
        return []
    return [f"-D{_VARIANT}={_GNUARMEMB}", f"-DGNUARMEMB_TOOLCHAIN_PATH={Path(gcc).parents[1]}"]


def _has_workspace(base: Path) -> bool:
    return is_folder(base.parent / ".west")


def _modules_status(base: Path) -> ToolStatus:
    named = os.environ.get(_MODULES)
    return ToolStatus(
        name=_MODULES,
        purpose="builds firmware for zephyr: its module cmsis, if the tree is in no west workspace",
        remedy=f"set {_MODULES} to Zephyr's module cmsis (cmsis_6 for releases behind 4.1), in a folder of that name",
        found=bool(named) or _has_workspace(base),
        path=named or None,
    )


def _python_status(base: Path) -> ToolStatus:
    python, lacking = _interpreter(base)
    names = " ".join(_PACKAGES.get(name, name) for name in lacking)
    return ToolStatus(
        name=_PYTHON,
        purpose=f"builds firmware for zephyr: runs the tree's scripts, which import {', '.join(_imported(base))}",
        remedy=f"{python} -m pip install {names}",
        found=not lacking,
        version=None if lacking else "with all packages",
        path=python,
    )


def _interpreter(base: Path) -> tuple[str, tuple[str, ...]]:
    """Return the Python for a tree's scripts, and the modules that it lacks: the first on the PATH, or Ferrule's own
    if only that has all of them.
    """
    wanted = _imported(base)
    candidates = dict.fromkeys((shutil.which("python3") or sys.executable, sys.executable))
    lacking = {python: _lacking(python, wanted) for python in candidates}
    complete = next((python for python, names in lacking.items() if not names), next(iter(candidates)))
    return complete, lacking[complete]


def _imported(base: Path) -> tuple[str, ...]:
    """Return the modules that a tree's scripts import, as far as they are not Python's or Zephyr's own."""
    texts = [read_text(base / name) for name in _SCRIPTS if is_file(base / name)]
    names = {name for text in texts for name in _IMPORT.findall(text)} & _PACKAGES.keys()
    if _has_workspace(base) and not os.environ.get(_MODULES):
        names.add("west")  # lists the workspace's modules
    return tuple(sorted(names))


def _lacking(python: str, modules: Sequence[str]) -> tuple[str, ...]:
    program = "import importlib.util, sys; print(*[n for n in sys.argv[1:] if importlib.util.find_spec(n) is None])"
    try:
        done = subprocess.run(
            (python, "-c", program, *modules),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return tuple(modules)
    return tuple(done.stdout.split())
