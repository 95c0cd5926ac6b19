# SPDX-License-Identifier: Apache-2.0
"""The order of a chain's bands and the places of its line buffers, worked out by hand for chains of four rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bands import Sketch

from ferrule.backends.cpu_acc.streaming.chain import Chain
from ferrule.backends.cpu_acc.streaming.timeline import Buffer, Timeline, timeline
from ferrule.network import Network


def column(channels: int, *outputs: int) -> Network:
    """Return a column of four pixels and convolutions with windows of three rows, by their channels."""
    sketch = Sketch.of(1, 4, 1, channels)
    at = "x"
    for count in outputs:
        at = sketch.conv(at, count, kernel=(3, 1))
    return sketch.finish(at)


def averaged() -> Network:
    """Return an image of four rows of eight pixels, a convolution and the average over the image."""
    sketch = Sketch.of(2, 4, 8, 1)
    at = sketch.conv("x", 1, kernel=(3, 1))
    return sketch.finish(sketch.network.add_average_pool2d_layer(at, (4, 8)))


def emptied() -> Network:
    """Return a column whose four rows become one, of 8, 4 and 1 channels."""
    sketch = Sketch.of(3, 4, 1, 1)
    at = sketch.conv("x", 1, kernel=(1, 1))
    at = sketch.conv(at, 8, kernel=(4, 1), padding="valid")
    for count in (4, 1):
        at = sketch.conv(at, count, kernel=(1, 1))
    return sketch.finish(at)


def lines(offset: int, size_bytes: int, rows: int) -> Buffer:
    return Buffer(offset=offset, size_bytes=size_bytes, rows=rows)


CASES: dict[str, tuple[Callable[[], Network], bool, Timeline]] = {
    # a0 a1 b0 a2 b1 a3 b2 b3; each write of a moves at most two rows of one byte. The first row of the output is
    # written when the input is needed from its second row of four bytes on.
    "wide rows in": (
        lambda: column(4, 1, 1),
        False,
        Timeline(
            steps=8,
            moved_bytes=8,
            buffers=(None, lines(0, 3, 3), None),
            sums=(None, None),
            lines_bytes=3,
            output_distance=1 - 4,
            lines_distance=3,
        ),
    ),
    # Two rows of four bytes are written while a3 reads from the third row of one byte on; b2 and b3 need no input.
    "wide rows out": (
        lambda: column(1, 1, 4),
        False,
        Timeline(
            steps=8,
            moved_bytes=8,
            buffers=(None, lines(0, 3, 3), None),
            sums=(None, None),
            lines_bytes=3,
            output_distance=2 * 4 - 2,
            lines_distance=3,
        ),
    ),
    # P P a0 P a1 b0 P a2 b1 a3 b2 b3; both buffers are in use from a0 to a3.
    "pushed": (
        lambda: column(1, 1, 1),
        True,
        Timeline(
            steps=12,
            moved_bytes=16,
            buffers=(lines(0, 3, 3), lines(4, 3, 3), None),
            sums=(None, None),
            lines_bytes=7,
            output_distance=0,
            lines_distance=7,
        ),
    ),
    # a0 a1 b0 a2 b1 c0 a3 b2 c1 d0 b3 c2 d1 c3 d2 d3; the buffer of c is in use before b3 has read that of a. The
    # output is written after a3, the last to read the input, and c0 ends at byte 11 when a3 needs the third row.
    "deep": (
        lambda: column(1, 1, 1, 1, 1),
        False,
        Timeline(
            steps=16,
            moved_bytes=24,
            buffers=(None, lines(0, 3, 3), lines(4, 3, 3), lines(8, 3, 3), None),
            sums=(None,) * 4,
            lines_bytes=11,
            output_distance=-4,
            lines_distance=11 - 2,
        ),
    ),
    # a0 s0 a1 s1 a2 s2 a3 s3; s0 writes the sums when a1 still needs the whole input.
    "sums": (
        averaged,
        False,
        Timeline(
            steps=8,
            moved_bytes=0,
            buffers=(None, lines(0, 8, 1), None),
            sums=(None, Buffer(offset=8, size_bytes=4)),
            lines_bytes=12,
            output_distance=-4 * 8,
            lines_distance=12,
        ),
    ),
    # a0 a1 a2 a3 b0 c0 d0; b0 reads a for the last time, so that c, of the same size, takes its place before b.
    "a place is used again": (
        emptied,
        False,
        Timeline(
            steps=7,
            moved_bytes=12,
            buffers=(None, lines(0, 4, 4), lines(4, 8, 1), lines(0, 4, 1), None),
            sums=(None,) * 4,
            lines_bytes=12,
            output_distance=-4,
            lines_distance=4,
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_figures_of_small_chains(case: str) -> None:
    make, pushed, expected = CASES[case]
    assert timeline(Chain.of(make(), 1), pushed=pushed) == expected
