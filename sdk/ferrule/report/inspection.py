# SPDX-License-Identifier: Apache-2.0
"""Describes a network before anything is generated: the output of `ferrule inspect`, as data."""

from __future__ import annotations

import sys
from dataclasses import MISSING, dataclass, fields, replace

from ferrule._typing import override
from ferrule.codegen import Artifact
from ferrule.firmware import Job
from ferrule.firmware.arena import ArenaPart, arena_of
from ferrule.firmware.fitting import BoardFit
from ferrule.graph import Graph, Layer, Rounding, TensorInfo, brief
from ferrule.memory import GraphPlan, Region, plan_graph
from ferrule.network import Network
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.operators.window import Padding
from ferrule.report.estimates import EstimatePart, distinct_estimates
from ferrule.report.notebooks import Notebook
from ferrule.report.picture import EnvironmentPart, RegionPlanPart
from ferrule.report.plans import activation_parts, firmware_plan
from ferrule.report.surroundings import environment

SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPart:
    """The description of a tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    """Empty without quantisation; otherwise one scale for the tensor, or one per channel."""
    zero_points: tuple[int, ...]
    axis: int | None
    """The channel axis if there are several scales, otherwise null."""
    constant: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerInspection:
    """The description of a layer."""

    index: int
    name: str
    type: str
    parameters: dict[str, str]
    """The descriptor's fields that differ from their defaults."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    macs: int
    constant_bytes: int
    rounding: str = Rounding.TFLM.value
    """The rule by which it requantises; "tflm" if it does not."""
    inner: tuple[LayerInspection, ...] = ()
    """The layers of the graphs that the layer runs; the name of the graph precedes those of its layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalPart:
    """A backend that does not support a layer."""

    backend: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakerPart:
    """The backend that supports a layer."""

    layer: str
    backend: str | None
    """None if no backend supports the layer."""
    device: str | None
    refusals: tuple[RefusalPart, ...]
    """The refusals, in order of preference, including backends after the chosen one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPart:
    """A backend that was queried."""

    id: str
    host: bool
    """Whether it runs layers on the host."""
    firmware: bool
    """Whether it runs layers on boards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalLayerPart:
    """A layer of the network after the optimizer and the backends have rewritten it."""

    layer: str
    type: str
    backend: str
    device: str
    replaces: tuple[str, ...]
    """The layers that it replaced, if its backend inserted it."""
    label: str
    """The backend's name for it, if it is a pre-compiled object."""
    estimate: EstimatePart | None = None
    """What the compiler of a pre-compiled object expects; null for others, or if it states nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossingPart:
    """A tensor that passes from one backend to another on the host."""

    layer: str
    """The layer that the optimizer inserted for it."""
    tensor: str
    strategy: str
    """"copy", "export" or "fallback import"."""
    reason: str
    size_bytes: int
    alignment_bytes: int
    """The alignment that imported memory needs at both ends; 1 for a copy between the backends' own memories."""
    source: str
    """The backend that writes the tensor; empty for an input of the network."""
    source_factory: str
    """Empty for plain memory."""
    target: str
    target_factory: str
    memory: str = ""
    """The kinds of memory that the runtime allocates for it, such as "malloc and dma-buf"; empty if none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalPart:
    """The final assignment of layers to backends, on the host or in firmware."""

    face: str
    """"host" or "firmware"."""
    layers: tuple[FinalLayerPart, ...] = ()
    gone: tuple[str, ...] = ()
    """Layers of the given network that were fused, folded or deleted and have no replacement layer of a backend."""
    messages: tuple[str, ...] = ()
    """Messages about requests that were not met."""
    crossings: tuple[CrossingPart, ...] = ()
    """The tensors that pass from one backend to another; empty for firmware."""
    dma_bufs: str = ""
    """What the runtime's dma-bufs are on this machine, such as a stand-in; empty if no tensor lies in one."""
    problem: str = ""
    """The reason why the network cannot run there; empty if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DivisionPart:
    """The backend for each layer of the given network, and the assignment after the backends have rewritten it."""

    backends: tuple[BackendPart, ...]
    """The backends, in order of preference."""
    layers: tuple[TakerPart, ...]
    """The layers of the network as given."""
    finals: tuple[FinalPart, ...]
    """The final assignments for the host and for firmware."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledPart:
    """One operator of the firmware, and the device calls around it."""

    index: int
    """Position in the order of execution."""
    layer: str
    backend: str
    device: str
    calls: tuple[str, ...]
    """The device calls in order, such as "npu0 open"; empty if no device is called."""
    beside: tuple[str, ...] = ()
    """The layers, begun before, that devices go on with while this one runs."""
    copies: tuple[str, ...] = ()
    """The tensors that it expects inside its scratch, but that the core copies to it or from it, with the reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCrossingPart:
    """A tensor of the firmware that the core or a device writes and another one of them reads."""

    tensor: str
    writer: str
    """The name of a device, or "the core", which also stands for the caller."""
    reader: str
    bytes: int
    became: str
    """"shared in place" or "copied"."""
    alignment: int
    """In bytes."""
    why: str
    """The reason why the crossing is no cheaper; empty if nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPart:
    """A kernel that was considered for a layer of the firmware."""

    kernel: str
    chosen: bool
    reason: str
    """Why it was chosen or not."""
    instructions: int | None
    """Estimate for one inference; null if the kernel cannot run the layer, or the backend states none."""
    weight_bytes: int | None
    scratch_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapPart:
    """How far the chosen kernel's output may overlap an input."""

    input: str
    forward_bytes: int | None
    """Bytes by which the output must start below the input; null if it may not start below."""
    backward_bytes: int | None
    """Bytes by which the output must start above the input; null if it may not start above."""
    step_bytes: int
    """The difference must be a multiple of this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKernelsPart:
    """The kernels considered for a layer of the firmware, in the order of execution."""

    layer: str
    type: str
    backend: str
    kernels: tuple[KernelPart, ...]
    overlaps: tuple[OverlapPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLayerPart:
    """What becomes of a layer in a C++ class over the Arm Compute Library."""

    layer: str
    functions: tuple[str, ...]
    """The classes of the library that compute it, in order; empty if it is not possible."""
    reason: str
    """Why it is not possible; empty if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPart:
    """What becomes of a network as a C++ class over the Arm Compute Library."""

    target: str
    acl_version: str
    float16: bool
    layers: tuple[ClassLayerPart, ...]
    outputs: tuple[str, ...]
    """Why outputs of the network cannot be outputs of the class; usually empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection(Notebook):
    """All facts about a network before it is built, and the arena that its firmware will have."""

    kind: str = "inspection"
    schema_version: int = SCHEMA_VERSION
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: tuple[TensorPart, ...]
    layers: tuple[LayerInspection, ...]
    macs: int
    constant_bytes: int
    whole_layers_bytes: int
    """The least arena found for the network's own activations: each layer in whole, without overlap and scratch."""
    arena: ArenaPart | None = None
    """The arena of the firmware; None if there is no firmware for the job."""
    arena_problem: str = ""
    """Why there is no firmware for the job, or by how much the arena exceeds the board's memory; usually empty."""
    division: DivisionPart | None = None
    """None if no backends were queried."""
    schedule: tuple[ScheduledPart, ...] | None = None
    """None unless it was requested."""
    crossings: tuple[DeviceCrossingPart, ...] | None = None
    """The tensors that cross between the core and devices in the firmware; None unless the schedule was requested."""
    kernels: tuple[LayerKernelsPart, ...] | None = None
    """The kernels of the firmware's layers, in the order of execution; None unless they were requested."""
    artifact: ClassPart | None = None
    """None unless a target of a C++ class was given."""
    boards: tuple[BoardFit, ...] | None = None
    """Whether the firmware's plan fits each board; None unless it was requested."""
    plan: tuple[RegionPlanPart, ...] = ()
    """The firmware's memory plan; without `arena`, that of the network's own activations alone."""
    signatures: tuple[str, ...] = ()
    """The signatures of the model's file, the network's own first; empty if it has none."""
    environment: EnvironmentPart | None = None

    @property
    def estimates(self) -> tuple[tuple[str, EstimatePart], ...]:
        """What compilers expect of pre-compiled layers, with the layers' names; once if host and firmware agree."""
        finals = () if self.division is None else self.division.finals
        return distinct_estimates((layer.layer, layer.estimate) for final in finals for layer in final.layers)

    @override
    def __repr__(self) -> str:
        arena = "" if self.arena is None else f", arena {self.arena.size_bytes:,} B on {self.arena.board}"
        return (
            f"<Inspection {brief(self.name)}: {len(self.layers)} layers, {self.macs:,} MACs, "
            f"{self.constant_bytes:,} B of constants{arena}>"
        )

    def tensor(self, name: str) -> TensorPart:
        """Return a tensor by name; KeyError if there is none."""
        for part in self.tensors:
            if part.name == name:
                return part
        raise KeyError(name)


def _activation_plan(graph: Graph) -> GraphPlan:
    """Return the plan of only the activations, in one region without a size limit, and of the state in another."""
    region = Region(name="sram", size_bytes=sys.maxsize, reachable_by=frozenset({"core"}))
    return plan_graph(graph, [region], state=replace(region, name="state") if graph.states else None)


def inspect_network(graph: Graph) -> Inspection:
    """Return the description of a network, with its own activations laid out by the planner, and without an arena."""
    layers = tuple(_layer(graph, index, layer) for index, layer in enumerate(graph.layers))
    planned = _activation_plan(graph)
    return Inspection(
        name=graph.name,
        inputs=tuple(info.name for info in graph.inputs),
        outputs=tuple(info.name for info in graph.outputs),
        signatures=graph.signatures if isinstance(graph, Network) else (),
        tensors=tuple(_tensor(tensor.info, constant=tensor.is_constant) for tensor in graph.tensors),
        layers=layers,
        macs=sum(layer.macs for layer in layers),
        constant_bytes=sum(tensor.info.size_bytes for tensor in graph.tensors if tensor.is_constant)
        + sum(each.constant_bytes for layer in layers for each in layer.inner),
        whole_layers_bytes=planned.plan.region("sram").peak_bytes,
        plan=activation_parts(graph, planned),
        environment=environment(),
    )


def with_arena(inspection: Inspection, artifact: Artifact, job: Job) -> Inspection:
    """Return an inspection with the arena and the memory plan of a firmware that was generated for a job."""
    return replace(inspection, arena=arena_of(artifact, job), plan=firmware_plan(artifact))


def _tensor(info: TensorInfo, *, constant: bool) -> TensorPart:
    quantization = info.quantization
    return TensorPart(
        name=info.name,
        shape=info.shape,
        dtype=str(info.dtype),
        scales=() if quantization is None else quantization.scales,
        zero_points=() if quantization is None else quantization.zero_points,
        axis=quantization.axis if quantization is not None and quantization.per_channel else None,
        constant=constant,
    )


def _layer(graph: Graph, index: int, layer: Layer) -> LayerInspection:
    operands = Operands.of(graph, layer)
    constants = {name for name in layer.present_inputs if graph.tensor(name).is_constant}
    inner = tuple(
        replace(_layer(called, position, each), name=f"{role}/{each.name}")
        for role, called in layer.descriptor.graphs.items()
        for position, each in enumerate(called.layers)
    )
    return LayerInspection(
        index=index,
        name=layer.name,
        type=str(layer.type),
        parameters=_parameters(layer),
        inputs=layer.present_inputs,
        outputs=layer.outputs,
        macs=OPERATORS[layer.type].macs(layer.descriptor, operands),
        constant_bytes=sum(graph.info(name).size_bytes for name in constants)
        + sum(each.constant_bytes for each in inner),
        rounding=layer.rounding.value,
        inner=inner,
    )


def _parameters(layer: Layer) -> dict[str, str]:
    descriptor = layer.descriptor
    return {
        field.name: _written(getattr(descriptor, field.name))
        for field in fields(descriptor)
        if field.default is MISSING or getattr(descriptor, field.name) != field.default
    }


def _written(value: object) -> str:
    if isinstance(value, Padding):
        return f"top {value.top} bottom {value.bottom} left {value.left} right {value.right}"
    return str(value)
