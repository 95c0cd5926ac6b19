# SPDX-License-Identifier: Apache-2.0
"""The platforms that projects can be generated for."""

from collections.abc import Mapping

from ferrule.errors import unknown_name
from ferrule.firmware.platforms.bare_metal import BareMetalPlatform
from ferrule.firmware.platforms.cmsis import CmsisPlatform
from ferrule.firmware.platforms.platform import Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.platforms.zephyr import ZephyrPlatform

DEFAULT_PLATFORM = "bare-metal"
PLATFORMS: Mapping[str, Platform] = {
    platform.name: platform for platform in (BareMetalPlatform(), CmsisPlatform(), ZephyrPlatform())
}
"""The platforms by name, the default first."""


def platform(name: str) -> Platform:
    """Return a platform by name; FerruleError if there is none."""
    try:
        return PLATFORMS[name]
    except KeyError:
        raise unknown_name("platform", name, PLATFORMS) from None


__all__ = ["DEFAULT_PLATFORM", "PLATFORMS", "Platform", "ProjectFiles", "ProjectRequest", "platform"]
