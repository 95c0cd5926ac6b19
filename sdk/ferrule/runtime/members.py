# SPDX-License-Identifier: Apache-2.0
"""The backends that take part in one network, with the objects that each creates for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ferrule._frozen import frozen
from ferrule.backends.capability import ASYNC_EXECUTION, has_capability
from ferrule.backends.context import BackendProfilingContext
from ferrule.backends.device import BackendId
from ferrule.backends.guarded import guarded
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.host_memory import HostMemoryManager, HostTensorHandleFactory
from ferrule.backends.tensor_handle import FactoryId, MemoryManager, TensorHandleFactory
from ferrule.backends.workload import WorkloadFactory
from ferrule.runtime.admission import Admitted
from ferrule.runtime.errors import NetworkLoadError

PLAIN = FactoryId("Ferrule/Runtime")
"""The runtime's own factory, for tensors of backends without factories."""


@frozen
class Member:
    """One backend's part of a loaded network; the backend object itself is not kept."""

    asynchronous: bool
    workloads: WorkloadFactory | None


@frozen
class OwnedFactory:
    """A factory of tensor handles, and the manager of their memory."""

    factory: TensorHandleFactory
    manager: MemoryManager | None


class Members:
    """The backends of a network, and other backends whose tensor handle factories it uses."""

    def __init__(
        self,
        registry: BackendRegistry,
        admitted: Mapping[BackendId, Admitted],
        *,
        options: Mapping[str, ModelOptions],
    ) -> None:
        self._registry = registry
        self._admitted = admitted
        self._options = options
        self._members: dict[BackendId, Member] = {}
        plain = HostMemoryManager()
        self._factories = {PLAIN: OwnedFactory(factory=HostTensorHandleFactory(PLAIN, plain), manager=plain)}
        self.managers: list[MemoryManager] = [plain]
        """All memory managers of the network."""

    def join(self, backend_ids: Iterable[BackendId]) -> None:
        """Add backends that run a layer; NetworkLoadError if one cannot be used."""
        for backend_id in dict.fromkeys(backend_ids):
            if backend_id not in self._admitted:
                raise NetworkLoadError(
                    f"backend '{backend_id}' is not usable in this runtime",
                    hint="optimise the network with the runtime's own registry; runtime.backends has the reasons",
                )
            self._join(backend_id)

    def member(self, backend_id: BackendId) -> Member:
        """Return the part of a backend that has joined."""
        return self._members[backend_id]

    @property
    def profiling(self) -> dict[BackendId, BackendProfilingContext]:
        """The profiling of the backends that have joined."""
        known = ((key, self._admitted[key].profiling) for key in self._members)
        return {key: profiling for key, profiling in known if profiling is not None}

    def factory(self, factory_id: FactoryId | None) -> OwnedFactory:
        """Return a tensor handle factory; for None, the runtime's own.

        If the factory belongs to a backend that runs no layer, that backend joins. NetworkLoadError if no backend has
        the factory.
        """
        wanted = PLAIN if factory_id is None else factory_id
        for backend_id in self._admitted:
            if wanted in self._factories:
                break
            if backend_id not in self._members and self._offers(backend_id, wanted):
                self._join(backend_id)
        found = self._factories.get(wanted)
        if found is None:
            raise NetworkLoadError(f"no backend of this runtime has the tensor handle factory '{wanted}'")
        return found

    def _offers(self, backend_id: BackendId, factory_id: FactoryId) -> bool:
        backend = guarded(self._registry.create(backend_id))
        return any(factory.id == factory_id for factory in backend.tensor_handle_factories(None))

    def _join(self, backend_id: BackendId) -> None:
        backend = guarded(self._registry.create(backend_id))
        admitted = self._admitted[backend_id]
        manager = backend.memory_manager(admitted.allocator)
        if manager is not None:
            self.managers.append(manager)
        for factory in backend.tensor_handle_factories(manager):
            self._factories.setdefault(factory.id, OwnedFactory(factory=factory, manager=manager))
        self._members[backend_id] = Member(
            asynchronous=has_capability(backend.capabilities(), ASYNC_EXECUTION),
            workloads=backend.workload_factory_in(admitted, manager, self._options.get(backend_id, {})),
        )
