# SPDX-License-Identifier: Apache-2.0
"""Finds the first layer at which a firmware differs from the reference, by making every tensor an output."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from ferrule.graph import Array, State, Tensor
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork
from ferrule.report.document import DifferencePart, LayerPart, Verdict
from ferrule.report.verdicts import Expected, judge


def observed_network(network: Network, optimized: OptimizedNetwork) -> Network:
    """Return the network with each tensor that the optimizer kept as an additional output."""
    known = {output for layer in network.layers for output in layer.outputs}
    names = [info.name for info in network.outputs]
    names += [
        output
        for layer in optimized.graph.layers
        for output in layer.outputs
        if output in known and output not in names
    ]
    made = Network(network.name)
    inputs = {info.name for info in network.inputs}
    states = {state.source: state for state in network.states}
    for tensor in network.tensors:
        _declare(made, tensor, inputs, states)
    for layer in network.layers:
        made.add_layer(layer, network.output_infos(layer))
    made.set_outputs(names)
    for state in network.states:
        made.set_state(state.name, state.result)
    return made


def first_difference(
    network: Network,
    optimized: OptimizedNetwork,
    layers: Sequence[LayerPart],
    runs: Iterable[tuple[Sequence[Array], Expected]],
) -> DifferencePart:
    """Return the first difference of the first run that differs, in the firmware's order of layers.

    `runs` has, per inference, all outputs of the firmware and all outputs of the reference.
    """
    names = [info.name for info in network.outputs]
    for outputs, expected in runs:
        for part in layers:
            for output in optimized.graph.layer(part.name).outputs:
                if output not in names:
                    continue
                index = names.index(output)
                verdict, extent = judge([outputs[index]], expected.at(index))
                if verdict is Verdict.DIFFERENT:
                    return DifferencePart(
                        layer=part.name,
                        type=part.type,
                        backend=part.backend,
                        device=part.device,
                        tensor=output,
                        max_difference=extent,
                    )
    return DifferencePart(note="with every tensor as an output the firmware agrees with the reference")


def _declare(network: Network, tensor: Tensor, inputs: Container[str], states: Mapping[str, State]) -> None:
    if tensor.data is not None:
        network.add_constant(tensor.info, tensor.data)
    elif tensor.info.name in inputs:
        network.add_input(tensor.info)
    elif tensor.info.name in states:
        state = states[tensor.info.name]
        network.add_state(tensor.info, state.initial, name=state.name)
