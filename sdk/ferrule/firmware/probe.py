# SPDX-License-Identifier: Apache-2.0
"""Finds the tools that Ferrule can use, and how to install the missing ones."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from ferrule.cache import tool_environment
from ferrule.child_process import CommandError, first_line, run
from ferrule.errors import MissingToolError
from ferrule.nativelib import COMPILER_REMEDY, RUN_REMEDY, host_compiler


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStatus:
    """The status of one tool on this machine."""

    name: str
    purpose: str
    remedy: str
    """The command that installs it."""
    found: bool = False
    version: str | None = None
    path: str | None = None
    problem: str | None = None
    """Why a tool that was found does not work; None if it works, or was not tried."""

    @property
    def works(self) -> bool:
        """Whether the tool was found and has no known problem."""
        return self.found and self.problem is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Program:
    status: ToolStatus
    """That of the missing program."""
    spellings: tuple[str, ...]
    variable: str | None = None
    """Environment variable that names the program; None if there is none."""


def _program(name: str, purpose: str, remedy: str, *others: str, variable: str | None = None) -> _Program:
    """Return a program, which may also have other names."""
    status = ToolStatus(name=name, purpose=purpose, remedy=remedy)
    return _Program(status=status, spellings=(name, *others), variable=variable)


_ZIG_REMEDY = "pip install 'ferrule[run]'"
_PACKAGES = (
    ("unicorn", "the default engine: runs firmware on the emulated core", RUN_REMEDY),
    ("ziglang", "the default toolchain: compiles firmware", _ZIG_REMEDY),
    ("cffi", "runs the C kernels on this machine", RUN_REMEDY),
    ("threadpoolctl", "lets the numpy reference use one thread: less processor time on a busy machine", RUN_REMEDY),
    ("h5py", "ferrule artifact run: HDF5 files", "pip install 'ferrule[hdf5]'"),
    ("pillow", "ferrule evaluate: folders of images", "pip install 'ferrule[data]'"),
)
_MODULES = {"pillow": "PIL"}
"""The modules of packages that are not called like them."""
_OPENCL = "opencl"
_OPENCL_PURPOSE = "the backend GpuAcc: runs layers on this machine's OpenCL device"
_OPENCL_REMEDY = "pip install 'ferrule[gpu]'; if that is installed, ferrule backends reports what is wrong with OpenCL"
_OPENCL_PROGRAM = """
from ferrule.backends.gpu_acc.opencl import choose_device
device = choose_device().device
print(device.name.strip(), device.platform.version.strip(), sep=", ")
"""
_HOST_COMPILER = "cc"
_PROGRAMS = (
    _program("arm-none-eabi-gcc", "the other toolchain: compiles firmware", "apt-get install gcc-arm-none-eabi"),
    _program("qemu-system-arm", "the engine qemu: runs firmware on emulated boards", "apt-get install qemu-system-arm"),
    _program("make", "builds a generated project on its own", "apt-get install make", "gmake"),
    _program("cmake", "builds projects for cmsis, freertos, threadx and zephyr", "apt-get install cmake"),
    _program("ninja", "builds projects for cmsis, freertos, threadx and zephyr", "apt-get install ninja-build"),
    _program("dtc", "builds projects for zephyr: compiles the devicetree", "apt-get install device-tree-compiler"),
    _program(
        "renode",
        "the engine renode: runs firmware on the boards' platform descriptions",
        "unpack a portable release from https://github.com/renode/renode/releases, "
        "and put it on PATH or set RENODE to its program",
        variable="RENODE",
    ),
)
_TIMEOUT_S = 20


def probe_tools(*, opencl: bool = True) -> list[ToolStatus]:
    """Return the status of every tool, Python packages first; each program is run once to query its version.

    `opencl` includes the OpenCL device, whose driver takes seconds to start.
    """
    return [
        *(_probe_package(name, purpose, remedy) for name, purpose, remedy in _PACKAGES),
        *((_probe_opencl(),) if opencl else ()),
        _probe_host_compiler(),
        *(_probe_program(program) for program in _PROGRAMS),
    ]


def probe_program(name: str) -> ToolStatus:
    """Return the status of one of the programs by its name in `probe_tools`."""
    return _probe_program(next(each for each in _PROGRAMS if each.status.name == name))


def _probe_package(name: str, purpose: str, remedy: str) -> ToolStatus:
    status = ToolStatus(name=name, purpose=purpose, remedy=remedy)
    spec = importlib.util.find_spec(_MODULES.get(name, name))
    if spec is None:
        return status
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = None
    return replace(status, found=True, version=version, path=spec.origin)


def _probe_opencl() -> ToolStatus:
    """Return the status of OpenCL, probed in a separate process because drivers may crash."""
    spec = importlib.util.find_spec("pyopencl")
    device = None if spec is None else _printed((sys.executable, "-c", _OPENCL_PROGRAM))
    return ToolStatus(
        name=_OPENCL,
        purpose=_OPENCL_PURPOSE,
        remedy=_OPENCL_REMEDY,
        found=device is not None,
        version=device,
        path=None if spec is None or device is None else spec.origin,
    )


def _printed(arguments: tuple[str, ...], *, check: bool = True) -> str | None:
    """Return the first line that a program prints; None if there is none or, with `check`, the program fails."""
    try:
        return first_line(run(arguments, _TIMEOUT_S, check=check, environment=tool_environment())) or None
    except CommandError:
        return None


def _probe_host_compiler() -> ToolStatus:
    """Return the status of the host's C compiler, with its command in brackets after the version."""
    status = ToolStatus(
        name=_HOST_COMPILER,
        purpose="compiles C for this machine: the engine unicorn's core, CpuAcc's kernels, tests of drivers",
        remedy=COMPILER_REMEDY,
    )
    try:
        command = host_compiler("ferrule doctor")
    except MissingToolError as error:
        return replace(status, remedy=error.hint or COMPILER_REMEDY)
    version = _printed((*command, "--version"))
    spelling = shlex.join((Path(command[0]).name, *command[1:]))
    return replace(status, found=True, version=f"{version or 'unknown version'} [{spelling}]", path=command[0])


def _probe_program(program: _Program) -> ToolStatus:
    named = os.environ.get(program.variable) if program.variable else None
    spellings = (named,) if named else program.spellings
    path = next((found for spelling in spellings if (found := shutil.which(spelling))), None)
    if path is None:
        return program.status
    return replace(program.status, found=True, version=_printed((path, "--version"), check=False), path=path)
