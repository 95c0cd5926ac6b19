# SPDX-License-Identifier: Apache-2.0
"""What has been decided about a network while it is being optimised."""

from __future__ import annotations

from dataclasses import dataclass, field

from ferrule.backends.device import BackendId, Device
from ferrule.graph import Graph, Layer
from ferrule.optimizer.optimized import FALLBACK_ENDING, Assignment


@dataclass(slots=True, kw_only=True)
class Decisions:
    """A graph, what has been decided about its layers so far, and why."""

    graph: Graph
    assignment: dict[str, Assignment] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    """Layers that their backend has had the chance to optimise."""
    failed: dict[str, set[BackendId]] = field(default_factory=dict)
    """By layer: backends that took it at first and then could not run it after all."""
    refusals: dict[tuple[str, BackendId], str] = field(default_factory=dict)
    messages: dict[str, None] = field(default_factory=dict)
    """Each once, in order."""
    replaced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By layer that a backend put in: the layers whose place it took."""

    def give(self, layer: str, device: Device) -> None:
        """Assign a layer."""
        self.assignment[layer] = Assignment(backend=device.backend, device=device.name)

    def warn(self, message: str) -> None:
        """Record a message, once."""
        self.messages[message] = None

    def refuse(self, layer: Layer, backend: BackendId, reason: str) -> None:
        """Record why a backend does not get a layer, in Arm NN's words."""
        self.refusals[layer.name, backend] = reason
        self.warn(
            f"layer '{layer.name}': Layer of type {layer.type} is not supported on requested backend {backend} "
            f"for input data type {_first_type(self.graph, layer.inputs)} "
            f"and output data type {_first_type(self.graph, layer.outputs)} "
            f"(reason: {reason}), {FALLBACK_ENDING}"
        )

    def replace_graph(self, graph: Graph) -> None:
        """Go on with another graph and forget what was decided about layers that it lacks."""
        names = {layer.name for layer in graph.layers}
        self.graph = graph
        self.assignment = {name: given for name, given in self.assignment.items() if name in names}
        self.settled &= names


def _first_type(graph: Graph, tensors: tuple[str | None, ...]) -> str:
    return next((str(graph.info(name).dtype) for name in tensors[:1] if name is not None), "none")
