# SPDX-License-Identifier: Apache-2.0
"""What all tests share: how a test says that it lacks a tool, and where the trained models are."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

MODELS_SOURCE = (
    "the MLPerf Tiny models are in the public repository mlcommons/tiny at commit "
    "1afd2c9820f795965a6134facd0b4dfae41ef23f, under benchmark/training; put the .tflite files in one folder and "
    "set FERRULE_MODELS to it"
)


def lacking(what: str, remedy: str) -> None:
    """Skip the test and say what it lacks; fail instead where FERRULE_REQUIRE_ALL=1."""
    sentence = f"{what} is missing: {remedy}"
    if os.environ.get("FERRULE_REQUIRE_ALL") == "1":
        pytest.fail(sentence)
    pytest.skip(sentence)


def require_program(program: str, remedy: str) -> str:
    """Return the path of a program, or skip."""
    path = shutil.which(program)
    if path is None:
        lacking(program, remedy)
    assert path is not None
    return path


def require_module(module: str, remedy: str) -> None:
    """Skip unless the Python module can be imported."""
    top = module.split(".")[0]
    if importlib.util.find_spec(top) is None:
        lacking(f"the Python module {module}", remedy)


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder with the MLPerf Tiny models."""
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        lacking("FERRULE_MODELS", MODELS_SOURCE)
    assert folder is not None
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
def host_cc() -> str:
    """The host's C compiler."""
    return require_program("cc", "apt-get install gcc")
