# SPDX-License-Identifier: Apache-2.0
"""Trained models divided in five places between a processor, a GPU and an NPU that share memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import pytest
from gpu_face import require_opencl
from host_library import library
from mock_backends import registry_of
from numpy.testing import assert_array_equal

from ferrule import formats
from ferrule.network import Network
from ferrule.optimizer import Crossing, EdgeStrategy, OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.partners import PARTNERS, PartnerCpu, PartnerGpu, PartnerNpu

MODELS = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
PLACES = 5


@pytest.mark.parametrize("name", MODELS)
def test_models_divided_in_five_places(models: Path, name: str) -> None:
    network = formats.load(models / f"{name}.tflite")
    hints = divided(network, [PartnerCpu.id, PartnerGpu.id, PartnerNpu.id])
    with Runtime(registry=registry_of(*PARTNERS)) as runtime:
        for transfers in ({}, dict.fromkeys(hints.values(), "copy")):
            crossings = check(runtime, network, hints, transfers)
            assert {crossing.strategy for crossing in crossings} == {
                EdgeStrategy.COPY if transfers else EdgeStrategy.FALLBACK_IMPORT
            }
            assert len(crossings) >= PLACES


@pytest.mark.cc
@pytest.mark.parametrize("name", MODELS)
def test_shipped_backends_share_memory(models: Path, name: str) -> None:
    """GpuAcc and Woofles require fallback memory, and CpuAcc exports its own, which Woofles does not import."""
    require_opencl()
    library()
    network = formats.load(models / f"{name}.tflite")
    with Runtime() as runtime:
        crossings = check(runtime, network, divided(network, ["CpuAcc", "GpuAcc", "Woofles"]), {})
    expected = {"CpuAcc": EdgeStrategy.EXPORT}
    unlike = [
        crossing
        for crossing in crossings
        if crossing.strategy is not expected.get(str(crossing.source_backend), EdgeStrategy.FALLBACK_IMPORT)
    ]
    assert [(str(crossing.source_backend), str(crossing.target_backend)) for crossing in unlike] == [
        ("CpuAcc", "Woofles")
    ] * len(unlike)
    assert len(crossings) >= 2


def divided(network: Network, owners: Sequence[str]) -> dict[str, str]:
    """Return hints that give a network's layers to backends in turn, in one piece more than there are places."""
    names = [layer.name for layer in network.layers]
    turns = cycle(owners)
    parts = [str(next(turns)) for _ in range(PLACES + 1)]
    return {name: parts[index * len(parts) // len(names)] for index, name in enumerate(names)}


def check(
    runtime: Runtime, network: Network, hints: Mapping[str, str], transfers: Mapping[str, str]
) -> tuple[Crossing, ...]:
    """Compare every bit of two runs with the reference; return the crossings."""
    options = OptimizerOptions(
        simplify=False, hints=hints, import_enabled=True, export_enabled=True, fallback_transfers=transfers
    )
    preferences = list(dict.fromkeys(hints.values()))
    optimized = optimize(network, preferences, runtime.registry, options)
    number = runtime.load_network(optimized)
    for seed in range(2):
        inputs = random_inputs(network, seed)
        for found, expected in zip(runtime.enqueue_workload(number, inputs), network.run(inputs), strict=True):
            assert_array_equal(found, expected, strict=True)
    for block in runtime.fallback_memory(number):
        assert block.size_bytes <= block.tensor_bytes + 256 * PLACES
    return optimized.crossings
