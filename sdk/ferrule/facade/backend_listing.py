# SPDX-License-Identifier: Apache-2.0
"""Every backend that there is, and every file that was refused as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferrule.backends import Device
from ferrule.backends.context import CreationOptions
from ferrule.backends.dynamic import LoadReport
from ferrule.backends.option import BackendOption
from ferrule.backends.origin import BackendRow
from ferrule.backends.registry import BackendRegistry
from ferrule.facade.configuration import Configuration
from ferrule.report.backend_listing import BackendListing, ListedBackend, ListedOption, RefusedFile
from ferrule.runtime import Runtime


def list_backends(configuration: Configuration, dynamic_path: Path | None = None) -> BackendListing:
    """Return all backends, each tried in a runtime, and what became of dynamic ones.

    `dynamic_path` is the only folder to look for those in; None for the default folders.
    """
    options = CreationOptions(dynamic_backends_path=dynamic_path)
    with Runtime(options, configuration.registry()) as runtime:
        return BackendListing(
            backends=tuple(_listed(row, runtime.registry, configuration.devices) for row in runtime.backends),
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
