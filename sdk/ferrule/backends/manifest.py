# SPDX-License-Identifier: Apache-2.0
"""The manifest of a backend's folder, backend.toml.

A folder with this file is a backend, and nothing outside the folder names it. The file corresponds to Arm NN's
backend.cmake, common.cmake and backend.mk: it lists the C sources and headers for a firmware, the tests for the test
suite, and the shared code that the backend uses. No other module of Ferrule reads the file.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from ferrule._frozen import frozen
from ferrule.backends.contribution import Contribution, Warnings
from ferrule.backends.version import INTERFACE_VERSION, ApiVersion
from ferrule.documents import convert, read_toml
from ferrule.errors import FerruleError, place, unknown_name
from ferrule.reading import files_below, is_file, list_folder, read_text

if TYPE_CHECKING:
    from ferrule.backends.backend import Backend

MANIFEST_NAME = "backend.toml"
SHIPPED_FOLDER = Path(__file__).parent
SHARED_FOLDER = SHIPPED_FOLDER / "shared"

_loading = threading.RLock()
_ID = re.compile(r"""^id\s*=\s*["']([^"'\\]+)["']""", re.MULTILINE)


class FirmwarePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """C from the folder that goes into a firmware; paths are relative to the folder and may contain wildcards."""

    sources: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    defines: dict[str, str] = {}
    licence: str = "NOASSERTION"
    warnings: Warnings = Warnings.OWN


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of backend.toml."""

    id: str
    factory: str
    """A module and its class or function that returns a new backend object when called, separated by a colon.

    If the first part of the module's name is the name of the folder, the package is imported from the folder itself,
    wherever the folder lies.
    """
    api: str = "1.0"
    """The version of the interface of backends that the folder was written for, as "major.minor"."""
    title: str = ""
    """One line of description for lists."""
    rank: int = 100
    """Position in lists; lower ranks come first."""
    firmware: FirmwarePart | tuple[FirmwarePart, ...] = ()
    """One part, or several if licences or warnings differ."""
    tests: tuple[str, ...] = ()
    """Folders or files of tests, relative to the folder."""
    shared: tuple[str, ...] = ()
    """Names of the folders in `ferrule.backends.shared` that the backend uses."""


@frozen
class BackendFolder:
    """A backend's folder and its manifest."""

    folder: Path
    manifest: Manifest

    def create(self) -> Backend:
        """Return a new object of the backend.

        Raises:
            FerruleError: the factory cannot be imported, or it returns a backend with another id.
        """
        module, _, name = self.manifest.factory.partition(":")
        where = self.folder / MANIFEST_NAME
        try:
            factory = getattr(self.load(module), name)
        except (ImportError, AttributeError) as error:
            raise FerruleError(f"{where}: factory '{self.manifest.factory}' cannot be imported: {error}") from error
        backend: Backend = factory()
        if backend.id != self.manifest.id:
            raise FerruleError(f"{where}: its factory makes backend '{backend.id}', expected '{self.manifest.id}'")
        return backend

    def load(self, module: str | None = None) -> ModuleType:
        """Return a module of the backend, by default the factory's module; ImportError if it does not exist.

        Raises:
            FerruleError: a package with the folder's name is already imported from another place.
        """
        name = module or self.manifest.factory.partition(":")[0]
        with _loading:
            if name.partition(".")[0] == self.folder.name:
                _load_package(self.folder)
            return importlib.import_module(name)

    def contributions(self) -> tuple[Contribution, ...]:
        """Return the folder's C for a firmware, one contribution for each firmware part of the manifest.

        Raises:
            FerruleError: a pattern of the manifest matches nothing, or a licence or a macro is malformed.
        """
        firmware = self.manifest.firmware
        parts = (firmware,) if isinstance(firmware, FirmwarePart) else firmware
        with place(str(self.folder / MANIFEST_NAME)):
            return tuple(
                Contribution(
                    name=f"backends/{self.folder.name}",
                    folder=self.folder,
                    sources=self._expanded(part.sources),
                    include_dirs=self._expanded(part.include_dirs),
                    defines=part.defines,
                    warnings=part.warnings,
                    licence=part.licence,
                )
                for part in parts
            )

    def tests(self) -> tuple[Path, ...]:
        """Return the paths of the backend's tests; FerruleError if one does not exist."""
        with place(str(self.folder / MANIFEST_NAME)):
            return tuple(self.folder / name for name in self._expanded(self.manifest.tests))

    def shared(self) -> tuple[Path, ...]:
        """Return the paths of the shared folders that the backend uses; FerruleError if one does not exist."""
        known = sorted(path.name for path in list_folder(SHARED_FOLDER) if is_file(path / "__init__.py"))
        for name in self.manifest.shared:
            if name not in known:
                raise unknown_name("shared folder", name, known, where=f"for {self.folder / MANIFEST_NAME}")
        return tuple(SHARED_FOLDER / name for name in self.manifest.shared)

    def _expanded(self, patterns: Iterable[str]) -> tuple[str, ...]:
        found: list[str] = []
        files_below(self.folder)  # a file that appears there may match
        for pattern in patterns:
            matches = sorted(self.folder.glob(pattern))
            if not matches:
                raise FerruleError(f"'{pattern}' matches nothing in the folder")
            found += [path.relative_to(self.folder).as_posix() for path in matches]
        return tuple(found)


def read_manifest(folder: Path) -> BackendFolder:
    """Return the backend in a folder.

    Raises:
        FerruleError: backend.toml cannot be read or is malformed, or the folder was written for an interface that this
            Ferrule does not have; the message names the field.
    """
    path = folder / MANIFEST_NAME
    contents = read_toml(path)
    _check_api(path, contents)
    manifest = convert(str(path), contents, Manifest)
    module, separator, name = manifest.factory.partition(":")
    if not (separator and module and name):
        raise FerruleError(f"{path}: factory is '{manifest.factory}', expected module:name")
    return BackendFolder(folder=folder, manifest=manifest)


def _check_api(path: Path, contents: dict[str, Any]) -> None:
    """Raise FerruleError for an interface of another version; before the other keys, some of which may be newer."""
    text = contents.get("api", "1.0")
    version = ApiVersion.parsed(text)
    if version is None:
        raise FerruleError(f'{path}: api is {text!r}, expected major.minor in quotes, such as "{INTERFACE_VERSION}"')
    if not INTERFACE_VERSION.takes(version):
        newer = version > INTERFACE_VERSION
        raise FerruleError(
            f"{path}: api is {version}, this Ferrule has version {INTERFACE_VERSION} of the interface of backends",
            hint="install a newer Ferrule" if newer else "adapt the backend; Ferrule's CHANGELOG.md has the changes",
        )


def declared_id(folder: Path) -> str:
    """Return the id in a folder's backend.toml even if the rest of the file is malformed; "" if there is none."""
    try:
        text = read_text(folder / MANIFEST_NAME, errors="replace")
    except OSError:
        return ""
    found = _ID.search(text)
    return found[1] if found else ""


def backend_folders(parent: Path = SHIPPED_FOLDER) -> Iterator[Path]:
    """Yield the folders below `parent` that hold a backend, sorted by name."""
    for path in list_folder(parent, "*/"):
        if is_file(path / MANIFEST_NAME):
            yield path


def _load_package(folder: Path) -> None:
    """Import a folder as a package under the folder's name, although its parent is not on the search path."""
    name, home = folder.name, (folder / "__init__.py").resolve()
    loaded = sys.modules.get(name)
    if loaded is not None:
        place = getattr(loaded, "__file__", None)
        if place is None or Path(place).resolve() != home:
            raise FerruleError(
                f"backend folder {folder}: another Python package is called '{name}' ({place or 'built in'})",
                hint="rename the folder, and the package in the factory of its backend.toml",
            )
        return
    spec = importlib.util.spec_from_file_location(name, home, submodule_search_locations=[str(home.parent)])
    if not is_file(home) or spec is None or spec.loader is None:
        raise ImportError(f"there is no {home}")
    package = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(package)
    except BaseException:
        for part in [part for part in sys.modules if part == name or part.startswith(f"{name}.")]:
            del sys.modules[part]
        raise
