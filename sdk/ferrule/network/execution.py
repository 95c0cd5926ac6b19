# SPDX-License-Identifier: Apache-2.0
"""Runs a graph with the numpy kernels, the reference that every backend must match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ferrule.errors import InputError
from ferrule.graph import Array, Graph, Layer, TensorInfo
from ferrule.operators.interpreter import Observer, execute
from ferrule.operators.operator import Operands

_Given = TypeVar("_Given")


def operands_of(graph: Graph, layer: Layer) -> Operands:
    """Return the tensor infos of a layer's inputs and outputs."""
    return Operands.of(graph, layer)


def by_name(
    owner: str, infos: Sequence[TensorInfo], inputs: Sequence[_Given] | Mapping[str, _Given]
) -> dict[str, _Given]:
    """Return input arrays, given in order or by name, as a mapping by name, in order; `owner` is used in messages.

    Raises:
        InputError: an array is missing or unknown.
    """
    if not isinstance(inputs, Mapping):
        if len(inputs) != len(infos):
            raise InputError(
                f"{owner} got {len(inputs)} inputs, expected {len(infos)}",
                hint=f"give one array for each of: {_names(infos)}",
            )
        return {info.name: array for info, array in zip(infos, inputs, strict=True)}
    known = {info.name for info in infos}
    for name in inputs:
        if name not in known:
            raise InputError(f"{owner} has no input '{name}'", hint=f"its inputs: {_names(infos)}")
    for info in infos:
        if info.name not in inputs:
            raise InputError(f"input '{info.name}' is missing", hint=f"expected {info.dtype}{list(info.shape)}")
    return {info.name: inputs[info.name] for info in infos}


def check_inputs(graph: Graph, inputs: Sequence[Array] | Mapping[str, Array]) -> dict[str, Array]:
    """Return the checked arrays by tensor name.

    Raises:
        InputError: an array is missing, unknown, or of another shape or dtype than the graph's input.
    """
    arrays = by_name(f"network '{graph.name}'", graph.inputs, inputs)
    for info in graph.inputs:
        _check_array(info, arrays[info.name])
    return arrays


def run_graph(graph: Graph, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
    """Run any graph with the numpy kernels and return its outputs; raises InputError as `check_inputs` does.

    States have their initial values.
    """
    return run_stateful(graph, check_inputs(graph, inputs), initial_state(graph))


def initial_state(graph: Graph) -> dict[str, Array]:
    """Return the values of a graph's states after a reset, by name."""
    return {state.name: state.initial for state in graph.states}


def run_stateful(
    graph: Graph, arrays: Mapping[str, Array], state: dict[str, Array], observe: Observer | None = None
) -> list[Array]:
    """Run a graph on checked inputs and the values in `state`, update `state`, and return the outputs.

    If a layer fails, `state` keeps its values.
    """
    sources = dict(arrays) | {each.source: state[each.name] for each in graph.states}
    results = execute(graph, sources, observe)
    count = len(graph.outputs)
    state |= zip((each.name for each in graph.states), results[count:], strict=True)
    return results[:count]


def check_state(graph: Graph, state: Mapping[str, Array]) -> None:
    """Compare the values of a graph's states with their shapes and types.

    Raises:
        InputError: a value is missing, unknown, or of another shape or dtype.
    """
    names = [each.name for each in graph.states]
    if set(state) != set(names):
        raise InputError(
            f"network '{graph.name}' got the states {sorted(state)}, expected {sorted(names)}",
            hint="begin with network.initial_state()",
        )
    for each in graph.states:
        _check_array(replace(graph.info(each.source), name=each.name), state[each.name])


def _check_array(info: TensorInfo, array: Array) -> None:
    wanted = f"expected {info.dtype}{list(info.shape)}"
    if array.dtype != info.dtype.numpy:
        raise InputError(
            f"input '{info.name}' has dtype {array.dtype}, {wanted}",
            hint=f"convert it with .astype('{info.dtype}'), after quantising it if it holds real numbers",
        )
    if array.shape != info.shape:
        raise InputError(f"input '{info.name}' has shape {list(array.shape)}, {wanted}")


def _names(infos: Sequence[TensorInfo]) -> str:
    return ", ".join(f"'{info.name}' {info.dtype}{list(info.shape)}" for info in infos) or "none"
