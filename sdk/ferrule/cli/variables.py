# SPDX-License-Identifier: Apache-2.0
"""The environment variables that Ferrule reads, for `ferrule doctor`; docs/environment.md explains them."""

from __future__ import annotations

import os
import shlex
import shutil
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from ferrule._frozen import frozen
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


class Variable(NamedTuple):
    """An environment variable."""

    name: str
    reader: str
    """What reads it, as on the page."""
    kind: Kind = Kind.TEXT


@frozen
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
    Variable("FERRULE_BACKENDS", "everything that uses backends", Kind.FOLDERS),
    Variable("FERRULE_BOARDS", "everything that uses boards", Kind.FOLDERS),
    Variable("FERRULE_CACHE", "builds, kernels on this machine, OpenCL"),  # the folder is made
    Variable("FERRULE_DYNAMIC_BACKENDS", "the runtime on this machine", Kind.FOLDERS),
    Variable("FERRULE_RENODE_NETWORK", "the engine renode"),
    Variable("FERRULE_ACL_SYSROOT", _ARTIFACT, Kind.FOLDER),
    Variable("FERRULE_TESTING_SANITIZE", "ferrule.testing"),
    Variable("_FERRULE_COMPLETE", "the shell's completion"),
    Variable("FERRULE_TORCH", "model files of PyTorch (.pt2)", Kind.COMMAND),
    Variable("CC", "kernels on this machine, ferrule.testing", Kind.COMMAND),
    Variable("CXX", _ARTIFACT, Kind.COMMAND),
    Variable("GCOV", "ferrule.testing.coverage", Kind.COMMAND),
    Variable("RENODE", "the engine renode", Kind.COMMAND),
    Variable("ACL_ROOT", _ARTIFACT, Kind.FOLDER),
    Variable("ETHOSU_DRIVER", 'the backend EthosU, for devices with the binding driver = "arm"', Kind.FOLDER),
    Variable("CMSIS_PATH", _CMSIS, Kind.FOLDER),
    Variable("CMSIS_RTX_PATH", _CMSIS, Kind.FOLDER),
    Variable("FREERTOS_KERNEL_PATH", _FREERTOS, Kind.FOLDER),
    Variable("THREADX_PATH", _THREADX, Kind.FOLDER),
    Variable("ZEPHYR_BASE", _ZEPHYR, Kind.FOLDER),
    Variable("ZEPHYR_MODULES", _ZEPHYR, Kind.MODULES),
    Variable("ZEPHYR_SDK_INSTALL_DIR", _ZEPHYR, Kind.FOLDER),
    Variable("ZEPHYR_TOOLCHAIN_VARIANT", _ZEPHYR),
    Variable("QEMU_CPU", _ARTIFACT),
    Variable("ZIG_GLOBAL_CACHE_DIR", "zig"),
    Variable("NO_COLOR", _ALL),
    Variable("FORCE_COLOR", _RICH),
    Variable("TTY_COMPATIBLE", _RICH),
    Variable("TTY_INTERACTIVE", _RICH),
    Variable("LINES", _RICH),
    Variable("COLUMNS", _ALL),
    Variable("GITHUB_STEP_SUMMARY", "--job-summary"),
    Variable("XDG_CACHE_HOME", "the cache, through the package platformdirs"),
    Variable("USERNAME", "the cache on Windows"),
    Variable("TMPDIR", "Python", Kind.FOLDER),
    Variable("OCL_ICD_VENDORS", "GpuAcc, through the OpenCL loader"),
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
        case Kind.COMMAND if value.strip():
            try:
                program = shlex.split(value)[0]
            except ValueError as error:
                return f"it is no command: {error}"
            return None if shutil.which(program) else f"there is no program {program}"
        case Kind.TEXT | Kind.COMMAND:
            return None
    separator = {Kind.FOLDERS: os.pathsep, Kind.MODULES: ";"}.get(variable.kind, "\0")
    lost = [folder for folder in value.split(separator) if folder and not is_folder(Path(folder))]
    return f"there is no folder {', '.join(lost)}" if lost else None
