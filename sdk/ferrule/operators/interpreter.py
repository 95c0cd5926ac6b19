# SPDX-License-Identifier: Apache-2.0
"""Runs the layers of a graph, and of the graphs that layers call, with the numpy kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Array, Graph, Layer, LayerType
from ferrule.operators.operator import Arrays, Operands, Operator

Observer = Callable[[Layer, Sequence[Array]], None]
"""A function called after each layer with the layer and its output arrays, which it must not modify."""
_Value = TypeVar("_Value")


def operator_of(type_: LayerType) -> Operator:
    """Return the operator of a layer type; UnsupportedError if there is none."""
    from ferrule.operators.table import OPERATORS  # which has the rows of IF and WHILE, whose kernels run graphs

    operator = OPERATORS.get(type_)
    if operator is None:
        raise UnsupportedError(f"the operator {type_} is not supported")
    return operator


def macs_of(graph: Graph, layers: Iterable[Layer]) -> int:
    """Return the multiply-accumulates of some layers of a graph; operators without products count as zero."""
    return sum(operator_of(layer.type).macs(layer.descriptor, Operands.of(graph, layer)) for layer in layers)


def execute(graph: Graph, arrays: Mapping[str, Array], observe: Observer | None = None) -> list[Array]:
    """Run all layers and return the results: the outputs, then the states' new values.

    `arrays` has a checked array for each source of the graph. Each tensor is freed after its last reader.
    """

    def run(graph: Graph, layer: Layer, inputs: Arrays) -> list[Array]:
        made = run_layer(graph, layer, inputs)
        if observe is not None:
            observe(layer, made)
        return made

    return walk(graph, arrays, lambda data: data, run)


def walk(
    graph: Graph,
    sources: Mapping[str, _Value],
    constant: Callable[[Array], _Value],
    run: Callable[[Graph, Layer, Sequence[_Value | None]], list[_Value]],
) -> list[_Value]:
    """Run all layers with values of any kind, made of constants by `constant`, and return the results' values."""
    last_reader = last_readers(graph)
    live = {tensor.info.name: constant(tensor.data) for tensor in graph.tensors if tensor.data is not None}
    live |= sources
    for index, layer in enumerate(graph.layers):
        made = run(graph, layer, [None if name is None else live[name] for name in layer.inputs])
        live |= zip(layer.outputs, made, strict=True)
        for name in {*layer.present_inputs, *layer.outputs}:
            if last_reader[name] == index:
                del live[name]
    return [live[info.name] for info in graph.results]


def last_readers(graph: Graph) -> dict[str, int]:
    """Return, by tensor, the index of the last layer that reads or writes it; that behind the last one for results."""
    found: dict[str, int] = {}
    for index, layer in enumerate(graph.layers):
        found |= dict.fromkeys((*layer.present_inputs, *layer.outputs), index)
    return found | dict.fromkeys((info.name for info in graph.results), len(graph.layers))


def run_layer(graph: Graph, layer: Layer, arrays: Arrays) -> list[Array]:
    """Return the outputs of one layer; a FerruleError names the layer."""
    operands = Operands.of(graph, layer)
    try:
        operator = operator_of(layer.type)
        operator.check_rule(operands)
        results = operator.kernel(layer.descriptor, operands, arrays)
    except FerruleError as error:
        error.at(f"layer '{layer.name}' {layer.type}", str(layer.type))
        raise
    for info, result in zip(operands.outputs, results, strict=True):
        if result.shape != info.shape or result.dtype != info.dtype.numpy:
            raise RuntimeError(
                f"the kernel of layer '{layer.name}' gave {result.dtype}{list(result.shape)}, "
                f"expected {info.dtype}{list(info.shape)}"
            )
    return results
