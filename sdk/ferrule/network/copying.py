# SPDX-License-Identifier: Apache-2.0
"""Turns graphs into networks."""

from __future__ import annotations

from ferrule.graph import Graph
from ferrule.network.network import Network


def network_of(graph: Graph) -> Network:
    """Return a graph as a network, with its name, states and outputs."""
    network = Network(graph.name)
    for info in graph.inputs:
        network.add_input(info)
    for state in graph.states:
        network.add_state(graph.info(state.source), state.initial, name=state.name)
    for tensor in graph.tensors:
        if tensor.data is not None:
            network.add_constant(tensor.info, tensor.data)
    for layer in graph.layers:
        network.add_layer(layer, graph.output_infos(layer))
    network.set_outputs(info.name for info in graph.outputs)
    for state in graph.states:
        network.set_state(state.name, state.result)
    return network
