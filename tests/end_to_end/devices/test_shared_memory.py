# SPDX-License-Identifier: Apache-2.0
"""Two kinds of DMA devices and the core in one network, on emulated boards: with shared tensors, and with copies."""

from __future__ import annotations

import pytest
from needs import require_module
from wide_networks import between, job, samples

import ferrule

pytestmark = [pytest.mark.cc, pytest.mark.emu]
OTHERS = [pytest.param(board, marks=pytest.mark.nightly) for board in ("mps2-an386", "mps2-an505")]


@pytest.mark.parametrize("board", ["mps2-an500", *OTHERS])
def test_sharing_is_exact_and_costs_less_than_copying(board: str) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    reports = []
    for bounce in (True, False):
        wanted = job(board, bounce=bounce)
        firmware = ferrule.compile(
            between(), board=board, backends=wanted.backends, devices=wanted.devices, registry=wanted.registry
        )
        report = firmware.run(samples(), check_ownership=True)
        assert report.verdict is ferrule.Verdict.EXACT
        assert report.document.ownership is not None
        assert report.document.ownership.cache == (board == "mps2-an500")
        reports.append(report)
    before, after = reports
    assert [sum(layer.type == "MEM_COPY" for layer in each.layers) for each in reports] == [7, 0]
    assert before.document.memory.ram.total - after.document.memory.ram.total > 16_000  # the buffers of the device
    assert sum(layer.count for layer in after.layers) < sum(layer.count for layer in before.layers)
