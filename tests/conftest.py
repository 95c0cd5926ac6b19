# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tools, trained models and golden files; a test is skipped when what it needs is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from golden import Golden
from needs import MODELS_SOURCE, lacking, require_cc, require_newlib, require_program


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return the golden files beside the test's module."""
    return Golden(request.path.parent / "golden", update=request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def models() -> Path:
    """Return the folder with the MLPerf Tiny models."""
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        lacking("FERRULE_MODELS", MODELS_SOURCE)
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def arm_gcc() -> str:
    """Return the path of arm-none-eabi-gcc."""
    return require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")


@pytest.fixture(scope="session")
def arm_newlib(arm_gcc: str) -> str:
    """Return the path of arm-none-eabi-gcc, which has newlib: only firmware that Ferrule builds needs no C library."""
    return require_newlib(arm_gcc)


@pytest.fixture(scope="session")
def qemu() -> str:
    """Return the path of qemu-system-arm."""
    return require_program("qemu-system-arm", "apt-get install qemu-system-arm")


@pytest.fixture(scope="session")
def host_cc() -> tuple[str, ...]:
    """Return the command that compiles C for this host."""
    return require_cc()
