# SPDX-License-Identifier: Apache-2.0
"""Finds Renode and determines its version and flavour."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ferrule.emulation.renode.errors import RenodeError
from ferrule.reading import read_bytes

VARIABLE = "RENODE"
REMEDY = (
    "unpack a portable release from https://github.com/renode/renode/releases, "
    f"and put it on PATH or set {VARIABLE} to its program"
)
OLDEST = (1, 15)
"""The oldest supported release, the first with known wire formats and classes."""
_VERSION = re.compile(r"version\D{0,3}(\d+)\.(\d+)", re.IGNORECASE)
_ELF = b"\x7fELF"


def find_renode() -> Path | None:
    """Return the path of Renode's program, from the variable RENODE or PATH; None if it is not found."""
    named = os.environ.get(VARIABLE)
    found = shutil.which(named or "renode")
    return Path(found).resolve() if found else None


def flavour(program: Path) -> str:
    """Return the kind of runtime of Renode's program: `portable`, `.NET`, `Mono` or `unknown`."""
    try:
        head = read_bytes(program)[:65536]
    except OSError:
        return "unknown"
    if head.startswith(_ELF):
        return "portable"
    text = head.decode("utf-8", "replace").lower()
    if "dotnet" in text:
        return ".NET"
    return "Mono" if "mono" in text else "unknown"


def release(text: str) -> tuple[int, int]:
    """Return the major and minor release in Renode's version text.

    Raises:
        RenodeError: the text contains no release, or one older than 1.15.
    """
    match = _VERSION.search(text)
    if match is None:
        raise RenodeError(f"Renode does not report its version: {text.strip()[:200]!r}")
    found = int(match[1]), int(match[2])
    if found < OLDEST:
        raise RenodeError(f"this is Renode {found[0]}.{found[1]}, at least {OLDEST[0]}.{OLDEST[1]} is needed")
    return found
