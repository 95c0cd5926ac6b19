# SPDX-License-Identifier: Apache-2.0
"""Copies are moved close to the layers of their device, where that needs no more memory."""

from __future__ import annotations

import sys

import pytest
from small_networks import int8_input

from ferrule import Network
from ferrule.backends import BackendId, Device
from ferrule.backends.soft_npu.firmware import SoftNpuTarget
from ferrule.backends.target import Face, Target
from ferrule.codegen import Plan, device_order
from ferrule.codegen.device_order import with_copies_close
from ferrule.codegen.lowered import LoweredGraph, lower
from ferrule.codegen.storage import StoragePlan, plan_storage
from ferrule.graph import Graph, Layer, LayerType, Quantization
from ferrule.memory import measure_order, scheduled_layers
from ferrule.operators.transfer import MemCopyDescriptor

NPU = BackendId("SoftNpu")


def copy(graph: Graph, source: str, target: str) -> None:
    layer = Layer(target, LayerType.MEM_COPY, MemCopyDescriptor(), inputs=(source,), outputs=(target,))
    graph.add_layer(layer, [int8_input(target, *graph.info(source).shape)])


def apart() -> Network:
    """Return a network with two inputs, each of which goes through a different device."""
    network = Network("apart")
    for name in "ab":
        network.add_input(int8_input(f"x{name}", 1, 64))
        copy(network, f"x{name}", f"in_{name}")
        network.add_relu_layer(f"in_{name}", quantization=Quantization.of(0.05, 3), name=f"run_{name}")
        copy(network, f"run_{name}", f"out_{name}")
    network.set_outputs(["out_a", "out_b"])
    return network


def lowered(order: list[str]) -> LoweredGraph:
    graph = apart()
    devices = {name: Device(name=f"npu_{name[-1]}", backend=NPU) for name in order}
    targets = {name: Target(face=Face.FIRMWARE, device=device) for name, device in devices.items()}
    plan = Plan(
        graph=graph,
        firmware=dict.fromkeys(order, SoftNpuTarget()),
        targets=targets,
        workspace_bytes=sys.maxsize,
        masters=frozenset({"cpu"}),
    )
    return lower(plan, measure_order(graph, order))


def names(storage: StoragePlan) -> list[str]:
    return [item.layer.name for item in storage.lowered.layers]


def test_a_copy_out_comes_early_and_a_copy_in_late() -> None:
    storage = with_copies_close(lowered(["in_a", "in_b", "run_a", "run_b", "out_a", "out_b"]))
    assert names(storage) == ["in_a", "run_a", "out_a", "in_b", "run_b", "out_b"]
    before = plan_storage(lowered(["in_a", "in_b", "run_a", "run_b", "out_a", "out_b"]))
    for part in before.plan.regions:
        assert storage.plan.region(part.region).peak_bytes <= part.peak_bytes
    assert scheduled_layers(storage.lowered.graph, names(storage))


def test_what_stands_well_stays() -> None:
    order = ["in_a", "run_a", "out_a", "in_b", "run_b", "out_b"]
    storage = with_copies_close(lowered(order))
    assert names(storage) == order
    assert storage == plan_storage(lowered(order))


def test_memory_comes_first() -> None:
    order = ["in_a", "in_b", "run_a", "run_b", "out_b", "out_a"]
    small = plan_storage(lowered(order)).plan.region("sram").peak_bytes
    storage = with_copies_close(lowered(order))
    assert storage.plan.region("sram").peak_bytes <= small


def test_few_plans_that_take_the_whole_effort_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[LoweredGraph] = []

    def plan(graph: LoweredGraph) -> StoragePlan:
        planned.append(graph)
        return plan_storage(graph)

    monkeypatch.setattr(device_order, "plan_storage", plan)
    order = ["in_a", "in_b", "run_a", "run_b", "out_a", "out_b"]
    with_copies_close(lowered(order))
    assert len(planned) > 2
    planned.clear()
    monkeypatch.setattr(device_order, "_is_hard", lambda _: True)
    with_copies_close(lowered(order))
    assert len(planned) == 2
