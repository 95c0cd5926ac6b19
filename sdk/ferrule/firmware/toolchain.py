# SPDX-License-Identifier: Apache-2.0
"""Toolchains: the compilers' commands and flags for a board."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Literal, Protocol, get_args

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.architectures import ARCHITECTURES, Architecture
from ferrule.boards import Board
from ferrule.cache import tool_environment
from ferrule.child_process import CommandError, first_line, run
from ferrule.errors import FerruleError, MissingToolError, unknown_name
from ferrule.interface import option
from ferrule.reading import is_file

Words = tuple[str, ...]
"""A command, or a part of its arguments."""
Optimization = Literal["O3", "O2", "Os"]
OPTIMIZATIONS: tuple[Optimization, ...] = get_args(Optimization)

ENTRY_SYMBOL = "ferrule_reset"

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
THIRD_PARTY_WARNINGS = ("-w",)
"""The flags that replace WARNINGS for third-party sources."""
_LANGUAGE = (
    "-std=c11",
    "-ffreestanding",
    "-ffunction-sections",
    "-fdata-sections",
    "-ffp-contract=off",
    "-fno-common",
    "-fomit-frame-pointer",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
)
"""One section per function and object, so that the linker can drop unused ones; no fused multiply-add, so that float
results are the same with and without an FPU."""

_PAGE_SIZE = "-Wl,-z,max-page-size=0x1000"
"""Keeps the ELF file small: both linkers otherwise leave gaps of 64 KiB in it."""


class Toolchain(Protocol):
    """A C compiler and linker for cores of boards; all methods except `require` and `version` are pure."""

    name: str
    """Name used on the command line and in board.toml."""
    remedy: str
    """The command that installs the toolchain."""
    usual_optimization: Optimization
    """The better one of O3 and Os, as measured on the MLPerf Tiny models and on int16 and float32 kernels."""
    portable_command: Words
    """The compiler's command for a Makefile, without a path of this machine."""
    libraries: Words
    """Linker arguments placed after the object files when the runtime is linked."""
    builds_runtime: bool
    """Whether the compiler links its runtime itself and compiles it on first use, which takes seconds."""
    keeps_symbols: Words
    """Flags without which the linker strips the symbols."""

    def find(self) -> Words | None:
        """Return the compiler's command with its full path, or None if it is not installed."""
        ...

    def require(self) -> Words:
        """Return the compiler's command as `find` does; MissingToolError if it is not installed."""
        command = self.find()
        if command is None:
            raise MissingToolError(f"the toolchain {self.name} is not installed", hint=self.remedy)
        return command

    def version(self) -> str:
        """Return the compiler's version in one line; MissingToolError if it is not installed."""
        ...

    def target_flags(self, board: Board) -> Words:
        """Return the flags that select the core, for both compiling and linking."""
        ...

    def compile_flags(self, board: Board, optimization: Optimization) -> Words:
        """Return all flags of a compile step except those for warnings, include folders and files."""
        return (*self.target_flags(board), *_LANGUAGE, f"-{optimization}")

    def link_flags(self, board: Board, optimization: Optimization, *, runtime: bool) -> Words:
        """Return all flags of the link step except the linker script, for linking through the compiler driver.

        `runtime` links the compiler's arithmetic routines (64-bit division, floats without an FPU); without it, a
        firmware that needs such a routine does not link.
        """
        return (
            *self.target_flags(board),
            f"-{optimization}",
            "-nostartfiles" if runtime and self.builds_runtime else "-nostdlib",
            f"-Wl,--entry={ENTRY_SYMBOL}",  # zig otherwise requires _start, whatever the script says
            "-Wl,--gc-sections",
            *self.keeps_symbols,
            _PAGE_SIZE,
        )


@frozen
class ZigToolchain(Toolchain):
    """`zig cc` (clang and lld) from the ziglang wheel."""

    name: str = "zig"
    remedy: str = f"pip install 'ferrule[run]', or use another compiler: {option('toolchain', 'arm-none-eabi-gcc')}"
    usual_optimization: Optimization = "Os"
    portable_command: Words = ("python3", "-m", "ziglang", "cc")
    libraries: Words = ()
    builds_runtime: bool = True
    keeps_symbols: Words = ("-g",)
    """It strips them under -Os."""

    @override
    def find(self) -> Words | None:
        program = ziglang_program()
        return None if program is None else (str(program), "cc")

    @override
    def version(self) -> str:
        return "zig " + _first_line((self.require()[0], "version"))

    @override
    def target_flags(self, board: Board) -> Words:
        return (*board.architecture.zig_flags(board.cpu), *board.flags.get(self.name, ()))


@frozen
class GccToolchain(Toolchain):
    """GCC for an architecture."""

    architecture: Architecture
    name: str
    remedy: str
    usual_optimization: Optimization = "O3"
    portable_command: Words
    libraries: Words = ("-lgcc",)
    builds_runtime: bool = False
    keeps_symbols: Words = ()

    @override
    def find(self) -> Words | None:
        path = shutil.which(self.name)
        return None if path is None else (path,)

    @override
    def version(self) -> str:
        return _first_line((*self.require(), "--version"))

    @override
    def target_flags(self, board: Board) -> Words:
        return (*self.architecture.gcc_flags(board.cpu), *board.flags.get(self.name, ()))


def gcc_for(architecture: Architecture) -> GccToolchain:
    """Return an architecture's GCC."""
    gcc = architecture.gcc
    return GccToolchain(
        architecture=architecture,
        name=gcc.program,
        remedy=f"apt-get install {gcc.package}",
        portable_command=(gcc.program,),
    )


TOOLCHAINS: tuple[Toolchain, ...] = (ZigToolchain(), *(gcc_for(each) for each in ARCHITECTURES))
DEFAULT_TOOLCHAIN = "zig"


def toolchain(name: str) -> Toolchain:
    """Return a toolchain by name; FerruleError if there is none."""
    for each in TOOLCHAINS:
        if each.name == name:
            return each
    raise unknown_name("toolchain", name, (each.name for each in TOOLCHAINS))


def check_optimization(value: str) -> Optimization:
    """Return the value; FerruleError if it is not O3, O2 or Os."""
    for known in OPTIMIZATIONS:
        if value == known:
            return known
    raise unknown_name("optimization", value, OPTIMIZATIONS)


def ziglang_program() -> Path | None:
    """Return the program of the ziglang wheel in this Python environment, or None if it is not installed."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None:
        return None
    suffix = ".exe" if sys.platform == "win32" else ""
    for folder in spec.submodule_search_locations or ():
        program = Path(folder) / f"zig{suffix}"
        if is_file(program):
            return program
    return None


def _first_line(command: Words) -> str:
    """Return the first line that a command prints, once for each state of its program."""
    status = Path(command[0]).stat() if Path(command[0]).is_absolute() else None
    return _printed(command, None if status is None else (status.st_mtime_ns, status.st_size))


@cache
def _printed(command: Words, _state: tuple[int, int] | None) -> str:
    try:
        return first_line(run(command, 60, environment=tool_environment()))
    except CommandError as error:
        raise FerruleError(f"cannot query the version of {command[0]}: {error}") from None
