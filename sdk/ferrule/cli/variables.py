# SPDX-License-Identifier: Apache-2.0
"""The environment variables that Ferrule reads, for `ferrule doctor`; docs/environment.md explains them."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ferrule.reading import is_folder


class Kind(StrEnum):
    """What a variable names."""

    TEXT = "text"
    FOLDER = "folder"
    FOLDERS = "folders"
    """Several, separated as in PATH."""
    MODULES = "modules"
    """Several, separated as in CMake."""
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An environment variable."""

    name: str
    reader: str
    """What reads it, as on the page."""
    kind: Kind = Kind.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableStatus:
    """The value of an environment variable on this machine."""

    name: str
    reader: str
    value: str | None = None
    """None if it is not set."""
    problem: str | None = None
    """Why what it names cannot be used; None if it can, or is no path."""


_ARTIFACT = "ferrule artifact run"
_CMSIS = "--platform cmsis"
_FREERTOS = "--platform freertos"
_THREADX = "--platform threadx"
_ZEPHYR = "--platform zephyr"
_ALL = "all commands"
_RICH = "all commands, through the package rich"
VARIABLES = (
    Variable(name="FERRULE_BACKENDS", reader="everything that uses backends", kind=Kind.FOLDERS),
    Variable(name="FERRULE_BOARDS", reader="everything that uses boards", kind=Kind.FOLDERS),
    Variable(name="FERRULE_CACHE", reader="builds, kernels on this machine, OpenCL"),  # the folder is made
    Variable(name="FERRULE_DYNAMIC_BACKENDS", reader="the runtime on this machine", kind=Kind.FOLDERS),
    Variable(name="FERRULE_RENODE_NETWORK", reader="the engine renode"),
    Variable(name="FERRULE_ACL_SYSROOT", reader=_ARTIFACT, kind=Kind.FOLDER),
    Variable(name="FERRULE_TESTING_SANITIZE", reader="ferrule.testing"),
    Variable(name="_FERRULE_COMPLETE", reader="the shell's completion"),
    Variable(name="CC", reader="kernels on this machine, ferrule.testing", kind=Kind.COMMAND),
    Variable(name="CXX", reader=_ARTIFACT, kind=Kind.COMMAND),
    Variable(name="GCOV", reader="ferrule.testing.coverage", kind=Kind.COMMAND),
    Variable(name="RENODE", reader="the engine renode", kind=Kind.COMMAND),
    Variable(name="ACL_ROOT", reader=_ARTIFACT, kind=Kind.FOLDER),
    Variable(
        name="ETHOSU_DRIVER",
        reader='the backend EthosU, for devices with the binding driver = "arm"',
        kind=Kind.FOLDER,
    ),
    Variable(name="CMSIS_PATH", reader=_CMSIS, kind=Kind.FOLDER),
    Variable(name="CMSIS_RTX_PATH", reader=_CMSIS, kind=Kind.FOLDER),
    Variable(name="FREERTOS_KERNEL_PATH", reader=_FREERTOS, kind=Kind.FOLDER),
    Variable(name="THREADX_PATH", reader=_THREADX, kind=Kind.FOLDER),
    Variable(name="ZEPHYR_BASE", reader=_ZEPHYR, kind=Kind.FOLDER),
    Variable(name="ZEPHYR_MODULES", reader=_ZEPHYR, kind=Kind.MODULES),
    Variable(name="ZEPHYR_SDK_INSTALL_DIR", reader=_ZEPHYR, kind=Kind.FOLDER),
    Variable(name="ZEPHYR_TOOLCHAIN_VARIANT", reader=_ZEPHYR),
    Variable(name="QEMU_CPU", reader=_ARTIFACT),
    Variable(name="ZIG_GLOBAL_CACHE_DIR", reader="zig"),
    Variable(name="NO_COLOR", reader=_ALL),
    Variable(name="FORCE_COLOR", reader=_RICH),
    Variable(name="TTY_COMPATIBLE", reader=_RICH),
    Variable(name="TTY_INTERACTIVE", reader=_RICH),
    Variable(name="LINES", reader=_RICH),
    Variable(name="COLUMNS", reader=_ALL),
    Variable(name="GITHUB_STEP_SUMMARY", reader="--job-summary"),
    Variable(name="XDG_CACHE_HOME", reader="the cache, through the package platformdirs"),
    Variable(name="USERNAME", reader="the cache on Windows"),
    Variable(name="TMPDIR", reader="Python", kind=Kind.FOLDER),
    Variable(name="OCL_ICD_VENDORS", reader="GpuAcc, through the OpenCL loader"),
)


def variable_statuses() -> list[VariableStatus]:
    """Return the status of every variable, in the order of the page."""
    return [
        VariableStatus(
            name=variable.name,
            reader=variable.reader,
            value=os.environ.get(variable.name),
            problem=_problem(variable, os.environ.get(variable.name) or ""),
        )
        for variable in VARIABLES
    ]


def _problem(variable: Variable, value: str) -> str | None:
    match variable.kind:
        case Kind.FOLDER:
            return _lost([value])
        case Kind.FOLDERS:
            return _lost(value.split(os.pathsep))
        case Kind.MODULES:
            return _lost(value.split(";"))
        case Kind.COMMAND if value.strip():
            return _problem_of_command(value)
        case _:
            return None


def _lost(folders: Sequence[str]) -> str | None:
    lost = [folder for folder in folders if folder and not is_folder(Path(folder))]
    return f"there is no folder {', '.join(lost)}" if lost else None


def _problem_of_command(value: str) -> str | None:
    try:
        program = shlex.split(value)[0]
    except ValueError as error:
        return f"it is no command: {error}"
    return None if shutil.which(program) else f"there is no program {program}"
