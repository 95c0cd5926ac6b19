# SPDX-License-Identifier: Apache-2.0
"""The MLPerf Tiny models reach their optimum without overlap."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.importers import load_tflite
from ferrule.memory import Region, plan_graph, schedule_of_graph, scratch_name, verify

OPTIMA = {
    "ad01_int8.tflite": 768,
    "kws_ref_model.tflite": 16_000,
    "pretrainedResnet_quant.tflite": 49_152,
    "vww_96_int8.tflite": 55_296,
}
SRAM = (Region(name="sram", size_bytes=1 << 20),)


@pytest.mark.parametrize(("file", "optimum"), OPTIMA.items())
def test_activations_take_the_proved_optimum(models: Path, file: str, optimum: int) -> None:
    graph = load_tflite(models / file)
    found = plan_graph(graph, SRAM)
    verify(found.plan, found.requests, SRAM, schedule_of_graph(graph, found.ordering.layers), aliases=found.aliases)
    assert (found.plan.peak_bytes, found.plan.certificate) == (optimum, "optimal")
    assert found.ordering.proved
    assert found.ordering.peak_bytes == optimum


@pytest.mark.parametrize(("file", "optimum"), OPTIMA.items())
def test_scratch_leaves_the_activations_at_their_optimum(models: Path, file: str, optimum: int) -> None:
    graph = load_tflite(models / file)
    scratch = {layer.name: 100 + 700 * (number % 3) for number, layer in enumerate(graph.layers)}
    found = plan_graph(graph, SRAM, scratch_bytes=scratch)
    schedule = schedule_of_graph(graph, found.ordering.layers, {layer: scratch_name(layer) for layer in scratch})
    verify(found.plan, found.requests, SRAM, schedule, aliases=found.aliases)
    assert (found.plan.activation_peak_bytes, found.plan.activation_certificate) == (optimum, "optimal")
    assert found.plan.certificate == "optimal"
    assert found.plan.peak_bytes <= optimum + 1_500
