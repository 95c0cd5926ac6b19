# SPDX-License-Identifier: Apache-2.0
"""Projects for FreeRTOS, whose kernel is built by its own CMake lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ferrule.backends.contribution import FREERTOS
from ferrule.firmware.platforms.kernel import Kernel
from ferrule.firmware.platforms.tools import Tree
from ferrule.reading import read_text

_PORTS: Mapping[str, tuple[str, str]] = {
    "cortex-m0": ("GCC_ARM_CM0", "GCC_ARM_CM0"),
    "cortex-m0plus": ("GCC_ARM_CM0", "GCC_ARM_CM0"),
    "cortex-m3": ("GCC_ARM_CM3", "GCC_ARM_CM3"),
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


KERNEL = Kernel(
    name="freertos",
    title="FreeRTOS",
    tree=Tree(
        variable="FREERTOS_KERNEL_PATH",
        what="a checkout of FreeRTOS/FreeRTOS-Kernel, 11 or later",
        marker="include/FreeRTOS.h",
        version=_version,
        oldest=(11,),  # the first whose kernel provides the memory of its own tasks
    ),
    adapter=FREERTOS,
    ports=_PORTS,
    configuration="FreeRTOSConfig.h",
)
