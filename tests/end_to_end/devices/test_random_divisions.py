# SPDX-License-Identifier: Apache-2.0
"""Random networks, divided at random between the core and two devices: every output bit and every call is right."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from device_bench import FAULT, build_bench, check_idle, expected_trace, planned
from gate import every
from needs import require_module

from ferrule.backends import BackendId, Device
from ferrule.codegen import Artifact
from ferrule.codegen.schedule import Call
from ferrule.firmware import Job, emit
from ferrule.graph import Array, DataType
from ferrule.memory import Region, schedule_of_graph, scratch_name, verify
from ferrule.network import Network
from ferrule.testing.backends.random_networks import random_network

SEEDS = (0, 1, 3, 6, 7, 9, 10, 11)
"""Seeds whose networks give layers to devices."""
SOFT_NPU = BackendId("SoftNpu")


def divided(seed: int) -> tuple[Network, Artifact]:
    dice = random.Random(seed)
    network = random_network(seed, layers=dice.randint(2, 12), dtype=dice.choice([DataType.INT8, DataType.INT16]))
    devices = tuple(
        Device(name=f"npu{index}", backend=SOFT_NPU, activation_lead=dice.randint(0, 4)) for index in range(2)
    )
    names = [layer.name for layer in network.layers]
    hints = {name: f"SoftNpu/npu{dice.randint(0, 1)}" for name in names if dice.random() < 0.6}
    job = Job(backends=("CpuAcc",), hints=hints, devices=devices)
    return network, emit(network, job)


def inputs_of(network: Network, seed: int) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    return {info.name: generator.integers(-100, 100, info.shape).astype(info.dtype.numpy) for info in network.inputs}


@pytest.mark.parametrize("seed", range(40))
def test_plans(seed: int) -> None:
    _, model = divided(seed)
    storage = model.storage
    alignments = {f"device {use.device.name}": use.driver.alignment for use in model.devices}
    masters = {f"device {use.device.name}": frozenset({use.device.name}) for use in model.devices}
    regions = [
        Region(
            name=part.region,
            size_bytes=part.size_bytes,
            alignment=alignments.get(part.region, 1),
            reachable_by=masters.get(part.region, frozenset({"cpu"})),
        )
        for part in storage.plan.regions
    ]
    scratch = {record.layer: [scratch_name(record.layer)] for record in model.operators if record.scratch_bytes}
    schedule = schedule_of_graph(model.graph, [record.layer for record in model.operators], scratch)
    verify(storage.plan, storage.requests, regions, schedule, aliases=storage.aliases, overlaps=storage.overlaps)
    active = [call for call in model.device_calls if call.call is Call.ACTIVATE]
    assert len(active) == len(model.devices)


@pytest.mark.cc
@pytest.mark.parametrize("seed", [pytest.param(SEEDS[0], marks=pytest.mark.sentinel), *every(2, SEEDS[1:])])
def test_exact(tmp_path: Path, host_cc: tuple[str, ...], seed: int) -> None:
    require_module("cffi", "pip install ferrule[run]")
    network, model = divided(seed)
    assert model.devices
    bench = build_bench(model, tmp_path, host_cc)
    given = inputs_of(network, 0)
    for sample in range(2):
        given = inputs_of(network, sample)
        outcome = bench.run(given)
        assert outcome.status == 0
        assert outcome.trace == planned(model.device_calls)
        reference = network.run(list(given.values()))
        for (name, data), expected in zip(outcome.outputs.items(), reference, strict=True):
            assert data.tobytes() == expected.tobytes(), name
    for position in random.Random(seed).sample(range(len(model.device_calls)), min(5, len(model.device_calls))):
        outcome = bench.run(inputs_of(network, 2), fail_at=position)
        assert outcome.status == FAULT
        assert outcome.failed_operator == model.device_calls[position].operator
        assert outcome.trace == expected_trace(model.device_calls, position)
        check_idle(bench)
    assert bench.run(given).status == 0
