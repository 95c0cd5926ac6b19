# SPDX-License-Identifier: Apache-2.0
"""The table of operators: how each type of layer becomes functions of the library."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.codegen.acl import elementwise, movement, rearrangement, windows
from ferrule.codegen.acl.rows import Accuracy, Row
from ferrule.graph import Graph, Layer, LayerType

ROWS: Mapping[LayerType, Row] = {**windows.ROWS, **elementwise.ROWS, **movement.ROWS, **rearrangement.ROWS}
REASONS: Mapping[LayerType, str] = {**elementwise.REASONS, **movement.REASONS}


def accuracy(graph: Graph, layer: Layer) -> Accuracy:
    """Return how far the library's functions for a layer, whose type has a row, may be off."""
    found = ROWS[layer.type].accuracy
    return found if isinstance(found, Accuracy) else found(graph, layer)
