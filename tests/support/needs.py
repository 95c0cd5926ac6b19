# SPDX-License-Identifier: Apache-2.0
"""The tools and files that a test needs; the plugin `not_run` lists what was missing at the end of a run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from children import ran
from trees import trees

from ferrule.errors import MissingToolError
from ferrule.nativelib import host_compiler, zig_compiler

if TYPE_CHECKING:  # every pytest here loads this module, also those that tests start
    from ferrule.acl.toolchain import AclToolchain

MODELS_SOURCE = (
    "the MLPerf Tiny models are in the public repository mlcommons/tiny at commit "
    "1afd2c9820f795965a6134facd0b4dfae41ef23f, under benchmark/training; put the .tflite files in one folder and "
    "set FERRULE_MODELS to it"
)


RARE = {
    "CMSIS_SCHEMAS": "tools/projmgr/schemas of a checkout of github.com/Open-CMSIS-Pack/devtools, or CMSIS_TOOLBOX",
    "CMSIS_TOOLBOX": "an installation of CMSIS-Toolbox",
    "FERRULE_AXE": "axe.min.js of the npm package axe-core",
    "FERRULE_CHROMIUM": "the program of Chromium 120 or later",
    "FERRULE_KERAS": "a Python with keras, torch, onnx, onnxscript, onnxruntime and scikit-learn",
    "FERRULE_PUBLIC_MODELS": "a folder with the files that tests/models.toml lists (docs/how-ferrule-is-tested.md)",
    "FERRULE_SCHEMAS": "a folder with sarif-schema-2.1.0.json of github.com/oasis-tcs/sarif-spec, and CMSIS-SVD.xsd, "
    "which is in CMSIS/Utilities of github.com/ARM-software/CMSIS_5",
    "FERRULE_TORCH": "a Python with torch, brevitas, onnx, onnxoptimizer, onnxscript, onnxruntime and scikit-learn",
    "RENODE": "the program of Renode 1.16 or later, with the folder platforms/ beside or above it",
    **{tree.variable: tree.value for tree in trees().values()},
}
"""Environment variables for what `.ci/run` does not install, with a description of the value each needs."""


class LackError(MissingToolError):
    """The cause of a skip; `str` names what is missing, and `hint` says how to get it."""


def lacking(what: str, remedy: str, *, rare: bool = False) -> NoReturn:
    """Skip the test, with a message that names what is missing and how to get it.

    With FERRULE_REQUIRE_ALL=1 the test fails instead, unless `rare` is set because `.ci/run` does not install the
    thing.
    """
    sentence = f"{what} is missing: {remedy}"
    if not rare and os.environ.get("FERRULE_REQUIRE_ALL") == "1":
        pytest.fail(sentence)
    raise pytest.skip.Exception(sentence) from LackError(what, hint=remedy)


def lacking_variable(name: str, what: str | None = None) -> NoReturn:
    """Skip the test because a variable of `RARE` is not set, or because `what` is missing below the path it names."""
    lacking(what or name, f"set {name} to {RARE[name]}", rare=True)


def require_variable(name: str) -> Path:
    """Return the path that a variable of `RARE` names, or skip the test."""
    value = os.environ.get(name)
    if not value:
        lacking_variable(name)
    return Path(value).resolve()


def require_python(name: str) -> str:
    """Return the Python of another environment that a variable of `RARE` names, or skip the test."""
    value = os.environ.get(name)
    if not value:
        lacking_variable(name)
    return value


def require_program(program: str, remedy: str, *, rare: bool = False) -> str:
    """Return the path of a program, found on PATH or beside the interpreter, or skip the test."""
    path = shutil.which(program) or shutil.which(program, path=str(Path(sys.executable).parent))
    if path is None:
        lacking(program, remedy, rare=rare)
    return path


def require_module(module: str, remedy: str) -> None:
    """Skip the test unless the Python module can be imported."""
    top = module.split(".", maxsplit=1)[0]
    if importlib.util.find_spec(top) is None:
        lacking(f"the Python module {module}", remedy)


def require_cc() -> tuple[str, ...]:
    """Return the command that compiles C for this host, or skip the test."""
    try:
        return host_compiler("a test")
    except MissingToolError as error:
        lacking("a C compiler for this host", error.hint or str(error))


def require_cxx() -> tuple[str, ...]:
    """Return the command that compiles C++ for this host, or skip the test."""
    if shutil.which("g++") is None and importlib.util.find_spec("ziglang") is not None:
        return zig_compiler("c++")
    return (require_program("g++", "apt-get install g++"),)


def require_newlib(compiler: str) -> str:
    """Return the path of a compiler for bare metal, or skip the test if it lacks the headers of its C library."""
    argv = [compiler, "-fsyntax-only", "-x", "c", "-"]
    if ran(argv, stdin="#include <string.h>\n").returncode != 0:
        lacking("newlib, the C library of arm-none-eabi-gcc", "apt-get install libnewlib-arm-none-eabi")
    return compiler


def require_sanitizers(*names: str) -> dict[str, str]:
    """Return an environment in which Python can load C with these sanitizers, or skip the test."""
    from ferrule.testing.sanitizers import sanitizer_environment

    require_cc()
    try:
        return {**os.environ, **sanitizer_environment(names)}
    except MissingToolError:
        lacking(f"a library for the sanitizers {' and '.join(names)}", "apt-get install gcc, and unset CC")


def require_gcov() -> str:
    """Return the path of gcov, or skip the test; only gcc is accepted as its compiler."""
    gcov = require_program("gcov", "apt-get install gcc")
    version = ran([*require_cc(), "--version"], check=True).stdout
    if "Free Software Foundation" not in version:
        lacking("gcc, which gcov needs", "apt-get install gcc, and unset CC")
    return gcov


def require_acl() -> AclToolchain:
    """Return the tools that build and run programs of the Arm Compute Library, or skip the test."""
    from ferrule.acl.toolchain import find_toolchain

    require_module("h5py", "pip install h5py")
    try:
        return find_toolchain()
    except MissingToolError as error:
        lacking(str(error), error.hint or "")
