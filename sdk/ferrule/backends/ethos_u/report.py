# SPDX-License-Identifier: Apache-2.0
"""Vela's report on a stream: estimates of time and traffic, by memory, by original layer and by operation."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.settings import Settings
from ferrule.backends.ethos_u.vela import VelaError, VelaResult, vela_version
from ferrule.backends.optimization_views import Estimate, EstimatedMemory

_MEMORIES = {
    "sram": "SRAM",
    "dram": "DRAM",
    "on_chip_flash": "on-chip flash",
    "off_chip_flash": "off-chip flash",
}
"""The names in Vela's summary, and those for people."""
_TRAFFIC = ("feature_map_read", "feature_map_write", "weight_read", "weight_write")
_TABLE = re.compile(r'<table name="(\w+)">\s*<!\[CDATA\[(.*?)\]\]>', re.DOTALL)
_WARNING = re.compile(r"^(?:Warning|Info): (.*)", re.MULTILINE)


@frozen
class MemoryEstimate:
    """The use of one memory in one inference, as Vela estimates it."""

    name: str
    cycles: int
    """Cycles in which the NPU accesses it."""
    read_bytes: int
    written_bytes: int
    used_bytes: int
    """What the stream needs of it."""


@frozen
class LayerEstimate:
    """The share of one original layer."""

    layer: str
    cycles: int
    macs: int


@frozen
class OperationEstimate:
    """One operation of the stream."""

    offset: int
    """Place of its command in bytes from the stream's first word."""
    cycles: int
    layer: str
    """The original layer that it belongs to; empty if Vela does not say."""


@frozen
class VelaReport:
    """What Vela states about a stream; all times are estimates."""

    version: str
    """Of Vela."""
    configuration: str
    system_config: str
    memory_mode: str
    clock_hz: int
    """Of the NPU, in the system configuration."""
    cycles: int
    """Of one inference."""
    npu_cycles: int
    """Those that the NPU would need with ideal memories."""
    macs: int
    memories: tuple[MemoryEstimate, ...]
    layers: tuple[LayerEstimate, ...]
    """In the order of the model."""
    operations: tuple[OperationEstimate, ...]
    """In the order of the stream; transfers are not among them."""
    warnings: tuple[str, ...]

    def estimate(self) -> Estimate:
        """Return what reports show."""
        return Estimate(
            source=f"Vela {self.version} for {self.configuration}, {self.system_config}, {self.memory_mode}",
            clock_hz=self.clock_hz,
            cycles=self.cycles,
            layers=tuple((each.layer, each.cycles) for each in self.layers),
            memories=tuple(
                EstimatedMemory(
                    name=each.name, cycles=each.cycles, read_bytes=each.read_bytes, written_bytes=each.written_bytes
                )
                for each in self.memories
            ),
            warnings=self.warnings,
        )


def read_report(result: VelaResult, settings: Settings, layers: Sequence[str]) -> VelaReport:
    """Return Vela's report; `layers` has the original layer of each operator of the model.

    Raises:
        VelaError: the summary or the debug database has another form than that of Vela 5.2.
    """
    try:
        (row,) = csv.DictReader(io.StringIO(result.summary))
        found = _TABLE.findall(result.database)
        tables = {name: list(csv.DictReader(io.StringIO(text.strip()))) for name, text in found}
        by_layer, operations = _operations(tables, layers)
        return VelaReport(
            version=vela_version(),
            configuration=settings.configuration.name,
            system_config=settings.system_config,
            memory_mode=settings.memory_mode,
            clock_hz=round(float(row["core_clock"])),
            cycles=int(float(row["cycles_total"])),
            npu_cycles=int(float(row["cycles_npu"])),
            macs=int(float(row["nn_macs"])),
            memories=tuple(_memories(row)),
            layers=by_layer,
            operations=operations,
            warnings=tuple(dict.fromkeys(_WARNING.findall(result.log))),
        )
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise VelaError(
            f"the report of Vela {vela_version()} has an unexpected form: {type(error).__name__}: {error}",
            hint="Ferrule is tested with Vela 5.2.0: pip install 'ferrule[ethos-u]'",
        ) from error


def _memories(row: Mapping[str, str]) -> Iterator[MemoryEstimate]:
    for key, name in _MEMORIES.items():
        moved = {part: int(float(row[f"{key}_{part}_bytes"])) for part in _TRAFFIC}
        cycles = int(float(row[f"cycles_{key}_access"]))
        used = round(float(row[f"{key}_memory_used"]) * 1024)
        if cycles or used or any(moved.values()):
            yield MemoryEstimate(
                name=name,
                cycles=cycles,
                read_bytes=moved["feature_map_read"] + moved["weight_read"],
                written_bytes=moved["feature_map_write"] + moved["weight_write"],
                used_bytes=used,
            )


def _operations(
    tables: Mapping[str, Sequence[Mapping[str, str]]], layers: Sequence[str]
) -> tuple[tuple[LayerEstimate, ...], tuple[OperationEstimate, ...]]:
    """Return the estimates by layer and by operation; Vela's numbers differ from call to call, so they are left out."""
    owner = {row["id"]: layers[int(row["ext_key"])] for row in tables["source"]}
    cycles = {row["id"]: int(row["op_cycles"]) for row in tables["perf"]}
    belongs = {row["id"]: owner.get(row["source_id"], "") for row in tables["perf"]}
    totals = {name: [0, 0] for name in layers}
    for row in tables["perf"]:
        if layer := belongs[row["id"]]:
            totals[layer][0] += cycles[row["id"]]
            totals[layer][1] += int(row["mac_count"])
    by_layer = tuple(LayerEstimate(layer=name, cycles=total, macs=macs) for name, (total, macs) in totals.items())
    return by_layer, tuple(_queued(tables["queue"], cycles, belongs))


def _queued(
    queue: Sequence[Mapping[str, str]], cycles: Mapping[str, int], belongs: Mapping[str, str]
) -> Iterator[OperationEstimate]:
    """Yield the commands; those of one operation share its cycles evenly, and the last one has the remainder."""
    left = Counter(row["scheduled_id"] for row in queue)
    spent: Counter[str] = Counter()
    for row in sorted(queue, key=lambda row: int(row["offset"])):
        number = row["scheduled_id"]
        share = (cycles.get(number, 0) - spent[number]) // left[number]
        left[number] -= 1
        spent[number] += share
        yield OperationEstimate(offset=int(row["offset"]), cycles=share, layer=belongs.get(number, ""))
