# SPDX-License-Identifier: Apache-2.0
"""The planned time of an inference."""

from __future__ import annotations

from dataclasses import replace

import device_networks
import pytest
from small_networks import dense

from ferrule.boards import load_board
from ferrule.codegen import Artifact
from ferrule.codegen.artifact import VIEW
from ferrule.firmware import Job, PlannedTime, emit, planned_time
from ferrule.timing.memory_timing import BoardTiming, MemoryTiming
from ferrule.timing.planned import KernelTimings

KERNEL = "fully_connected_octet_s8"
TIMINGS = KernelTimings(
    core="cortex-m4",
    per_instruction={KERNEL: 2.0, "sum_s8": 4.0},
    per_element={"relu_s8": 9.0},
    per_mac=1.0,
    per_output=1.0,
)
BOARD = replace(load_board("mps2-an386"), timing=BoardTiming(source="none", memories={}))


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give cores of the type cortex-m4 a made-up table, and the others none."""
    monkeypatch.setattr("ferrule.timing.planned.kernel_timings", lambda core: TIMINGS if core == TIMINGS.core else None)


def planned(artifact: Artifact) -> PlannedTime:
    """Return the planned time on the board."""
    found = planned_time(artifact, BOARD)
    assert found is not None
    return found


def test_a_layer_takes_its_estimate_times_the_cycles_of_its_kernel() -> None:
    artifact = emit(dense(), Job(board=BOARD))
    (record,) = artifact.operators
    (costs,) = (each.costs for each in record.considered if each.chosen)
    assert record.kernel == KERNEL
    assert costs is not None
    found = planned(artifact)
    assert found.cycles == 2 * costs.instructions
    assert found.milliseconds == pytest.approx(1e3 * found.cycles / BOARD.clock_hz)
    assert found.assumed == ()


def test_a_core_without_a_table_has_no_planned_time() -> None:
    board = load_board("mps2-an385")
    assert planned_time(emit(dense(), Job(board=board)), board) is None


def test_a_board_without_timing_is_taken_to_have_no_waits_and_says_so() -> None:
    board = replace(BOARD, timing=None)
    found = planned_time(emit(dense(), Job(board=board)), board)
    assert found is not None
    assert found.assumed == ("board mps2-an386 states no timing of its memories: no access waits",)


def test_waits_that_were_not_counted_are_named() -> None:
    waiting = BoardTiming(source="made up", memories={BOARD.placement.code: MemoryTiming(wait_states=2)})
    board = replace(BOARD, timing=waiting)
    found = planned_time(emit(dense(), Job(board=board)), board)
    assert found is not None
    assert found.assumed == ("accesses to memories are not counted on cortex-m4: none waits",)


def test_what_was_not_measured_is_named() -> None:
    artifact = device_networks.artifact()
    found = {layer.layer: layer for layer in planned(artifact).layers}
    assert found["likely"].assumed == "kernel softmax_s8 was not measured on cortex-m4: the median of the others"
    assert found["a"].assumed == "nothing, since backend SoftNpu estimates no time"
    assert found["a"].cycles == 0
    assert any(text.startswith("layer 'likely': ") for text in planned(artifact).assumed)


def test_views_take_nothing() -> None:
    found = [layer for layer in planned(device_networks.artifact(devices=(), hints={})).layers if layer.kernel == VIEW]
    assert [(layer.layer, layer.cycles, layer.assumed) for layer in found] == [("flat", 0, "")]


def test_the_time_is_that_of_all_layers_where_no_device_works_beside_the_core() -> None:
    found = planned(device_networks.artifact(devices=(), hints={}))
    assert found.cycles == sum(layer.cycles for layer in found.layers)
