# SPDX-License-Identifier: Apache-2.0
"""A device works beside the core on an emulated board: the run takes as long as the longer branch of the network."""

from __future__ import annotations

import pytest
from device_networks import BRANCH_HINTS, BRANCHES, two_branches
from needs import require_module

import ferrule

pytestmark = [pytest.mark.cc, pytest.mark.emu]


def test_a_run_takes_as_long_as_its_longer_branch() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    network = two_branches()
    serial = ferrule.compile(network, backends=["Woofles", "CpuAcc"], hints=BRANCH_HINTS, overlap="off").run()
    beside = ferrule.compile(network, backends=["Woofles", "CpuAcc"], hints=BRANCH_HINTS)
    report = beside.run(check_ownership=True, trace_devices=True)
    assert serial.verdict is report.verdict is ferrule.Verdict.EXACT

    counts = {layer.name: layer.count for layer in serial.layers}
    common, device, core = (sum(counts[name] for name in names) for names in BRANCHES)
    assert min(device, core) > 0.5 * max(device, core)  # so that the overlap matters
    assert serial.count.per_inference >= common + device + core
    assert report.count.per_inference <= 1.1 * (common + max(device, core))

    assert {name for layer in report.layers for name in layer.beside} == set(BRANCHES[1])
    assert all(layer.beside == () for layer in serial.layers)
    trace = report.document.device_trace
    assert trace is not None
    assert trace.as_planned
    assert [call.layer for call in trace.calls if call.call == "finish"] == list(BRANCHES[1])

    inspection = ferrule.inspect(network, beside.job, schedule=True)
    assert inspection.schedule is not None
    calls = [call for part in inspection.schedule for call in part.calls if "finish" in call]
    assert calls == [f"Woofles finish {name}" for name in BRANCHES[1]]
    assert [part.beside for part in inspection.schedule] == [layer.beside for layer in report.layers]
