# SPDX-License-Identifier: Apache-2.0
"""Tries tools that were found on small tasks, so that a broken one is known before a build fails in its middle."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from ferrule.architectures import ARCHITECTURES, CORTEX_M, Architecture
from ferrule.cache import tool_environment
from ferrule.child_process import CommandError, run
from ferrule.errors import MissingToolError
from ferrule.firmware.probe import ToolStatus
from ferrule.firmware.toolchain import ziglang_program
from ferrule.nativelib import host_compiler
from ferrule.reading import is_file
from ferrule.scratch import ScratchFolder

_TIMEOUT_S = 60
_DIVIDES = """#include <stdint.h>
volatile int64_t number = 7;
int main(void)
{
    return (int)(number / 3);
}
"""
"""Needs the compiler's own routine for the division."""
_COPIES = """#include <stdint.h>
#include <stdlib.h>
#include <string.h>
uint8_t from[64], to[64];
int main(void)
{
    memcpy(to, from, sizeof to);
    return abs(to[0]);
}
"""
_CORE = CORTEX_M.model.unicorn
_NEWLIB = ("--specs=nano.specs", "--specs=nosys.specs")
"""As projects for CMSIS link."""
_PROGRAMS: Mapping[str, str] = {
    "unicorn": f"import unicorn; unicorn.Uc(unicorn.{_CORE.architecture}, unicorn.{_CORE.mode})",
    "cffi": "import cffi; cffi.FFI().cdef('int f(int);')",
    "threadpoolctl": "import threadpoolctl; threadpoolctl.threadpool_info()",
    "h5py": "import h5py; h5py.get_config()",
    "ai-edge-quantizer": "from ai_edge_quantizer import quantizer",
    "pillow": "from PIL import Image; Image.new('L', (1, 1))",
}
"""What a Python package is tried with."""


def tried(tools: Iterable[ToolStatus]) -> list[ToolStatus]:
    """Return the statuses, with the problem of each tool that was found and does not do its task."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(_tried, tools))


def newlib_status(gcc: ToolStatus) -> ToolStatus:
    """Return the status of the C library of the kernels' GCC, which distributions install by itself."""
    problem = (
        "no compiler"
        if gcc.path is None
        else _compiles((gcc.path, *CORTEX_M.gcc_flags(CORTEX_M.plain), *_NEWLIB), _COPIES, link=True)
    )
    return ToolStatus(
        "newlib",
        f"builds projects for cmsis, freertos and threadx: the C library of {CORTEX_M.gcc.program}",
        f"apt-get install {CORTEX_M.gcc.library}",
        found=problem is None,
        path=gcc.path if problem is None else None,
    )


def _tried(tool: ToolStatus) -> ToolStatus:
    if not tool.found or tool.problem is not None:
        return tool
    trial = _TRIALS.get(tool.name)
    return tool if trial is None else replace(tool, problem=trial(tool))


def _try_zig(_tool: ToolStatus) -> str | None:
    program = ziglang_program()
    if program is None:
        return "the package has no program"
    return _compiles((str(program), "cc", *CORTEX_M.zig_flags(CORTEX_M.plain)), _DIVIDES)


def _try_gcc(architecture: Architecture, tool: ToolStatus) -> str | None:
    flags = (*architecture.gcc_flags(architecture.plain), "-nostdlib", "-Wl,--entry=main")
    return _compiles((str(tool.path), *flags), _DIVIDES, link=True)


def _try_cc(_tool: ToolStatus) -> str | None:
    try:
        return _compiles(host_compiler("ferrule doctor"), _COPIES)
    except MissingToolError as error:
        return str(error)


def _try_version(tool: ToolStatus) -> str | None:
    return None if tool.version else "it does not say its version"


def _says(text: str, *arguments: str, given: str = "") -> Callable[[ToolStatus], str | None]:
    """Return the trial of a program that must say a text when it is run with these arguments and this input."""
    return lambda tool: _fails((str(tool.path), *arguments), given=given, says=text)


_TRIALS: Mapping[str, Callable[[ToolStatus], str | None]] = {
    **dict.fromkeys(_PROGRAMS, lambda tool: _fails((sys.executable, "-c", _PROGRAMS[tool.name]))),
    "ziglang": _try_zig,
    "cc": _try_cc,
    **{each.gcc.program: partial(_try_gcc, each) for each in ARCHITECTURES},
    **{each.qemu.program: _says(each.qemu.machine, "-machine", "help") for each in ARCHITECTURES},
    "make": _says("made", "-f", "-", given="all:\n\t@echo made\n"),
    "cmake": _says("made", "-E", "echo", "made"),
    "ninja": _try_version,
    "dtc": _says("a = <0x01>", "-I", "dts", "-O", "dts", "-", given="/dts-v1/; / { a = <1>; };"),
    "renode": _try_version,
}


def _compiles(command: Sequence[str], text: str, *, link: bool = False) -> str | None:
    """Return what is wrong with a compiler that does not compile a text, and link it if asked to; None if it does."""
    with ScratchFolder() as folder:
        source, made = folder.path / "tried.c", folder.path / "tried.o"
        source.write_text(text, encoding="utf-8")
        problem = _fails((*command, str(source), "-o", str(made), *(("-lgcc",) if link else ("-c",))))
        return problem if problem is not None or is_file(made) else "it compiles nothing, and does not say why"


def _fails(command: Sequence[str], *, given: str = "", says: str = "") -> str | None:
    """Return why a command fails or does not say what it should; None if it does."""
    try:
        done = run(command, _TIMEOUT_S, given=given.encode(), check=False, environment=tool_environment())
    except CommandError as error:
        return f"it cannot be run: {error}"
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        telling = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
        return f"it fails with {done.returncode}: {telling.strip()}"
    return None if says in done.stdout else f"it does not say {says!r}"
