# SPDX-License-Identifier: Apache-2.0
"""States where a document was made, without anything that names a user, a host or a path."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

from ferrule._version import VERSION
from ferrule.report.base import Document
from ferrule.report.picture import EnvironmentPart

_Document = TypeVar("_Document", bound=Document)

_PACKAGES = (
    "ai-edge-quantizer",
    "cffi",
    "flatbuffers",
    "msgspec",
    "numpy",
    "onnx",
    "Pillow",
    "pocl-binary-distribution",
    "pyelftools",
    "pyopencl",
    "pyserial",
    "tflite",
    "unicorn",
    "ziglang",
)
"""The packages that read models, compute, build or run, as far as they are installed."""


@cache
def environment() -> EnvironmentPart:
    """Return the versions of Ferrule, Python, the platform and the installed packages that results may depend on."""
    return EnvironmentPart(
        ferrule=VERSION,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}".strip(),
        packages={name: found for name in _PACKAGES if (found := _version(name))},
    )


def with_commands(document: _Document, commands: Sequence[str]) -> _Document:
    """Return a document whose environment has the commands that make it again."""
    made: Any = document
    own = made.environment or environment()
    changed: _Document = replace(made, environment=replace(own, commands=tuple(commands)))
    return changed


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
