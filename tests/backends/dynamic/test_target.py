# SPDX-License-Identifier: Apache-2.0
"""The target of a query crosses the C interface whole, so that devices of one kind can be told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ferrule import DataType, Network, TensorInfo
from ferrule.backends import Backend, BackendId, Device, PreCompiledDescriptor, Target
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.dynamic.library import DynamicLibraryError
from ferrule.backends.dynamic.load import load_dynamic_backends
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.target import CoreFeatures, Face, Memory, MemoryKind
from ferrule.graph import SubgraphView
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

pytestmark = pytest.mark.cc

ID = BackendId("Target")
SMALL = Device(name="small", backend=ID, binding={"macs": 32})
LARGE = Device(name="large", backend=ID, binding={"macs": 256})


@pytest.fixture
def registry(tmp_path: Path, compile_backend: Callable[..., Path]) -> BackendRegistry:
    """Return a registry with the backend of target.c."""
    made = BackendRegistry()
    made.register("CpuRef", CpuRef)
    path = compile_backend(tmp_path, name="Test_Target", source="target.c")
    (row,) = load_dynamic_backends(made, path.parent)
    assert row.accepted, row
    return made


def network() -> Network:
    """Return a network with two layers, of 64 and 512 bytes."""
    made = Network("macs")
    for name, count in (("x", 16), ("y", 128)):
        made.add_input(TensorInfo(name, (count,), DataType.FLOAT32))
    made.set_outputs([made.add_relu_layer("x", name="narrow"), made.add_relu_layer("y", name="wide")])
    return made


def refusal(backend: Backend, layer: str, target: Target) -> str:
    made = network()
    return backend.layer_support().supports(made, made.layer(layer), target).reason


def test_each_device_answers_for_itself(registry: BackendRegistry) -> None:
    backend = registry.create("Target")
    for face, number in ((Face.HOST, 0), (Face.FIRMWARE, 1)):
        assert refusal(backend, "narrow", Target(face=face, device=SMALL)) == ""
        assert refusal(backend, "wide", Target(face=face, device=LARGE)) == ""
        assert refusal(backend, "narrow", Target(face=face, device=LARGE)) == (
            f"face={number} device=large macs=256 core=none 000 size=1"
        )


def test_all_fields_cross(registry: BackendRegistry) -> None:
    target = Target(
        face=Face.FIRMWARE,
        device=Device(name="far", backend=ID, binding={"macs": 7, "uart": "uart1"}, regions=("ram", "rom")),
        core=CoreFeatures(name="cortex-m55", fpu=True, mve=True),
        memories=(
            Memory(
                name="ram",
                address=0x2000_0000,
                size_bytes=0x1_0000,
                kind=MemoryKind.RAM,
                cacheable=True,
                line_bytes=32,
                masters=("cpu",),
            ),
            Memory(
                name="rom",
                address=0,
                size_bytes=1 << 33,
                kind=MemoryKind.FLASH,
                cacheable=False,
                line_bytes=0,
                masters=("cpu",),
            ),
        ),
        options={"level": 3},
    )
    assert refusal(registry.create("Target"), "narrow", target) == (
        "face=1 device=far macs=7 core=cortex-m55 101 size=1 region=ram region=rom "
        "ram=20000000+10000,11,32 rom=0+200000000,00,0 level=3"
    )


@pytest.mark.parametrize("face", list(Face))
def test_the_optimizer_compiles_for_a_device(registry: BackendRegistry, face: Face) -> None:
    made = network()
    labels = []
    for device in (SMALL, LARGE):
        views = registry.create("Target").optimize_subgraph(
            SubgraphView.of(made, ["wide"]), Target(face=face, device=device)
        )
        (layer,) = views.substitutions[0].layers
        assert isinstance(layer.descriptor, PreCompiledDescriptor)
        labels.append(layer.descriptor.label)
    number = 0 if face is Face.HOST else 1
    assert labels == [
        f"face={number} device={device.name} macs={macs} core=none 000 size=1"
        for device, macs in ((SMALL, 32), (LARGE, 256))
    ]


def test_workloads_are_made_for_a_device(registry: BackendRegistry) -> None:
    options = OptimizerOptions(devices=(SMALL, LARGE), hints={"wide": "Target/large"})
    with Runtime(registry=registry) as runtime:
        optimized = optimize(network(), ["Target", "CpuRef"], runtime.registry, options)
        assert {given.device for given in optimized.assignment.values()} == {"small", "large"}
        number = runtime.load_network(optimized)
        with pytest.raises(DynamicLibraryError, match="made for face=0 device=small macs=32"):
            runtime.enqueue_workload(number, [np.zeros(16, np.float32), np.zeros(128, np.float32)])
