# SPDX-License-Identifier: Apache-2.0
"""The only way to ask a backend: see `ferrule.backends.host_answers`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ferrule._typing import override
from ferrule.backends.backend import Backend, Policy
from ferrule.backends.capability import (
    Capabilities,
    CapabilityValue,
    declared_rules,
    firmware_float_options,
    subgraph_cost,
)
from ferrule.backends.context import (
    BackendContext,
    BackendProfilingContext,
    CreationOptions,
    CustomAllocator,
    RuntimePart,
)
from ferrule.backends.contract import answer_with, broken
from ferrule.backends.firmware import FirmwareTarget
from ferrule.backends.firmware_answers import guarded_target
from ferrule.backends.host_answers import (
    MOMENTS,
    Asker,
    GuardedContext,
    GuardedHandles,
    GuardedManager,
    GuardedProfiling,
    GuardedSupport,
    GuardedWorkloads,
    bare,
)
from ferrule.backends.optimization_views import ModelOptions, OptimizationViews
from ferrule.backends.option import BackendOption
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import FactoryId, MemoryManager
from ferrule.backends.workload import WorkloadFactory
from ferrule.graph import Rounding, SubgraphView

T = TypeVar("T")


def guarded(backend: Backend) -> Backend:
    """Return a backend whose calls, and the calls of all objects that it returns, are guarded and checked."""
    return backend if isinstance(backend, _Guarded) else _Guarded(backend)


class _Guarded(Backend):
    """Guards a `Backend`."""

    def __init__(self, backend: Backend) -> None:
        self._asker = Asker(backend, backend.id)
        vars(self)["id"] = backend.id  # a class variable of the interface, but each guard has another

    @override
    def layer_support(self) -> GuardedSupport:
        support = self._asker.ask("layer_support", object)
        answer_with(support, ("supports",), self.id, self._asker.question("layer_support"))
        return GuardedSupport(support, self.id, self._rules())

    @override
    def capabilities(self) -> Capabilities:
        found: Capabilities = self._asker.ask("capabilities", Mapping[str, CapabilityValue])
        self._read(found, subgraph_cost)
        self._read(found, firmware_float_options)
        return found

    def _rules(self) -> frozenset[Rounding]:
        return self._read(self.capabilities(), declared_rules)

    def _read(self, capabilities: Capabilities, reader: Callable[[Capabilities], T]) -> T:
        try:
            return reader(capabilities)
        except ValueError as error:
            raise broken(self.id, self._asker.question("capabilities"), capabilities, str(error)) from None

    @override
    def model_options(self) -> Sequence[BackendOption] | None:
        declared: Sequence[BackendOption] | None = self._asker.ask("model_options", Sequence[BackendOption] | None)
        return declared

    @override
    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        views: OptimizationViews = self._asker.ask("optimize_subgraph", OptimizationViews, view, target)
        return views

    @override
    def policy(self, target: Target) -> Policy:
        policy: Policy = self._asker.ask("policy", Policy, target)
        for name, least in (("least_layers", 1), ("least_macs", 0), ("macs_per_byte", 0)):
            value = getattr(policy, name)
            if not least <= value < math.inf:
                wrong = f"{name} is {value}, expected {least} or more"
                raise broken(self.id, self._asker.question("policy"), policy, wrong)
        return policy

    @override
    def use_custom_memory_allocator(self, allocator: CustomAllocator) -> str:
        return str(self._asker.ask("use_custom_memory_allocator", str, allocator))

    @override
    def profiling_context(self, options: CreationOptions) -> BackendProfilingContext | None:
        made = self._asker.helper("profiling_context", ("enable_profiling", "take_events"), options)
        return None if made is None else GuardedProfiling(made, self.id)

    @override
    def has_host_face(self) -> bool:
        return bool(self._asker.ask("has_host_face", bool))

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory | None:
        made = self._asker.helper("workload_factory", ("create_workload",), bare(memory), options)
        return None if made is None else GuardedWorkloads(made, self.id)

    @override
    def workload_factory_in(
        self, runtime: RuntimePart, memory: MemoryManager | None, options: ModelOptions
    ) -> WorkloadFactory | None:
        part = RuntimePart(context=bare(runtime.context), profiling=bare(runtime.profiling))
        made = self._asker.helper("workload_factory_in", ("create_workload",), part, bare(memory), options)
        return None if made is None else GuardedWorkloads(made, self.id)

    @override
    def memory_manager(self, allocator: CustomAllocator | None = None) -> MemoryManager | None:
        made = self._asker.helper("memory_manager", ("acquire", "release"), allocator)
        return None if made is None else GuardedManager(made, self.id)

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[GuardedHandles]:
        found = self._asker.ask("tensor_handle_factories", Sequence[object], bare(memory))
        return tuple(GuardedHandles(factory, self.id) for factory in found)

    @override
    def handle_factory_preferences(self) -> Sequence[FactoryId]:
        return tuple(self._asker.ask("handle_factory_preferences", Sequence[str]))

    @override
    def context(self, options: CreationOptions) -> BackendContext | None:
        made = self._asker.helper("context", MOMENTS, options)
        return None if made is None else GuardedContext(made, self.id)

    @override
    def firmware_target(self) -> FirmwareTarget | None:
        made = self._asker.helper("firmware_target", ("lower",))
        return None if made is None else guarded_target(made, self.id)
