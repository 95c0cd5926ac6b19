# SPDX-License-Identifier: Apache-2.0
"""Prints the backends on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule.report.backend_listing import BackendListing, ListedBackend, ListedOption, RefusedFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.table import Table


def print_backends(listing: BackendListing, console: Console) -> None:
    """Print the table of backends and, if there are any, the tables of their options and of refused files."""
    console.print(_backends(listing.backends))
    if any(backend.options is None or backend.options for backend in listing.backends):
        console.print(_options(listing.backends))
    if listing.refused:
        console.print(_refused(listing.refused))


def _backends(backends: Iterable[ListedBackend]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for heading in ("backend", "from", "runs on", "devices", "capabilities"):
        table.add_column(heading, overflow="fold")
    for backend in backends:
        origin = f"{backend.origin}: {backend.place}" if backend.place else backend.origin
        if backend.reason:
            table.add_row(escape(backend.id), escape(origin), "[yellow]not usable[/]", "", escape(backend.reason))
            continue
        capabilities = ", ".join(_capability(name, value) for name, value in sorted(backend.capabilities.items()))
        table.add_row(
            escape(backend.id),
            escape(origin),
            ", ".join(_faces(backend)),
            escape(", ".join(backend.devices)),
            escape(capabilities),
        )
    return table


def _options(backends: Iterable[ListedBackend]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="options")
    for heading in ("option", "type", "default", "values", "for", "meaning"):
        table.add_column(heading, overflow="fold")
    for backend in backends:
        if backend.options is None:
            table.add_row(escape(f"{backend.id}.…"), "", "", "any", "", "declares no options, accepts any")
        for option in backend.options or ():
            table.add_row(
                escape(f"{backend.id}.{option.name}"),
                option.type,
                escape(_text(option.default)),
                escape(option.expected),
                " and ".join(_faces(option)),
                escape(option.meaning),
            )
    return table


def _faces(part: ListedBackend | ListedOption) -> list[str]:
    return [name for name, has in (("host", part.host), ("firmware", part.firmware)) if has]


def _text(value: bool | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(files: Iterable[RefusedFile]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="refused")
    for heading in ("file or folder", "backend", "code", "reason"):
        table.add_column(heading, overflow="fold")
    for file in files:
        table.add_row(escape(file.path), escape(file.backend or ""), file.code, escape(file.message))
    return table


def _capability(name: str, value: bool | float | str) -> str:
    return name if value is True else f"{name}={value}"
