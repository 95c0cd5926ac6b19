# SPDX-License-Identifier: Apache-2.0
"""Lists every available backend and every refused backend file: the output of `ferrule backends`, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.backends import Device
from ferrule.backends.context import CreationOptions
from ferrule.backends.contract import PLUGIN_FAULTS, described, pass_on_interrupts
from ferrule.backends.guarded import guarded
from ferrule.backends.origin import NOT_TRIED, BackendRow
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.allocators import dma_bufs_here
from ferrule.backends.tensor_handle import MemorySource, TensorHandleFactory
from ferrule.errors import unknown_name
from ferrule.report.base import part_of
from ferrule.report.sections import Cell, Part, State, Table, Text, Value, joined, names
from ferrule.runtime import Runtime

SCHEMA_VERSION = 1


@frozen
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


@frozen
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

    @property
    def row(self) -> tuple[str, ...]:
        """The factory, what it maps, imports and exports, and its properties, in words."""
        imports = (kind if size == 1 else f"{kind} at {size} B" for kind, size in self.imports.items())
        capabilities = (name.lower().replace("_", " ") for name in self.capabilities)
        exports = joined(*self.exports) or "no"
        return self.factory, "yes" if self.maps else "no", joined(*imports) or "no", exports, joined(*capabilities)


@frozen
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

    def memory_rows(self) -> list[tuple[str, ...]]:
        """Return the rows of its factories; none if it cannot be used or runs nothing on the host."""
        if self.reason or not self.host:
            return []
        return [(self.id, *handles.row) for handles in self.handles] or [
            (self.id, "the runtime's", "yes", "no", "no", "")
        ]

    def row(self) -> tuple[Value, ...]:
        """Return where it comes from, and where it runs or why it does not."""
        origin = joined(self.origin, self.place, by=": ")
        if self.reason:
            state = "not tried" if self.reason.startswith(NOT_TRIED) else "not usable"
            return self.id, origin, Cell(state, State.WARN), "", self.reason
        capabilities = (
            name if value is True else f"{name}={value}" for name, value in sorted(self.capabilities.items())
        )
        return self.id, origin, joined(*_faces(self)), joined(*self.devices), joined(*capabilities)

    def option_rows(self) -> list[tuple[str, ...]]:
        """Return the rows of its options."""
        if self.options is None:
            return [(f"{self.id}.…", "", "", "any", "", "declares no options, accepts any")]
        return [
            (
                f"{self.id}.{option.name}",
                option.type,
                str(option.default).lower() if isinstance(option.default, bool) else str(option.default),
                option.expected,
                joined(*_faces(option), by=" and "),
                option.meaning,
            )
            for option in self.options
        ]


def _faces(part: ListedBackend | ListedOption) -> list[str]:
    return [name for name, has in (("host", part.host), ("firmware", part.firmware)) if has]


@frozen
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


@frozen
class BackendListing:
    """All backends, and all refused files."""

    schema_version: int = SCHEMA_VERSION
    backends: tuple[ListedBackend, ...]
    refused: tuple[RefusedFile, ...]
    dma_bufs: str = ""
    """What the runtime's dma-bufs are on this machine, such as a stand-in; empty if no backend imports them."""

    def sections(self) -> Part:
        """Return the backends and, if there are any, their options and the refused files."""
        options = [row for backend in self.backends for row in backend.option_rows()]
        refused = [(file.path, file.backend, file.code, file.message) for file in self.refused]
        return Part(
            "Backends",
            (
                Table(
                    "",
                    (*names("backend"), "from", "runs on", "devices", "capabilities"),
                    [backend.row() for backend in self.backends],
                ),
                Table("options", (*names("option"), "type", "default", "values", "for", "meaning"), options)
                if options
                else None,
                Table("refused", ("file or folder", "backend", "code", "reason"), refused) if refused else None,
            ),
        )

    def memory(self) -> Part:
        """Return the tensor handle factories, and which memory each maps, imports and exports."""
        rows = [row for backend in self.backends for row in backend.memory_rows()]
        bufs = Text(self.dma_bufs, "dma-bufs of this machine") if self.dma_bufs else None
        return Part(
            "Memory",
            (
                Table("", (*names("backend", "factory"), "map/unmap", "import", "export", "between backends"), rows),
                bufs,
            ),
        )


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
            refused=tuple(
                part_of(
                    RefusedFile,
                    row,
                    path=str(row.path),
                    canonical=None if row.canonical is None else str(row.canonical),
                    code=str(row.reason),
                )
                for row in runtime.dynamic_report
                if not row.accepted
            ),
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
        declared = backend.model_options()
        return replace(
            unusable,
            host=backend.has_host_face(),
            firmware=backend.firmware_target() is not None,
            capabilities=dict(backend.capabilities()),
            devices=tuple(device.name for device in devices if device.backend == row.id) or (str(row.id),),
            handles=tuple(map(_handles, backend.tensor_handle_factories(None))),
            options=None
            if declared is None
            else tuple(part_of(ListedOption, each, expected=each.expectation) for each in declared),
        )
    except PLUGIN_FAULTS as error:
        pass_on_interrupts(error)
        return replace(unusable, reason=described(error))
