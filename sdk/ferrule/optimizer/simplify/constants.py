# SPDX-License-Identifier: Apache-2.0
"""Computes layers that read constants only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.graph import Graph, Layer, LayerType, Tensor
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.optimizer.simplify.draft import Draft

_KEPT = frozenset({LayerType.DEBUG, LayerType.MEM_COPY, LayerType.MEM_IMPORT, LayerType.PRE_COMPILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldConstants:
    """A layer all of whose inputs are constants is replaced by its outputs, as the numpy kernel computes them.

    Where the outputs take more memory than `growth` times the inputs, the layer stays: flash matters too.
    """

    name: str = "fold constants"
    growth: float = 4.0

    def run(self, graph: Graph) -> Graph:
        """Return the graph with those layers computed."""
        draft = Draft(graph)
        for layer in draft.layers():
            if layer.type not in _KEPT and self._folds(draft, layer):
                _fold(draft, layer)
        return draft.graph()

    def _folds(self, draft: Draft, layer: Layer) -> bool:
        names = layer.present_inputs
        if not names or not all(draft.tensor(name).is_constant for name in names):
            return False
        if any(draft.is_output(name) for name in layer.outputs):
            return False  # an output keeps a layer that writes it
        before = sum(draft.info(name).size_bytes for name in set(names))
        after = sum(draft.info(name).size_bytes for name in layer.outputs)
        return after <= self.growth * before


def _fold(draft: Draft, layer: Layer) -> None:
    operands = Operands(
        inputs=tuple(None if name is None else draft.info(name) for name in layer.inputs),
        outputs=tuple(draft.info(name) for name in layer.outputs),
    )
    arrays = [None if name is None else draft.tensor(name).data for name in layer.inputs]
    results = OPERATORS[layer.type].kernel(layer.descriptor, operands, arrays)
    draft.remove_layer(layer.name)
    for name, result in zip(layer.outputs, results, strict=True):
        data = np.ascontiguousarray(result)
        if data.flags.writeable:
            data.setflags(write=False)
        draft.make_constant(Tensor(info=draft.info(name), data=data))
