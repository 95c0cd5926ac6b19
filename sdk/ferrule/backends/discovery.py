# SPDX-License-Identifier: Apache-2.0
"""Discovery of backends without importing them: shipped folders, the user's folders, and installed entry points."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule._frozen import positional
from ferrule.backends.backend import Backend
from ferrule.backends.device import BackendId
from ferrule.backends.origin import Origin, OriginKind
from ferrule.errors import FerruleError
from ferrule.reading import is_file, is_folder
from ferrule.record import lasting, variable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "ferrule.backends"
"""An entry point's name is the backend's id; its value is a class or a function, called without arguments."""
FOLDERS_VARIABLE = "FERRULE_BACKENDS"
"""The environment variable that lists folders, separated as in PATH; each is a backend's folder or holds several."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A backend that was found; none of its code is imported yet. It has no slots, for weak references."""

    id: BackendId
    factory: Callable[[], Backend]
    origin: Origin

    @property
    def has_code(self) -> bool:
        """Whether the factory runs code of the backend; otherwise it raises the reason why there is none."""
        return not isinstance(self.factory, _Broken)


def shipped(parent: Path | None = None) -> Iterator[Found]:
    """Yield the backends whose folders are below `parent`, by default the shipped ones.

    A backend with a malformed manifest without a readable id gets its folder's name; its factory raises the error.
    """
    from ferrule.backends.manifest import SHIPPED_FOLDER, backend_folders

    for folder in backend_folders(parent or SHIPPED_FOLDER):
        yield _found(folder, Origin(OriginKind.SHIPPED, f"ferrule/backends/{folder.name}"))


def in_folders(paths: Iterable[Path]) -> Iterator[Found]:
    """Yield the backends in `paths`; each path is a backend's folder or a folder that holds several.

    Raises:
        FerruleError: a path is neither.
    """
    for path in paths:
        for folder in _folders(path):
            yield _found(folder.resolve(), Origin(OriginKind.FOLDER, str(folder.resolve())))


@lasting  # backends are registered once in a process
def _folders(path: Path) -> list[Path]:
    from ferrule.backends.manifest import MANIFEST_NAME, backend_folders

    own = is_file(path / MANIFEST_NAME)
    folders = [path] if own else list(backend_folders(path)) if is_folder(path) else []
    if not folders:
        raise FerruleError(
            f"{path} is no backend's folder and holds none",
            hint=f"a backend's folder has a {MANIFEST_NAME}: see docs/backends.md",
        )
    return folders


def environment() -> Iterator[Found]:
    """Yield the backends of the folders that the variable FERRULE_BACKENDS lists.

    An entry that is not such a folder gets its path as id, and its factory raises the error.
    """
    for entry in filter(None, lasting(variable)(FOLDERS_VARIABLE).split(os.pathsep)):
        try:
            yield from in_folders([Path(entry)])
        except FerruleError as error:
            reason = f"{FOLDERS_VARIABLE}: {error}"
            yield Found(id=BackendId(entry), factory=_Broken(reason), origin=Origin(OriginKind.FOLDER, entry))


def installed() -> Iterator[Found]:
    """Yield the backends that installed packages declare, sorted by package and name."""
    from importlib.metadata import entry_points

    points = entry_points(group=ENTRY_POINT_GROUP)
    for point in sorted(points, key=lambda point: (_package(point), point.name)):
        origin = Origin(OriginKind.ENTRY_POINT, f"{_package(point)} ({point.value})")
        yield Found(id=BackendId(point.name), factory=partial(_created, point), origin=origin)


@lasting
def _found(folder: Path, origin: Origin) -> Found:
    from ferrule.backends.manifest import declared_id, read_manifest

    try:
        backend = read_manifest(folder)
    except FerruleError as error:
        return Found(id=BackendId(declared_id(folder) or folder.name), factory=_Broken(str(error)), origin=origin)
    return Found(id=BackendId(backend.manifest.id), factory=backend.create, origin=origin)


@positional
class _Broken:
    """The factory of a backend that cannot be created; it raises the reason."""

    reason: str

    def __call__(self) -> Backend:
        raise FerruleError(self.reason)


def _created(point: EntryPoint) -> Backend:
    """Import an entry point, and return a backend object."""
    backend: Backend = point.load()()
    return backend


def _package(point: EntryPoint) -> str:
    distribution = point.dist
    return f"{distribution.name} {distribution.version}" if distribution is not None else "unknown package"
