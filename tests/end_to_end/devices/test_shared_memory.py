# SPDX-License-Identifier: Apache-2.0
"""Two kinds of DMA devices and the core in one network, on emulated boards: with shared tensors, and with copies."""

from __future__ import annotations

import pytest
from needs import require_module
from wide_networks import between, job, samples

import ferrule
from ferrule.firmware import Job
from ferrule.report import RunReport

pytestmark = [pytest.mark.cc, pytest.mark.emu]
BOARDS = ("mps2-an386", "mps2-an500", "mps2-an505")
CODE, DATA, BESIDE = "ssram1", "ssram23", "psram"
SHARED, BESIDE_IT, APART = ((), ()), ((), (CODE, BESIDE)), ((CODE, DATA), (CODE, BESIDE))
"""The memories of the devices: all, others than the workspace's, none in common."""


def run(wanted: Job) -> RunReport:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    report = ferrule.compile(between(), wanted).run(samples(), check_ownership=True)
    assert report.verdict is ferrule.Verdict.EXACT
    assert report.document.ownership is not None
    assert report.document.ownership.cache == (report.document.build.board == "mps2-an500")
    return report


def copies(report: RunReport) -> int:
    return sum(layer.type == "MEM_COPY" for layer in report.layers)


def instructions(report: RunReport) -> int:
    return sum(layer.count for layer in report.layers)


@pytest.mark.parametrize(
    ("board", "regions", "count"),
    [
        ("mps2-an500", SHARED, 0),
        ("mps2-an500", APART, 4),
        pytest.param("mps2-an500", BESIDE_IT, 0, marks=pytest.mark.nightly),
        pytest.param("mps2-an386", BESIDE_IT, 0, marks=pytest.mark.nightly),
        pytest.param("mps2-an386", APART, 4, marks=pytest.mark.nightly),
    ],
)
def test_devices_that_share_memory_are_exact(board: str, regions: tuple[tuple[str, ...], ...], count: int) -> None:
    assert copies(run(job(board, regions=regions))) == count


@pytest.mark.nightly
@pytest.mark.parametrize("board", BOARDS)
def test_sharing_costs_less_than_copying(board: str) -> None:
    before, after = run(job(board, bounce=True)), run(job(board))
    assert (copies(before), copies(after)) == (7, 0)
    totals = [each.document.memory.ram.total for each in (before, after)]
    assert totals[0] is not None
    assert totals[1] is not None
    assert totals[0] - totals[1] > 16_000  # the device's buffers
    assert instructions(after) < instructions(before)
