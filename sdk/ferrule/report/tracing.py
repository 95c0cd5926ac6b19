# SPDX-License-Identifier: Apache-2.0
"""Adds names to the link's reports about devices: to the calls of a run, and to the operator that failed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ferrule.codegen import Artifact, Call, DeviceUse
from ferrule.emulation import Observation
from ferrule.link import LinkCall, LinkError, RunFailedError, status_text
from ferrule.report.base import part_of
from ferrule.report.document import DeviceCallPart, DevicePart, DeviceTracePart, DeviceWorkPart, LayerPart
from ferrule.report.sections import runner

SLOW = 4.0
"""How many times its estimate a command takes, for a report to say so."""
_Traced = tuple[int, str, str, int]
"""Operator, member of the devices struct, call and status."""


def device_parts(
    artifact: Artifact,
    layers: Sequence[LayerPart],
    work: Mapping[str, DeviceWorkPart],
    statistics: Mapping[str, Mapping[str, int | float]],
    driver_counts: Mapping[str, Mapping[str, int]],
    observations: Mapping[str, Observation],
    unit: str = "instructions",
) -> tuple[DevicePart, ...]:
    """Return the devices that run layers, with the cost of these layers and the planned use of device memory.

    By device, `work`, `statistics` and `observations` have what their models did, and `driver_counts` what their
    drivers counted. `unit` is that of the counts.
    """
    regions = {region.region: region.peak_bytes for region in artifact.storage.plan.regions}
    estimates = {each.layer: each.cycles for each in artifact.operators if each.cycles is not None}

    def part(use: DeviceUse) -> DevicePart:
        name = use.device.name
        ran = [layer for layer in layers if layer.device == name]
        seen = observations.get(name, Observation(notes=(), registers={}))
        return DevicePart(
            name=name,
            backend=use.backend,
            activation_lead=use.lead,
            memory_bytes=use.driver.memory_bytes,
            memory_used=regions.get(f"device {name}", 0),
            layers=len(ran),
            count=sum(layer.count for layer in ran),
            share=sum(layer.share for layer in ran),
            work=work.get(name),
            statistics=dict(statistics.get(name, {})),
            driver_counts=dict(driver_counts.get(name, {})),
            estimated=use.driver.estimated,
            notes=(*seen.notes, *slow_notes(ran, estimates, unit)),
            registers=dict(seen.registers),
        )

    return tuple(map(part, artifact.devices))


def slow_notes(layers: Iterable[LayerPart], estimates: Mapping[str, int], unit: str = "instructions") -> Iterator[str]:
    """Yield a note on each layer whose device was at work much longer than estimated.

    The estimate is its compiler's, or else its backend's, which `estimates` has by layer, in cycles of the core.
    `unit` is what the clock counts.
    """
    for layer in layers:
        if layer.estimate is not None:
            cycles, author = layer.estimate.cycles, "compiler"
        else:
            cycles, author = estimates.get(layer.name, 0), "backend"
        if layer.work is None or cycles < 1:
            continue
        ratio = layer.work.busy / cycles
        if ratio >= SLOW:
            yield (
                f"layer '{layer.name}' kept it at work for {layer.work.busy:,} {unit}, {ratio:.1f} times the "
                f"{cycles:,} cycles of its {author}'s estimate"
            )


def trace_part(artifact: Artifact, calls: Iterable[LinkCall]) -> DeviceTracePart:
    """Return the calls with names, and whether they match the plan.

    Raises:
        LinkError: a call refers to an operator, a device or a kind of call that does not exist.
    """
    parts = tuple(_call(artifact, call) for call in calls)
    planned = [(call.operator, call.device, str(call.call), 0) for call in artifact.device_calls]
    uses = {use.device.name: use for use in artifact.devices}
    made = []
    for part in parts:
        use = uses[part.device]
        whole = part.call in {str(Call.ACTIVATE), str(Call.DEACTIVATE)} or not use.pool  # of a pool, any may be open
        made.append((part.operator, use.name if whole else use.pool[0], part.call, part.status))
    return DeviceTracePart(calls=parts, as_planned=_ordered(made) == _ordered(planned))


def _ordered(calls: Iterable[_Traced]) -> list[_Traced]:
    """Return the calls with those that open a set in the order of their names: a run opens it in any order."""
    groups = itertools.groupby(calls, key=lambda call: (call[0], call[2] == str(Call.OPEN)))
    return [call for (_, opens), group in groups for call in (sorted(group) if opens else group)]


def explained(error: RunFailedError, artifact: Artifact, failures: Mapping[str, str] | None = None) -> RunFailedError:
    """Return the error with the name of the failed layer, why models refused their work, and traced device calls."""
    lines = [str(error)]
    operator = error.failed_operator
    if operator is not None and operator < len(artifact.operators):
        record = artifact.operators[operator]
        lines[0] += f": layer '{record.layer}' on {runner(record.backend, record.device)}"
    lines += (f"{device}: {text}" for device, text in (failures or {}).items())
    if error.calls:
        lines.append("calls of devices until then:")
        lines += (
            f"  {part.operator} {part.device} {part.call}: {status_text(part.status)}"
            for part in trace_part(artifact, error.calls).calls
        )
    return RunFailedError("\n".join(lines), status=error.status, failed_operator=operator, calls=error.calls)


def _call(artifact: Artifact, call: LinkCall) -> DeviceCallPart:
    operators = artifact.operators
    if call.operator > len(operators) or call.device >= len(artifact.devices) or call.call not in set(Call):
        raise LinkError(f"the firmware traced a call that the model does not make: {call}")
    return part_of(
        DeviceCallPart,
        call,
        layer=operators[call.operator].layer if call.operator < len(operators) else "",
        device=artifact.devices[call.device].device.name,
        call=str(Call(call.call)),
    )
