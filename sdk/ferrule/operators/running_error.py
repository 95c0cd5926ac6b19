# SPDX-License-Identifier: Apache-2.0
"""Runs a graph with the numpy kernels and, beside each tensor, bounds of what other code may compute instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.graph import Array, Graph, Layer
from ferrule.operators import interpreter
from ferrule.operators.error_bound import monotone
from ferrule.operators.operator import OWN_CODE, Arithmetic, Evaluation, Operands, Operator


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """The kernels' values of a tensor, and how far those of other code may be away."""

    values: Array
    error: Array | None = None
    """By element, as float64; infinity for unknown, None if all are equal."""


def execute(
    graph: Graph,
    sources: Mapping[str, Bounded],
    operator_of: interpreter.FindOperator,
    arithmetic: Arithmetic = OWN_CODE,
) -> list[Bounded]:
    """Run all layers and return the results, as `interpreter.execute` does, with their bounds."""

    def run(graph: Graph, layer: Layer, inputs: Sequence[Bounded | None]) -> list[Bounded]:
        arrays = [None if each is None else each.values for each in inputs]
        outputs = interpreter.run_layer(graph, layer, operator_of, arrays)
        errors = [None if each is None else each.error for each in inputs]
        bounds = bounds_of(
            operator_of(layer.type), layer, Operands.of(graph, layer), arrays, errors, outputs, arithmetic
        )
        return [Bounded(output, bound if bound.any() else None) for output, bound in zip(outputs, bounds, strict=True)]

    return interpreter.walk(graph, sources, Bounded, run)


def bounds_of(
    operator: Operator,
    layer: Layer,
    operands: Operands,
    inputs: Sequence[Array | None],
    errors: Sequence[Array | None],
    outputs: Sequence[Array],
    arithmetic: Arithmetic = OWN_CODE,
) -> list[Array]:
    """Return the bound of each output of a layer whose kernel gave `outputs`, by element."""
    bound = operator.bound or monotone
    found = bound(
        Evaluation(
            descriptor=layer.descriptor,
            operands=operands,
            kernel=operator.kernel,
            inputs=inputs,
            errors=errors,
            outputs=outputs,
            arithmetic=arithmetic,
        )
    )
    return [np.nan_to_num(each, nan=np.inf, posinf=np.inf) for each in found]
