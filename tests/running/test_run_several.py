# SPDX-License-Identifier: Apache-2.0
"""Several models in one firmware: built once, run, and compared model by model."""

from __future__ import annotations

import gc
from pathlib import Path

import device_networks
import numpy as np
import pytest
import small_networks
from device_networks import HINTS, NPU0, NPU1

import ferrule
from ferrule.emulation import Machine, engine
from ferrule.link import LinkSession
from ferrule.network.samples import random_sample


@pytest.mark.emu
def test_models_run_in_turn_in_one_firmware(zig: str, temporary: Path) -> None:
    networks = [small_networks.dense(), small_networks.two_by_two()]
    first, second = ferrule.compile(networks, toolchain=zig)
    assert first.elf == second.elf
    for firmware in (second, first):
        report = firmware.run(check_ownership=True)
        assert report.verdict is ferrule.Verdict.EXACT
        assert report.document.model.name == firmware.network.name
        assert report.document.memory.ram.workspace >= first.program.workspace_bytes
    samples = [random_sample(network.inputs, seed) for seed, network in enumerate(networks)]
    with engine("unicorn").start(Machine(board=first.board, elf=first.elf)) as session:
        link = LinkSession(session.channel(), start_timeout_s=60.0)
        assert link.model_count() == 2
        for index in (1, 0, 1):
            link.choose_model(index)
            found = link.run(samples[index]).outputs
            assert all(map(np.array_equal, found, networks[index].run(samples[index])))
    folder = first.project.folder
    del first, report, firmware
    gc.collect()
    assert folder.exists()  # the other still uses it
    del second
    gc.collect()
    assert not list(temporary.iterdir())


@pytest.mark.emu
def test_models_share_devices_and_an_arena(zig: str) -> None:
    hints = {**HINTS, "sum": "SoftNpu/npu1", "largest": "SoftNpu/npu0"}
    networks = [device_networks.crossing(), small_networks.two_by_two()]
    job = ferrule.Job(toolchain=zig, hints=hints, devices=(NPU0, NPU1), arena="shared")
    for firmware in ferrule.compile(networks, job):
        report = firmware.run(trace_devices=True)
        assert report.verdict is ferrule.Verdict.EXACT
        trace = report.document.device_trace
        assert trace is not None
        assert trace.as_planned
        assert {part.device for part in trace.calls} == {"npu0", "npu1"}
        with pytest.raises(ferrule.FerruleError, match="ownership can't be checked in a firmware with several models"):
            firmware.run(check_ownership=True)


def test_a_list_of_models_may_not_be_empty() -> None:
    with pytest.raises(ferrule.FerruleError, match="the list of models is empty"):
        ferrule.generate([], out="project")
