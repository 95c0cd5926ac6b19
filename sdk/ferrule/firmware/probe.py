# SPDX-License-Identifier: Apache-2.0
"""Finds the tools that Ferrule can use, and how to install the missing ones."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from ferrule._frozen import positional
from ferrule.architectures import ARCHITECTURES
from ferrule.cache import tool_environment
from ferrule.child_process import CommandError, first_line, run
from ferrule.errors import MissingToolError
from ferrule.nativelib import COMPILER_REMEDY, RUN_REMEDY, host_compiler


@positional
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


_PACKAGES = (
    ToolStatus("unicorn", "the default engine: runs firmware on the emulated core", RUN_REMEDY),
    ToolStatus("ziglang", "the default toolchain: compiles firmware", "pip install 'ferrule[run]'"),
    ToolStatus("cffi", "runs the C kernels on this machine", RUN_REMEDY),
    ToolStatus(
        "threadpoolctl", "lets the numpy reference use one thread: less processor time on a busy machine", RUN_REMEDY
    ),
    ToolStatus("h5py", "ferrule artifact run: HDF5 files", "pip install 'ferrule[hdf5]'"),
    ToolStatus("pillow", "ferrule evaluate: folders of images", "pip install 'ferrule[data]'"),
    ToolStatus("ai-edge-quantizer", "ferrule quantize: writes the integers", "pip install 'ferrule[quantize]'"),
)
_MODULES = {"pillow": "PIL", "ai-edge-quantizer": "ai_edge_quantizer"}
"""The modules of packages that are not called like them."""
_OPENCL = ToolStatus(
    "opencl",
    "the backend GpuAcc: runs layers on this machine's OpenCL device",
    "pip install 'ferrule[gpu]'; if that is installed, ferrule backends reports what is wrong with OpenCL",
)
_OPENCL_PROGRAM = """
from ferrule.backends.gpu_acc.opencl import choose_device
device = choose_device().device
print(device.name.strip(), device.platform.version.strip(), sep=", ")
"""
_HOST_COMPILER = ToolStatus(
    "cc",
    "compiles C for this machine: the engine unicorn's core, CpuAcc's kernels, tests of drivers",
    COMPILER_REMEDY,
)
_WITH_CMAKE = "builds projects for cmsis, freertos, threadx and zephyr"
_PROGRAMS = (
    *(
        ToolStatus(each.gcc.program, "the other toolchain: compiles firmware", f"apt-get install {each.gcc.package}")
        for each in ARCHITECTURES
    ),
    *(
        ToolStatus(each.program, "the engine qemu: runs firmware on emulated boards", f"apt-get install {each.package}")
        for each in (architecture.qemu for architecture in ARCHITECTURES)
    ),
    ToolStatus("make", "builds a generated project on its own", "apt-get install make"),
    ToolStatus("cmake", _WITH_CMAKE, "apt-get install cmake"),
    ToolStatus("ninja", _WITH_CMAKE, "apt-get install ninja-build"),
    ToolStatus("dtc", "builds projects for zephyr: compiles the devicetree", "apt-get install device-tree-compiler"),
    ToolStatus(
        "renode",
        "the engine renode: runs firmware on the boards' platform descriptions",
        "unpack a portable release from https://github.com/renode/renode/releases, "
        "and put it on PATH or set RENODE to its program",
    ),
)
_SPELLINGS = {"make": ("make", "gmake")}
"""The programs that a name stands for, if there are several."""
_TIMEOUT_S = 20


def probe_tools(*, opencl: bool = True) -> list[ToolStatus]:
    """Return the status of every tool, Python packages first; each program is run once to query its version.

    `opencl` includes the OpenCL device, whose driver takes seconds to start.
    """
    return [
        *map(_probe_package, _PACKAGES),
        *((_probe_opencl(),) if opencl else ()),
        _probe_host_compiler(),
        *map(_probe_program, _PROGRAMS),
    ]


def probe_program(name: str) -> ToolStatus:
    """Return the status of one of the programs by its name in `probe_tools`."""
    return _probe_program(next(program for program in _PROGRAMS if program.name == name))


def _probe_package(package: ToolStatus) -> ToolStatus:
    spec = importlib.util.find_spec(_MODULES.get(package.name, package.name))
    if spec is None:
        return package
    try:
        version = importlib.metadata.version(package.name)
    except importlib.metadata.PackageNotFoundError:
        version = None
    return replace(package, found=True, version=version, path=spec.origin)


def _probe_opencl() -> ToolStatus:
    """Return the status of OpenCL, probed in a separate process because drivers may crash."""
    spec = importlib.util.find_spec("pyopencl")
    device = None if spec is None else _printed((sys.executable, "-c", _OPENCL_PROGRAM))
    if spec is None or device is None:
        return _OPENCL
    return replace(_OPENCL, found=True, version=device, path=spec.origin)


def _printed(arguments: tuple[str, ...], *, check: bool = True) -> str | None:
    """Return the first line that a program prints; None if there is none or, with `check`, the program fails."""
    try:
        return first_line(run(arguments, _TIMEOUT_S, check=check, environment=tool_environment())) or None
    except CommandError:
        return None


def _probe_host_compiler() -> ToolStatus:
    """Return the status of the host's C compiler, with its command in brackets after the version."""
    try:
        command = host_compiler("ferrule doctor")
    except MissingToolError as error:
        return replace(_HOST_COMPILER, remedy=error.hint or COMPILER_REMEDY)
    version = _printed((*command, "--version"))
    spelling = shlex.join((Path(command[0]).name, *command[1:]))
    return replace(_HOST_COMPILER, found=True, version=f"{version or 'unknown version'} [{spelling}]", path=command[0])


def _probe_program(program: ToolStatus) -> ToolStatus:
    named = os.environ.get("RENODE") if program.name == "renode" else None
    spellings = (named,) if named else _SPELLINGS.get(program.name, (program.name,))
    path = next((found for spelling in spellings if (found := shutil.which(spelling))), None)
    return (
        program
        if path is None
        else replace(program, found=True, version=_printed((path, "--version"), check=False), path=path)
    )
