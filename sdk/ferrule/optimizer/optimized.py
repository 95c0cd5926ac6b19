# SPDX-License-Identifier: Apache-2.0
"""What the optimizer returns: a graph whose every layer has a backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ferrule._typing import override
from ferrule.backends.device import BackendId, Device
from ferrule.backends.tensor_handle import FactoryId
from ferrule.graph import Graph, brief
from ferrule.optimizer.options import OptimizerOptions

FALLBACK_ENDING = "falling back to the next backend."
"""How messages end that say that a backend does not take a layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Who runs a layer."""

    backend: BackendId
    device: str
    """Name of the device instance."""


class EdgeStrategy(Enum):
    """How a layer gets at a tensor that another one wrote."""

    DIRECT = "direct"
    """It reads the writer's handle."""
    EXPORT = "export"
    """The writer's memory is imported into a handle of the reader's backend."""
    COPY = "copy"
    """The bytes are copied into a handle of the reader's backend."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimizedNetwork:
    """A graph, who runs each of its layers, and where its tensors are."""

    graph: Graph
    assignment: Mapping[str, Assignment]
    """By layer, every layer has one. DEBUG, MEM_COPY and MEM_IMPORT are run by the runtime itself, between the handles
    of these backends."""
    devices: tuple[Device, ...]
    """The device instances that are used, in the order of the preferences."""
    factories: Mapping[str, FactoryId | None]
    """By tensor, constants left out: who makes its handle. None where the backend has no factories: its workloads
    read and write plain memory of the process. Empty for firmware."""
    edges: Mapping[tuple[str, str], EdgeStrategy]
    """By tensor and reading layer, constants left out. What had to be copied or imported has a layer of its own, so
    these are DIRECT."""
    messages: tuple[str, ...]
    """Warnings: refusals, fallbacks and options that had no effect."""
    refusals: Mapping[tuple[str, BackendId], str]
    """By layer (of any stage of the graph) and backend: why that backend did not get it."""
    options: OptimizerOptions
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By layer that a backend put in: the layers whose place it took, alone or with others."""

    @override
    def __repr__(self) -> str:
        counts = Counter(given.backend for given in self.assignment.values())
        owners = ", ".join(f"{count} on {backend}" for backend, count in counts.items())
        return f"<OptimizedNetwork {brief(self.graph.name)}: {len(self.graph.layers)} layers, {owners}>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was asked and not given; that a backend does not take some layer is none."""
        return tuple(message for message in self.messages if not message.endswith(FALLBACK_ENDING))

    @property
    def backends(self) -> tuple[BackendId, ...]:
        """The backends that run a layer, in the order of the preferences."""
        return tuple(dict.fromkeys(device.backend for device in self.devices))
