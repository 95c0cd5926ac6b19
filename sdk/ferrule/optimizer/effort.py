# SPDX-License-Identifier: Apache-2.0
"""The work in a layer: its multiply-accumulates, and a rough time of the core for it, by which layers are ordered."""

from __future__ import annotations

from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.graph import Graph, Layer
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.timing.planned import Pace

LEAST_GAIN = 100
"""A change that is to save time must save one part in so many of a run, by estimates that are no better."""
_CYCLES_PER_MAC = 2
_CYCLES_PER_ELEMENT = 8
"""Rough figures for the core's int8 kernels on a Cortex-M."""


def macs(graph: Graph, layer: Layer) -> int:
    """Return a layer's multiply-accumulates; for a pre-compiled layer, the descriptor states them."""
    if isinstance(layer.descriptor, PreCompiledDescriptor):
        return layer.descriptor.macs
    operator = OPERATORS.get(layer.type)
    return 0 if operator is None else operator.macs(layer.descriptor, Operands.of(graph, layer))


def core_cycles(graph: Graph, layer: Layer, pace: Pace | None = None) -> int:
    """Return the estimated time on the core of a layer whose kernel is not known, in cycles; at least 1.

    `pace` has the core's own figures; None for rough ones of all cores.
    """
    elements = sum(info.elements for info in graph.output_infos(layer))
    if pace is not None:
        return pace.rough_cycles(macs(graph, layer), elements)
    return max(_CYCLES_PER_MAC * macs(graph, layer) + _CYCLES_PER_ELEMENT * elements, 1)
