# SPDX-License-Identifier: Apache-2.0
"""The result of the optimizer: a graph in which every layer is assigned to a backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.device import BackendId, Device
from ferrule.backends.tensor_handle import FactoryId, MemorySource
from ferrule.graph import Graph, brief
from ferrule.optimizer.options import OptimizerOptions

FALLBACK_ENDING = "falling back to the next backend."
"""The ending of every message that reports that a backend does not support a layer."""


@frozen
class Assignment:
    """The backend and the device assigned to a layer."""

    backend: BackendId
    device: str
    """Name of the device instance."""

    @staticmethod
    def of(device: Device) -> Assignment:
        """Return the assignment to a device and its backend."""
        return Assignment(backend=device.backend, device=device.name)


class EdgeStrategy(Enum):
    """How a layer accesses a tensor that another layer wrote."""

    DIRECT = "direct"
    """The layer reads the writer's handle."""
    EXPORT = "export"
    """The writer's memory is imported into a handle of the reader's backend."""
    FALLBACK_IMPORT = "fallback import"
    """The writer and the reader both import memory that the runtime allocates."""
    COPY = "copy"
    """The bytes are copied into a handle of the reader's backend."""


@frozen
class Crossing:
    """A tensor that passes from one backend to another on the host."""

    layer: str
    """The layer that the optimizer inserted."""
    tensor: str
    """The tensor as its writer knows it."""
    strategy: EdgeStrategy
    reason: str
    """The reason for this strategy."""
    size_bytes: int
    alignment_bytes: int
    """The alignment that memory imported by both ends needs; 1 for a copy between the backends' own memories."""
    memory: MemorySource
    """The kinds of memory that the ends import of the runtime; UNDEFINED if the runtime allocates none."""
    source_backend: BackendId | None
    """None for an input of the network."""
    source_factory: FactoryId | None
    """None for plain memory of the process."""
    target_backend: BackendId
    target_factory: FactoryId | None


@frozen(eq=False)
class OptimizedNetwork:
    """A graph with the backend and device of each layer and the handle factory of each tensor."""

    graph: Graph
    assignment: Mapping[str, Assignment]
    """By layer name, for every layer. The runtime itself runs DEBUG, MEM_COPY and MEM_IMPORT layers, on the handles of
    the backends given here; FALLBACK_IMPORT layers run on the backend that writes their input."""
    devices: tuple[Device, ...]
    """The device instances in use, in order of preference."""
    factories: Mapping[str, FactoryId | None]
    """By tensor, without constants: the factory that creates its handle. None if the backend has no factories, so its
    workloads read and write plain memory of the process. Empty for firmware."""
    messages: tuple[str, ...]
    """Warnings: refusals, fallbacks and options that had no effect."""
    refusals: Mapping[tuple[str, BackendId], str]
    """By layer (of the graph at any stage) and backend: the reason why the layer was not assigned to that backend."""
    options: OptimizerOptions
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By replacement layer: the layers that it replaced, alone or together with other layers."""
    notes: tuple[str, ...] = ()
    """Which subgraphs were divided so that others run beside a part, and which were not, though it seemed to pay."""
    crossings: tuple[Crossing, ...] = ()
    """The tensors that pass from one backend to another, in the order of the layers; empty for firmware."""

    @override
    def __repr__(self) -> str:
        counts = Counter(given.backend for given in self.assignment.values())
        owners = ", ".join(f"{count} on {backend}" for backend, count in counts.items())
        return f"<OptimizedNetwork {brief(self.graph.name)}: {len(self.graph.layers)} layers, {owners}>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """The messages about requests that were not met; a fallback to the next backend does not count as one."""
        return tuple(message for message in self.messages if not message.endswith(FALLBACK_ENDING))

    @property
    def backends(self) -> tuple[BackendId, ...]:
        """The backends that run at least one layer, in order of preference."""
        return tuple(dict.fromkeys(device.backend for device in self.devices))
