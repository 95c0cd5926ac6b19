# SPDX-License-Identifier: Apache-2.0
"""Look-up tables of 8 bits: those of a stream beside the reference's.

A table has an entry for each input of its layer, of which random inputs reach only some. So the entries are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ferrule.graph import DataType, Layer, LayerType, SubgraphView
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS

TABULATED = frozenset(
    {
        LayerType.ELU,
        LayerType.HARD_SWISH,
        LayerType.LEAKY_RELU,
        LayerType.LOGISTIC,
        LayerType.RSQRT,
        LayerType.TANH,
    }
)
"""The layers whose int8 results Vela 5.2 looks up in a table that has an entry for each input."""
_EVERY_INT8 = np.arange(-128, 128, dtype=np.int8)


def has_tables(view: SubgraphView) -> bool:
    """Return whether a subgraph has layers whose results are looked up in a table of 8 bits."""
    return any(_is_tabulated(view, layer) for layer in view.layers)


def wrong_tables(view: SubgraphView, tables: Iterable[bytes]) -> Mapping[str, str]:
    """Return the layers whose table is not among those of the stream, each with what is wrong with the nearest one.

    `tables` are those of 8 bits. One that belongs to a layer is that of no other layer, unless both have equal ones.
    """
    wanted = {layer.name: _reference(view, layer) for layer in view.layers if _is_tabulated(view, layer)}
    found = [np.frombuffer(table, np.int8) for table in tables]
    others = [table for table in found if not any(np.array_equal(table, each) for each in wanted.values())]
    reasons: dict[str, str] = {}
    for name, table in wanted.items():
        if others and not any(np.array_equal(table, each) for each in found):
            errors = min((np.abs(table.astype(int) - each) for each in others), key=np.count_nonzero)
            reasons[name] = (
                f"the table that Vela compiles for it differs from the reference in {np.count_nonzero(errors)} of 256 "
                f"entries, by up to {errors.max()}"
            )
    return reasons


def _is_tabulated(view: SubgraphView, layer: Layer) -> bool:
    types = {view.info(name).dtype for name in (layer.present_inputs[0], layer.outputs[0])}
    return layer.type in TABULATED and types == {DataType.INT8}


def _reference(view: SubgraphView, layer: Layer) -> NDArray[np.int8]:
    """Return the reference's outputs of a layer for the inputs -128 to 127."""
    operands = Operands.of(view.graph, layer)
    source, output = (replace(info, shape=_EVERY_INT8.shape) for info in (operands.source, operands.output))
    every = replace(operands, inputs=(source,), outputs=(output,))
    (table,) = OPERATORS[layer.type].kernel(layer.descriptor, every, [_EVERY_INT8])
    return np.asarray(table, np.int8)
