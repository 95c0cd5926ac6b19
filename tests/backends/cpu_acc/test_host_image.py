# SPDX-License-Identifier: Apache-2.0
"""The layout of a padded image: as large as the windows need, and no larger."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferrule.backends.cpu_acc.host.lowering.image import SLACK_ELEMENTS, Image
from ferrule.operators.arithmetic.window import Padding, Window

EXTENTS, STEPS = st.integers(1, 4), st.integers(1, 3)
WINDOWS = st.builds(
    Window,
    height=EXTENTS,
    width=EXTENTS,
    stride_h=STEPS,
    stride_w=STEPS,
    dilation_h=STEPS,
    dilation_w=STEPS,
    padding=st.builds(Padding, top=st.integers(0, 9), left=st.integers(0, 40)),
)


@given(WINDOWS, EXTENTS, EXTENTS, st.integers(1, 3), st.integers(1, 5))
def test_the_last_window_ends_at_the_last_pixel(
    window: Window, height: int, width: int, phases: int, channels: int
) -> None:
    image = Image.for_window(window, (1, 9, 9, channels), (1, height, width, 7), zero_point=3, phases=phases)
    rows = {row * window.stride_h + y * window.dilation_h for row in range(height) for y in range(window.height)}
    columns = {column * window.stride_w + x * window.dilation_w for column in range(width) for x in range(window.width)}
    assert image.rows == max(rows) + 1
    assert 0 <= image.columns - (max(columns) + 1) < phases
    assert image.columns % phases == 0
    offsets = [image.offset(row, column) for row in range(image.rows) for column in range(image.columns)]
    assert sorted(offsets) == list(range(0, image.rows * image.row_elements, channels))
    assert image.scratch_bytes(2) == 2 * (image.rows * image.row_elements + SLACK_ELEMENTS)
    assert (image.top, image.zero_point) == (window.padding.top, 3)
    assert image.left == min(window.padding.left, image.columns), "the kernel fills so many columns of each row"
