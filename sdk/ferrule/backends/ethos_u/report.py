# SPDX-License-Identifier: Apache-2.0
"""Vela's report on a stream: estimates of time and traffic, by memory, by original layer and by operation."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

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
_TABLE = re.compile(r'<table name="(\w+)">\s*<!\[CDATA\[(.*?)\]\]>', re.DOTALL)
_WARNING = re.compile(r"^(?:Warning|Info): (.*)", re.MULTILINE)
Cycles = tuple[tuple[int, int], ...]
"""The cycles of each operation of a stream, by the place of its command in bytes; transfers are not among them."""


def read_report(result: VelaResult, settings: Settings, layers: Sequence[str]) -> tuple[Estimate, Cycles]:
    """Return Vela's estimate and that of each operation; `layers` has the original layer of each of the model's.

    Raises:
        VelaError: the summary or the debug database has another form than that of Vela 5.2.
    """
    name = settings.configuration.name
    try:
        (row,) = csv.DictReader(io.StringIO(result.summary))
        tables = {
            each: list(csv.DictReader(io.StringIO(text.strip()))) for each, text in _TABLE.findall(result.database)
        }
        estimate = Estimate(
            source=f"Vela {vela_version()} for {name}, {settings.system_config}, {settings.memory_mode}",
            clock_hz=round(float(row["core_clock"])),
            cycles=int(float(row["cycles_total"])),
            layers=_by_layer(tables, layers),
            memories=tuple(_memories(row)),
            warnings=tuple(dict.fromkeys(_WARNING.findall(result.log))),
        )
        by_operation = {each["id"]: int(each["op_cycles"]) for each in tables["perf"]}
        return estimate, tuple(_queued(tables["queue"], by_operation))
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise VelaError(
            f"the report of Vela {vela_version()} has an unexpected form: {type(error).__name__}: {error}",
            hint="Ferrule is tested with Vela 5.2.0: pip install 'ferrule[ethos-u]'",
        ) from error


def _memories(row: Mapping[str, str]) -> Iterator[EstimatedMemory]:
    for key, name in _MEMORIES.items():
        read, written = (
            sum(int(float(row[f"{key}_{what}_{access}_bytes"])) for what in ("feature_map", "weight"))
            for access in ("read", "write")
        )
        cycles = int(float(row[f"cycles_{key}_access"]))
        if cycles or read or written or round(float(row[f"{key}_memory_used"]) * 1024):
            yield EstimatedMemory(name=name, cycles=cycles, read_bytes=read, written_bytes=written)


def _by_layer(tables: Mapping[str, Sequence[Mapping[str, str]]], layers: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return the cycles by layer, in the order of the model."""
    owner = {row["id"]: layers[int(row["ext_key"])] for row in tables["source"]}
    totals = dict.fromkeys(layers, 0)
    for row in tables["perf"]:
        if layer := owner.get(row["source_id"], ""):
            totals[layer] += int(row["op_cycles"])
    return tuple(totals.items())


def _queued(queue: Sequence[Mapping[str, str]], cycles: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the commands; those of one operation share its cycles evenly, and the last one has the remainder."""
    left = Counter(row["scheduled_id"] for row in queue)
    spent: Counter[str] = Counter()
    for row in sorted(queue, key=lambda row: int(row["offset"])):
        number = row["scheduled_id"]
        share = (cycles.get(number, 0) - spent[number]) // left[number]
        left[number] -= 1
        spent[number] += share
        yield int(row["offset"]), share
