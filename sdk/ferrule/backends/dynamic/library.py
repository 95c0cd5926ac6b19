# SPDX-License-Identifier: Apache-2.0
"""A shared object loaded as a backend."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ferrule.backends.context import BackendUnavailableError
from ferrule.backends.crash_note import name_crashes, noted
from ferrule.backends.dynamic import abi
from ferrule.backends.version import ApiVersion
from ferrule.errors import FerruleError

_REASON_BYTES = 512


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
        own = ApiVersion(*abi.API_VERSION)
        if not own.takes(self.version):
            raise DynamicLibraryError(
                f"the shared object '{path}' has version {self.version} of the interface, this is {own}"
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
    """The tables of a backend; None for each table that it lacks.

    A table has the members of its struct. A function that reports returns its status and the description of a failure;
    a null function is None.
    """

    layer_support: Any
    capabilities: Any
    optimizer: Any
    workloads: Any
    events: Any
    memory: Any
    handles: Any
    contexts: Any
    profiling: Any

    def __init__(self, library: Library, address: int) -> None:
        self.library = library
        self.address = address
        """Address of struct ferrule_backend, the first argument of many functions."""
        backend = abi.read_table(abi.Backend, address)
        for name, kind in abi.TABLES.items():
            pointer = getattr(backend, name)
            setattr(self, name, self._read(kind, pointer, name) if pointer else None)
        if self.layer_support is None:
            raise BackendUnavailableError(f"backend '{library.id}' has no table 'layer_support'")
        pointers = () if self.handles is None else self.handles.factories[: self.handles.factory_count]
        self.factories = tuple(self._read(abi.HandleFactory, pointer, "handle_factory") for pointer in pointers)

    def create(self, owner: object, table: Any, *arguments: object, keep: object, failed: Failures) -> int | None:  # noqa: ANN401 - a table
        """Return the address of a new object of the backend, which is destroyed after `owner`, but before `keep`.

        Raises:
            FerruleError: the backend made none; `failed` has the type of the error and the text for each status, and
                under `abi.ERR_FAILED` those for all others.
        """
        made = ctypes.c_void_p()
        status, reason = table.create(self.address, *arguments, made)
        if status != abi.OK:
            kind, text = failed.get(status, failed[abi.ERR_FAILED])
            raise kind(f"backend '{self.library.id}' {text}: {reason}")
        weakref.finalize(owner, _destroy, table.destroy, made.value, (self, keep))
        return made.value

    def _read(self, kind: Any, pointer: Any, name: str) -> SimpleNamespace:  # noqa: ANN401 - types of ctypes
        """Return a table, whose functions note their name while they run, in case they end the process."""
        table, owner = abi.read_table(kind, ctypes.addressof(pointer.contents)), f"backend '{self.library.id}'"
        members = {member: getattr(table, member) for member, _ in kind._fields_}
        for function, row in kind.functions.items():
            text = f"{name}.{function}() of {owner} ({self.library.path})"
            members[function] = _noting(members[function], text, row) if members[function] else None
        return SimpleNamespace(**members)


Failures = Mapping[int, tuple[type[FerruleError], str]]


def _noting(function: Callable[..., Any], text: str, row: abi.Function) -> Callable[..., Any]:
    def call(*arguments: object) -> object:
        with noted(text, inner=True):
            return function(*arguments)

    def report(*arguments: object) -> tuple[int, str]:
        reason = ctypes.create_string_buffer(_REASON_BYTES)
        status = call(*arguments, reason, _REASON_BYTES)
        assert isinstance(status, int)
        if status == abi.OK:
            return status, ""
        text = reason.value.decode(errors="replace").strip()
        return status, text or abi.STATUS_TEXTS.get(status, f"status {status}")

    return report if row.reports else call


def _destroy(function: Callable[[int | None], None], pointer: int | None, keep: object) -> None:
    """Destroy an object of the backend; `keep` holds references that must outlive it."""
    del keep
    function(pointer)


def _close(handle: int) -> None:
    import _ctypes

    _ctypes.dlclose(handle)
