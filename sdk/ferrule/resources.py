# SPDX-License-Identifier: Apache-2.0
"""Locates the C sources, headers, platform adapters and boards, both in a checkout and in an installed wheel."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ferrule.errors import FerruleError


@cache
def root() -> Path:
    """Return the folder that holds `boards/`, `include/`, `platforms/`, `scripts/`, `src_c/` and `src_cpp/`.

    Raises:
        FerruleError: the installation lacks these folders.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_data", package.parent.parent):
        if (candidate / "src_c").is_dir() and (candidate / "boards").is_dir():
            return candidate
    raise FerruleError(
        f"the C sources and boards are missing beside {package}",
        hint="reinstall ferrule: pip install --force-reinstall ferrule",
    )
