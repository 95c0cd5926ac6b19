# SPDX-License-Identifier: Apache-2.0
"""The origin of a backend: a shipped folder, a user's folder, a package, a shared object or the application."""

from __future__ import annotations

from enum import StrEnum

from ferrule._frozen import frozen, positional
from ferrule._typing import override
from ferrule.backends.device import BackendId

NOT_TRIED = "not tried: "
"""The beginning of the reason of a backend whose code was not run, because nobody asked for it."""


class OriginKind(StrEnum):
    """The ways in which a backend can enter the registry."""

    SHIPPED = "shipped"
    FOLDER = "folder"
    ENTRY_POINT = "entry point"
    DYNAMIC = "dynamic"
    APPLICATION = "application"


@positional
class Origin:
    """The origin of a backend; reports print it as text."""

    kind: OriginKind
    place: str = ""
    """A folder, a package and its object, or a shared object's canonical path; may be empty for an application."""

    @override
    def __str__(self) -> str:
        return f"{self.kind}: {self.place}" if self.place else str(self.kind)


@frozen
class BackendRow:
    """One line of a report on backends."""

    id: BackendId
    origin: Origin
    reason: str = ""
    """The reason why the backend cannot be used; empty if it can."""
