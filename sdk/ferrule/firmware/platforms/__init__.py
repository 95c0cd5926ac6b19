# SPDX-License-Identifier: Apache-2.0
"""The platforms that projects can be generated for."""

from collections.abc import Mapping

from ferrule.errors import unknown_name
from ferrule.firmware.platforms.bare_metal import BARE_METAL_PLATFORM
from ferrule.firmware.platforms.cmsis import CMSIS_PLATFORM
from ferrule.firmware.platforms.kernel import kernel_platform
from ferrule.firmware.platforms.kernels import FREERTOS_KERNEL, THREADX_KERNEL
from ferrule.firmware.platforms.own_build import LIBRARIES, LIBRARY
from ferrule.firmware.platforms.platform import Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.platforms.zephyr import ZEPHYR_PLATFORM
from ferrule.firmware.probe import ToolStatus

DEFAULT_PLATFORM = "bare-metal"
PLATFORMS: Mapping[str, Platform] = {
    platform.name: platform
    for platform in (
        BARE_METAL_PLATFORM,
        CMSIS_PLATFORM,
        kernel_platform(FREERTOS_KERNEL),
        kernel_platform(THREADX_KERNEL),
        ZEPHYR_PLATFORM,
    )
}
"""The platforms by name, the default first."""


def platform(name: str) -> Platform:
    """Return a platform, or a library for a program's own build, by name; FerruleError if there is none."""
    found = PLATFORMS.get(name) or LIBRARIES.get(name)
    if found is None:
        raise unknown_name("platform", name, LIBRARIES if name.startswith(LIBRARY) else PLATFORMS)
    return found


def probe_platforms() -> list[ToolStatus]:
    """Return the status of every tool and tree that the platforms' builds need, each once."""
    needs = (need for each in PLATFORMS.values() if each.tools is not None for need in each.tools.needs())
    return list({need.name: need for need in needs}.values())


__all__ = [
    "DEFAULT_PLATFORM",
    "LIBRARIES",
    "LIBRARY",
    "PLATFORMS",
    "Platform",
    "ProjectFiles",
    "ProjectRequest",
    "platform",
    "probe_platforms",
]
