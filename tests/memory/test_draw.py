# SPDX-License-Identifier: Apache-2.0
"""Drawings of plans."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from chains import chain

from ferrule.memory import GraphPlan, Region, draw, plan, plan_graph

REGIONS = (Region(name="sram", size_bytes=4096), Region(name="npu", size_bytes=64))

EXPECTED = """\
region sram: 2,560 of 4,096 B, optimal
  activations alone 2,048 B, optimal; scratch adds 512 B
    offset       size     steps  buffer      0
         0      1,024       0-1  t1          ##
         0      1,024       2-3  t3            ##
     1,024        512       0-0  t0          #
     1,024      1,024       1-2  t2           ##
     1,024      1,000       3-3  t4             #
     2,032          8       3-3  l3:scratch     =
     2,048        512       2-2  l2:scratch    =
                 in use, tenths of the peak  6897"""


def small() -> GraphPlan:
    return plan_graph(chain([512, 1024, 1024, 1024, 1000]), REGIONS, scratch_bytes={"l2": 512, "l3": 8})


def test_a_drawing_shows_place_size_life_and_scratch() -> None:
    found = small()
    assert draw(found.plan, found.requests) == EXPECTED


@pytest.mark.parametrize("width", [1, 80, 100, 133, 400])
@pytest.mark.parametrize("steps", [12, 33, 300])
def test_lines_are_no_wider_than_asked(width: int, steps: int) -> None:
    found = plan_graph(chain([16] * steps), REGIONS)
    renamed = [replace(one, name=f"{one.name}:" + 70 * "x") for one in found.requests]
    lines = draw(plan(renamed, REGIONS), renamed, width=width).splitlines()
    assert max(len(line) for line in lines) <= max(width, 80)
    assert len(lines) == steps + 3


def test_long_names_are_shortened_in_the_middle() -> None:
    graph = plan_graph(chain([16, 16]), REGIONS, scratch_bytes={"l0": 16})
    requests = list(graph.requests)
    name = "model/activation_12/Relu;model/batch_normalization_12/FusedBatchNormV3"
    renamed = [type(one)(name=name, size_bytes=16, lifetime=one.lifetime, regions=one.regions) for one in requests[:1]]
    text = draw(plan(renamed, REGIONS), renamed, width=80)
    assert "model/activat..sedBatchNormV3" in text
    assert name not in text
    assert name in draw(plan(renamed, REGIONS), renamed, width=150)


def test_each_region_with_buffers_has_its_drawing() -> None:
    found = plan_graph(chain([16, 16, 16]), REGIONS, allowed={"t1": ("npu",)})
    first, second = draw(found.plan, found.requests).split("\n\n")
    assert first.startswith("region sram: 16 of 4,096 B, optimal\n")
    assert second.startswith("region npu: 16 of 64 B, optimal\n")
    assert draw(plan([], REGIONS), []) == ""


def test_a_region_without_limit_shows_none() -> None:
    regions = (Region(name="sram", size_bytes=sys.maxsize),)
    found = plan_graph(chain([16, 16]), regions)
    assert draw(found.plan, found.requests).startswith("region sram: 32 B, optimal\n")
