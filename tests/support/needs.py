# SPDX-License-Identifier: Apache-2.0
"""How a test says that it lacks a tool."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
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
    """Return the path of a program, or skip; what a Python package brings stands beside the interpreter."""
    path = shutil.which(program) or shutil.which(program, path=str(Path(sys.executable).parent))
    if path is None:
        lacking(program, remedy)
    assert path is not None
    return path


def require_module(module: str, remedy: str) -> None:
    """Skip unless the Python module can be imported."""
    top = module.split(".", maxsplit=1)[0]
    if importlib.util.find_spec(top) is None:
        lacking(f"the Python module {module}", remedy)
