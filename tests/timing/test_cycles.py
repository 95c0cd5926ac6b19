# SPDX-License-Identifier: Apache-2.0
"""Cycles of pieces of code on each core, as its manual or a measurement states them."""

from __future__ import annotations

from pathlib import Path

import pytest
from timed_code import assemble, run

pytestmark = [pytest.mark.cc, pytest.mark.emu]


@pytest.mark.parametrize(
    ("core", "cycles"), [("cortex-m0", 42), ("cortex-m0plus", 42), ("cortex-m4", 42), ("cortex-m7", 14)]
)
def test_time_does_not_depend_on_slices_and_steps(arm_gcc: str, tmp_path: Path, core: str, cycles: int) -> None:
    image = assemble(arm_gcc, core, {"piece": ".rept 14\nldr r0, [r1]\nadds r4, r4, #1\n.endr"}, tmp_path)
    whole = run(image, core, "piece")
    assert (whole.cycles, whole.instructions) == (cycles, 28)
    assert run(image, core, "piece", slice_=3) == whole
    assert run(image, core, "piece", step=True) == whole
