# SPDX-License-Identifier: Apache-2.0
"""Copies to and from the memories of devices in firmware."""

from __future__ import annotations

from dataclasses import replace

import pytest
from device_networks import HINTS, NPU0, NPU1, POOL, crossing, job, sample
from small_networks import int8_input

from ferrule import Network
from ferrule.backends import BackendId, Device
from ferrule.backends.target import Face
from ferrule.errors import FerruleError
from ferrule.firmware import Job, divide
from ferrule.graph import LayerType
from ferrule.network.execution import run_graph
from ferrule.optimizer import OptimizedNetwork


def copies(optimized: OptimizedNetwork) -> dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Return the device, inputs and outputs of each copy, by name."""
    return {
        layer.name: (optimized.assignment[layer.name].device, layer.present_inputs, layer.outputs)
        for layer in optimized.graph.layers
        if layer.type is LayerType.MEM_COPY
    }


def simple(*kinds: str) -> Network:
    """Return a chain of layers l0, l1, ... after the input `x`: LOGISTIC for "s", TANH for "t"."""
    network = Network("chain")
    network.add_input(int8_input("x", 1, 8))
    tensor = "x"
    for index, kind in enumerate(kinds):
        add = network.add_logistic_layer if kind == "s" else network.add_tanh_layer
        tensor = add(tensor, name=f"l{index}")
    network.set_outputs([tensor])
    return network


def divided(network: Network, **where: str) -> OptimizedNetwork:
    hints = {layer: f"SoftNpu/{device}" for layer, device in where.items()}
    return divide(network, Job(backends=("CpuAcc",), hints=hints, devices=(NPU0, NPU1)))


@pytest.mark.parametrize(("device", "used"), [("npu0", ["npu0", "npu1"]), ("alone", ["alone"])])
def test_all_members_of_a_pool_are_in_use_if_one_has_layers(device: str, used: list[str]) -> None:
    devices = (*POOL, replace(NPU0, name="alone"))
    job = Job(backends=("CpuAcc",), hints={"l0": f"SoftNpu/{device}"}, devices=devices)
    assert [each.name for each in divide(simple("t"), job).devices] == used


def test_the_core_alone_needs_no_copies() -> None:
    optimized = divided(simple("t", "s"))
    assert copies(optimized) == {}


def test_into_a_device_and_out_again() -> None:
    optimized = divided(simple("t", "s", "t"), l1="npu0")
    assert copies(optimized) == {
        "[ l0 (0) -> l1 (0) ]": ("npu0", ("l0",), ("[ l0 (0) -> l1 (0) ]",)),
        "[ l1 (0) -> l2 (0) ]": ("npu0", ("l1",), ("[ l1 (0) -> l2 (0) ]",)),
    }
    assert [layer.name for layer in optimized.graph.layers] == [
        "l0", "[ l0 (0) -> l1 (0) ]", "l1", "[ l1 (0) -> l2 (0) ]", "l2",
    ]  # fmt: skip


def test_neighbours_on_a_device_share_its_memory() -> None:
    assert len(copies(divided(simple("t", "s", "t", "s"), l1="npu0", l2="npu0"))) == 2


def test_between_two_devices_by_way_of_the_core() -> None:
    assert copies(divided(simple("t", "s", "t", "s"), l1="npu0", l2="npu1")) == {
        "[ l0 (0) -> l1 (0) ]": ("npu0", ("l0",), ("[ l0 (0) -> l1 (0) ]",)),
        "[ l1 (0) -> l2 (0) ]": ("npu0", ("l1",), ("[ l1 (0) -> l2 (0) ]",)),
        "[ l1 (0) -> l2 (0) ]_2": ("npu1", ("[ l1 (0) -> l2 (0) ]",), ("[ l1 (0) -> l2 (0) ]_2",)),
        "[ l2 (0) -> l3 (0) ]": ("npu1", ("l2",), ("[ l2 (0) -> l3 (0) ]",)),
    }


def test_inputs_and_outputs_of_the_network_lie_in_the_cores_memory() -> None:
    optimized = divided(simple("t"), l0="npu1")
    assert copies(optimized) == {
        "[ x (0) -> l0 (0) ]": ("npu1", ("x",), ("[ x (0) -> l0 (0) ]",)),
        "[ l0 (0) -> output 0 ]": ("npu1", ("l0 in npu1",), ("l0",)),
    }
    assert [info.name for info in optimized.graph.outputs] == ["l0"]


def test_a_tensor_is_copied_to_each_memory_once() -> None:
    network = Network("fan")
    network.add_input(int8_input("x", 1, 8))
    network.add_tanh_layer("x", name="source")
    for index in range(6):
        network.add_logistic_layer("source", name=f"r{index}")
    network.set_outputs(["source", *(f"r{index}" for index in range(6))])
    optimized = divided(network, source="npu0", r0="npu1", r1="npu1", r2="npu0", r3="npu0")
    into = [where for where, (source,), _ in copies(optimized).values() if source == "source"]
    out = [names for where, (source,), names in copies(optimized).values() if source == "source in npu0"]
    assert into == ["npu1"]
    assert out == [("source",)]
    readers = {layer.name: layer.present_inputs[0] for layer in optimized.graph.layers}
    assert readers["r2"] == readers["r3"] == "source in npu0"
    assert readers["r4"] == readers["r5"] == "source"
    assert readers["r0"] == readers["r1"]


def test_constants_are_not_copied() -> None:
    network = Network("constant")
    network.add_input(int8_input("x", 1, 8))
    info = int8_input("k", 1, 8)
    network.add_constant(info, sample().reshape(-1)[:8].reshape(1, 8))
    network.add_maximum_layer("x", "k", name="y")
    network.set_outputs(["y", "k"])
    optimized = divided(network, y="npu0")
    assert [names for _, names, _ in copies(optimized).values()] == [("x",), ("y in npu0",)]


def test_the_numbers_stay_the_same() -> None:
    optimized = divide(crossing(), job())
    x = sample()
    for data, reference in zip(run_graph(optimized.graph, [x]), crossing().run([x]), strict=True):
        assert data.tobytes() == reference.tobytes()
    assert {layer for layer, given in optimized.assignment.items() if given.device == "npu1"} > {
        layer for layer, hint in HINTS.items() if hint == "SoftNpu/npu1"
    }


def test_the_host_face_is_another_matter() -> None:
    optimized = divide(simple("t", "s"), Job(backends=("CpuRef",)), face=Face.HOST)
    assert copies(optimized) == {}


def test_a_binding_that_makes_no_sense_is_told() -> None:
    broken = Device(name="npu0", backend=BackendId("SoftNpu"), binding={"memory": 3})
    with pytest.raises(FerruleError, match="device 'npu0': SoftNpu has no 'memory'"):
        divide(simple("t"), Job(backends=("SoftNpu",), devices=(broken,)))
