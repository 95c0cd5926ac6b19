# SPDX-License-Identifier: Apache-2.0
"""Every operator with every choice of the inputs that are constants: what is accepted, also from a file, runs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ferrule.backends.cpu_acc.backend import CpuAcc, CpuAccSupport
from ferrule.backends.target import default_target
from ferrule.errors import FerruleError
from ferrule.formats import load, to_tflite
from ferrule.graph import DataType, Graph, LayerType
from ferrule.network.execution import run_graph
from ferrule.testing.backends.comparison import graph_difference, random_inputs
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case, placements
from ferrule.testing.backends.layers import refusal_of_reference
from ferrule.testing.backends.loaded_layer import LoadedLayer

_OUT_OF_RANGE = ("its indices contain", "it takes begin")
"""What the reader says of constants that are drawn at random where the sample has indices from run time."""
TARGET = default_target(CpuAcc.id)
_NO_C = frozenset({LayerType.CONVERT_FP16_TO_FP32, LayerType.CONVERT_FP32_TO_FP16})
"""Layers that the optimizer adds for float16, which no file has."""


def check(type_: LayerType, seeds: Iterable[int]) -> int:
    """Check the placements of a type, and return how many were run."""
    count = 0
    for dtype in DataType:
        if dtype is DataType.FLOAT16:
            continue
        for seed in seeds:
            for graph in placements(layer_case(type_, dtype, seed)):
                refusal = refusal_of_reference(graph)
                reason = CpuAccSupport().supports(graph, graph.layers[0], TARGET).reason
                if refusal:
                    assert refusal.endswith(reason), f"{graph.name}: {refusal}, and {reason}"
                    continue
                assert not reason, f"{graph.name}: {reason}"
                run(graph)
                read_again(graph)
                count += 1
    return count


def run(graph: Graph) -> None:
    """Check the results of a layer's C on this machine, twice, with other inputs in the same memory."""
    loaded = LoadedLayer(CpuAcc(), graph, {})
    loaded.acquire()
    try:
        for seed in range(2):
            inputs = random_inputs(graph, seed)
            wrong = graph_difference(graph, inputs, loaded.run(inputs))
            assert not wrong, f"{graph.name}: {wrong}"
    finally:
        loaded.release()


def read_again(graph: Graph) -> None:
    """Check that the reader accepts the layer in a file, and gives the same results, if the format can state it."""
    try:
        data = to_tflite(graph)
    except FerruleError:
        return
    try:
        network = load(data)
    except FerruleError as error:
        if any(part in str(error) for part in _OUT_OF_RANGE):
            return
        raise AssertionError(f"{graph.name}: the reader refuses what the operator accepts: {error}") from error
    inputs = random_inputs(graph, 5)
    if network.states or len(network.inputs) != len(graph.inputs):
        return
    for one, other in zip(network.run(inputs), run_graph(graph, inputs), strict=True):
        assert one.tobytes() == other.tobytes(), graph.name


@pytest.mark.parametrize("type_", [type_ for type_ in LAYER_TYPES if type_ not in _NO_C], ids=str)
def test_what_is_accepted_runs(type_: LayerType) -> None:
    assert check(type_, range(1))


@pytest.mark.nightly
@pytest.mark.parametrize("type_", [type_ for type_ in LAYER_TYPES if type_ not in _NO_C], ids=str)
def test_more_of_what_is_accepted_runs(type_: LayerType) -> None:
    assert check(type_, range(1, 6))
