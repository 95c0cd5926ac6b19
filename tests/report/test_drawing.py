# SPDX-License-Identifier: Apache-2.0
"""Drawings of memory plans."""

from __future__ import annotations

import pytest

from ferrule.report.drawing import draw
from ferrule.report.picture import BufferPart, RegionPlanPart

EXPECTED = """\
region sram: 2,560 B, optimal
    offset       size     steps  buffer      0
         0      1,024       0-1  t1          ##
         0      1,024       2-3  t3            ##
     1,024        512       0-0  t0          #
     1,024      1,024       1-2  t2           ##
     1,024      1,000       3-3  t4             #
     2,032          8       3-3  l3:scratch     =
     2,048        512       2-2  l2:scratch    =
                 in use, tenths of the peak  6897"""


def buffer(name: str, offset: int, size_bytes: int, first: int, last: int) -> BufferPart:
    kind = "scratch" if name.endswith(":scratch") else "activation"
    return BufferPart(name=name, kind=kind, offset=offset, size_bytes=size_bytes, first=first, last=last)


def region(*buffers: BufferPart, name: str = "sram") -> RegionPlanPart:
    peak = max((each.offset + each.size_bytes for each in buffers), default=0)
    steps = tuple(f"l{index}" for index in range(1 + max((each.last for each in buffers), default=0)))
    return RegionPlanPart(
        name=name, peak_bytes=peak, bound_bytes=peak, certificate="optimal", steps=steps, buffers=buffers
    )


def test_a_drawing_shows_place_size_life_and_scratch() -> None:
    plan = region(
        buffer("t0", 1024, 512, 0, 0),
        buffer("t1", 0, 1024, 0, 1),
        buffer("t2", 1024, 1024, 1, 2),
        buffer("t3", 0, 1024, 2, 3),
        buffer("t4", 1024, 1000, 3, 3),
        buffer("l2:scratch", 2048, 512, 2, 2),
        buffer("l3:scratch", 2032, 8, 3, 3),
    )
    assert draw([plan]) == EXPECTED


@pytest.mark.parametrize("width", [1, 80, 100, 133, 400])
@pytest.mark.parametrize("steps", [12, 33, 300])
def test_lines_are_no_wider_than_asked(width: int, steps: int) -> None:
    buffers = [buffer(f"t{step}:{70 * 'x'}", 16 * (step % 2), 16, step, step) for step in range(steps)]
    lines = draw([region(*buffers)], width=width).splitlines()
    assert max(len(line) for line in lines) <= max(width, 80)
    assert len(lines) == steps + 3


def test_long_names_are_shortened_in_the_middle() -> None:
    name = "model/activation_12/Relu;model/batch_normalization_12/FusedBatchNormV3"
    plan = [region(buffer(name, 0, 16, 0, 1))]
    text = draw(plan, width=80)
    assert "model/activat..sedBatchNormV3" in text
    assert name not in text
    assert name in draw(plan, width=150)


def test_each_region_with_buffers_has_its_drawing() -> None:
    plan = [region(buffer("a", 0, 16, 0, 1)), region(buffer("b", 16, 4, 0, 0), name="npu"), region(name="empty")]
    first, second = draw(plan).split("\n\n")
    assert first.startswith("region sram: 16 B, optimal\n")
    assert second.startswith("region npu: 20 B, optimal\n")
    assert draw([]) == ""
