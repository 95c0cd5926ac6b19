# SPDX-License-Identifier: Apache-2.0
"""The interface of a backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Protocol

from ferrule._frozen import frozen, positional
from ferrule.backends.capability import Capabilities
from ferrule.backends.conforming import at_least
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


@positional
class Support:
    """Whether a backend supports a layer, and the reason if it does not."""

    reason: str = ""
    """Empty if the backend supports the layer; otherwise names the tensor, type or parameter that it refuses."""

    def __bool__(self) -> bool:
        return not self.reason


@frozen
class Policy:
    """The smallest subgraphs that are worth running on a device; by default, all of them are."""

    least_layers: Annotated[int, at_least(1)] = 1
    """Layers of a connected subgraph."""
    least_macs: Annotated[int, at_least(0)] = 0
    """Its multiply-accumulates."""
    macs_per_byte: Annotated[float, at_least(0)] = 0.0
    """The cost of moving one byte of its inputs and outputs to or from the device, in multiply-accumulates of the
    subgraph: with 20.0, a subgraph that moves 100 B is worth it from 2,000 MACs on."""

    @classmethod
    def of(cls, options: ModelOptions) -> Policy:
        """Return the policy that users set by the options of the fields' names; see `model_options`."""
        return cls(**{name: options[name] for name in _POLICY if name in options})  # type: ignore[arg-type]

    def model_options(self) -> tuple[BackendOption, ...]:
        """Return options with which users of a backend set its policy, with these defaults."""
        defaults = replace(self, macs_per_byte=float(self.macs_per_byte))
        return tuple(
            BackendOption(
                name=name, default=getattr(defaults, name), lowest=lowest, meaning=meaning, host=True, firmware=True
            )
            for name, (lowest, meaning) in _POLICY.items()
        )


_POLICY: Mapping[str, tuple[int, str]] = {
    "least_layers": (1, "layers of the smallest subgraph that is worth it"),
    "least_macs": (0, "multiply-accumulates of the smallest subgraph that is worth it"),
    "macs_per_byte": (0, "multiply-accumulates for each byte moved, from which on a subgraph is worth it"),
}
"""The lowest value and the meaning of the option for each field of a policy."""


class LayerSupport(Protocol):
    """Answers which layers a backend supports."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether the backend can run `layer` of `graph` on the target's device."""
        ...


class Backend(ABC):
    """A lightweight, stateless factory; nothing may depend on the lifetime of a backend object.

    A backend object may be created and dropped for every single call. A backend has a host face (workloads), a
    firmware face (a firmware target), or both; the methods of a missing face return None or an empty sequence, as the
    defaults here do.
    """

    id: ClassVar[BackendId]

    @abstractmethod
    def layer_support(self) -> LayerSupport:
        """Return the object that answers which layers this backend supports."""

    def capabilities(self) -> Capabilities:
        """Return the features that the backend has besides running layers."""
        return {}

    def model_options(self) -> Sequence[BackendOption] | None:
        """Return the options that users may set for a model; others are refused. None accepts any option."""
        return ()

    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        """Return the rewriting of a subgraph; the backend supports each of its layers on the target's device."""
        del target
        return untouched(view)

    def policy(self, target: Target) -> Policy:
        """Return which subgraphs are worth running on the target's device; the others go to the next backends."""
        del target
        return Policy()

    def use_custom_memory_allocator(self, allocator: CustomAllocator) -> str:
        """Return "" if the backend will take its memory from `allocator`, otherwise the reason why it will not."""
        del allocator
        return f"{self.id} has no custom allocators"

    def profiling_context(self, options: CreationOptions) -> BackendProfilingContext | None:
        """Return the backend's profiling context for a new runtime; None if it has no profiling."""
        del options
        return None

    # ---- host face

    def has_host_face(self) -> bool:
        """Whether the backend runs layers on the host."""
        return type(self).workload_factory is not Backend.workload_factory

    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory | None:
        """Return the workload factory for one loaded network; `memory` is what `memory_manager` returned for it."""
        del memory, options
        return None

    def workload_factory_in(
        self, runtime: RuntimePart, memory: MemoryManager | None, options: ModelOptions
    ) -> WorkloadFactory | None:
        """Return the workload factory for a network that a runtime loads; override it to use the runtime's context.

        A backend that overrides this method must still define `workload_factory`, for workloads outside a runtime.
        """
        del runtime
        return self.workload_factory(memory, options)

    def memory_manager(self, allocator: CustomAllocator | None = None) -> MemoryManager | None:
        """Return a new memory manager for one loaded network; None if each tensor handle owns its memory."""
        del allocator
        return None

    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
        """Return the tensor handle factories, the preferred one first; their ids do not depend on `memory`."""
        del memory
        return ()

    def handle_factory_preferences(self) -> Sequence[FactoryId]:
        """Return the ids of the factories whose handles its workloads can read and write, the preferred one first."""
        return tuple(factory.id for factory in self.tensor_handle_factories(None))

    def context(self, options: CreationOptions) -> BackendContext | None:
        """Return the backend's context in a new runtime, which is notified of loads; None if it needs none.

        Raises:
            BackendUnavailableError: the backend cannot work on this machine; the runtime continues without it.
        """
        del options
        return None

    # ---- firmware face

    def firmware_target(self) -> FirmwareTarget | None:
        """Return the object that lowers layers to C; None if the backend runs on the host only."""
        return None
