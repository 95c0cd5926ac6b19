# SPDX-License-Identifier: Apache-2.0
"""The state of an optimisation: the graph and the decisions about its layers."""

from __future__ import annotations

from dataclasses import dataclass, field

from ferrule.backends.device import BackendId, Device
from ferrule.graph import Graph, Layer
from ferrule.optimizer.optimized import FALLBACK_ENDING, Assignment


@dataclass(slots=True, kw_only=True)
class Decisions:
    """A graph, the decisions made about its layers, and the reasons for them."""

    graph: Graph
    assignment: dict[str, Assignment] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    """Layers that were already offered to their backend for optimisation."""
    failed: dict[str, set[BackendId]] = field(default_factory=dict)
    """By layer: backends that reported support for it but later failed to optimise it, or refuse it by their policy."""
    refusals: dict[tuple[str, BackendId], str] = field(default_factory=dict)
    messages: dict[str, None] = field(default_factory=dict)
    """The messages as keys, in order and without repeats."""
    notes: dict[str, None] = field(default_factory=dict)
    """What was decided where no request decides, as keys in order."""
    replaced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By replacement layer: the layers that it replaced."""

    def give(self, layer: str, device: Device) -> None:
        """Assign a layer to a device and its backend."""
        self.assignment[layer] = Assignment.of(device)

    def layers_on(self, device: Device) -> list[str]:
        """Return the layers that are assigned to a device."""
        owner = Assignment.of(device)
        return [name for name, given in self.assignment.items() if given == owner]

    def warn(self, message: str) -> None:
        """Record a message unless it is already recorded."""
        self.messages[message] = None

    def refuse(self, layer: Layer, backend: BackendId, reason: str) -> None:
        """Record the reason why a layer is not assigned to a backend, and add a warning in Arm NN's wording."""
        self.refusals[layer.name, backend] = reason
        self.warn(
            f"layer '{layer.name}': Layer of type {layer.type} is not supported on requested backend {backend} "
            f"for input data type {_first_type(self.graph, layer.inputs)} "
            f"and output data type {_first_type(self.graph, layer.outputs)} "
            f"(reason: {reason}), {FALLBACK_ENDING}"
        )

    def replace_graph(self, graph: Graph) -> None:
        """Continue with another graph and drop the decisions about layers that it does not contain."""
        names = {layer.name for layer in graph.layers}
        self.graph = graph
        self.assignment = {name: given for name, given in self.assignment.items() if name in names}
        self.settled &= names


def _first_type(graph: Graph, tensors: tuple[str | None, ...]) -> str:
    return next((str(graph.info(name).dtype) for name in tensors[:1] if name is not None), "none")
