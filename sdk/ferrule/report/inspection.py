# SPDX-License-Identifier: Apache-2.0
"""What a network is, before anything is generated: what `ferrule inspect` shows."""

from __future__ import annotations

import sys
from dataclasses import MISSING, dataclass, fields

from ferrule._typing import override
from ferrule.graph import Graph, Layer, TensorInfo, brief
from ferrule.memory import GraphPlan, Region, plan_graph
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPart:
    """A tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    """Empty without quantisation, one per tensor, or one per channel."""
    zero_points: tuple[int, ...]
    axis: int | None
    """The channel axis where there are several scales."""
    constant: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerInspection:
    """A layer."""

    index: int
    name: str
    type: str
    parameters: dict[str, str]
    """The descriptor's fields that are not at their defaults."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    macs: int
    constant_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaPart:
    """The memory that activations need, kernel scratch apart."""

    activation_bytes: int
    bound_bytes: int
    """No plan is smaller: proved for the order of layers given."""
    certificate: str
    """How good the arena is, and the order of layers where it is not proved to be the best."""
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalPart:
    """A backend that does not take a layer."""

    backend: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakerPart:
    """Who takes a layer."""

    layer: str
    backend: str | None
    """None if nobody takes it."""
    device: str | None
    refusals: tuple[RefusalPart, ...]
    """Those who were or would be asked and refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPart:
    """A backend that was asked."""

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
    """Layers whose place it took, where its backend put it in."""
    label: str
    """What the backend calls it, where it is a pre-compiled object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalPart:
    """Who finally runs what, on the host or in firmware."""

    face: str
    """host or firmware."""
    layers: tuple[FinalLayerPart, ...] = ()
    gone: tuple[str, ...] = ()
    """Layers of the network as given that were fused, folded or deleted, and that no backend's layer replaces."""
    messages: tuple[str, ...] = ()
    """What was asked and not given."""
    problem: str = ""
    """Why it cannot run there; empty if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DivisionPart:
    """Who takes each layer of the network as it stands, and who runs it after backends have rewritten it."""

    backends: tuple[BackendPart, ...]
    """In order of preference."""
    layers: tuple[TakerPart, ...]
    """Of the network as it is given."""
    finals: tuple[FinalPart, ...]
    """For the host and for firmware."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledPart:
    """One operator of the firmware, and the calls of devices round it."""

    index: int
    """In the order of execution."""
    layer: str
    backend: str
    device: str
    calls: tuple[str, ...]
    """Such as "npu0 open", in order; empty where no device is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything that can be said of a network without a board."""

    schema_version: int = SCHEMA_VERSION
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: tuple[TensorPart, ...]
    layers: tuple[LayerInspection, ...]
    macs: int
    constant_bytes: int
    arena: ArenaPart
    division: DivisionPart | None = None
    """None where no backends were asked."""
    schedule: tuple[ScheduledPart, ...] | None = None
    """None unless it was asked for."""

    @override
    def __repr__(self) -> str:
        return (
            f"<Inspection {brief(self.name)}: {len(self.layers)} layers, {self.macs:,} MACs, "
            f"{self.constant_bytes:,} B of constants, {self.arena.activation_bytes:,} B of activations>"
        )

    def tensor(self, name: str) -> TensorPart:
        """Return a tensor by name; KeyError if there is none."""
        for part in self.tensors:
            if part.name == name:
                return part
        raise KeyError(name)


def activation_plan(graph: Graph) -> GraphPlan:
    """Return the plan of the activations alone, in one region without limit."""
    return plan_graph(graph, [Region(name="sram", size_bytes=sys.maxsize, reachable_by=frozenset({"core"}))])


def inspect_network(graph: Graph) -> Inspection:
    """Return what a network is; the planner lays out its activations."""
    layers = tuple(_layer(graph, index, layer) for index, layer in enumerate(graph.layers))
    planned = activation_plan(graph)
    region = planned.plan.region("sram")
    return Inspection(
        name=graph.name,
        inputs=tuple(info.name for info in graph.inputs),
        outputs=tuple(info.name for info in graph.outputs),
        tensors=tuple(_tensor(tensor.info, constant=tensor.is_constant) for tensor in graph.tensors),
        layers=layers,
        macs=sum(layer.macs for layer in layers),
        constant_bytes=sum(tensor.info.size_bytes for tensor in graph.tensors if tensor.is_constant),
        arena=ArenaPart(
            activation_bytes=region.activation_peak_bytes,
            bound_bytes=region.activation_bound_bytes,
            certificate=planned.ordering.qualify(region.activation_certificate),
            order=planned.ordering.layers,
        ),
    )


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
    operands = Operands(inputs=graph.input_infos(layer), outputs=graph.output_infos(layer))
    macs = OPERATORS[layer.type].macs
    constants = {name for name in layer.present_inputs if graph.tensor(name).is_constant}
    return LayerInspection(
        index=index,
        name=layer.name,
        type=str(layer.type),
        parameters=_parameters(layer),
        inputs=layer.present_inputs,
        outputs=layer.outputs,
        macs=0 if macs is None else macs(layer.descriptor, operands),
        constant_bytes=sum(graph.info(name).size_bytes for name in constants),
    )


def _parameters(layer: Layer) -> dict[str, str]:
    descriptor = layer.descriptor
    return {
        field.name: str(getattr(descriptor, field.name))
        for field in fields(descriptor)
        if field.default is MISSING or getattr(descriptor, field.name) != field.default
    }
