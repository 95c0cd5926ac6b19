# SPDX-License-Identifier: Apache-2.0
"""The context and the profiling of a dynamic backend in a runtime."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ferrule._typing import override
from ferrule.backends.context import BackendEvent, BackendUnavailableError, CreationOptions, NetworkId
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.library import DynamicLibraryError, Tables
from ferrule.backends.dynamic.records import options_array


class Notices(ABC):
    """A backend's context whose notifications are one function."""

    @abstractmethod
    def notice(self, moment: str, network: NetworkId) -> bool:
        """Notify the backend; `moment` is the name of the context's method."""

    def before_load_network(self, network: NetworkId) -> bool:
        """Called before a network is loaded; False refuses the load."""
        return self.notice("before_load_network", network)

    def after_load_network(self, network: NetworkId) -> bool:
        """Called after a network was loaded, or after loading failed part-way."""
        return self.notice("after_load_network", network)

    def before_unload_network(self, network: NetworkId) -> bool:
        """Called before a network is unloaded; False stops the unload."""
        return self.notice("before_unload_network", network)

    def after_unload_network(self, network: NetworkId) -> bool:
        """Called after a network was unloaded."""
        return self.notice("after_unload_network", network)


class DynamicContext(Notices):
    """Notifies the backend of loads and unloads."""

    def __init__(self, tables: Tables, options: CreationOptions) -> None:
        self._table = tables.contexts
        self._pointer = _create(self, tables, self._table, options, "a context")

    @override
    def notice(self, moment: str, network: NetworkId) -> bool:
        return bool(getattr(self._table, moment.removesuffix("_network"))(self._pointer, network))


class DynamicProfiling:
    """Profiling events recorded by the backend itself."""

    def __init__(self, tables: Tables, options: CreationOptions) -> None:
        self._table = tables.profiling
        self._pointer = _create(self, tables, self._table, options, "profiling")

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


def _create(owner: object, tables: Tables, table: object, options: CreationOptions, what: str) -> int | None:
    own = options_array(options.backend_options.get(tables.library.id, {}))
    given = abi.CreationOptions(options.profiling, options.protected_mode, own, len(own))
    failed = {
        abi.ERR_UNAVAILABLE: (BackendUnavailableError, "cannot work here"),
        abi.ERR_FAILED: (DynamicLibraryError, f"created no {what}"),
    }
    return tables.create(owner, table, given, keep=None, failed=failed)
