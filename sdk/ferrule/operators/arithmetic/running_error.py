# SPDX-License-Identifier: Apache-2.0
"""Runs a graph with the numpy kernels and, beside each tensor, bounds of what other code may compute instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule._frozen import frozen
from ferrule.graph import Array, Graph, Layer
from ferrule.operators import interpreter
from ferrule.operators.arithmetic.error_bound import monotone, or_infinite
from ferrule.operators.operator import OWN_CODE, Arithmetic, Evaluation, Operands


@frozen(eq=False, kw_only=False)
class Bounded:
    """The kernels' values of a tensor, and how far those of other code may be away."""

    values: Array
    error: Array | None = None
    """By element, as float64; infinity for unknown, None if all are equal."""


def execute(
    graph: Graph,
    sources: Mapping[str, Bounded],
    arithmetic: Arithmetic = OWN_CODE,
) -> list[Bounded]:
    """Run all layers and return the results, as `interpreter.execute` does, with their bounds."""

    def run(graph: Graph, layer: Layer, inputs: Sequence[Bounded | None]) -> list[Bounded]:
        return run_layer(graph, layer, inputs, arithmetic)

    return interpreter.walk(graph, sources, Bounded, run)


def run_layer(
    graph: Graph,
    layer: Layer,
    inputs: Sequence[Bounded | None],
    arithmetic: Arithmetic = OWN_CODE,
) -> list[Bounded]:
    """Return the outputs of one layer with their bounds."""
    arrays = [None if each is None else each.values for each in inputs]
    outputs = interpreter.run_layer(graph, layer, arrays)
    operator = interpreter.operator_of(layer.type)
    found = (operator.bound or monotone)(
        Evaluation(
            descriptor=layer.descriptor,
            operands=Operands.of(graph, layer),
            kernel=operator.kernel,
            inputs=arrays,
            errors=[None if each is None else each.error for each in inputs],
            outputs=outputs,
            arithmetic=arithmetic,
        )
    )
    bounds = [or_infinite(each) for each in found]
    return [Bounded(output, bound if bound.any() else None) for output, bound in zip(outputs, bounds, strict=True)]
