# SPDX-License-Identifier: Apache-2.0
"""A subgraph as a .tflite file for Vela, and which layer each of the file's operators is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.dense import with_convolutions
from ferrule.formats.tflite.operators import OPERATORS
from ferrule.formats.tflite.writer import to_tflite
from ferrule.graph import Graph, State, SubgraphView, TensorInfo, reset_value
from ferrule.graph.assembly import assemble
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS as KERNELS


@frozen
class ModelFile:
    """A subgraph as a file."""

    data: bytes
    layers: tuple[str, ...]
    """For each operator of the file, the layer that it is of."""
    owners: Mapping[str, str]
    """By the tensors that operators write: the layer; includes tensors that only the file has."""
    inputs: tuple[TensorInfo, ...]
    """The inputs of the file."""
    outputs: tuple[TensorInfo, ...]
    states: tuple[tuple[TensorInfo, TensorInfo], ...]
    """The tensors with the old and the new values of the states that operators keep, in the order of the operators."""


def model_file(view: SubgraphView) -> ModelFile:
    """Return a subgraph as a file, in which fully connected layers are convolutions.

    Raises:
        UnsupportedError: TensorFlow Lite cannot express a part of it.
    """
    states = _states(view)
    graph = _graph(view, states)
    data = to_tflite(with_convolutions(graph))
    names, owners = _owners(graph, data)
    return ModelFile(
        data=data,
        layers=names,
        owners=owners,
        inputs=tuple(graph.inputs),
        outputs=tuple(graph.outputs),
        states=tuple((view.info(state.source), view.info(state.result)) for state in states),
    )


def _states(view: SubgraphView) -> list[State]:
    """Return the states that operators of the subgraph keep; their values do not matter, as each run brings its own."""
    found = []
    for layer in view.layers:
        row = OPERATORS.get(layer.type)
        if row is None:
            continue
        if row.state_inputs or KERNELS[layer.type].states(layer.descriptor, Operands.of(view.graph, layer)):
            own = [each for each in view.graph.states if each.source in layer.inputs and each.result in layer.outputs]
            found += sorted(own, key=lambda state: layer.inputs.index(state.source))
    return [replace(state, initial=reset_value(view.info(state.source))) for state in found]


def _graph(view: SubgraphView, states: list[State]) -> Graph:
    kept = {name for state in states for name in (state.source, state.result)}
    names = (name for layer in view.layers for name in (*layer.present_inputs, *layer.outputs))
    return assemble(
        view.graph.name,
        inputs=[name for name in view.inputs if name not in kept],
        outputs=[name for name in view.outputs if name not in kept],
        layers=view.layers,
        tensors={name: view.graph.tensor(name) for name in view.graph.in_order(names)},
        states=states,
    )


def _owners(graph: Graph, data: bytes) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the layer of each operator, and that of each tensor that an operator writes.

    An operator that writes no tensor of the graph, such as a PAD before a convolution, is of the layer of its reader.
    """
    import tflite

    subgraph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    operators = [subgraph.Operators(index) for index in range(subgraph.OperatorsLength())]
    names = [subgraph.Tensors(index).Name().decode() for index in range(subgraph.TensorsLength())]
    owners = {name: layer.name for layer in graph.layers for name in layer.outputs}
    found: list[str] = []
    for operator in reversed(operators):
        outputs = [names[index] for index in operator.OutputsAsNumpy()]
        owner = next((owners[name] for name in outputs if name in owners), "")
        found.append(owner)
        read = [names[index] for index in operator.InputsAsNumpy() if index >= 0]
        written = {name for layer in graph.layers for name in layer.outputs}
        owners |= {name: owner for name in read if name not in owners and name not in written}
    return tuple(reversed(found)), owners
