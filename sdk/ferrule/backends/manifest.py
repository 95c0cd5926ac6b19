# SPDX-License-Identifier: Apache-2.0
"""What a backend's folder says of itself, in backend.toml.

A folder with this file is a backend: nothing outside of it names it. It plays the part of Arm NN's backend.cmake,
common.cmake and backend.mk: which C sources and headers go into a firmware, which tests into the test suite, and which
shared code the backend leans on.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.backends.backend import Backend

MANIFEST_NAME = "backend.toml"
SHIPPED_FOLDER = Path(__file__).parent


class FirmwarePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the backend contributes to a firmware; paths are relative to the folder and may hold wildcards."""

    sources: tuple[str, ...] = ()
    """C files: those that a layer's lowering names are taken, each once."""
    include_dirs: tuple[str, ...] = ()


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of backend.toml."""

    id: str
    factory: str
    """`module:name` of what makes a new backend object when it is called without arguments."""
    title: str = ""
    """One line for lists."""
    rank: int = 100
    """Where it stands in lists: low first."""
    firmware: FirmwarePart = FirmwarePart()
    tests: tuple[str, ...] = ()
    """Folders or files of tests, relative to the folder."""
    shared: tuple[str, ...] = ()
    """Names of folders of `ferrule.backends.shared` that it leans on; empty for all of its own."""


class BackendFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A backend's folder and what it says of itself."""

    folder: Path
    manifest: Manifest

    def create(self) -> Backend:
        """Return a new object of the backend.

        Raises:
            FerruleError: the factory cannot be imported, or what it makes has another id.
        """
        module, _, name = self.manifest.factory.partition(":")
        where = self.folder / MANIFEST_NAME
        try:
            factory = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise FerruleError(f"{where}: factory '{self.manifest.factory}' cannot be imported: {error}") from error
        backend: Backend = factory()
        if backend.id != self.manifest.id:
            raise FerruleError(f"{where}: its factory makes backend '{backend.id}', expected '{self.manifest.id}'")
        return backend

    def sources(self) -> tuple[Path, ...]:
        """Return its C files; FerruleError if a pattern matches none."""
        return self._expand(self.manifest.firmware.sources)

    def include_dirs(self) -> tuple[Path, ...]:
        """Return its include folders; FerruleError if one does not exist."""
        return self._expand(self.manifest.firmware.include_dirs)

    def tests(self) -> tuple[Path, ...]:
        """Return its tests; FerruleError if one does not exist."""
        return self._expand(self.manifest.tests)

    def _expand(self, patterns: Iterable[str]) -> tuple[Path, ...]:
        found: list[Path] = []
        for pattern in patterns:
            matches = sorted(self.folder.glob(pattern))
            if not matches:
                raise FerruleError(f"{self.folder / MANIFEST_NAME}: '{pattern}' matches nothing in the folder")
            found += matches
        return tuple(found)


def read_manifest(folder: Path) -> BackendFolder:
    """Return the backend in a folder.

    Raises:
        FerruleError: its backend.toml cannot be read or is malformed; the message names the field.
    """
    path = folder / MANIFEST_NAME
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FerruleError(f"{path}: {error}") from error
    try:
        manifest = msgspec.convert(data, Manifest)
    except msgspec.ValidationError as error:
        raise FerruleError(f"{path}: {error}") from error
    module, separator, name = manifest.factory.partition(":")
    if not (separator and module and name):
        raise FerruleError(f"{path}: factory is '{manifest.factory}', expected module:name")
    return BackendFolder(folder=folder, manifest=manifest)


def backend_folders(parent: Path = SHIPPED_FOLDER) -> Iterator[Path]:
    """Yield the folders below `parent` that hold a backend, sorted by name."""
    for path in sorted(parent.iterdir()):
        if (path / MANIFEST_NAME).is_file():
            yield path
