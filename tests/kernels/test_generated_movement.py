# SPDX-License-Identifier: Apache-2.0
"""Operators that move or combine elements, in generated C: one network of each, in every type."""

from __future__ import annotations

import pytest
from ckernels import run_native
from gate import every
from numpy.testing import assert_array_equal
from sample_networks import samples

from ferrule.graph import Graph, LayerType
from ferrule.network.copying import network_of
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc

TYPES = frozenset(
    {
        LayerType.ADD,
        LayerType.CONCATENATION,
        LayerType.EXPAND_DIMS,
        LayerType.LEAKY_RELU,
        LayerType.MAXIMUM,
        LayerType.MINIMUM,
        LayerType.MUL,
        LayerType.PAD,
        LayerType.PADV2,
        LayerType.PRELU,
        LayerType.RELU,
        LayerType.RELU6,
        LayerType.RELU_N1_TO_1,
        LayerType.RESHAPE,
        LayerType.SLICE,
        LayerType.SPLIT,
        LayerType.SQUEEZE,
        LayerType.STRIDED_SLICE,
        LayerType.SUB,
        LayerType.TRANSPOSE,
    }
)
REFUSED = {"relu_n1_to_1_int16", "prelu_int16"}
"""Cases that files can contain and no reference kernel supports."""
CASES = [graph for graph in samples() if graph.layers[0].type in TYPES and graph.name not in REFUSED]


@pytest.mark.parametrize("graph", every(6, CASES), ids=lambda graph: graph.name)
def test_generated_c_is_the_numpy_kernels(graph: Graph) -> None:
    network = network_of(graph)
    inputs = random_inputs(network)
    for got, wanted in zip(run_native(network, inputs), network.run(inputs), strict=True):
        assert_array_equal(got, wanted, strict=True)
