# SPDX-License-Identifier: Apache-2.0
"""The functions that users call: compile, generate, inspect, run."""

from ferrule.facade.classes import generate_acl
from ferrule.facade.compilation import Firmware, adopt, compile, generate, inspect  # noqa: A004
from ferrule.facade.running import check_engine

__all__ = ["Firmware", "adopt", "check_engine", "compile", "generate", "generate_acl", "inspect"]
