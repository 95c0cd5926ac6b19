# SPDX-License-Identifier: Apache-2.0
"""Finding backends without importing them: the shipped folders, and the entry points of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.backends.backend import Backend
from ferrule.backends.origin import Origin, OriginKind
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "ferrule.backends"
"""The entry point's name is the backend's id, its value a class or a function without arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A backend that is there, before anything of it is imported."""

    id: str
    factory: Callable[[], Backend]
    origin: Origin


def shipped(parent: Path | None = None) -> Iterator[Found]:
    """Yield the backends whose folders stand below `parent` (default: here).

    One whose manifest is malformed is called after its folder, and making it raises what is wrong.
    """
    from ferrule.backends.manifest import SHIPPED_FOLDER, backend_folders, read_manifest

    for folder in backend_folders(parent or SHIPPED_FOLDER):
        origin = Origin(OriginKind.SHIPPED, f"ferrule/backends/{folder.name}")
        try:
            backend = read_manifest(folder)
        except FerruleError as error:
            yield Found(id=folder.name, factory=_Broken(str(error)), origin=origin)
        else:
            yield Found(id=backend.manifest.id, factory=backend.create, origin=origin)


def installed() -> Iterator[Found]:
    """Yield the backends that installed packages declare, by package and name."""
    from importlib.metadata import entry_points

    points = entry_points(group=ENTRY_POINT_GROUP)
    for point in sorted(points, key=lambda point: (_package(point), point.name)):
        origin = Origin(OriginKind.ENTRY_POINT, f"{_package(point)} ({point.value})")
        yield Found(id=point.name, factory=_EntryPointFactory(point), origin=origin)


@dataclass(frozen=True, slots=True)
class _Broken:
    """The factory of a backend that cannot be made."""

    reason: str

    def __call__(self) -> Backend:
        raise FerruleError(self.reason)


@dataclass(frozen=True, slots=True)
class _EntryPointFactory:
    """Imports an entry point when the first backend is made."""

    point: EntryPoint

    def __call__(self) -> Backend:
        backend: Backend = self.point.load()()
        return backend


def _package(point: EntryPoint) -> str:
    distribution = point.dist
    return f"{distribution.name} {distribution.version}" if distribution is not None else "unknown package"
