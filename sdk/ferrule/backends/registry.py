# SPDX-License-Identifier: Apache-2.0
"""The registry of backends: factory functions by id."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from ferrule.backends.backend import Backend
from ferrule.backends.context import BackendUnavailableError
from ferrule.backends.contract import PLUGIN_FAULTS, described, pass_on_interrupts
from ferrule.backends.device import BackendId
from ferrule.backends.discovery import Found, environment, in_folders, installed, shipped
from ferrule.backends.origin import BackendRow, Origin, OriginKind
from ferrule.errors import FerruleError, unknown_name

BackendFactory = Callable[[], Backend]
"""Returns a new backend object; a backend class whose constructor takes no arguments is such a factory."""

RESERVED_IDS = frozenset({"", "Unknown"})

Source = Callable[[], Iterable[Found]]
"""Finds backends; a registry calls it at most once, on the first look-up that needs it."""


class DuplicateBackendError(FerruleError):
    """A backend id is already registered; the message names the origin of the first backend."""


class BackendRegistry:
    """Backends by id; the registry keeps factory functions, never backend objects.

    All methods are thread-safe. Every `scope` holds its own entries, so neither closing one scope nor `deregister` on
    this registry removes a backend from another scope.
    """

    def __init__(self, sources: Sequence[Source] = ()) -> None:
        self._entries: dict[BackendId, Found] = {}
        self._sources = list(sources)
        self._duplicates: list[BackendRow] = []
        """The backends that were found but not registered."""
        self._left_out: dict[BackendId, BackendRow] = {}
        self._lock = threading.RLock()

    def register(
        self,
        backend_id: str,
        factory: BackendFactory,
        *,
        origin: Origin | str = "",
        on_release: Callable[[], None] | None = None,
    ) -> None:
        """Add a backend; `on_release` is called once, when no registry holds the entry any longer.

        Raises:
            DuplicateBackendError: the id is already registered.
            FerruleError: the id is reserved, or the factory is not callable.
        """
        where = origin if isinstance(origin, Origin) else Origin(OriginKind.APPLICATION, origin)
        if backend_id in RESERVED_IDS:
            raise FerruleError(f"'{backend_id}' ({where}) is no backend id, expected a name other than 'Unknown'")
        if not callable(factory):
            raise FerruleError(
                f"backend '{backend_id}' ({where}) is registered with {type(factory).__name__} in place of a factory",
                hint="register the class, or a function that returns a new backend object",
            )
        entry = Found(id=BackendId(backend_id), factory=factory, origin=where)
        with self._lock:
            first = self._find(entry.id)
            if first is not None:
                raise DuplicateBackendError(
                    f"backend '{backend_id}' ({where}) is registered already ({first.origin})",
                    hint="backend ids are unique: rename one, or leave one out",
                )
            self._entries[entry.id] = entry
            self._left_out.pop(entry.id, None)
        if on_release is not None:
            weakref.finalize(entry, on_release).atexit = False

    def deregister(self, backend_id: str) -> None:
        """Remove a backend from this registry; FerruleError if it is not registered."""
        with self._lock:
            entry = self._get(backend_id)  # held until the lock is free, for `on_release`
            del self._entries[entry.id]

    def leave_out(self, backend_id: str, reason: str) -> None:
        """Remove a backend that cannot be used, and keep the reason, which `create` raises from now on.

        Raises:
            FerruleError: the backend is not registered.
        """
        with self._lock:
            row = BackendRow(id=BackendId(backend_id), origin=self.origin(backend_id), reason=reason)
            self.deregister(backend_id)
            self._left_out[row.id] = row

    def create(self, backend_id: str) -> Backend:
        """Return a new object of a backend.

        Raises:
            FerruleError: no backend has that id; the hint lists similar ids.
            BackendUnavailableError: the backend was left out, or its factory fails or returns something else.
        """
        with self._lock:
            entry = self._find(BackendId(backend_id))
            if entry is None and backend_id in self._left_out:
                raise BackendUnavailableError(self._left_out[BackendId(backend_id)].reason)
        entry = entry or self._get(backend_id)
        try:
            backend = entry.factory()
        except BackendUnavailableError:
            raise
        except PLUGIN_FAULTS as error:
            pass_on_interrupts(error)
            raise _broken(entry, str(error) if isinstance(error, FerruleError) else described(error)) from error
        if not isinstance(backend, Backend):
            raise _broken(entry, f"its factory returns {type(backend).__name__}, expected a Backend")
        found = getattr(backend, "id", None)
        if found != entry.id:
            raise _broken(entry, f"its factory returns a backend with the id '{found}'")
        return backend

    def ids(self) -> tuple[BackendId, ...]:
        """Return the ids: first those that the sources find, then those registered later."""
        with self._lock:
            self._look_everywhere()
            return tuple(self._entries)

    def known_ids(self) -> tuple[BackendId, ...]:
        """Return the ids of all backends: the usable ones, then those left out, whose reasons `create` raises."""
        with self._lock:
            return (*self.ids(), *self._left_out)

    def __contains__(self, backend_id: object) -> bool:
        with self._lock:
            return isinstance(backend_id, str) and self._find(BackendId(backend_id)) is not None

    def origin(self, backend_id: str) -> Origin:
        """Return the origin of a backend; FerruleError if no backend has that id."""
        return self._get(backend_id).origin

    def refusals(self) -> tuple[BackendRow, ...]:
        """Return the backends that were left out, then those that were found but not registered, with the reasons."""
        with self._lock:
            self._look_everywhere()
            return (*self._left_out.values(), *self._duplicates)

    def rows(self) -> tuple[BackendRow, ...]:
        """Return all backends, then the refused ones; each backend is created once to test whether it is usable."""
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
        """Return a registry with the same entries; later changes do not affect each other.

        `without` has the backends to leave out, with the reasons.
        """
        child = BackendRegistry()
        with self._lock:
            self._look_everywhere()
            child._duplicates = list(self._duplicates)
            child._left_out = dict(self._left_out)
            child._entries = dict(self._entries)
        for backend_id, reason in (without or {}).items():
            child.leave_out(backend_id, reason)
        return child

    def close(self) -> None:
        """Release all entries; a second call does nothing."""
        with self._lock:
            entries, self._entries = self._entries, {}
            self._sources.clear()
        entries.clear()  # here, so that `on_release` is called without the lock

    def _get(self, backend_id: str) -> Found:
        with self._lock:
            entry = self._find(BackendId(backend_id))
            if entry is None:
                raise unknown_name("backend", backend_id, self._entries)
            return entry

    def _find(self, backend_id: BackendId) -> Found | None:
        while backend_id not in self._entries and self._sources:
            self._look()
        return self._entries.get(backend_id)

    def _look_everywhere(self) -> None:
        while self._sources:
            self._look()

    def _look(self) -> None:
        for found in self._sources.pop(0)():
            first = self._entries.get(found.id)
            if first is None and found.id not in RESERVED_IDS:
                self._entries[found.id] = found
            else:
                reason = f"the id is registered already ({first.origin})" if first else "the id is reserved"
                self._duplicates.append(BackendRow(id=found.id, origin=found.origin, reason=reason))


@cache
def default_registry() -> BackendRegistry:
    """Return the registry of the process.

    It contains the shipped backends, those of the folders in FERRULE_BACKENDS, and those of the entry point group
    `ferrule.backends`.
    """
    return BackendRegistry(sources=(shipped, environment, installed))


def registry_with(folders: Iterable[Path | str]) -> BackendRegistry:
    """Return a new registry with the backends of the default registry and those of `folders`.

    Raises:
        DuplicateBackendError: two backends have the same id.
        FerruleError: a folder neither is a backend's folder nor holds one.
    """
    registry = default_registry().scope()
    for found in in_folders(map(Path, folders)):
        registry.register(found.id, found.factory, origin=found.origin)
    return registry


def backend_ids() -> tuple[BackendId, ...]:
    """Return the ids of the backends in the default registry."""
    return default_registry().ids()


def create_backend(name: str) -> Backend:
    """Return a new object of a backend in the default registry; raises the same errors as `BackendRegistry.create`."""
    return default_registry().create(name)


def _broken(entry: Found, reason: str) -> BackendUnavailableError:
    return BackendUnavailableError(f"backend '{entry.id}' ({entry.origin}) cannot be used: {reason}")
