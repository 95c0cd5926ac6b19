# SPDX-License-Identifier: Apache-2.0
"""IF and WHILE, which call subgraphs; variables that these use become further inputs and outputs of the layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.encoder import Options
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.row import MANY, Row
from ferrule.formats.tflite.variables import Variable
from ferrule.graph import Descriptor, Graph, Layer, LayerType, State, Tensor, TensorInfo, assemble, reset_value
from ferrule.operators.control_flow import IfDescriptor, WhileDescriptor

_CONDITION = "condition"


def read_if(node: Node) -> IfDescriptor:
    """Return the descriptor of an IF; its graphs may have states."""
    options = node.options("IfOptions")
    return IfDescriptor(
        then_branch=node.subgraph(options.ThenSubgraphIndex(), "then_branch"),
        else_branch=node.subgraph(options.ElseSubgraphIndex(), "else_branch"),
    )


def read_while(node: Node) -> WhileDescriptor:
    """Return the descriptor of a WHILE; its graphs may have states."""
    options = node.options("WhileOptions")
    return WhileDescriptor(
        condition=node.subgraph(options.CondSubgraphIndex(), _CONDITION),
        body=node.subgraph(options.BodySubgraphIndex(), "body"),
        limit=node.max_iterations,
    )


def _write_if(emitter: Emitter, layer: Layer, descriptor: IfDescriptor) -> None:
    numbers = {
        "ThenSubgraphIndex": emitter.subgraph(descriptor.then_branch),
        "ElseSubgraphIndex": emitter.subgraph(descriptor.else_branch),
    }
    emitter.emit(layer, Options(table="IfOptions", fields=numbers))


def _write_while(emitter: Emitter, layer: Layer, descriptor: WhileDescriptor) -> None:
    numbers = {
        "CondSubgraphIndex": emitter.subgraph(descriptor.condition),
        "BodySubgraphIndex": emitter.subgraph(descriptor.body),
    }
    emitter.emit(layer, Options(table="WhileOptions", fields=numbers))


ROWS: Mapping[LayerType, Row] = {
    LayerType.IF: Row(
        read=read_if, write=_write_if, data_inputs=range(MANY), inputs=range(1, MANY), outputs=range(MANY)
    ),
    LayerType.WHILE: Row(
        read=read_while, write=_write_while, data_inputs=range(MANY), inputs=range(MANY), outputs=range(MANY)
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
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
        name: {identities[id(graph)][state.name]: (graph, state) for state in graph.states}
        for name, graph in descriptor.graphs.items()
    }
    variables: dict[Variable, TensorInfo] = {}
    for states in own.values():
        for variable, (graph, state) in states.items():
            info = graph.info(state.source)
            variables.setdefault(variable, info)
            if not np.array_equal(state.initial, reset_value(info)):
                raise UnsupportedError(f"a subgraph initialises variable '{variable}', expected the model to do so")
    assigned = frozenset(
        variable for states in own.values() for variable, (_, state) in states.items() if state.result != state.source
    )
    for variable, (_, state) in own.get(_CONDITION, {}).items():
        if state.result != state.source:
            raise UnsupportedError(f"the condition assigns variable '{variable}', expected it to only read variables")
    is_loop = _CONDITION in own
    outputs = tuple(variable for variable in variables if is_loop or variable in assigned)
    if not variables:
        return Hoisted(descriptor=descriptor, variables={}, outputs=(), assigned=frozenset())
    graphs = {
        name: _without_states(
            graph,
            {variable: state for variable, (_, state) in own[name].items()},
            variables,
            () if name == _CONDITION else outputs,
        )
        for name, graph in descriptor.graphs.items()
    }
    return Hoisted(
        descriptor=descriptor.with_graphs(graphs),
        variables=variables,
        outputs=outputs,
        assigned=assigned,
    )


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
        name, number = f"{str(variable) or info.name}_value", 1
        while name in tensors:
            number += 1
            name = f"{str(variable) or info.name}_value_{number}"
        tensors[name] = Tensor(info=replace(info, name=name))
        places[variable] = (name, name)
    return assemble(
        graph.name,
        inputs=[*(info.name for info in graph.inputs), *(source for source, _ in places.values())],
        outputs=[*(info.name for info in graph.outputs), *(places[variable][1] for variable in outputs)],
        layers=graph.layers,
        tensors=tensors,
    )
