# SPDX-License-Identifier: Apache-2.0
"""What `ferrule backends` tells, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOption:
    """An option of a backend, for `--backend-option`."""

    name: str
    type: str
    """bool, int, float or str."""
    default: bool | int | float | str
    expected: str
    """Which values there are."""
    meaning: str
    host: bool
    """Whether it means something where layers run on the host."""
    firmware: bool
    """Whether it means something where they run on a board."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBackend:
    """A backend that was found."""

    id: str
    origin: str
    """The road it came by: "shipped", "folder", "entry point", "dynamic" or "application"."""
    place: str
    """The folder, package or file it came from."""
    reason: str = ""
    """Why it cannot be used here; empty if it can."""
    host: bool = False
    """Whether it runs layers on the host."""
    firmware: bool = False
    """Whether it runs layers on boards."""
    capabilities: dict[str, bool | int | float | str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    """Names of its instances: those declared, else the one that is called like it."""
    options: tuple[ListedOption, ...] | None = ()
    """Null where the backend declares none and takes whatever comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedFile:
    """A folder or a file of dynamic backends that was not taken."""

    path: str
    canonical: str | None
    """Without links; null for a folder, and for a link that leads nowhere."""
    backend: str | None
    """The id, as far as the file got to tell it."""
    code: str
    """The reason, for programs: see docs/dynamic_backends.md."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendListing:
    """All backends, and all files that are none."""

    schema_version: int = SCHEMA_VERSION
    backends: tuple[ListedBackend, ...]
    refused: tuple[RefusedFile, ...]
