# SPDX-License-Identifier: Apache-2.0
"""Projects for Eclipse ThreadX, whose kernel is built by its own CMake lists."""

from __future__ import annotations

import re
from pathlib import Path

from ferrule.backends.contribution import THREADX
from ferrule.firmware.platforms.kernel import Kernel
from ferrule.firmware.platforms.tools import Tree
from ferrule.reading import read_text

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


KERNEL = Kernel(
    name="threadx",
    title="ThreadX",
    tree=Tree(
        variable="THREADX_PATH",
        what="a checkout of eclipse-threadx/threadx, 6.2 or later",
        marker="common/inc/tx_api.h",
        version=_version,
        oldest=(6, 2),  # the first with all of these ports
    ),
    adapter=THREADX,
    ports={core: (port, port) for core, port in _PORTS.items()},
    configuration="tx_user.h",
    sources=("low_level.c",),
)
