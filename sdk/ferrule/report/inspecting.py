# SPDX-License-Identifier: Apache-2.0
"""Describes a network: its tensors, its layers and its own activations, before anything is generated."""

from __future__ import annotations

import sys
from dataclasses import MISSING, fields, replace

from ferrule.codegen import Artifact
from ferrule.firmware import Job, planned_time
from ferrule.firmware.arena import arena_of
from ferrule.graph import Graph, Layer, TensorInfo
from ferrule.memory import Region, Requirements, plan_graph
from ferrule.network import Network
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.report.base import part_of
from ferrule.report.inspection import Inspection
from ferrule.report.inspection_parts import LayerInspection, TensorPart
from ferrule.report.islands import islands_of
from ferrule.report.plans import activation_parts, firmware_plan
from ferrule.report.surroundings import environment


def inspect_network(graph: Graph) -> Inspection:
    """Return the description of a network, with its own activations laid out by the planner, and without an arena."""
    layers = tuple(_layer(graph, index, layer) for index, layer in enumerate(graph.layers))
    region = Region(name="sram", size_bytes=sys.maxsize, reachable_by=frozenset({"core"}))
    state = replace(region, name="state") if graph.states else None
    planned = plan_graph(graph, [region], Requirements(state=state))
    return Inspection(
        name=graph.name,
        inputs=tuple(info.name for info in graph.inputs),
        outputs=tuple(info.name for info in graph.outputs),
        signatures=graph.signatures if isinstance(graph, Network) else (),
        notes=graph.notes if isinstance(graph, Network) else (),
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
    """Return an inspection with the arena, planned time and memory plan of a firmware that was generated for a job."""
    planned = planned_time(artifact, job.load_board())
    return replace(
        inspection,
        arena=arena_of(artifact, job),
        planned=planned,
        islands=islands_of(artifact, planned),
        plan=firmware_plan(artifact),
    )


def _tensor(info: TensorInfo, *, constant: bool) -> TensorPart:
    found = info.quantization
    scales, zero_points = ((), ()) if found is None else (found.scales, found.zero_points)
    return part_of(
        TensorPart,
        info,
        dtype=str(info.dtype),
        scales=scales,
        zero_points=zero_points,
        axis=found.axis if found is not None and found.per_channel else None,
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
    return part_of(
        LayerInspection,
        layer,
        index=index,
        type=str(layer.type),
        parameters=_parameters(layer),
        inputs=layer.present_inputs,
        macs=OPERATORS[layer.type].macs(layer.descriptor, operands),
        constant_bytes=sum(graph.info(name).size_bytes for name in constants)
        + sum(each.constant_bytes for each in inner),
        rounding=layer.rounding.value,
        inner=inner,
    )


def _parameters(layer: Layer) -> dict[str, str]:
    values = {field: getattr(layer.descriptor, field.name) for field in fields(layer.descriptor)}
    return {
        field.name: f"top {value.top} bottom {value.bottom} left {value.left} right {value.right}"
        if isinstance(value, Padding)
        else str(value)
        for field, value in values.items()
        if field.default is MISSING or value != field.default
    }
