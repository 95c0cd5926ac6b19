# SPDX-License-Identifier: Apache-2.0
"""The platforms that projects can be generated for."""

from collections.abc import Mapping

from ferrule.errors import unknown_name
from ferrule.firmware.platforms.bare_metal import BareMetalPlatform
from ferrule.firmware.platforms.cmsis import CmsisPlatform
from ferrule.firmware.platforms.own_build import LIBRARIES, LIBRARY
from ferrule.firmware.platforms.platform import Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.platforms.zephyr import ZephyrPlatform

DEFAULT_PLATFORM = "bare-metal"
PLATFORMS: Mapping[str, Platform] = {
    platform.name: platform for platform in (BareMetalPlatform(), CmsisPlatform(), ZephyrPlatform())
}
"""The platforms by name, the default first."""


def platform(name: str) -> Platform:
    """Return a platform, or a library for a program's own build, by name; FerruleError if there is none."""
    found = PLATFORMS.get(name) or LIBRARIES.get(name)
    if found is None:
        raise unknown_name("platform", name, (*PLATFORMS, *LIBRARIES))
    return found


__all__ = [
    "DEFAULT_PLATFORM",
    "LIBRARIES",
    "LIBRARY",
    "PLATFORMS",
    "Platform",
    "ProjectFiles",
    "ProjectRequest",
    "platform",
]
