# SPDX-License-Identifier: Apache-2.0
"""Runs a graph with the numpy kernels, with a bound beside each element of what other code may compute instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ferrule.graph import Array, Graph
from ferrule.network.execution import check_inputs, initial_state
from ferrule.operators.arithmetic import running_error
from ferrule.operators.arithmetic.running_error import Bounded
from ferrule.operators.operator import OTHER_CODE, Arithmetic


def initial_bounded(graph: Graph) -> dict[str, Bounded]:
    """Return the values of a graph's states after a reset, which are equal everywhere, by name."""
    return {name: Bounded(array) for name, array in initial_state(graph).items()}


def run_bounded(
    graph: Graph,
    inputs: Sequence[Array] | Mapping[str, Array],
    state: dict[str, Bounded] | None = None,
    arithmetic: Arithmetic = OTHER_CODE,
) -> list[Bounded]:
    """Return the outputs with their bounds, and update `state`; without one, states have their initial values.

    The bounds are those of code that computes as `arithmetic` says, and floats of every layer in any order.
    """
    known = initial_bounded(graph) if state is None else state
    sources = {name: Bounded(array) for name, array in check_inputs(graph, inputs).items()}
    sources |= {each.source: known[each.name] for each in graph.states}
    results = running_error.execute(graph, sources, arithmetic)
    count = len(graph.outputs)
    known |= zip((each.name for each in graph.states), results[count:], strict=True)
    return results[:count]


def outside(found: Array, wanted: Bounded) -> Array:
    """Return by element whether it is further from the kernels' value than its bound; a NaN is equal to a NaN.

    Elements without a bound, as those of integers, must be equal.
    """
    values = wanted.values
    same = found == values
    if values.dtype.kind == "f":
        same |= np.isnan(found) & np.isnan(values)
    if wanted.error is None:
        return np.asarray(~same)
    with np.errstate(invalid="ignore"):
        near = np.abs(found.astype(np.float64) - values.astype(np.float64)) <= wanted.error
    return np.asarray(~(same | (near & np.isfinite(wanted.error))))
