# SPDX-License-Identifier: Apache-2.0
"""The kernels for which projects can be generated; each is built by its own CMake lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ferrule.backends.contribution import FREERTOS, THREADX
from ferrule.firmware.platforms.kernel import Kernel
from ferrule.firmware.platforms.tools import Tree
from ferrule.reading import read_text

_FREERTOS_PORTS: Mapping[str, tuple[str, str]] = {
    "cortex-m0": ("GCC_ARM_CM0", "GCC_ARM_CM0"),
    "cortex-m0plus": ("GCC_ARM_CM0", "GCC_ARM_CM0"),
    "cortex-m3": ("GCC_ARM_CM3", "GCC_ARM_CM3"),
    "cortex-m4": ("GCC_ARM_CM3", "GCC_ARM_CM4F"),
    "cortex-m7": ("GCC_ARM_CM3", "GCC_ARM_CM7"),
    "cortex-m33": ("GCC_ARM_CM33_NTZ_NONSECURE", "GCC_ARM_CM33_NTZ_NONSECURE"),
    "cortex-m55": ("GCC_ARM_CM55_NTZ_NONSECURE", "GCC_ARM_CM55_NTZ_NONSECURE"),
}
"""FREERTOS_PORT of the kernel's CMake list by core, for soft and for hard floats; NTZ: without a change of security."""
_THREADX_PORTS = {
    core: core.replace("-", "_").removesuffix("plus")
    for core in ("cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55")
}
"""THREADX_ARCH of the kernel's CMake list by core."""


def _stated(header: str, number: str) -> Callable[[Path], str | None]:
    """Return the version that a header of a tree states in numbers of this form."""
    return lambda tree: ".".join(re.findall(number, read_text(tree / header, errors="replace"))) or None


FREERTOS_KERNEL = Kernel(
    name="freertos",
    title="FreeRTOS",
    tree=Tree(
        "FREERTOS_KERNEL_PATH",
        "a checkout of FreeRTOS/FreeRTOS-Kernel, 11 or later",
        "include/FreeRTOS.h",
        _stated("include/task.h", r'tskKERNEL_VERSION_NUMBER\s+"V([^"]+)"'),
        oldest=(11,),  # the first whose kernel provides the memory of its own tasks
    ),
    adapter=FREERTOS,
    ports=_FREERTOS_PORTS,
    configuration="FreeRTOSConfig.h",
)
THREADX_KERNEL = Kernel(
    name="threadx",
    title="ThreadX",
    tree=Tree(
        "THREADX_PATH",
        "a checkout of eclipse-threadx/threadx, 6.2 or later",
        "common/inc/tx_api.h",
        _stated("common/inc/tx_api.h", r"#define\s+THREADX_(?:MAJOR|MINOR|PATCH)_VERSION\s+(\d+)"),
        oldest=(6, 2),  # the first with all of these ports
    ),
    adapter=THREADX,
    ports={core: (port, port) for core, port in _THREADX_PORTS.items()},
    configuration="tx_user.h",
    sources=("low_level.c",),
)
