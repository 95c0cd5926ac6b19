# SPDX-License-Identifier: Apache-2.0
"""Public names that a package imports on first use, which keeps its own import cheap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package, from the module of each name; the name may be that module itself.

    It raises AttributeError for other names.
    """

    def find(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module = import_module(home)
        return module if home == f"{package}.{name}" else getattr(module, name)

    return find
