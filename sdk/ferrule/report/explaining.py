# SPDX-License-Identifier: Apache-2.0
"""Explains which backend supports each layer of a network, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.backends import Backend, PreCompiledDescriptor
from ferrule.backends.context import BackendUnavailableError
from ferrule.backends.firmware import ConsideredKernel
from ferrule.backends.guarded import guarded
from ferrule.backends.shared.allocators import dma_bufs_here
from ferrule.backends.target import Face
from ferrule.backends.tensor_handle import MemorySource
from ferrule.boards import Board
from ferrule.codegen import Artifact, Call
from ferrule.codegen.artifact import VIEW, OperatorRecord
from ferrule.errors import FerruleError
from ferrule.firmware import Job, divide
from ferrule.graph import Layer
from ferrule.network import Network
from ferrule.optimizer import Crossing, LayerRow, OptimizedNetwork, explain
from ferrule.report.advice import advice
from ferrule.report.backend_listing import kind_name
from ferrule.report.base import part_of
from ferrule.report.estimates import estimate_part
from ferrule.report.inspection_parts import (
    BackendPart,
    CrossingPart,
    DeviceCrossingPart,
    DivisionPart,
    FinalLayerPart,
    FinalPart,
    KernelPart,
    LayerKernelsPart,
    OverlapPart,
    RefusalPart,
    ScheduledPart,
    TakerPart,
)
from ferrule.timing.planned import KernelWork


def explain_division(network: Network, job: Job) -> DivisionPart:
    """Return the backend for each layer as given (its hint first, then the preferences), and the final assignment.

    To find the final assignment, the backends optimise their subgraphs; nothing is generated or run.

    Raises:
        FerruleError: a backend, or the layer of a hint, does not exist.
    """
    hinted = {layer: wish.partition("/") for layer, wish in job.hints.items()}
    for layer in hinted:
        network.layer(layer)
    names = dict.fromkeys((*job.backends, *(backend for backend, _, _ in hinted.values())))
    usable: dict[str, Backend] = {}
    unusable: dict[str, str] = {}
    for name in names:
        try:
            usable[name] = guarded(job.backend_source().create(name))
        except BackendUnavailableError as error:
            unusable[name] = str(error)
    rows = explain(network, list(usable.values()), job.optimizer_options(Face.FIRMWARE))
    return DivisionPart(
        backends=tuple(
            BackendPart(
                id=name,
                host=name in usable and usable[name].has_host_face(),
                firmware=name in usable and usable[name].firmware_target() is not None,
            )
            for name in names
        ),
        layers=tuple(_taker(row, job, hinted.get(row.layer, ("", "", "")), unusable) for row in rows),
        finals=tuple(_final(network, job, face) for face in Face),
    )


def explain_schedule(artifact: Artifact) -> tuple[tuple[ScheduledPart, ...], tuple[DeviceCrossingPart, ...]]:
    """Return the firmware's operators in order, with the device calls around each, and the tensors that cross."""
    names = {use.name: use.device.name for use in artifact.devices}
    schedule = tuple(
        part_of(
            ScheduledPart,
            record,
            index=index,
            calls=tuple(
                f"{names[call.device]} {call.call}"
                + (f" {artifact.operators[call.operator].layer}" if call.call is Call.FINISH else "")
                for call in record.device_calls
            ),
            beside=beside,
            copies=tuple(copy.text for copy in record.copies),
        )
        for index, (record, beside) in enumerate(zip(artifact.operators, artifact.beside, strict=True))
    )
    crossings = tuple(part_of(DeviceCrossingPart, each, bytes=each.size_bytes) for each in artifact.crossings)
    return schedule, crossings


def explain_kernels(artifact: Artifact, board: Board) -> tuple[LayerKernelsPart, ...]:
    """Return the kernels that were considered for each layer of a board's firmware, and which one was chosen."""
    whole = sum(map(_estimate, artifact.operators))
    return tuple(_kernels(record, whole, board) for record in artifact.operators)


def estimated_instructions(record: OperatorRecord) -> int | None:
    """Return the estimate for the chosen kernel of an operator; None if there is none, 0 for one without code."""
    if record.kernel == VIEW:
        return 0
    return next((each.costs.instructions for each in record.considered if each.chosen and each.costs), None)


def _estimate(record: OperatorRecord) -> int:
    return sum(each.costs.instructions for each in record.considered if each.chosen and each.costs)


def _kernels(record: OperatorRecord, whole: int, board: Board) -> LayerKernelsPart:
    known = {"chosen": True, "reason": "the only kernel", "instructions": None, "weight_bytes": record.constant_bytes}
    times = _times(record.works, board) if record.works else {"cycles": record.cycles}
    alone = part_of(KernelPart, record, **known, **times)
    return part_of(
        LayerKernelsPart,
        record,
        kernels=tuple(_kernel(each, board) for each in record.considered) or (alone,),
        overlaps=tuple(part_of(OverlapPart, each, forward_bytes=each.distance_bytes) for each in record.overlaps),
        advice=advice(record, _estimate(record), whole),
    )


def _kernel(kernel: ConsideredKernel, board: Board) -> KernelPart:
    costs = kernel.costs
    if costs is None:
        return part_of(KernelPart, kernel, instructions=None, weight_bytes=None, scratch_bytes=None)
    work = KernelWork(kernel=kernel.kernel, instructions=costs.instructions, weight_bytes=costs.weight_bytes)
    return part_of(
        KernelPart,
        kernel,
        instructions=costs.instructions,
        weight_bytes=costs.weight_bytes,
        scratch_bytes=costs.scratch_bytes,
        **_times((work,), board),
    )


def _times(works: Sequence[KernelWork], board: Board) -> dict[str, float | None]:
    """Return the planned time of kernels, as fields of their part."""
    if board.pace is None:
        return {"cycles": None}
    cycles = sum(map(board.pace.cycles, works))
    return {"cycles": cycles, "milliseconds": 1e3 * cycles / board.clock_hz}


def _final(network: Network, job: Job, face: Face) -> FinalPart:
    try:
        optimized = divide(network, job, face=face)
    except FerruleError as error:
        return FinalPart(face=str(face), problem=str(error))
    layers = tuple(_final_layer(optimized, layer) for layer in optimized.graph.layers)
    accounted = {name for layer in layers for name in (layer.layer, *layer.replaces)}
    return FinalPart(
        face=str(face),
        layers=layers,
        gone=tuple(layer.name for layer in network.layers if layer.name not in accounted),
        messages=(*optimized.warnings, *optimized.notes),
        crossings=tuple(map(_crossing, optimized.crossings)),
        dma_bufs=dma_bufs_here() if any(MemorySource.DMA_BUF in each.memory for each in optimized.crossings) else "",
    )


def _crossing(crossing: Crossing) -> CrossingPart:
    return part_of(
        CrossingPart,
        crossing,
        strategy=crossing.strategy.value,
        source=crossing.source_backend or "",
        source_factory=crossing.source_factory or "",
        target=crossing.target_backend,
        target_factory=crossing.target_factory or "",
        memory=" and ".join(map(kind_name, crossing.memory)),
    )


def _final_layer(optimized: OptimizedNetwork, layer: Layer) -> FinalLayerPart:
    given = optimized.assignment[layer.name]
    descriptor = layer.descriptor
    return part_of(
        FinalLayerPart,
        given,
        layer=layer.name,
        type=str(layer.type),
        replaces=optimized.replaced.get(layer.name, ()),
        label=descriptor.label if isinstance(descriptor, PreCompiledDescriptor) else "",
        estimate=estimate_part(layer),
    )


def _taker(row: LayerRow, job: Job, hint: tuple[str, str, str], unusable: Mapping[str, str]) -> TakerPart:
    refusals = dict(unusable) | {str(backend): reason for backend, reason in row.refusals}
    wished, _, wanted = hint
    asked = dict.fromkeys((wished, *job.backends) if wished else job.backends)
    devices = {str(device.backend): device.name for device in reversed(job.devices)}
    taker = next((name for name in asked if name not in refusals), None)
    return TakerPart(
        layer=row.layer,
        backend=taker,
        device=None if taker is None else wanted if wanted and taker == wished else devices.get(taker, taker),
        refusals=tuple(
            RefusalPart(backend=backend, reason=refusals[backend]) for backend in asked if backend in refusals
        ),
    )
