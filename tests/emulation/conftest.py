# SPDX-License-Identifier: Apache-2.0
"""Fixtures that build firmwares and provide engines."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from guest import build_guest
from needs import require_module

from ferrule.architectures import CORTEX_M
from ferrule.boards import load_board
from ferrule.emulation import Engine, Machine, engine
from ferrule.emulation.unicorn import library
from ferrule.emulation.unicorn.peripherals import interrupt_line

Build = Callable[..., Machine]
FOLDER = Path(__file__).parent / "exceptions"
HOOKS = Path(__file__).parent / "hooks"


@pytest.fixture(scope="session")
def build(arm_gcc: str, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A function that compiles a program for a board, given by name, and returns the machine."""
    folder = tmp_path_factory.mktemp("firmware")
    built: dict[tuple[str, str], Machine] = {}

    def function(program: str, board: str = "mps2-an386") -> Machine:
        key = (program, board)
        if key not in built:
            built[key] = build_guest(arm_gcc, program, load_board(board), folder / f"{program}-{board}.elf")
        return built[key]

    return function


@pytest.fixture(scope="session")
def build_exceptions(arm_gcc: str, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A function that compiles a program of the folder `exceptions` for a board, and returns the machine."""
    folder = tmp_path_factory.mktemp("exceptions")
    built: dict[tuple[str, ...], Machine] = {}

    def function(program: str, name: str, *more: str) -> Machine:
        board = load_board(name)
        lines = (interrupt_line(board.link_uart, output, board) for output in ("TxInterrupt", "RxInterrupt"))
        transmit, receive = lines
        flags = [f"-DTX_LINE={transmit}", f"-DRX_LINE={receive}", f"-I{CORTEX_M.startup.folder}"]
        if board.cpu.fpu:
            flags.append("-mfloat-abi=softfp")
        key = (program, name, *more)
        if key not in built:
            elf = folder / f"{'-'.join(key)}.elf"
            built[key] = build_guest(arm_gcc, program, board, elf, FOLDER, [*flags, *more])
        return built[key]

    return function


@pytest.fixture(scope="session")
def build_hooks(host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that compiles a program of the folder `hooks` with the C hooks."""

    def function(name: str, *more: str) -> Path:
        own = CORTEX_M.model.hooks
        folders = {library.SOURCE_FOLDER: library.SOURCES, own.folder: own.sources}
        program = tmp_path_factory.mktemp(name) / name
        flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
        flags += [f"-I{folder}" for folder in folders]
        sources = [HOOKS / f"{name}.c", *(folder / f"{each}.c" for folder, names in folders.items() for each in names)]
        subprocess.run([*host_cc, *flags, *more, *map(str, sources), "-o", str(program)], check=True, timeout=120)
        return program

    return function


@pytest.fixture
def unicorn() -> Engine:
    """The engine unicorn."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    return engine("unicorn")


@pytest.fixture(params=["unicorn", "qemu"])
def either(request: pytest.FixtureRequest) -> Engine:
    """The engines unicorn and qemu in turn."""
    if request.param == "unicorn":
        require_module("unicorn", "pip install 'ferrule[run]'")
    else:
        request.getfixturevalue("qemu")
    return engine(request.param)
