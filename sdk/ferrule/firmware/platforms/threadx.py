# SPDX-License-Identifier: Apache-2.0
"""Projects for Eclipse ThreadX, whose kernel is built by its own CMake lists."""

from __future__ import annotations

import re
from pathlib import Path

from ferrule.backends.contribution import THREADX
from ferrule.boards import Board
from ferrule.errors import FerruleError
from ferrule.firmware.platforms.kernel import Kernel
from ferrule.firmware.platforms.tools import Tree
from ferrule.reading import read_text

_OLDEST = (6, 2)
"""The first version with a port for each of `_PORTS`."""
_PORTS = {
    "cortex-m0": "cortex_m0",
    "cortex-m0plus": "cortex_m0",
    "cortex-m3": "cortex_m3",
    "cortex-m4": "cortex_m4",
    "cortex-m7": "cortex_m7",
    "cortex-m33": "cortex_m33",
    "cortex-m55": "cortex_m55",
}
"""THREADX_ARCH of the kernel's CMake list by core."""
_NUMBER = re.compile(r"#define\s+THREADX_(?:MAJOR|MINOR|PATCH)_VERSION\s+(\d+)")


def _version(tree: Path) -> str | None:
    numbers = _NUMBER.findall(read_text(tree / "common" / "inc" / "tx_api.h", errors="replace"))
    return ".".join(numbers) or None


def _check(tree: Path) -> None:
    version = _version(tree) or "?"
    numbers = tuple(int(each) for each in version.split(".") if each.isdecimal())
    if numbers[:2] < _OLDEST:
        raise FerruleError(
            f"THREADX_PATH names ThreadX {version}, expected {'.'.join(map(str, _OLDEST))} or later: {tree}",
            hint="check out a newer release of threadx",
        )


def _port(board: Board) -> str:
    port = _PORTS.get(board.cpu.type)
    if port is None:
        raise FerruleError(
            f"board {board.name}: its core {board.cpu.type} is not supported in projects for ThreadX",
            hint=f"known: {', '.join(_PORTS)}",
        )
    return port


KERNEL = Kernel(
    name="threadx",
    title="ThreadX",
    tree=Tree(
        variable="THREADX_PATH",
        what="a checkout of eclipse-threadx/threadx",
        marker="common/inc/tx_api.h",
        version=_version,
    ),
    adapter=THREADX,
    port=_port,
    check=_check,
    configuration="tx_user.h",
    sources=("low_level.c",),
)
