# SPDX-License-Identifier: Apache-2.0
"""Prints the backends on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule.backends.origin import NOT_TRIED
from ferrule.report.backend_listing import BackendListing, ListedBackend, ListedOption, RefusedFile
from ferrule.report.tables import print_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console


def print_backends(listing: BackendListing, console: Console) -> None:
    """Print the table of backends and, if there are any, the tables of their options and of refused files."""
    _print_backends(listing.backends, console)
    if any(backend.options is None or backend.options for backend in listing.backends):
        _print_options(listing.backends, console)
    if listing.refused:
        _print_refused(listing.refused, console)


def print_memory(listing: BackendListing, console: Console) -> None:
    """Print the table of tensor handle factories, and which memory each maps, imports and exports."""
    from rich.markup import escape

    headings = ("backend", "factory", "map/unmap", "import", "export", "between backends")
    rows = [tuple(map(escape, row)) for backend in listing.backends for row in memory_rows(backend)]
    print_table(console, headings, rows, whole=("backend", "factory"))
    if listing.dma_bufs:
        console.print(escape(f"dma-bufs of this machine: {listing.dma_bufs}"), highlight=False)


def memory_rows(backend: ListedBackend) -> list[tuple[str, ...]]:
    """Return the rows of a backend's factories; none if it cannot be used or runs nothing on the host."""
    if backend.reason or not backend.host:
        return []
    if not backend.handles:
        return [(backend.id, "the runtime's", "yes", "no", "no", "")]
    return [
        (
            backend.id,
            handles.factory,
            "yes" if handles.maps else "no",
            ", ".join(_aligned(kind, alignment) for kind, alignment in handles.imports.items()) or "no",
            ", ".join(handles.exports) or "no",
            ", ".join(name.lower().replace("_", " ") for name in handles.capabilities),
        )
        for handles in backend.handles
    ]


def _aligned(kind: str, alignment_bytes: int) -> str:
    return kind if alignment_bytes == 1 else f"{kind} at {alignment_bytes} B"


def _print_backends(backends: Iterable[ListedBackend], console: Console) -> None:
    from rich.markup import escape

    rows = []
    for backend in backends:
        origin = f"{backend.origin}: {backend.place}" if backend.place else backend.origin
        if backend.reason:
            state = "not tried" if backend.reason.startswith(NOT_TRIED) else "not usable"
            rows.append((escape(backend.id), escape(origin), f"[yellow]{state}[/]", "", escape(backend.reason)))
            continue
        capabilities = ", ".join(_capability(name, value) for name, value in sorted(backend.capabilities.items()))
        devices = escape(", ".join(backend.devices))
        rows.append((escape(backend.id), escape(origin), ", ".join(_faces(backend)), devices, escape(capabilities)))
    print_table(console, ("backend", "from", "runs on", "devices", "capabilities"), rows, whole=("backend",))


def _print_options(backends: Iterable[ListedBackend], console: Console) -> None:
    from rich.markup import escape

    rows = []
    for backend in backends:
        if backend.options is None:
            rows.append((escape(f"{backend.id}.…"), "", "", "any", "", "declares no options, accepts any"))
        rows += [
            (
                escape(f"{backend.id}.{option.name}"),
                option.type,
                escape(_text(option.default)),
                escape(option.expected),
                " and ".join(_faces(option)),
                escape(option.meaning),
            )
            for option in backend.options or ()
        ]
    headings = ("option", "type", "default", "values", "for", "meaning")
    print_table(console, headings, rows, whole=("option",), title="options")


def _faces(part: ListedBackend | ListedOption) -> list[str]:
    return [name for name, has in (("host", part.host), ("firmware", part.firmware)) if has]


def _text(value: bool | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _print_refused(files: Iterable[RefusedFile], console: Console) -> None:
    from rich.markup import escape

    rows = [(escape(file.path), escape(file.backend or ""), file.code, escape(file.message)) for file in files]
    print_table(console, ("file or folder", "backend", "code", "reason"), rows, title="refused")


def _capability(name: str, value: bool | float | str) -> str:
    return name if value is True else f"{name}={value}"
