# SPDX-License-Identifier: Apache-2.0
"""Every backend that there is, and every file that was refused as one: what `ferrule backends` tells, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ferrule.backends import Device
from ferrule.backends.context import CreationOptions
from ferrule.backends.dynamic import LoadReport
from ferrule.backends.option import BackendOption
from ferrule.backends.origin import BackendRow
from ferrule.backends.registry import BackendRegistry
from ferrule.runtime import Runtime

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


def list_backends(
    registry: BackendRegistry, devices: Sequence[Device] = (), dynamic_path: Path | None = None
) -> BackendListing:
    """Return all backends, each tried in a runtime, and what became of dynamic ones.

    `devices` are those that the project declares. `dynamic_path` is the only folder to look for dynamic backends in;
    None for the default folders.
    """
    options = CreationOptions(dynamic_backends_path=dynamic_path)
    with Runtime(options, registry) as runtime:
        return BackendListing(
            backends=tuple(_listed(row, runtime.registry, devices) for row in runtime.backends),
            refused=tuple(_refused(row) for row in runtime.dynamic_report if not row.accepted),
        )


def _listed(row: BackendRow, registry: BackendRegistry, devices: Sequence[Device]) -> ListedBackend:
    unusable = ListedBackend(id=row.id, origin=str(row.origin.kind), place=row.origin.place, reason=row.reason)
    if row.reason:
        return unusable
    try:
        backend = registry.create(row.id)
        return ListedBackend(
            id=row.id,
            origin=str(row.origin.kind),
            place=row.origin.place,
            host=backend.has_host_face(),
            firmware=backend.firmware_target() is not None,
            capabilities=dict(backend.capabilities()),
            devices=tuple(device.name for device in devices if device.backend == row.id) or (str(row.id),),
            options=_options(backend.model_options()),
        )
    except Exception as error:  # noqa: BLE001 - a plug-in can raise anything, and costs only itself
        return ListedBackend(
            id=unusable.id,
            origin=unusable.origin,
            place=unusable.place,
            reason=f"{type(error).__name__}: {error}",
        )


def _options(declared: Sequence[BackendOption] | None) -> tuple[ListedOption, ...] | None:
    if declared is None:
        return None
    return tuple(
        ListedOption(
            name=option.name,
            type=option.type,
            default=option.default,
            expected=option.expectation,
            meaning=option.meaning,
            host=option.host,
            firmware=option.firmware,
        )
        for option in declared
    )


def _refused(row: LoadReport) -> RefusedFile:
    return RefusedFile(
        path=str(row.path),
        canonical=None if row.canonical is None else str(row.canonical),
        backend=row.backend,
        code=str(row.reason),
        message=row.message,
    )
