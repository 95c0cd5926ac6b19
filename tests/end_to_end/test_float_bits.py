# SPDX-License-Identifier: Apache-2.0
"""Floats on each board that QEMU emulates, the Cortex-M55 among them: the bits of the firmware's own C here.

QEMU computes floats by software of its own, unicorn by that of another version, and this machine by its processor.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import small_networks
from needs import require_module, require_program

import ferrule
from ferrule.backends.guarded import guarded
from ferrule.backends.registry import default_registry
from ferrule.graph import DataType
from ferrule.report import RunReport, Verdict
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.firmware import inputs_of, side_by_side, taken

BOARDS = ("mps3-an547", "mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505")
"""Cores with vector instructions for floats, without a floating-point unit, and with one."""
SMALL = ("mps3-an547", "mps2-an385")

pytestmark = [pytest.mark.cc, pytest.mark.emu]


@pytest.fixture(autouse=True)
def _tools() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")


def require_the_bits(report: RunReport) -> None:
    """Assert that a board's floats have the bits of the C on this machine, which is within its bounds."""
    assert report.verdict is Verdict.EXACT
    reference = report.document.reference
    assert reference is not None
    assert reference.bits
    assert reference.bound is not None
    assert reference.bound.elements > 0
    assert reference.bound.outside == 0


@pytest.mark.parametrize("board", SMALL)
def test_a_small_network(board: str) -> None:
    network = small_networks.float_dense()
    require_the_bits(ferrule.compile(network, board=board).run(random_inputs(network, 5), engine="qemu"))


@pytest.mark.nightly
@pytest.mark.parametrize("board", BOARDS)
def test_every_operator_of_the_core(board: str) -> None:
    cases = taken(guarded(default_registry().create("CpuAcc")), DataType.FLOAT32)
    assert len(cases) > 40
    network = side_by_side(cases)
    inputs = [array for case in cases for array in inputs_of(case)]
    require_the_bits(ferrule.compile(network, board=board).run(inputs, engine="qemu", timeout_s=300))


@pytest.mark.nightly
@pytest.mark.parametrize("board", BOARDS)
def test_a_trained_model(models: Path, board: str) -> None:
    network = ferrule.load(models / "ad01_fp32.tflite")
    report = ferrule.compile(network, board=board).run(random_inputs(network, 3), engine="qemu", timeout_s=300)
    require_the_bits(report)
