# SPDX-License-Identifier: Apache-2.0
"""What the outputs of a firmware, or of the host, are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ferrule.graph import Graph
from ferrule.network import Network
from ferrule.network.bounds import initial_bounded, run_bounded
from ferrule.network.samples import Sample
from ferrule.report.compare import Expected


def has_floats(graph: Graph) -> bool:
    """Return whether a tensor of a graph, or of a graph that a layer calls, is of a float type."""
    return any(tensor.info.dtype.is_float for tensor in graph.tensors) or any(
        has_floats(inner) for layer in graph.layers for inner in layer.descriptor.graphs.values()
    )


def references(network: Network, samples: Iterable[Sample], begins: Sequence[bool]) -> Iterator[Expected]:
    """Yield what numpy computes for each sample, with the state of the one before; with the bounds of floats."""
    floats = has_floats(network)
    state, bounded = network.initial_state(), initial_bounded(network)
    for sample, begin in zip(samples, begins, strict=True):
        if begin:
            state, bounded = network.initial_state(), initial_bounded(network)
        if floats:
            yield Expected.of(run_bounded(network, sample, bounded))
        else:
            yield Expected(network.run(sample, state=state))
