# SPDX-License-Identifier: Apache-2.0
"""Fixtures for what a test may lack, tools and trained models, and for golden files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from golden import Golden
from needs import MODELS_SOURCE, lacking, require_cc, require_program


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """The golden files beside the test's module."""
    return Golden(request.path.parent / "golden", update=request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder with the MLPerf Tiny models."""
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        lacking("FERRULE_MODELS", MODELS_SOURCE)
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def arm_gcc() -> str:
    """arm-none-eabi-gcc."""
    return require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")


@pytest.fixture(scope="session")
def qemu() -> str:
    """qemu-system-arm."""
    return require_program("qemu-system-arm", "apt-get install qemu-system-arm")


@pytest.fixture(scope="session")
def host_cc() -> tuple[str, ...]:
    """The command that compiles C for this host."""
    return require_cc()
