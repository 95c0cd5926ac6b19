# SPDX-License-Identifier: Apache-2.0
"""Finds the tensors of a graph that share their bytes."""

from __future__ import annotations

from ferrule.graph import Graph
from ferrule.memory.request import Alias, AliasKind
from ferrule.operators.table import having


def views(graph: Graph) -> tuple[Alias, ...]:
    """Return an alias for each layer that only reinterprets the bytes of its input; such a layer needs no code."""
    return tuple(
        Alias(output=layer.outputs[0], input=layer.present_inputs[0], kind=AliasKind.VIEW)
        for layer in graph.layers
        if layer.type in having(view=True) and not graph.tensor(layer.present_inputs[0]).is_constant
    )
