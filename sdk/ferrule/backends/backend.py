# SPDX-License-Identifier: Apache-2.0
"""What a backend is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ferrule.backends.capability import Capabilities
from ferrule.backends.context import (
    BackendContext,
    BackendProfilingContext,
    CreationOptions,
    CustomAllocator,
    RuntimePart,
)
from ferrule.backends.device import BackendId
from ferrule.backends.firmware import FirmwareTarget
from ferrule.backends.optimization_views import ModelOptions, OptimizationViews, untouched
from ferrule.backends.option import BackendOption
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import FactoryId, MemoryManager, TensorHandleFactory
from ferrule.backends.workload import WorkloadFactory
from ferrule.graph import Graph, Layer, SubgraphView


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Whether a backend takes a layer, and why not."""

    reason: str = ""
    """Empty if it takes the layer; else which tensor, type or parameter it refuses."""

    def __bool__(self) -> bool:
        return not self.reason


class LayerSupport(Protocol):
    """A backend's answer to "may I give you this layer?"."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether the backend can run the layer of that graph on the target's device."""
        ...


class Backend(ABC):
    """A lightweight, stateless factory; nothing may depend on the lifetime of a backend object.

    It is made and dropped many times: once per question. A backend has a host face (workloads), a firmware face
    (a firmware target), or both; the methods of a face that it lacks return None or nothing, as they do here.
    """

    id: ClassVar[BackendId]

    @abstractmethod
    def layer_support(self) -> LayerSupport:
        """Return who knows which layers this backend takes."""

    def capabilities(self) -> Capabilities:
        """Return what it can do besides running layers."""
        return {}

    def model_options(self) -> Sequence[BackendOption] | None:
        """Return the options that users may give it with a model; others are refused. None takes whatever comes."""
        return ()

    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        """Return what becomes of a subgraph all of whose layers this backend takes on the target's device."""
        del target
        return untouched(view)

    def use_custom_memory_allocator(self, allocator: CustomAllocator) -> str:
        """Return "" if the backend takes its memory from `allocator`, else why it does not."""
        del allocator
        return f"{self.id} has no custom allocators"

    def profiling_context(self, options: CreationOptions) -> BackendProfilingContext | None:
        """Return the backend's own profiling for a new runtime, if it has any."""
        del options
        return None

    # ---- host face

    def has_host_face(self) -> bool:
        """Whether it runs layers on the host."""
        return type(self).workload_factory is not Backend.workload_factory

    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory | None:
        """Return what makes workloads for one loaded network, with the manager that `memory_manager` gave for it."""
        del memory, options
        return None

    def workload_factory_in(
        self, runtime: RuntimePart, memory: MemoryManager | None, options: ModelOptions
    ) -> WorkloadFactory | None:
        """Return `workload_factory` for a network of a runtime: what a backend overrides that needs its context there.

        It still has to have a `workload_factory`, for workloads outside of a runtime.
        """
        del runtime
        return self.workload_factory(memory, options)

    def memory_manager(self, allocator: CustomAllocator | None = None) -> MemoryManager | None:
        """Return a new owner of the memory of one loaded network; None if its factories own what they make."""
        del allocator
        return None

    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
        """Return its factories, the preferred one first; the ids are the same for every manager."""
        del memory
        return ()

    def handle_factory_preferences(self) -> Sequence[FactoryId]:
        """Return ids of the factories that its workloads can read from and write to, the preferred one first."""
        return tuple(factory.id for factory in self.tensor_handle_factories(None))

    def context(self, options: CreationOptions) -> BackendContext | None:
        """Return the backend's part of a new runtime, if it wants to be told of loads.

        Raises:
            BackendUnavailableError: the backend cannot work here; the runtime goes on without it.
        """
        del options
        return None

    # ---- firmware face

    def firmware_target(self) -> FirmwareTarget | None:
        """Return how its layers become C; None if it runs on the host only."""
        return None
