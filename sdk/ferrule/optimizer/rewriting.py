# SPDX-License-Identifier: Apache-2.0
"""What passes that rewrite a graph share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ferrule.graph import Graph, Layer, Tensor, assemble


def tensors_of(graph: Graph) -> dict[str, Tensor]:
    """Return all tensors by name."""
    return {tensor.info.name: tensor for tensor in graph.tensors}


def output_names(graph: Graph) -> list[str]:
    """Return the names of what the graph hands out, in order."""
    return [info.name for info in graph.outputs]


def rebuilt(graph: Graph, layers: Iterable[Layer], tensors: Mapping[str, Tensor] | None = None) -> Graph:
    """Return a graph with the inputs and outputs of another and new layers; ModelError if they form a cycle."""
    return assemble(
        graph.name,
        inputs=[info.name for info in graph.inputs],
        outputs=output_names(graph),
        layers=layers,
        tensors=tensors_of(graph) if tensors is None else tensors,
    )


def with_inputs(layer: Layer, renamed: Mapping[str, str]) -> tuple[str | None, ...]:
    """Return a layer's inputs under their new names."""
    return tuple(None if name is None else renamed.get(name, name) for name in layer.inputs)
