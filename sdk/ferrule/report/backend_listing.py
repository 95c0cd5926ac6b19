# SPDX-License-Identifier: Apache-2.0
"""Lists every available backend and every refused backend file: the output of `ferrule backends`, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ferrule.backends import Device
from ferrule.backends.context import CreationOptions
from ferrule.backends.contract import PLUGIN_FAULTS, described, pass_on_interrupts
from ferrule.backends.dynamic import LoadReport
from ferrule.backends.guarded import guarded
from ferrule.backends.option import BackendOption
from ferrule.backends.origin import BackendRow
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.allocators import dma_bufs_here
from ferrule.backends.tensor_handle import MemorySource, TensorHandleFactory
from ferrule.errors import unknown_name
from ferrule.runtime import Runtime

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOption:
    """An option of a backend, for `--backend-option`."""

    name: str
    type: str
    """Name of the type: bool, int, float or str."""
    default: bool | int | float | str
    expected: str
    """The accepted values, as text."""
    meaning: str
    host: bool
    """Whether the option has an effect when layers run on the host."""
    firmware: bool
    """Whether the option has an effect when layers run on a board."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedHandles:
    """What a tensor handle factory of a backend states about the memory of its handles."""

    factory: str
    maps: bool
    """Whether the process maps the handles."""
    imports: dict[str, int]
    """The kinds of memory that the handles import, with the required alignment in bytes."""
    exports: tuple[str, ...]
    """The kinds of memory that the handles export."""
    capabilities: tuple[str, ...]
    """The properties that restrict connections, such as FALLBACK_IMPORT_MEMORY_REQUIRED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBackend:
    """A backend that was found, usable or not."""

    id: str
    origin: str
    """How the backend was found: "shipped", "folder", "entry point", "dynamic" or "application"."""
    place: str
    """The folder, package or file that it came from."""
    reason: str = ""
    """The reason why it cannot be used here; empty if it can."""
    host: bool = False
    """Whether it runs layers on the host."""
    firmware: bool = False
    """Whether it runs layers on boards."""
    capabilities: dict[str, bool | int | float | str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    """Names of its instances: the declared ones, or else one instance with the backend's name."""
    handles: tuple[ListedHandles, ...] = ()
    """The tensor handle factories, in the backend's order; none if its tensors lie in the runtime's memory."""
    options: tuple[ListedOption, ...] | None = ()
    """Null if the backend declares no options and accepts any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedFile:
    """A folder or a file of dynamic backends that was refused."""

    path: str
    canonical: str | None
    """The path with links resolved; null for a folder and for a broken link."""
    backend: str | None
    """The backend's id; null if the file was refused before it reported one."""
    code: str
    """The reason as a code for programs; see docs/dynamic_backends.md."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendListing:
    """All backends, and all refused files."""

    schema_version: int = SCHEMA_VERSION
    backends: tuple[ListedBackend, ...]
    refused: tuple[RefusedFile, ...]
    dma_bufs: str = ""
    """What the runtime's dma-bufs are on this machine, such as a stand-in; empty if no backend imports them."""


def list_backends(
    registry: BackendRegistry,
    devices: Sequence[Device] = (),
    dynamic_path: Path | None = None,
    names: Sequence[str] = (),
    *,
    isolate: bool = False,
) -> BackendListing:
    """Return all backends, each tried in a runtime, and the refused files of dynamic backends.

    `devices` has the devices that the project declares. `dynamic_path` is the only folder searched for dynamic
    backends; None means the default folders. `names` reduces the listing to these backends. With
    `isolate`, each dynamic backend runs in a process of its own.

    Raises:
        FerruleError: no backend has one of the names.
    """
    options = CreationOptions(dynamic_backends_path=dynamic_path, isolate_dynamic_backends=isolate)
    with Runtime(options, registry) as runtime:
        known = [row.id for row in runtime.backends]
        for name in names:
            if name not in known:
                raise unknown_name("backend", name, known)
        rows = [row for row in runtime.backends if not names or row.id in names]
        backends = tuple(_listed(row, runtime.registry, devices) for row in rows)
        imported = {kind for backend in backends for handles in backend.handles for kind in handles.imports}
        return BackendListing(
            backends=backends,
            dma_bufs=dma_bufs_here() if kind_name(MemorySource.DMA_BUF) in imported else "",
            refused=tuple(_refused(row) for row in runtime.dynamic_report if not row.accepted),
        )


def _handles(factory: TensorHandleFactory) -> ListedHandles:
    return ListedHandles(
        factory=factory.id,
        maps=factory.supports_map_unmap,
        imports={kind_name(kind): factory.memory_alignment(kind) for kind in factory.import_flags},
        exports=tuple(map(kind_name, factory.export_flags)),
        capabilities=tuple(sorted(capability.name for capability in factory.capabilities())),
    )


def kind_name(kind: MemorySource) -> str:
    """Return the name of a kind of memory in tables."""
    return str(kind.name).lower().replace("_", "-")


def _listed(row: BackendRow, registry: BackendRegistry, devices: Sequence[Device]) -> ListedBackend:
    unusable = ListedBackend(id=row.id, origin=str(row.origin.kind), place=row.origin.place, reason=row.reason)
    if row.reason:
        return unusable
    try:
        backend = guarded(registry.create(row.id))
        return ListedBackend(
            id=row.id,
            origin=str(row.origin.kind),
            place=row.origin.place,
            host=backend.has_host_face(),
            firmware=backend.firmware_target() is not None,
            capabilities=dict(backend.capabilities()),
            devices=tuple(device.name for device in devices if device.backend == row.id) or (str(row.id),),
            handles=tuple(map(_handles, backend.tensor_handle_factories(None))),
            options=_options(backend.model_options()),
        )
    except PLUGIN_FAULTS as error:
        pass_on_interrupts(error)
        return ListedBackend(
            id=unusable.id,
            origin=unusable.origin,
            place=unusable.place,
            reason=described(error),
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
