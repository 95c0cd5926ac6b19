# SPDX-License-Identifier: Apache-2.0
"""The version of the C interface, and the compatible versions of backends."""

from __future__ import annotations

from typing import NamedTuple

from ferrule._typing import override


class ApiVersion(NamedTuple):
    """A version of include/ferrule/backend.h."""

    major: int
    minor: int

    @override
    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    def takes(self, backend: ApiVersion) -> bool:
        """Return whether a host of this version accepts a backend built with another: same major, minor not newer."""
        return backend.major == self.major and backend.minor <= self.minor


API_VERSION = ApiVersion(1, 2)
"""FERRULE_BACKEND_API_MAJOR and _MINOR."""
