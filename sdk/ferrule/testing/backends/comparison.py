# SPDX-License-Identifier: Apache-2.0
"""Inputs over the whole range of their types, and the tolerances for results against the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

import numpy as np

from ferrule.graph import Array, DataType, Graph, Layer, LayerType, TensorInfo
from ferrule.network.execution import run_graph
from ferrule.operators.activation import Activation

RELATIVE = 1e-5
"""Relative tolerance for float32; the absolute one is RELATIVE_FLOOR times the sum of the magnitudes added."""
RELATIVE_FLOOR = 1e-6
HALF_RELATIVE = 2.0**-10
"""Relative tolerance for float16: one step between adjacent values; the absolute one is one step around zero."""
HALF_FLOOR = 2.0**-24
_TRANSFORMS = frozenset({LayerType.SIGNAL_RFFT, LayerType.SIGNAL_IRFFT})
"""Layers whose results are sums of the whole last axis, of which the first has the largest sum of magnitudes."""
NETWORK_FLOOR = 1e-4
"""Tolerance for a float32 network, relative to the largest magnitude of an output, because errors propagate."""


def runs_of(graph: Graph, seed: int) -> Iterator[list[Array]]:
    """Yield inputs for one network: random values over the range of their types, all lowest, and all highest."""
    generator = np.random.default_rng(seed)
    yield [random_values(generator, info) for info in graph.inputs]
    yield [_full(info, highest=False) for info in graph.inputs]
    yield [_full(info, highest=True) for info in graph.inputs]


def random_inputs(graph: Graph, seed: int) -> list[Array]:
    """Return one array per input, random over the whole range of its type, floats normal around zero."""
    return next(runs_of(graph, seed))


def layer_difference(graph: Graph, inputs: Sequence[Array], got: Sequence[Array]) -> str:
    """Return the difference between a one-layer graph's outputs and the reference's; "" if they agree.

    Integers must be equal, floats within the tolerances of this module.
    """
    wanted = run_graph(graph, inputs)
    floors = _floors(graph, inputs, wanted)
    return _difference(graph, got, wanted, floors)


def network_difference(graph: Graph, inputs: Sequence[Array], got: Sequence[Array]) -> str:
    """Return the difference between a whole network's outputs and the reference's; "" if they agree."""
    wanted = run_graph(graph, inputs)
    floors = [
        np.asarray(NETWORK_FLOOR * np.nanmax(np.abs(array), initial=1.0) if array.dtype.kind == "f" else 0.0)
        for array in wanted
    ]
    return _difference(graph, got, wanted, floors)


def _difference(graph: Graph, got: Sequence[Array], wanted: Sequence[Array], floors: Sequence[Array]) -> str:
    for info, one, other, floor in zip(graph.outputs, got, wanted, floors, strict=True):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return f"output '{info.name}' is {one.dtype}{list(one.shape)}, expected {other.dtype}{list(other.shape)}"
        wrong = ~_near(one, other, floor) if info.dtype.is_float else one != other
        if wrong.any():
            where = tuple(int(index) for index in np.argwhere(wrong)[0])
            return (
                f"output '{info.name}' differs in {int(wrong.sum())} of {wrong.size} elements: "
                f"at {list(where)} it is {one[where]}, expected {other[where]}"
            )
    return ""


def _near(one: Array, other: Array, floor: Array) -> Array:
    relative = HALF_RELATIVE if one.dtype == np.float16 else RELATIVE
    wide, wanted = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(wide - wanted) <= relative * np.abs(wanted) + floor
    same: Array = near | (wide == wanted) | (np.isnan(wide) & np.isnan(wanted))
    return same


def _floors(graph: Graph, inputs: Sequence[Array], wanted: Sequence[Array]) -> list[Array]:
    if not any(info.dtype.is_float for info in graph.outputs):
        return [np.asarray(0.0) for _ in wanted]
    least = HALF_FLOOR if graph.outputs[0].dtype is DataType.FLOAT16 else RELATIVE_FLOOR
    magnitudes = _magnitudes(graph, inputs) if graph.inputs[0].dtype.is_float else wanted
    if graph.layers[0].type in _TRANSFORMS:
        magnitudes = [array.max(axis=-1, keepdims=True) for array in magnitudes]
    return [np.maximum(RELATIVE_FLOOR * np.abs(array.astype(np.float64)), least) for array in magnitudes]


def _magnitudes(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Return the layer's outputs for the magnitudes of all operands, without the activation."""
    (layer,) = graph.layers
    result = Graph("magnitudes")
    for tensor in graph.tensors:
        if tensor.data is not None:
            result.add_constant(tensor.info, np.abs(tensor.data))
    for info in graph.inputs:
        result.add_input(info)
    result.add_layer(_plain(layer), graph.output_infos(layer))
    result.set_outputs(layer.outputs)
    with np.errstate(all="ignore"):
        return run_graph(result, [np.abs(array) if array.dtype.kind in "fi" else array for array in inputs])


def _plain(layer: Layer) -> Layer:
    if not any(field.name == "activation" for field in fields(layer.descriptor)):
        return layer
    return replace(layer, descriptor=replace(layer.descriptor, activation=Activation.NONE))  # type: ignore[call-arg]


def random_values(generator: np.random.Generator, info: TensorInfo) -> Array:
    """Return random elements of a tensor: normally distributed floats, and any values of the other types."""
    if info.dtype.is_float:
        return generator.normal(0, 2, info.shape).astype(info.dtype.numpy)
    if info.dtype is DataType.BOOL:
        return generator.integers(0, 2, info.shape).astype(np.bool_)
    limits = np.iinfo(info.dtype.numpy)
    return generator.integers(limits.min, limits.max, info.shape, dtype=info.dtype.numpy, endpoint=True)


def _full(info: TensorInfo, *, highest: bool) -> Array:
    if info.dtype.is_float:
        return np.full(info.shape, 8.0 if highest else -8.0, info.dtype.numpy)
    if info.dtype is DataType.BOOL:
        return np.full(info.shape, highest, np.bool_)
    limits = np.iinfo(info.dtype.numpy)
    return np.full(info.shape, limits.max if highest else limits.min, info.dtype.numpy)
