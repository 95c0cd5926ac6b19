# SPDX-License-Identifier: Apache-2.0
"""Finds the first layer at which a firmware differs from the reference, by making every tensor an output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferrule.graph import Array, Tensor
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork
from ferrule.report.compare import compare
from ferrule.report.document import DifferencePart, LayerPart, Verdict


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
    for tensor in network.tensors:
        _declare(made, tensor, {info.name for info in network.inputs})
    for layer in network.layers:
        made.add_layer(layer, network.output_infos(layer))
    made.set_outputs(names)
    return made


def first_difference(
    network: Network,
    optimized: OptimizedNetwork,
    layers: Sequence[LayerPart],
    runs: Iterable[tuple[Sequence[Array], Sequence[Array]]],
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
                verdict, extent = compare([outputs[index]], [expected[index]])
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


def _declare(network: Network, tensor: Tensor, inputs: set[str]) -> None:
    if tensor.data is not None:
        network.add_constant(tensor.info, tensor.data)
    elif tensor.info.name in inputs:
        network.add_input(tensor.info)
