# SPDX-License-Identifier: Apache-2.0
"""Backends are queried per device: two devices of one kind can get different layers, programs and C."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule._typing import override
from ferrule.backends import Backend, BackendId, Device, LayerSupport, PreCompiledDescriptor, Support, Target
from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.firmware import FirmwareTarget, LoweredOp, LoweringContext
from ferrule.backends.optimization_views import ModelOptions, OptimizationViews, pre_compiled
from ferrule.backends.option import BackendOption
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.target import Face
from ferrule.backends.tensor_handle import MemoryManager
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.boards import load_board
from ferrule.dom import Assign, Index, Integer
from ferrule.firmware import Job, emit
from ferrule.graph import Graph, Layer, LayerType, SubgraphView
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

ID = BackendId("Array")
SMALL = Device(name="small", backend=ID, binding={"macs": 32})
LARGE = Device(name="large", backend=ID, binding={"macs": 256})


@dataclass
class Questions:
    """The targets passed to the backend, by method."""

    asked: dict[str, list[Target]] = field(default_factory=dict)

    def add(self, method: str, target: Target) -> None:
        self.asked.setdefault(method, []).append(target)

    def devices(self, method: str) -> set[tuple[str, object]]:
        return {(target.device.name, target.device.binding["macs"]) for target in self.asked[method]}


class ArrayUnit(Backend):
    """RELU on an array of multipliers; a layer's program contains the size of the array."""

    id: ClassVar[BackendId] = ID
    questions: ClassVar[Questions]

    @override
    def layer_support(self) -> LayerSupport:
        return ArraySupport(self.questions)

    @override
    def model_options(self) -> tuple[BackendOption, ...]:
        return (BackendOption(name="level", default=0, meaning="how hard to try", firmware=True),)

    @override
    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        self.questions.add("optimize", target)
        parts = [SubgraphView.of(view.graph, [name]) for name in view.names]
        macs = target.device.binding["macs"]
        return OptimizationViews(
            substitutions=tuple(
                pre_compiled(f"{part.names[0]} on {macs}", part, PreCompiledDescriptor(payload=macs)) for part in parts
            )
        )

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        return ArrayWorkloads(self.questions)

    @override
    def firmware_target(self) -> FirmwareTarget:
        return ArrayFirmware(self.questions)


@dataclass
class ArraySupport:
    questions: Questions

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        self.questions.add("supports", target)
        macs = target.device.binding["macs"]
        elements = graph.output_infos(layer)[0].elements
        if layer.type is not LayerType.RELU or elements % int(macs):
            return Support(f"{elements} elements do not fill {macs} multipliers")
        return Support()


@dataclass
class ArrayWorkloads(WorkloadFactory):
    questions: Questions

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        self.questions.add("workload", info.target)
        return ArrayWorkload(info)


@dataclass
class ArrayWorkload:
    info: WorkloadInfo

    def execute(self) -> None:
        """Write the number of multipliers for which the layer was compiled."""
        descriptor = self.info.layer.descriptor
        assert isinstance(descriptor, PreCompiledDescriptor)
        assert descriptor.payload == self.info.target.device.binding["macs"]
        output = self.info.outputs[0].map()
        output[:] = np.int8(int(self.info.target.device.binding["macs"]) // 4)
        self.info.outputs[0].unmap()


@dataclass
class ArrayFirmware:
    questions: Questions

    def lower(self, context: LoweringContext) -> LoweredOp:
        self.questions.add("lower", context.target)
        macs = context.target.device.binding["macs"]
        store = Assign(Index(context.output_pointer(), Integer(0)), Integer(int(macs) // 4))
        return LoweredOp(kernel=f"array_{macs}", statements=(store,))


@pytest.fixture
def registry() -> BackendRegistry:
    ArrayUnit.questions = Questions()
    made = BackendRegistry()
    for backend in (ArrayUnit, CpuRef, CpuAcc):
        made.register(backend.id, backend)
    return made


def network() -> Network:
    made = Network("macs")
    for name, elements in (("x", 32), ("y", 256)):
        made.add_input(TensorInfo(name, (elements,), DataType.INT8, quantization=Quantization.of(0.5)))
    made.set_outputs([made.add_relu_layer("x", name="narrow"), made.add_relu_layer("y", name="wide")])
    return made


def test_on_the_host(registry: BackendRegistry) -> None:
    options = OptimizerOptions(
        devices=(SMALL, LARGE), hints={"wide": "Array/large"}, model_options={"Array": {"level": 2}}
    )
    with Runtime(registry=registry) as runtime:
        optimized = optimize(network(), ["Array", "CpuRef"], runtime.registry, options)
        assert {name: given.device for name, given in optimized.assignment.items()} == {
            "narrow on 32": "small",
            "wide on 256": "large",
        }
        number = runtime.load_network(optimized)
        outputs = runtime.enqueue_workload(number, [np.zeros(32, np.int8), np.zeros(256, np.int8)])
    assert [int(output[0]) for output in outputs] == [8, 64]
    for method in ("supports", "optimize", "workload"):
        assert ArrayUnit.questions.devices(method) == {("small", 32), ("large", 256)}
        assert all(target.face is Face.HOST for target in ArrayUnit.questions.asked[method])
        assert all(target.core is None and target.memories == () for target in ArrayUnit.questions.asked[method])
        assert all(target.options == {"level": 2} for target in ArrayUnit.questions.asked[method])


def test_in_firmware(registry: BackendRegistry) -> None:
    board = load_board("mps2-an386")
    job = Job(
        board=board,
        backends=("Array", "CpuAcc"),
        devices=(SMALL, LARGE),
        hints={"wide": "Array/large"},
        model_options={"Array": {"level": 3}},
        registry=registry,
    )
    artifact = emit(network(), job)
    assert [(record.device, record.kernel) for record in artifact.operators] == [
        ("small", "array_32"),
        ("large", "array_256"),
    ]
    for method in ("supports", "optimize", "lower"):
        assert ArrayUnit.questions.devices(method) == {("small", 32), ("large", 256)}
        for target in ArrayUnit.questions.asked[method]:
            assert (target.face, target.core, target.memories) == (Face.FIRMWARE, board.cpu.features, board.memories)
            assert target.options == {"level": 3}


def test_a_device_refuses_what_another_of_its_kind_takes(registry: BackendRegistry) -> None:
    """The reason for a refusal comes from the device to which the layer would be assigned."""
    options = OptimizerOptions(devices=(LARGE, SMALL))
    optimized = optimize(network(), ["Array", "CpuRef"], registry, options)
    assert optimized.assignment["narrow"].backend == "CpuRef"
    assert optimized.refusals["narrow", ID] == "32 elements do not fill 256 multipliers"
    assert optimized.assignment["wide on 256"].device == "large"


def test_targets_are_plain_values() -> None:
    first, second = (Target(face=Face.HOST, device=device) for device in (SMALL, LARGE))
    assert first != second
    assert first == Target(face=Face.HOST, device=Device(name="small", backend=ID, binding={"macs": 32}))
