# SPDX-License-Identifier: Apache-2.0
"""Versions of the interfaces of backends, and which versions a Ferrule accepts."""

from __future__ import annotations

import re
from typing import NamedTuple

from ferrule._typing import override

_TEXT = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


class ApiVersion(NamedTuple):
    """A version of an interface of backends: of include/ferrule/backend.h, or of the classes in Python."""

    major: int
    minor: int

    @override
    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parsed(cls, text: object) -> ApiVersion | None:
        """Return the version in a text such as "1.0"; None if there is none."""
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        return cls(int(found[1]), int(found[2])) if found else None

    def takes(self, backend: ApiVersion) -> bool:
        """Return whether a host of this version accepts a backend built with another: same major, minor not newer."""
        return backend.major == self.major and backend.minor <= self.minor


INTERFACE_VERSION = ApiVersion(1, 2)
"""The version of the interface in Python, which the key `api` of a backend.toml names."""
