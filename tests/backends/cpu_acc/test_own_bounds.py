# SPDX-License-Identifier: Apache-2.0
"""The firmware's own C, compiled for this machine, stays within the bound of each element, for every float layer."""

from __future__ import annotations

import pytest

from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.guarded import guarded
from ferrule.backends.target import default_target
from ferrule.graph import DataType, LayerType
from ferrule.network.bounds import outside, run_bounded
from ferrule.operators.operator import OWN_CODE
from ferrule.testing.backends.comparison import runs_of
from ferrule.testing.backends.layer_cases import LAYER_TYPES
from ferrule.testing.backends.layers import shared_case
from ferrule.testing.backends.loaded_layer import LoadedLayer

pytestmark = pytest.mark.cc
BACKEND = guarded(CpuAcc())


@pytest.mark.parametrize("type_", LAYER_TYPES, ids=str)
def test_a_layer_is_inside(type_: LayerType) -> None:
    for seed in range(3):
        graph, refusal = shared_case(type_, DataType.FLOAT32, seed)
        target = default_target(BACKEND.id)
        if refusal or not BACKEND.layer_support().supports(graph, graph.layers[0], target):
            continue
        loaded = LoadedLayer(BACKEND, graph, {"instructions": "portable"})
        loaded.acquire()
        try:
            for inputs in runs_of(graph, seed):
                found, wanted = loaded.run(inputs), run_bounded(graph, inputs, arithmetic=OWN_CODE)
                for each, bounded in zip(found, wanted, strict=True):
                    wrong = outside(each, bounded)
                    assert not wrong.any(), f"{graph.name}: {each[wrong]}, expected {bounded.values[wrong]}"
        finally:
            loaded.release()
