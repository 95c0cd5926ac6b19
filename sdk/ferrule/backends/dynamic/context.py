# SPDX-License-Identifier: Apache-2.0
"""The context and the profiling of a dynamic backend in a runtime."""

from __future__ import annotations

import ctypes
import weakref

from ferrule.backends.context import BackendEvent, BackendUnavailableError, CreationOptions, NetworkId
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.library import DynamicLibraryError, ReasonBuffer, Tables
from ferrule.backends.dynamic.records import OptionsRecord


class DynamicContext:
    """Notifies the backend of loads and unloads."""

    def __init__(self, tables: Tables, table: abi.ContextsTable, options: CreationOptions) -> None:
        self._table = table
        self._pointer = _create(tables, table, options, "a context")
        weakref.finalize(self, _destroy, table.destroy, self._pointer, tables)

    def before_load_network(self, network: NetworkId) -> bool:
        """Called before a network is loaded; False refuses the load."""
        return bool(self._table.before_load(self._pointer, network))

    def after_load_network(self, network: NetworkId) -> bool:
        """Called after a network was loaded, or after loading failed part-way."""
        return bool(self._table.after_load(self._pointer, network))

    def before_unload_network(self, network: NetworkId) -> bool:
        """Called before a network is unloaded; False stops the unload."""
        return bool(self._table.before_unload(self._pointer, network))

    def after_unload_network(self, network: NetworkId) -> bool:
        """Called after a network was unloaded."""
        return bool(self._table.after_unload(self._pointer, network))


class DynamicProfiling:
    """Profiling events recorded by the backend itself."""

    def __init__(self, tables: Tables, table: abi.ProfilingTable, options: CreationOptions) -> None:
        self._table = table
        self._pointer = _create(tables, table, options, "profiling")
        weakref.finalize(self, _destroy, table.destroy, self._pointer, tables)

    def enable_profiling(self, *, enabled: bool) -> bool:
        """Switch profiling on or off; return whether it is now in the requested state."""
        return bool(self._table.enable(self._pointer, enabled))

    def take_events(self) -> list[BackendEvent]:
        """Return the events recorded since the last call."""
        events: list[BackendEvent] = []

        def record(host: int | None, name: bytes | None, start_ns: int, duration_ns: int) -> None:
            del host
            text = (name or b"").decode(errors="replace")
            events.append(BackendEvent(name=text, start_ns=start_ns, duration_ns=duration_ns))

        self._table.take_events(self._pointer, None, abi.RecordEvent(record))
        return events


def _create(
    tables: Tables, table: abi.ContextsTable | abi.ProfilingTable, options: CreationOptions, what: str
) -> int | None:
    own = OptionsRecord(options.backend_options.get(tables.library.id, {}))
    given = abi.CreationOptionsStruct(
        profiling=options.profiling, protected_mode=options.protected_mode, options=own.array, option_count=own.count
    )
    made, reason = ctypes.c_void_p(), ReasonBuffer()
    status = table.create(tables.address, ctypes.byref(given), ctypes.byref(made), reason.address, reason.size_bytes)
    if status == abi.ERR_UNAVAILABLE:
        raise BackendUnavailableError(f"backend '{tables.library.id}' cannot work here: {reason.take(status)}")
    if status != abi.OK:
        raise DynamicLibraryError(f"backend '{tables.library.id}' created no {what}: {reason.take(status)}")
    return made.value


def _destroy(function: object, pointer: int | None, keep: object) -> None:
    """Destroy an object of the backend; `keep` holds references that must outlive it."""
    del keep
    assert callable(function)
    function(pointer)
