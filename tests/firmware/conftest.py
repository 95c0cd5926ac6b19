# SPDX-License-Identifier: Apache-2.0
"""Fixtures for builds with each installed toolchain."""

from __future__ import annotations

from pathlib import Path

import pytest
from needs import require_module, require_program

from ferrule.firmware import Toolchain, toolchain


@pytest.fixture(params=["zig", "arm-none-eabi-gcc"])
def any_toolchain(request: pytest.FixtureRequest) -> Toolchain:
    """The toolchains in turn; those that are missing are skipped."""
    name = str(request.param)
    if name == "zig":
        require_module("ziglang", "pip install 'ferrule[run]'")
    else:
        require_program(name, "apt-get install gcc-arm-none-eabi")
    return toolchain(name)


@pytest.fixture
def programs() -> Path:
    """The folder with the C programs."""
    return Path(__file__).parent / "programs"
