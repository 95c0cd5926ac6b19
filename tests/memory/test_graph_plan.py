# SPDX-License-Identifier: Apache-2.0
"""Options of `plan_graph`: regions of buffers, views in force, scratch, constants that are outputs."""

from __future__ import annotations

import numpy as np
import pytest
from small_networks import int8_input

from ferrule import Network
from ferrule.memory import Alias, AliasKind, Overlap, Region, Requirements, ScratchNeed, plan_graph, scratch_name

REGIONS = (Region(name="sram", size_bytes=1 << 16), Region(name="npu", size_bytes=1 << 12, alignment=32))


def reshaped() -> Network:
    network = Network("reshaped")
    network.add_input(int8_input("x", 1, 64))
    network.add_tanh_layer("x", name="a")
    network.add_reshape_layer("a", (8, 8), name="flat")
    network.add_logistic_layer("flat", name="y")
    constant = network.add_constant(int8_input("k", 40), np.zeros(40, np.int8))
    network.set_outputs(["y", constant])
    return network


def test_each_buffer_lies_in_its_own_region() -> None:
    allowed = dict.fromkeys(("a", "flat", scratch_name("y")), ("npu",)) | dict.fromkeys("xy", ("sram",))
    found = plan_graph(
        reshaped(), REGIONS, Requirements(allowed=allowed, scratch={"y": [ScratchNeed(size_bytes=24)]})
    ).plan
    assert {name: found.placements[name].region for name in ("x", "a", "flat", "y", scratch_name("y"))} == {
        "x": "sram", "a": "npu", "flat": "npu", "y": "sram", scratch_name("y"): "npu",
    }  # fmt: skip
    assert all(found.placements[name].offset % 32 == 0 for name in ("a", "flat", scratch_name("y")))
    assert found.region("npu").peak_bytes == 64 + 24


def test_only_the_views_that_hold_share_bytes() -> None:
    network = reshaped()
    assert plan_graph(network, REGIONS[:1]).aliases == (Alias(output="flat", input="a", kind=AliasKind.VIEW),)
    apart = plan_graph(network, REGIONS[:1], Requirements(shared=()))
    assert apart.aliases == ()
    assert apart.plan.placements["flat"] != apart.plan.placements["a"]


def test_scratch_has_its_own_alignment() -> None:
    scratch = {"y": [ScratchNeed(size_bytes=9, alignment=4)], "a": [ScratchNeed(size_bytes=9)]}
    found = plan_graph(reshaped(), REGIONS[:1], Requirements(scratch=scratch))
    alignments = {request.name: request.alignment for request in found.requests}
    assert (alignments[scratch_name("y")], alignments[scratch_name("a")]) == (4, 16)


def test_constants_that_are_outputs_get_room_if_asked() -> None:
    assert "k" not in plan_graph(reshaped(), REGIONS[:1]).plan.placements
    found = plan_graph(reshaped(), REGIONS[:1], Requirements(constant_outputs=True))
    (request,) = (request for request in found.requests if request.name == "k")
    assert (request.size_bytes, request.lifetime.first, request.lifetime.last) == (40, 2, 2)


@pytest.mark.parametrize("through", ["a", "flat"])
def test_an_output_that_is_read_too_is_not_overwritten(through: str) -> None:
    """The bytes stay even if the last layer is also the last reader."""
    network = reshaped()
    network.set_outputs([through, "y"])
    overlaps = [Overlap(output="y", input="flat", distance_bytes=0)]
    found = plan_graph(network, REGIONS[:1], Requirements(overlaps=overlaps))
    assert found.overlaps == ()
    assert found.plan.placements["y"] != found.plan.placements["flat"]
    network.set_outputs(["y"])
    assert plan_graph(network, REGIONS[:1], Requirements(overlaps=overlaps)).overlaps == tuple(overlaps)
