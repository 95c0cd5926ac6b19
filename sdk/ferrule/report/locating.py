# SPDX-License-Identifier: Apache-2.0
"""Finds the first layer at which a firmware differs from the reference, by making every tensor an output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferrule.graph import Array
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.optimizer import OptimizedNetwork
from ferrule.report.base import part_of
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
    made = network_of(network)
    made.set_outputs(names)
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
                    return part_of(DifferencePart, part, layer=part.name, tensor=output, max_difference=extent)
    return DifferencePart(note="with every tensor as an output the firmware agrees with the reference")
