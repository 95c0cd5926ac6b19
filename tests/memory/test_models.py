# SPDX-License-Identifier: Apache-2.0
"""Plans of the MLPerf Tiny models, and of their hand-written shapes, reach the optimum without overlap."""

from __future__ import annotations

from pathlib import Path

import pytest
from chains import mlperf_tiny

from ferrule import formats
from ferrule.graph import Graph
from ferrule.memory import (
    BufferKind,
    Region,
    Requirements,
    ScratchNeed,
    plan_graph,
    schedule_of_graph,
    scratch_name,
    verify,
)

FILES = list(mlperf_tiny())
SRAM = (Region(name="sram", size_bytes=1 << 20),)


def check_optimum(graph: Graph, optimum: int) -> None:
    found = plan_graph(graph, SRAM)
    verify(found.plan, found.requests, SRAM, schedule_of_graph(graph, found.ordering.layers), aliases=found.aliases)
    (region,) = found.plan.regions
    assert (region.peak_bytes, region.certificate) == (optimum, "optimal")
    assert (region.activation_peak_bytes, region.activation_certificate) == (optimum, "optimal")
    assert (found.ordering.peak_bytes, found.ordering.proved) == (optimum, True)


def check_with_scratch(graph: Graph, optimum: int) -> None:
    scratch = {
        layer.name: [ScratchNeed(size_bytes=100 + 700 * (number % 3))] for number, layer in enumerate(graph.layers)
    }
    found = plan_graph(graph, SRAM, Requirements(scratch=scratch))
    schedule = schedule_of_graph(graph, found.ordering.layers, {layer: [scratch_name(layer)] for layer in scratch})
    verify(found.plan, found.requests, SRAM, schedule, aliases=found.aliases)
    (region,) = found.plan.regions
    assert (region.activation_peak_bytes, region.activation_certificate) == (optimum, "optimal")
    assert region.certificate == "optimal"
    assert optimum < region.peak_bytes <= optimum + 1_504
    assert sum(request.kind is BufferKind.SCRATCH for request in found.requests) == len(graph.layers)


@pytest.mark.parametrize("file", FILES)
def test_shapes_written_by_hand_take_the_proved_optimum(file: str) -> None:
    check_optimum(*mlperf_tiny()[file])


@pytest.mark.parametrize("file", FILES)
def test_scratch_is_counted_apart_for_shapes_written_by_hand(file: str) -> None:
    check_with_scratch(*mlperf_tiny()[file])


@pytest.mark.parametrize("file", FILES)
def test_the_models_take_the_proved_optimum(models: Path, file: str) -> None:
    check_optimum(formats.load(models / file), mlperf_tiny()[file][1])


@pytest.mark.parametrize("file", FILES)
def test_scratch_is_counted_apart_for_the_models(models: Path, file: str) -> None:
    check_with_scratch(formats.load(models / file), mlperf_tiny()[file][1])


@pytest.mark.parametrize("file", FILES)
def test_the_shapes_written_by_hand_are_those_of_the_models(models: Path, file: str) -> None:
    def sizes(graph: Graph) -> list[list[int]]:
        read = [[graph.info(n).size_bytes for n in layer.present_inputs] for layer in graph.layers]
        return [
            [
                *(
                    size
                    for name, size in zip(layer.present_inputs, one, strict=True)
                    if not graph.tensor(name).is_constant
                )
            ]
            + [info.size_bytes for info in graph.output_infos(layer)]
            for layer, one in zip(graph.layers, read, strict=True)
        ]

    assert sizes(formats.load(models / file)) == sizes(mlperf_tiny()[file][0])
