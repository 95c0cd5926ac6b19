# SPDX-License-Identifier: Apache-2.0
"""Trained models divided in five places between a processor, a GPU and an NPU that share memory."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from mock_backends import registry_of
from oracle import random_inputs

from ferrule import formats
from ferrule.optimizer import EdgeStrategy, OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.partners import PARTNERS, PartnerCpu, PartnerGpu, PartnerNpu

MODELS = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
PLACES = 5


@pytest.mark.parametrize("name", MODELS)
def test_models_divided_in_five_places(models: Path, name: str) -> None:
    network = formats.load(models / f"{name}.tflite")
    layers = [layer.name for layer in network.layers]
    owners = cycle([PartnerCpu.id, PartnerGpu.id, PartnerNpu.id])
    parts = [next(owners) for _ in range(PLACES + 1)]
    hints = {layer: str(parts[index * len(parts) // len(layers)]) for index, layer in enumerate(layers)}
    assert set(hints.values()) == {PartnerCpu.id, PartnerGpu.id, PartnerNpu.id}
    with Runtime(registry=registry_of(*PARTNERS)) as runtime:
        for transfers in ({}, dict.fromkeys(map(str, parts), "copy")):
            options = OptimizerOptions(
                simplify=False, hints=hints, import_enabled=True, export_enabled=True, fallback_transfers=transfers
            )
            optimized = optimize(network, [PartnerCpu.id], runtime.registry, options)
            strategies = {crossing.strategy for crossing in optimized.crossings}
            assert strategies == {EdgeStrategy.COPY if transfers else EdgeStrategy.FALLBACK_IMPORT}
            assert len(optimized.crossings) >= PLACES
            number = runtime.load_network(optimized)
            for seed in range(2):
                inputs = random_inputs(network, seed)
                for found, expected in zip(runtime.enqueue_workload(number, inputs), network.run(inputs), strict=True):
                    np.testing.assert_array_equal(found, expected, strict=True)
            if not transfers:
                for block in runtime.fallback_memory(number):
                    assert block.size_bytes <= block.tensor_bytes + 4096 * PLACES
