# SPDX-License-Identifier: Apache-2.0
"""IF and WHILE, which call subgraphs; variables that these use become further inputs and outputs of the layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.row import MANY, Given, Row
from ferrule.formats.tflite.variables import Variable
from ferrule.graph import Descriptor, Graph, LayerType, State, Tensor, TensorInfo, assemble, reset_value
from ferrule.graph.names import UniqueNames
from ferrule.operators.control_flow import IfDescriptor, WhileDescriptor

_CONDITION = "condition"


def _calling(descriptor: type[Descriptor], table: str, inputs: range, **fields: str) -> Row:
    """Return the row of an operator whose options are numbers of subgraphs; each keyword is field=attribute."""

    def read(node: Node) -> Descriptor:
        options = node.options(table)
        graphs: dict[str, Any] = {name: node.subgraph(getattr(options, each), name) for each, name in fields.items()}
        return descriptor(**graphs, **({"limit": node.max_iterations} if descriptor is WhileDescriptor else {}))

    def number(name: str) -> Given:
        return lambda emitter, layer: emitter.subgraph(layer.descriptor.graphs[name])

    numbers = [(each, number(name)) for each, name in fields.items()]
    return Row(table, numbers, reader=read, data_inputs=range(MANY), inputs=inputs, outputs=range(MANY))


ROWS: Mapping[LayerType, Row] = {
    LayerType.IF: _calling(
        IfDescriptor,
        "IfOptions",
        range(1, MANY),
        then_subgraph_index="then_branch",
        else_subgraph_index="else_branch",
    ),
    LayerType.WHILE: _calling(
        WhileDescriptor, "WhileOptions", range(MANY), cond_subgraph_index=_CONDITION, body_subgraph_index="body"
    ),
}


@frozen
class Hoisted:
    """A descriptor whose graphs have no states, and the variables that its layer passes to them."""

    descriptor: Descriptor
    variables: Mapping[Variable, TensorInfo]
    """The further inputs of the layer, in order."""
    outputs: tuple[Variable, ...]
    """The further outputs, in order."""
    assigned: frozenset[Variable]
    """The variables that have new values afterwards."""


def hoisted(descriptor: Descriptor, identities: Mapping[int, Mapping[str, Variable]]) -> Hoisted:
    """Return a descriptor with the states of its graphs as inputs and outputs.

    `identities` has the variable of each state, by id of the graph and by name of the state.

    Raises:
        UnsupportedError: a condition assigns a variable, or a graph initialises one.
    """
    own = {
        name: {identities[id(graph)][state.name]: state for state in graph.states}
        for name, graph in descriptor.graphs.items()
    }
    variables: dict[Variable, TensorInfo] = {}
    for name, states in own.items():
        for variable, state in states.items():
            info = descriptor.graphs[name].info(state.source)
            variables.setdefault(variable, info)
            if not np.array_equal(state.initial, reset_value(info)):
                raise UnsupportedError(f"a subgraph initialises variable '{variable}', expected the model to do so")
    changed = {
        name: {variable for variable, state in states.items() if state.result != state.source}
        for name, states in own.items()
    }
    for variable in changed.get(_CONDITION, ()):
        raise UnsupportedError(f"the condition assigns variable '{variable}', expected it to only read variables")
    assigned = frozenset[Variable]().union(*changed.values())
    outputs = tuple(variable for variable in variables if _CONDITION in own or variable in assigned)
    if variables:
        graphs = {
            name: _without_states(graph, own[name], variables, () if name == _CONDITION else outputs)
            for name, graph in descriptor.graphs.items()
        }
        descriptor = descriptor.with_graphs(graphs)
    return Hoisted(descriptor=descriptor, variables=variables, outputs=outputs, assigned=assigned)


def _without_states(
    graph: Graph,
    states: Mapping[Variable, State],
    variables: Mapping[Variable, TensorInfo],
    outputs: tuple[Variable, ...],
) -> Graph:
    """Return a graph with an input for each variable, and an output for each of `outputs`."""
    tensors = {tensor.info.name: tensor for tensor in graph.tensors}
    places: dict[Variable, tuple[str, str]] = {}
    for variable, info in variables.items():
        state = states.get(variable)
        if state is not None:
            places[variable] = (state.source, state.result)
            continue
        name = UniqueNames(tensors).take(f"{str(variable) or info.name}_value")
        tensors[name] = Tensor(replace(info, name=name))
        places[variable] = (name, name)
    return assemble(
        graph.name,
        inputs=[*(info.name for info in graph.inputs), *(source for source, _ in places.values())],
        outputs=[*(info.name for info in graph.outputs), *(places[variable][1] for variable in outputs)],
        layers=graph.layers,
        tensors=tensors,
    )
