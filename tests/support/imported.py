# SPDX-License-Identifier: Apache-2.0
"""Packages that tests write and import: their names are free again afterwards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


def forget(*packages: str) -> None:
    """Remove packages and all that is below them from the modules of this process."""
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]


@contextmanager
def forgotten(*packages: str) -> Iterator[None]:
    """Forget packages in the end."""
    try:
        yield
    finally:
        forget(*packages)
