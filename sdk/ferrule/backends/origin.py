# SPDX-License-Identifier: Apache-2.0
"""Where a backend comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferrule._typing import override
from ferrule.backends.device import BackendId


class OriginKind(StrEnum):
    """The roads into the registry."""

    SHIPPED = "shipped"
    FOLDER = "folder"
    ENTRY_POINT = "entry point"
    DYNAMIC = "dynamic"
    APPLICATION = "application"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a backend comes from; its text is what reports print."""

    kind: OriginKind
    place: str = ""
    """A folder, a package with its object, a shared object's canonical path; may be empty for an application."""

    @override
    def __str__(self) -> str:
        return f"{self.kind}: {self.place}" if self.place else str(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendRow:
    """One line of a report on backends."""

    id: BackendId
    origin: Origin
    reason: str = ""
    """Why it cannot be used; empty if it can."""
