# SPDX-License-Identifier: Apache-2.0
"""Inputs over the whole range of their types, and the comparison of results with the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from ferrule.graph import Array, DataType, Graph, TensorInfo
from ferrule.network.bounds import outside, run_bounded
from ferrule.operators.arithmetic.running_error import Bounded
from ferrule.operators.operator import OTHER_CODE, Arithmetic

_REFERENCES: WeakKeyDictionary[Graph, dict[tuple[object, ...], list[Bounded]]] = WeakKeyDictionary()
"""The results by graph, arithmetic and inputs; they end with their graph."""


def runs_of(graph: Graph, seed: int) -> Iterator[list[Array]]:
    """Yield inputs for one network: random values over the range of their types, all lowest, and all highest."""
    generator = np.random.default_rng(seed)
    yield [random_values(generator, info) for info in graph.inputs]
    for end in range(2):
        yield [np.full(info.shape, _ends(info.dtype)[end], info.dtype.numpy) for info in graph.inputs]


def random_inputs(graph: Graph, seed: int = 0) -> list[Array]:
    """Return one array per input, random over the whole range of its type, floats normal around zero."""
    return next(runs_of(graph, seed))


def graph_difference(
    graph: Graph, inputs: Sequence[Array], got: Sequence[Array], arithmetic: Arithmetic = OTHER_CODE
) -> str:
    """Return the difference between a graph's outputs and the reference's; "" if they agree.

    Integers must be equal, floats within the bound of each element for code with this arithmetic.
    """
    wanted = reference(graph, inputs, arithmetic)
    for info, one, other in zip(graph.outputs, got, wanted, strict=True):
        values = other.values
        if (one.shape, one.dtype) != (values.shape, values.dtype):
            return f"output '{info.name}' is {one.dtype}{list(one.shape)}, expected {values.dtype}{list(values.shape)}"
        wrong = outside(one, other)
        if wrong.any():
            where = tuple(int(index) for index in np.argwhere(wrong)[0])
            within = "" if other.error is None else f" within {other.error[where]:.3g}"
            return (
                f"output '{info.name}' differs in {int(wrong.sum())} of {wrong.size} elements: "
                f"at {list(where)} it is {one[where]}, expected {values[where]}{within}"
            )
    return ""


def reference(graph: Graph, inputs: Sequence[Array], arithmetic: Arithmetic = OTHER_CODE) -> list[Bounded]:
    """Return the outputs of the numpy kernels with the bounds of each element, not to be changed.

    For a frozen graph they are computed once per process and inputs, since each backend and face runs the same samples.
    """
    known = _REFERENCES.setdefault(graph, {}) if graph.is_frozen else {}
    key = (arithmetic, *((array.shape, array.dtype, array.tobytes()) for array in inputs))
    if key not in known:
        known[key] = run_bounded(graph, inputs, arithmetic=arithmetic)
    return known[key]


def random_values(generator: np.random.Generator, info: TensorInfo) -> Array:
    """Return random elements of a tensor: normally distributed floats, and any values of the other types."""
    if info.dtype.is_float:
        return generator.normal(0, 2, info.shape).astype(info.dtype.numpy)
    if info.dtype is DataType.BOOL:
        return generator.integers(0, 2, info.shape).astype(np.bool_)
    limits = np.iinfo(info.dtype.numpy)
    return generator.integers(limits.min, limits.max, info.shape, dtype=info.dtype.numpy, endpoint=True)


def _ends(dtype: DataType) -> tuple[float, float]:
    """Return the lowest and the highest value of a type, of floats those of a layer's usual inputs."""
    if dtype.is_float:
        return -8.0, 8.0
    if dtype is DataType.BOOL:
        return False, True
    limits = np.iinfo(dtype.numpy)
    return limits.min, limits.max
