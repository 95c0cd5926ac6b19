# SPDX-License-Identifier: Apache-2.0
"""The partition decides the firmware: the backend and device of each layer, and its form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import small_networks

import ferrule
from ferrule._frozen import frozen
from ferrule.backends import Backend, BackendId, Device, Support
from ferrule.backends.contribution import Contribution
from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.firmware import FirmwareTarget, LoweredOp, LoweringContext
from ferrule.backends.optimization_views import (
    OptimizationViews,
    PreCompiledDescriptor,
    Substitution,
    pre_compiled,
)
from ferrule.backends.option import BackendOption
from ferrule.backends.registry import BackendRegistry, default_registry
from ferrule.backends.target import Face, Target
from ferrule.dom import Call, Evaluate, Identifier, Integer
from ferrule.errors import FerruleError
from ferrule.firmware import Job, divide, emit
from ferrule.graph import Graph, Layer, LayerType, SubgraphView

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
void {name}(const int8_t *first, const int8_t *second, int8_t *output, int32_t elements);
"""
SOURCE = """/* SPDX-License-Identifier: Apache-2.0 */
#include "{name}.h"
void {name}(const int8_t *first, const int8_t *second, int8_t *output, int32_t elements)
{{
    for (int32_t i = 0; i < elements; ++i) {{
        output[i] = first[i] {sign} second[i] ? first[i] : second[i];
    }}
}}
"""


@frozen
class Unit:
    """Support and firmware target of a backend with one layer type and its own C."""

    folder: Path
    name: str
    type: LayerType

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        del graph
        return Support("" if layer.type is self.type else f"no {layer.type}")

    def lower(self, context: LoweringContext) -> LoweredOp:
        payload = context.layer.descriptor
        assert not isinstance(payload, PreCompiledDescriptor) or payload.payload == self.name
        operands = (context.input_pointer(0), context.input_pointer(1), context.output_pointer())
        call = Call(Identifier(self.name), (*operands, Integer(context.operands.output.elements)))
        return LoweredOp(
            kernel=f"{self.name}@{context.target.device.binding.get('base')}",
            statements=(Evaluate(call),),
            headers=(f"{self.name}.h",),
            contributions=(
                Contribution(
                    name=f"backends/{self.folder.name}",
                    folder=self.folder,
                    sources=(f"{self.name}.c",),
                    include_dirs=("include",),
                ),
            ),
        )


class Maximums(Backend):
    """A backend that compiles MAXIMUM into a pre-compiled object."""

    id: ClassVar[BackendId] = BackendId("Maximums")
    unit: ClassVar[Unit]

    def layer_support(self) -> Unit:
        return self.unit

    def firmware_target(self) -> FirmwareTarget | None:
        return self.unit

    def model_options(self) -> tuple[BackendOption, ...]:
        return (BackendOption(name="fail", default=False, meaning="fail on every layer", firmware=True),)

    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        if target.options.get("fail"):
            return OptimizationViews(failed=(view,), reasons=dict.fromkeys(view.names, "it was told to fail"))
        parts = [SubgraphView.of(view.graph, [name]) for name in view.names]
        return OptimizationViews(substitutions=tuple(self.compiled(part) for part in parts))

    def compiled(self, part: SubgraphView) -> Substitution:
        descriptor = PreCompiledDescriptor(payload=self.unit.name, label="maximum", macs=7)
        return pre_compiled(f"compiled {part.names[0]}", part, descriptor)


class Minimums(Backend):
    """A backend that runs MINIMUM unchanged."""

    id: ClassVar[BackendId] = BackendId("Minimums")
    unit: ClassVar[Unit]

    def layer_support(self) -> Unit:
        return self.unit

    def firmware_target(self) -> FirmwareTarget | None:
        return self.unit


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BackendRegistry:
    """All backends, and two whose C sources are in separate folders."""
    registry = default_registry().scope()
    for backend, type_, sign in ((Maximums, LayerType.MAXIMUM, ">"), (Minimums, LayerType.MINIMUM, "<")):
        name = f"choose_{backend.id.lower()}"
        folder = tmp_path / "backends" / backend.id.lower()
        (folder / "include").mkdir(parents=True)
        (folder / "include" / f"{name}.h").write_text(HEADER.format(name=name))
        (folder / f"{name}.c").write_text(SOURCE.format(name=name, sign=sign))
        monkeypatch.setattr(backend, "unit", Unit(folder=folder, name=name, type=type_), raising=False)
        registry.register(backend.id, backend)
    return registry


def network() -> ferrule.Network:
    """Return a network with three layer types, for three backends."""
    made = ferrule.Network("three")
    for name in ("x", "y"):
        made.add_input(small_networks.int8_input(name, 2, 3))
    largest = made.add_maximum_layer("x", "y", name="largest")
    total = made.add_add_layer(largest, "x", quantization=small_networks.SCALE, name="total")
    made.set_outputs([made.add_minimum_layer(total, largest, name="smallest")])
    return made


ALL = ["Maximums", "Minimums", "CpuAcc"]


@pytest.mark.cc
@pytest.mark.emu
def test_one_executor_calls_three_backends(any_toolchain: str, registry: BackendRegistry, tmp_path: Path) -> None:
    devices = (Device(name="max0", backend=Maximums.id, binding={"base": 64}), Device(name="cpu", backend=CpuAcc.id))
    firmware = ferrule.compile(
        network(), backends=ALL, devices=devices, registry=registry, toolchain=any_toolchain, out=tmp_path / "project"
    )
    report = firmware.run()
    assert report.verdict is ferrule.Verdict.EXACT
    assert [(layer.name, layer.backend, layer.device, layer.macs) for layer in report.layers] == [
        ("compiled largest", "Maximums", "max0", 7),
        ("total", "CpuAcc", "cpu", 0),
        ("smallest", "Minimums", "Minimums", 0),
    ]
    assert [layer.kernel for layer in report.layers][::2] == ["choose_maximums@64", "choose_minimums@None"]
    assert firmware.warnings == ()
    sources = firmware.project.manifest.sources
    assert "lib/backends/maximums/choose_maximums.c" in sources
    assert "lib/backends/minimums/choose_minimums.c" in sources


@pytest.mark.cc
@pytest.mark.emu
def test_on_both_engines(zig: str, qemu: str, registry: BackendRegistry) -> None:
    firmware = ferrule.compile(network(), backends=ALL, registry=registry, toolchain=zig)
    for engine in ("unicorn", "qemu"):
        assert firmware.run(engine=engine).verdict is ferrule.Verdict.EXACT


def kernels(job: Job) -> list[tuple[str, str, str]]:
    artifact = emit(network(), job)
    return [(operator.layer, operator.backend, operator.device) for operator in artifact.operators]


def test_hints_and_devices(registry: BackendRegistry) -> None:
    devices = (Device(name="a", backend=CpuAcc.id), Device(name="b", backend=CpuAcc.id))
    job = Job(backends=tuple(ALL), hints={"largest": "CpuAcc/b"}, devices=devices, registry=registry)
    assert kernels(job) == [
        ("largest", "CpuAcc", "b"),
        ("total", "CpuAcc", "a"),
        ("smallest", "Minimums", "Minimums"),
    ]


def test_only_what_failed_goes_on(registry: BackendRegistry) -> None:
    job = Job(backends=tuple(ALL), model_options={"Maximums": {"fail": True}}, registry=registry)
    assert kernels(job)[0] == ("largest", "CpuAcc", "CpuAcc")
    optimized = divide(network(), job)
    assert "it was told to fail" in optimized.refusals["largest", Maximums.id]


def test_the_reference_is_the_network_as_given(registry: BackendRegistry) -> None:
    made = network()
    optimized = divide(made, Job(backends=tuple(ALL), registry=registry))
    assert [layer.type for layer in made.layers] == [LayerType.MAXIMUM, LayerType.ADD, LayerType.MINIMUM]
    assert optimized.graph.layers[0].type is LayerType.PRE_COMPILED
    assert [info.name for info in optimized.graph.outputs] == ["smallest"]


def test_digests_tell_pre_compiled_objects_apart(registry: BackendRegistry) -> None:
    job = Job(backends=tuple(ALL), registry=registry)
    digests = {emit(network(), job).digest for _ in range(2)}
    assert len(digests) == 1
    digests.add(emit(network(), replace(job, backends=("CpuAcc",))).digest)
    assert len(digests) == 2


class HostOnly(Minimums):
    id: ClassVar[BackendId] = BackendId("HostOnly")

    def firmware_target(self) -> FirmwareTarget | None:
        return None


def test_a_backend_without_a_firmware_face(registry: BackendRegistry) -> None:
    registry.register("HostOnly", HostOnly)
    optimized = divide(network(), Job(backends=("HostOnly", "CpuAcc"), registry=registry))
    assert optimized.backends == ("CpuAcc",)
    assert any("HostOnly is left out" in message for message in optimized.messages)
    with pytest.raises(FerruleError, match="none of the preferred backends can be used here"):
        divide(network(), Job(backends=("HostOnly",), registry=registry))
    assert divide(network(), Job(backends=("CpuRef",)), face=Face.HOST).backends == ("CpuRef",)


@pytest.mark.parametrize(
    ("regions", "reason"),
    [
        (("ssram1", "ssram23"), ""),
        (("ssram1", "sram"), "there is no memory 'sram' on mps2-an386, for a region of device 'm0'"),
        (("ssram1",), "device 'm0' cannot access memory 'ssram23', where mps2-an386 has its workspace"),
        (("ssram23",), "device 'm0' cannot access memory 'ssram1', where mps2-an386 has its weights"),
    ],
)
def test_regions_of_devices(registry: BackendRegistry, regions: tuple[str, ...], reason: str) -> None:
    device = Device(name="m0", backend=Maximums.id, regions=regions)
    job = Job(backends=tuple(ALL), devices=(device,), registry=registry)
    if not reason:
        assert kernels(job)[0] == ("compiled largest", "Maximums", "m0")
        return
    with pytest.raises(FerruleError, match=reason):
        kernels(job)
    assert kernels(replace(job, backends=("CpuAcc",)))  # an unused device may have any address


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"backends": ["Maximum"]}, "there is no backend 'Maximum'"),
        ({"backends": ["CpuAcc", "CpuAcc"]}, "is listed twice"),
        ({"hints": {"largest": "CpuAcc/npu7"}}, "there is no device 'npu7' of backend CpuAcc"),
        ({"hints": {"biggest": "CpuAcc"}}, "there is no layer 'biggest' in 'three'"),
        (
            {"devices": [Device(name="d", backend=BackendId("No"))]},
            "there is no backend 'No' of which device 'd' is an instance",
        ),
    ],
)
def test_names_that_are_not_there(arguments: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match=reason):
        ferrule.compile(network(), out=tmp_path / "project", **arguments)  # type: ignore[arg-type]
