# SPDX-License-Identifier: Apache-2.0
"""Builds with a Zephyr tree, which the variable ZEPHYR_BASE names."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from ferrule._frozen import frozen, positional
from ferrule._typing import override
from ferrule.architectures import CORTEX_M
from ferrule.child_process import CommandError, run
from ferrule.errors import FerruleError, MissingToolError
from ferrule.firmware.platforms.tools import CMAKE, NINJA, PlatformTools, Steps, Tree, cmake_steps
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
_GCC = CORTEX_M.gcc.program
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
_OLDEST_PYTHON = re.compile(r"PYTHON_MINIMUM_REQUIRED (\d+\.\d+)")
_MODULE_NAME = re.compile(r"^name: *['\"]?([\w.-]+)", re.MULTILINE)
_TOO_OLD = "a-newer-python"
"""Stands for Python itself among the modules that are lacking."""
_LACKING = """
import importlib.util, sys
oldest, too_old, *modules = sys.argv[1:]
if sys.version_info < tuple(map(int, oldest.split("."))):
    print(too_old)
print(*[name for name in modules if importlib.util.find_spec(name) is None])
"""
_TIMEOUT_S = 60


@positional
class ZephyrBoard:
    """The names of a board in Zephyr, and what a build for it needs."""

    name: str
    """The newest name, with qualifiers; file names, and names before 3.7, have `_` in place of `/`."""
    link: str
    """Devicetree label of the link's UART: not the console's, unless the board has only one."""
    former: tuple[tuple[str, Verbatim], ...] = ()
    """Names in older releases, newest first, each with a text that names the releases."""
    since: str | None = None
    """The first release with the board, if it is behind `NEWEST_TRIED`."""
    before: tuple[str, Verbatim] | None = None
    """For releases without this board: the closest board and a text that names the releases."""
    modules: tuple[str, ...] = ()
    """Zephyr's modules that the board needs besides the core's, such as the vendor's drivers."""
    pins: Mapping[str, Verbatim] = field(default_factory=dict)
    """By label, the pins of UARTs that Zephyr's own description of the board gives none."""

    @property
    def older(self) -> tuple[tuple[str, Verbatim], ...]:
        """Names for older releases, and a text that names the releases."""
        return (*self.former, *(() if self.before is None else (self.before,)))

    @property
    def stems(self) -> tuple[str, ...]:
        """Names of the board's files, without suffix."""
        return tuple(dict.fromkeys(name.replace("/", "_") for name in (self.name, *(name for name, _ in self.older))))


_OLD_NAMES = Verbatim("Zephyr 3.5 and 3.6")
ZEPHYR_BOARDS: Mapping[str, ZephyrBoard] = {
    "microbit": ZephyrBoard("bbc_microbit", "uart0", modules=("hal_nordic",)),
    "mps2-an385": ZephyrBoard("mps2/an385", "uart1", former=(("mps2_an385", _OLD_NAMES),)),
    "mps2-an386": ZephyrBoard(
        "mps2/an386", "uart1", since="4.1.0", before=("mps2_an385", Verbatim("Zephyr 3.5 and 3.6: an M3"))
    ),
    "mps2-an500": ZephyrBoard("mps2/an500", "uart1"),
    "mps3-an547": ZephyrBoard(
        "mps3/corstone300/an547",
        "uart1",
        former=(("mps3/an547", Verbatim("Zephyr 3.7")), ("mps3_an547", _OLD_NAMES)),
    ),
    "nrf52840dk": ZephyrBoard(
        "nrf52840dk/nrf52840",
        "uart1",
        former=(("nrf52840dk_nrf52840", _OLD_NAMES),),
        modules=("hal_nordic",),
    ),
    "nucleo_l4r5zi": ZephyrBoard("nucleo_l4r5zi", "usart3", modules=("hal_stm32",)),
    "stm32f4_discovery": ZephyrBoard(
        "stm32f4_disco",
        "usart1",
        modules=("hal_stm32",),
        pins={
            "usart3": Verbatim("&usart3_tx_pd8 &usart3_rx_pd9"),
            "uart4": Verbatim("&uart4_tx_pc10 &uart4_rx_pc11"),
            "uart5": Verbatim("&uart5_tx_pc12 &uart5_rx_pd2"),
            "usart6": Verbatim("&usart6_tx_pc6 &usart6_rx_pc7"),
        },
    ),
    "stm32g0b1": ZephyrBoard("nucleo_g0b1re", "usart1", modules=("hal_stm32",)),
}
"""Zephyr's boards by Ferrule's name."""


@frozen
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

    def name_of(self, board: ZephyrBoard) -> str | None:
        """Return a board's name as this tree spells it; None if the tree has no such board."""
        names = (board.name, *(name for name, _ in board.former))
        name = next(filter(self.has, names), None)
        return name if name is None or self.version[:2] >= _QUALIFIED else name.replace("/", "_")

    def steps(self, source: Path, build: Path, board: str, *options: str) -> Steps:
        """Return the commands that build an application for a board as this tree spells it."""
        python, _ = _interpreter(self.base)
        given = [f"-DBOARD={board}", f"-DPython3_EXECUTABLE={python}", *_toolchain(board)]
        return cmake_steps(source, build, f"Zephyr {self.release}", (*given, *options))


def _version(base: Path) -> str | None:
    try:
        return ZephyrTree.read(base).release
    except FerruleError:
        return None


ZEPHYR_BASE = Tree("ZEPHYR_BASE", "a tree of Zephyr 3.5 or later", "VERSION", _version)


class ZephyrTools(PlatformTools):
    """Builds Zephyr applications for Ferrule's boards with CMake and the tree that ZEPHYR_BASE names."""

    platform = "zephyr"

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
        if known is not None and tree.name_of(known) is not None:
            _check_modules(tree, board, known.modules)
            return
        able = [name for name, each in ZEPHYR_BOARDS.items() if tree.name_of(each) is not None]
        lacks = f"no Zephyr board is known for {board}" if known is None else f"this tree has no board {known.name}"
        raise FerruleError(
            f"Zephyr {tree.release} (ZEPHYR_BASE) cannot be built for {board}: {lacks}",
            hint=f"boards that it has: {', '.join(able) or 'none'}; or set ZEPHYR_BASE to another release",
        )

    @override
    def steps(self, folder: Path, build: Path, board: str) -> Steps:
        tree = ZephyrTree.read(ZEPHYR_BASE.require())
        name = tree.name_of(ZEPHYR_BOARDS[board])
        assert name is not None  # as `check` found
        return tree.steps(folder, build, name)

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


def _modules() -> dict[str, Path]:
    """Return the modules that the variable lists by name: as their description states it, or that of the folder."""
    modules = {}
    for path in [Path(each) for each in os.environ.get(_MODULES, "").split(";") if each]:
        modules[_found(_MODULE_NAME, path / "zephyr" / "module.yml") or path.name] = path
    return modules


def _found(pattern: re.Pattern[str], path: Path) -> str | None:
    """Return the text of a pattern's group in a file; None without a match, or without the file."""
    found = pattern.search(read_text(path, errors="replace")) if is_file(path) else None
    return None if found is None else found[1]


def _check_modules(tree: ZephyrTree, board: str, wanted: Sequence[str]) -> None:
    """Raise MissingToolError if ZEPHYR_MODULES lacks a module; a workspace lists its modules itself."""
    if not os.environ.get(_MODULES) and _has_workspace(tree.base):
        return
    lacking = [name for name in wanted if name not in _modules()]
    if lacking:
        raise MissingToolError(
            f"firmware for zephyr cannot be built for {board}: {_MODULES} lacks the module {', '.join(lacking)}",
            hint=f"add the folder of that name to {_MODULES}, separated by `;`, in the revision that "
            f"{tree.base / 'west.yml'} names; or use a west workspace",
        )


def _modules_status(base: Path) -> ToolStatus:
    named = os.environ.get(_MODULES)
    # the module with the headers of Cortex-M cores is another one after 4.1
    module = "cmsis_6" if is_file(base / "modules" / "cmsis_6" / "cmsis_core.h") else "cmsis"
    lost = [str(path) for path in _modules().values() if not is_folder(path / "zephyr")]
    problem = None
    if lost:
        problem = f"no module of Zephyr is at {', '.join(lost)}"
    elif named and module not in _modules():
        problem = f"it lists {', '.join(_modules())}, and this tree needs {module}"
    return ToolStatus(
        _MODULES,
        f"builds firmware for zephyr: its module {module}, if the tree is in no west workspace",
        f"set {_MODULES} to Zephyr's module {module}, in a folder of that name, and the board's modules",
        found=bool(named) or _has_workspace(base),
        path=named or None,
        problem=problem,
    )


def _python_status(base: Path) -> ToolStatus:
    python, lacking = _interpreter(base)
    oldest = _oldest_python(base)
    names = " ".join(_PACKAGES.get(name, name) for name in lacking if name != _TOO_OLD)
    remedies = [f"put a python3 of version {oldest} or later first on PATH"] if _TOO_OLD in lacking else []
    remedies += [f"{python} -m pip install {names}"] if names else []
    return ToolStatus(
        _PYTHON,
        f"builds firmware for zephyr: runs the tree's scripts, which import {', '.join(_imported(base))}",
        "; ".join(remedies) or f"{python} -m pip install {' '.join(_PACKAGES.values())}",
        found=not lacking,
        version=None if lacking else "with all packages",
        path=python,
    )


def _oldest_python(base: Path) -> str:
    """Return the oldest version of Python that a tree accepts, such as "3.10" (Zephyr 3.7) or "3.12" (4.4)."""
    return _found(_OLDEST_PYTHON, base / "cmake" / "modules" / "python.cmake") or "3.8"


def _interpreter(base: Path) -> tuple[str, tuple[str, ...]]:
    """Return the Python for a tree's scripts, and the modules that it lacks: the first on the PATH, or Ferrule's own
    if only that has all of them.
    """
    wanted, oldest = _imported(base), _oldest_python(base)
    candidates = dict.fromkeys((shutil.which("python3") or sys.executable, sys.executable))
    lacking = {python: _lacking(python, wanted, oldest) for python in candidates}
    complete = next((python for python, names in lacking.items() if not names), next(iter(candidates)))
    return complete, lacking[complete]


def _imported(base: Path) -> tuple[str, ...]:
    """Return the modules that a tree's scripts import, as far as they are not Python's or Zephyr's own."""
    texts = [read_text(base / name) for name in _SCRIPTS if is_file(base / name)]
    names = {name for text in texts for name in _IMPORT.findall(text)} & _PACKAGES.keys()
    if _has_workspace(base) and not os.environ.get(_MODULES):
        names.add("west")  # lists the workspace's modules
    return tuple(sorted(names))


def _lacking(python: str, modules: Sequence[str], oldest: str) -> tuple[str, ...]:
    """Return the modules that a Python lacks, and `_TOO_OLD` if it is older than `oldest`."""
    try:
        return tuple(run((python, "-c", _LACKING, oldest, _TOO_OLD, *modules), _TIMEOUT_S).stdout.split())
    except CommandError:
        return tuple(modules)
