# SPDX-License-Identifier: Apache-2.0
"""Random networks on devices that do their work, and their copies, at any time between its start and its end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from late_npu import NO_FAULT, LateProgram, divided
from needs import require_cc

from ferrule.codegen import Call
from ferrule.graph import Array, DataType
from ferrule.network import Network
from ferrule.testing.backends.random_networks import random_network

pytestmark = pytest.mark.cc

FAULT = -77
ROUNDS = 20


def inputs_of(network: Network, seed: int) -> list[Array]:
    dice = np.random.default_rng(seed)
    return [dice.integers(-128, 128, info.shape).astype(np.int8) for info in network.inputs]


def check(seed: int, folder: Path) -> int:
    """Run a network without and with a fault of each call of the drivers, and return the layers that were begun."""
    network = random_network(seed, layers=10, dtype=DataType.INT8)
    program = LateProgram(divided(network, seed), folder, require_cc())
    inputs = inputs_of(network, seed)
    expected = [array.tobytes() for array in network.run(inputs)]
    runs = program.run(inputs, seed=seed, faults=[NO_FAULT] * ROUNDS)
    assert {run.status for run in runs} == {0}
    assert all([array.tobytes() for array in run.outputs] == expected for run in runs)
    faulty = program.run(
        inputs, seed=seed, faults=[each for n in range(runs[0].driver_calls) for each in (n, NO_FAULT)]
    )
    assert {run.status for run in faulty[::2]} <= {FAULT}
    assert all(run.failed_operator < len(program.artifact.operators) for run in faulty[::2])
    assert all([array.tobytes() for array in run.outputs] == expected for run in faulty[1::2])
    calls = program.artifact.device_calls
    finished = {call.operator for call in calls if call.call is Call.FINISH}
    begun = {call.call for call in calls if call.operator in finished} & {Call.RUN, Call.COPY_TO, Call.COPY_FROM}
    return len(begun)


def test_random_networks_are_exact(tmp_path: Path) -> None:
    """Layers and copies in both directions are begun in one of them."""
    assert max(check(seed, tmp_path / str(seed)) for seed in (22, 31)) == 3


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(60))
def test_more_random_networks_are_exact(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)
