# SPDX-License-Identifier: Apache-2.0
"""A shared object loaded as a backend."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from ferrule.backends.context import BackendUnavailableError
from ferrule.backends.crash_note import name_crashes, noted
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.version import API_VERSION
from ferrule.backends.version import ApiVersion
from ferrule.errors import FerruleError

_T = TypeVar("_T", bound=abi.Table)
_FUNCTION = ctypes.CFUNCTYPE(None).__bases__[0]
"""The base class of all ctypes function pointers."""
_FIELDS = {kind: name for name, kind in abi.TABLES.items()}


class DynamicLibraryError(FerruleError):
    """A shared object cannot be loaded as a backend, or a function of it failed."""


class Library:
    """An open shared object with the three entry points.

    Every object that it creates keeps a reference to it, so it is unloaded only after the last of them is gone. Open
    only files that `probe` accepted: a defective one can crash the process.
    """

    def __init__(self, path: Path, *, alone: bool = False) -> None:
        """Load the file; `alone`: in a process that runs nothing else, so that its parent reports how it ends."""
        if not alone:
            name_crashes()
        try:
            with noted(f"the constructors of '{path}'"):
                loaded = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise DynamicLibraryError(f"the shared object '{path}' cannot be loaded: {error}") from error
        self.path = path
        self._handle = loaded._handle  # noqa: SLF001 (ctypes has no other way to it)
        self._unload = weakref.finalize(self, _close, self._handle)
        try:
            get_id, get_version, factory = loaded.GetBackendId, loaded.GetVersion, loaded.BackendFactory
        except AttributeError as error:
            raise DynamicLibraryError(f"the shared object '{path}' is not a backend: {error}") from error
        get_id.restype, get_version.restype, factory.restype = ctypes.c_char_p, None, ctypes.c_void_p
        self._factory = factory
        major, minor = ctypes.c_uint32(), ctypes.c_uint32()
        with noted(f"an entry point of '{path}'"):
            self.id = (get_id() or b"").decode()
            get_version(ctypes.byref(major), ctypes.byref(minor))
        self.version = ApiVersion(major.value, minor.value)
        if not API_VERSION.takes(self.version):
            raise DynamicLibraryError(
                f"the shared object '{path}' has version {self.version} of the interface, this is {API_VERSION}"
            )

    def table(self) -> Tables:
        """Call the factory and return the backend's tables.

        Raises:
            BackendUnavailableError: the factory returns null.
        """
        with noted(f"BackendFactory of backend '{self.id}' ({self.path})"):
            address = self._factory()
        if not address:
            raise BackendUnavailableError(f"backend '{self.id}': BackendFactory of '{self.path}' returns null")
        return Tables(self, address)


class Tables:
    """The tables of a backend; None for each table that it lacks."""

    def __init__(self, library: Library, address: int) -> None:
        self.library = library
        self.address = address
        """Address of struct ferrule_backend, the first argument of many functions."""
        self._backend = abi.read_table(abi.BackendTable, address)
        support = self._optional(abi.LayerSupportTable)
        if support is None:
            raise BackendUnavailableError(f"backend '{library.id}' has no table 'layer_support'")
        self.layer_support = support
        self.capabilities = self._optional(abi.CapabilitiesTable)
        self.optimizer = self._optional(abi.OptimizerTable)
        self.workloads = self._optional(abi.WorkloadsTable)
        self.events = self._optional(abi.EventsTable)
        self.memory = self._optional(abi.MemoryTable)
        self.contexts = self._optional(abi.ContextsTable)
        self.profiling = self._optional(abi.ProfilingTable)
        self.factories: tuple[abi.HandleFactoryTable, ...] = self._handle_factories()

    def _optional(self, kind: type[_T]) -> _T | None:
        pointer = getattr(self._backend, _FIELDS[kind])
        return self._named(_FIELDS[kind], abi.read_table(kind, ctypes.addressof(pointer.contents))) if pointer else None

    def _handle_factories(self) -> tuple[abi.HandleFactoryTable, ...]:
        handles = self._optional(abi.HandlesTable)
        if handles is None:
            return ()
        pointers = handles.factories[: handles.factory_count]
        tables = (abi.read_table(abi.HandleFactoryTable, ctypes.addressof(pointer.contents)) for pointer in pointers)
        return tuple(self._named("handle_factory", table) for table in tables)

    def _named(self, name: str, table: _T) -> _T:
        """Return the table with functions that note their name while they run, in case they end the process."""
        return cast(_T, _NamedTable(table, name, f"backend '{self.library.id}' ({self.library.path})"))


class _NamedTable:
    """The fields of a table; a function notes its name while it runs, and a null function is None."""

    def __init__(self, table: abi.Table, name: str, owner: str) -> None:
        for field, kind in table.members():
            value = getattr(table, field)
            if issubclass(kind, _FUNCTION):
                value = _noting(value, f"{name}.{field}() of {owner}") if value else None
            setattr(self, field, value)


def _noting(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    def call(*arguments: object) -> object:
        with noted(text, inner=True):
            return function(*arguments)

    return call


class ReasonBuffer:
    """The buffer in which a function describes its failure; for one thread at a time."""

    __slots__ = ("_buffer", "address", "size_bytes")

    def __init__(self, size_bytes: int = 512) -> None:
        self._buffer = ctypes.create_string_buffer(size_bytes)
        self.address = ctypes.addressof(self._buffer)
        self.size_bytes = size_bytes

    def take(self, status: int) -> str:
        """Return the description, or a text for the status if it is empty, and clear the buffer."""
        text = self._buffer.raw.split(b"\0", 1)[0].decode(errors="replace").strip()
        ctypes.memset(self._buffer, 0, self.size_bytes)
        return text or abi.STATUS_TEXTS.get(status, f"status {status}")


def _close(handle: int) -> None:
    import _ctypes

    _ctypes.dlclose(handle)
