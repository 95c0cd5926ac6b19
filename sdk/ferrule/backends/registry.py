# SPDX-License-Identifier: Apache-2.0
"""The registry: backends by id, as factory functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ferrule.backends.backend import Backend
from ferrule.backends.context import BackendUnavailableError
from ferrule.backends.device import BackendId
from ferrule.backends.discovery import Found, environment, in_folders, installed, shipped
from ferrule.backends.origin import BackendRow, Origin, OriginKind
from ferrule.errors import FerruleError, unknown_name

BackendFactory = Callable[[], Backend]
"""Returns a new backend object; a class without arguments is one."""

RESERVED_IDS = frozenset({"", "Unknown"})

Source = Callable[[], Iterable[Found]]
"""Looks for backends; called at most once per registry, when an id is asked for that is not there yet."""


class DuplicateBackendError(FerruleError):
    """A backend id is taken; the message names the origin of the first."""


class _Entry:
    """A registered factory and the number of registries that hold it."""

    def __init__(
        self, backend_id: BackendId, factory: BackendFactory, origin: Origin, on_release: Callable[[], None] | None
    ) -> None:
        self.id = backend_id
        self.factory = factory
        self.origin = origin
        self._on_release = on_release
        self._holders = 0
        self._lock = threading.Lock()

    def hold(self) -> _Entry:
        with self._lock:
            self._holders += 1
        return self

    def release(self) -> None:
        with self._lock:
            self._holders -= 1
            last = self._holders == 0
        if last and self._on_release is not None:
            self._on_release()


@dataclass(frozen=True, slots=True)
class _Duplicate:
    """A found backend that was not registered, and why."""

    found: Found
    reason: str


class BackendRegistry:
    """Backends by id; only their factory functions are kept, no backend object.

    All methods may be called from several threads. An entry is counted by the registries that hold it: a `scope` has
    entries of its own, so neither `close` of one scope nor `deregister` here takes a backend from another scope.
    """

    def __init__(self, sources: Sequence[Source] = ()) -> None:
        self._entries: dict[BackendId, _Entry] = {}
        self._sources = list(sources)
        self._duplicates: list[_Duplicate] = []
        self._lock = threading.RLock()

    def register(
        self,
        backend_id: str,
        factory: BackendFactory,
        *,
        origin: Origin | str = "",
        on_release: Callable[[], None] | None = None,
    ) -> None:
        """Add a backend; `on_release` is called once, when no registry holds the entry any more.

        Raises:
            DuplicateBackendError: the id is taken.
            FerruleError: the id is no proper one, or the factory is no function.
        """
        where = origin if isinstance(origin, Origin) else Origin(OriginKind.APPLICATION, origin)
        if backend_id in RESERVED_IDS:
            raise FerruleError(f"'{backend_id}' ({where}) is no backend id, expected a name other than 'Unknown'")
        if not callable(factory):
            raise FerruleError(
                f"backend '{backend_id}' ({where}) is registered with {type(factory).__name__} in place of a factory",
                hint="register the class, or a function that returns a new backend object",
            )
        entry = _Entry(BackendId(backend_id), factory, where, on_release)
        with self._lock:
            first = self._find(entry.id)
            if first is not None:
                raise DuplicateBackendError(
                    f"backend '{backend_id}' ({where}) is registered already ({first.origin})",
                    hint="backend ids are unique: rename one, or leave one out",
                )
            self._entries[entry.id] = entry.hold()

    def deregister(self, backend_id: str) -> None:
        """Take a backend out of this registry; FerruleError if it is not there."""
        with self._lock:
            entry = self._get(backend_id)
            del self._entries[entry.id]
        entry.release()

    def create(self, backend_id: str) -> Backend:
        """Return a new object of a backend.

        Raises:
            FerruleError: there is no backend of that id; the hint lists the near ones.
            BackendUnavailableError: its factory fails, or gives something else; the message says what.
        """
        entry = self._get(backend_id)
        try:
            backend = entry.factory()
        except BackendUnavailableError:
            raise
        except Exception as error:
            raise _broken(
                entry, str(error) if isinstance(error, FerruleError) else f"{type(error).__name__}: {error}"
            ) from error
        if not isinstance(backend, Backend):
            raise _broken(entry, f"its factory gives {type(backend).__name__}, expected a Backend")
        if getattr(backend, "id", None) != entry.id:
            raise _broken(entry, f"its factory gives a backend with the id '{getattr(backend, 'id', None)}'")
        return backend

    def ids(self) -> tuple[BackendId, ...]:
        """Return the ids: shipped, then installed packages', then those registered later."""
        with self._lock:
            self._look_everywhere()
            return tuple(self._entries)

    def __contains__(self, backend_id: object) -> bool:
        with self._lock:
            return isinstance(backend_id, str) and self._find(BackendId(backend_id)) is not None

    def origin(self, backend_id: str) -> Origin:
        """Return where a backend comes from; FerruleError if there is none of that id."""
        return self._get(backend_id).origin

    def refusals(self) -> tuple[BackendRow, ...]:
        """Return the found backends that were not registered, with the reason."""
        with self._lock:
            self._look_everywhere()
            return tuple(
                BackendRow(id=BackendId(entry.found.id), origin=entry.found.origin, reason=entry.reason)
                for entry in self._duplicates
            )

    def rows(self) -> tuple[BackendRow, ...]:
        """Return all backends, each tried, with the reason where one cannot be used; then the refused ones."""
        rows = []
        for backend_id in self.ids():
            reason = ""
            try:
                self.create(backend_id)
            except FerruleError as error:
                reason = str(error)
            rows.append(BackendRow(id=backend_id, origin=self.origin(backend_id), reason=reason))
        return (*rows, *self.refusals())

    def scope(self, without: Mapping[BackendId, str] | None = None) -> BackendRegistry:
        """Return a registry with the same entries but those `without`; changes of one don't touch the other."""
        child = BackendRegistry()
        with self._lock:
            self._look_everywhere()
            child._duplicates = list(self._duplicates)
            child._entries = {key: entry.hold() for key, entry in self._entries.items() if key not in (without or {})}
        return child

    def close(self) -> None:
        """Let go of all entries; a second call does nothing."""
        with self._lock:
            entries, self._entries = list(self._entries.values()), {}
            self._sources.clear()
        for entry in entries:
            entry.release()

    def _get(self, backend_id: str) -> _Entry:
        with self._lock:
            entry = self._find(BackendId(backend_id))
            if entry is None:
                raise unknown_name("backend", backend_id, self._entries)
            return entry

    def _find(self, backend_id: BackendId) -> _Entry | None:
        while backend_id not in self._entries and self._sources:
            self._look()
        return self._entries.get(backend_id)

    def _look_everywhere(self) -> None:
        while self._sources:
            self._look()

    def _look(self) -> None:
        for found in self._sources.pop(0)():
            first = self._entries.get(BackendId(found.id))
            if first is not None:
                self._duplicates.append(_Duplicate(found, f"the id is registered already ({first.origin})"))
            elif found.id in RESERVED_IDS:
                self._duplicates.append(_Duplicate(found, "the id is reserved"))
            else:
                entry = _Entry(BackendId(found.id), found.factory, found.origin, None)
                self._entries[entry.id] = entry.hold()


@cache
def default_registry() -> BackendRegistry:
    """Return the registry of the process.

    It has the shipped backends, those of the folders in FERRULE_BACKENDS, and the entry points of group
    `ferrule.backends`.
    """
    return BackendRegistry(sources=(shipped, environment, installed))


def registry_with(folders: Iterable[Path | str]) -> BackendRegistry:
    """Return a registry of its own: what the default one has, and the backends of some folders.

    Raises:
        DuplicateBackendError: two backends have one id.
        FerruleError: a folder is no backend's and holds none.
    """
    registry = default_registry().scope()
    for found in in_folders(map(Path, folders)):
        registry.register(found.id, found.factory, origin=found.origin)
    return registry


def backend_ids() -> tuple[BackendId, ...]:
    """Return the ids of the default registry."""
    return default_registry().ids()


def create_backend(name: str) -> Backend:
    """Return a new object of a backend of the default registry; raises as `BackendRegistry.create` does."""
    return default_registry().create(name)


def _broken(entry: _Entry, reason: str) -> BackendUnavailableError:
    return BackendUnavailableError(f"backend '{entry.id}' ({entry.origin}) cannot be used: {reason}")
