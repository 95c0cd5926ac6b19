# SPDX-License-Identifier: Apache-2.0
"""Projects for FreeRTOS, whose kernel is built by its own CMake lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ferrule.backends.contribution import FREERTOS
from ferrule.boards import Board
from ferrule.errors import FerruleError
from ferrule.firmware.platforms.kernel import Kernel
from ferrule.firmware.platforms.tools import Tree
from ferrule.reading import read_text

_OLDEST = 11
"""The first version whose kernel provides the memory of its own tasks."""
_PORTS: Mapping[str, tuple[str, str]] = {
    "cortex-m0": ("GCC_ARM_CM0", ""),
    "cortex-m0plus": ("GCC_ARM_CM0", ""),
    "cortex-m3": ("GCC_ARM_CM3", ""),
    "cortex-m4": ("GCC_ARM_CM3", "GCC_ARM_CM4F"),
    "cortex-m7": ("GCC_ARM_CM3", "GCC_ARM_CM7"),
    "cortex-m33": ("GCC_ARM_CM33_NTZ_NONSECURE", "GCC_ARM_CM33_NTZ_NONSECURE"),
    "cortex-m55": ("GCC_ARM_CM55_NTZ_NONSECURE", "GCC_ARM_CM55_NTZ_NONSECURE"),
}
"""FREERTOS_PORT of the kernel's CMake list by core, for soft and for hard floats; NTZ: without a change of security."""
_VERSION = re.compile(r'tskKERNEL_VERSION_NUMBER\s+"V([^"]+)"')


def _version(tree: Path) -> str | None:
    found = _VERSION.search(read_text(tree / "include" / "task.h", errors="replace"))
    return None if found is None else found[1]


def _check(tree: Path) -> None:
    version = _version(tree) or "?"
    if not version.partition(".")[0].isdecimal() or int(version.partition(".")[0]) < _OLDEST:
        raise FerruleError(
            f"FREERTOS_KERNEL_PATH names FreeRTOS {version}, expected {_OLDEST} or later: {tree}",
            hint="check out a newer release of FreeRTOS-Kernel",
        )


def _port(board: Board) -> str:
    soft, hard = _PORTS.get(board.cpu.type, ("", ""))
    if not soft:
        raise FerruleError(
            f"board {board.name}: its core {board.cpu.type} is not supported in projects for FreeRTOS",
            hint=f"known: {', '.join(_PORTS)}",
        )
    return hard if board.cpu.hard_float else soft


KERNEL = Kernel(
    name="freertos",
    title="FreeRTOS",
    tree=Tree(
        variable="FREERTOS_KERNEL_PATH",
        what="a checkout of FreeRTOS/FreeRTOS-Kernel, 11 or later",
        marker="include/FreeRTOS.h",
        version=_version,
    ),
    adapter=FREERTOS,
    port=_port,
    check=_check,
    configuration="FreeRTOSConfig.h",
)
