# SPDX-License-Identifier: Apache-2.0
"""Which tensors of a graph share their bytes."""

from __future__ import annotations

from ferrule.graph import Graph, LayerType
from ferrule.memory.request import Alias, AliasKind

VIEW_TYPES = frozenset({LayerType.RESHAPE, LayerType.SQUEEZE, LayerType.EXPAND_DIMS})
"""The layers whose output has the bytes of their first input."""


def views(graph: Graph) -> tuple[Alias, ...]:
    """Return an alias for each layer that only renames bytes; such a layer needs no code."""
    return tuple(
        Alias(output=layer.outputs[0], input=layer.present_inputs[0], kind=AliasKind.VIEW)
        for layer in graph.layers
        if layer.type in VIEW_TYPES and not graph.tensor(layer.present_inputs[0]).is_constant
    )
