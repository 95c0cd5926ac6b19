# SPDX-License-Identifier: Apache-2.0
"""Compares the ways in which a tensor passes from one backend to another: a copy, an import, fallback memory.

    python benchmarks/fallback.py [--largest BYTES] [--rounds N] [--json FILE]

A chain of int8 layers runs on two backends, with the crossing in its middle (the data comes back) or before its last
layer. Each road runs in this process in interleaved rounds; the best round counts. "Held" is what the backends and
the runtime allocated for tensors, "lost" is the part of fallback memory that only alignment needs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter_ns

import numpy as np

from ferrule import override
from ferrule.backends import (
    Backend,
    BackendId,
    BackendRegistry,
    CreationOptions,
    CustomAllocator,
    FactoryId,
    MemoryRef,
    MemorySource,
    aligned_empty,
    default_registry,
)
from ferrule.errors import FerruleError
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

SMALLEST, LARGEST = 1024, 16 * 1024 * 1024
ROADS = ("copy", "export", "fallback import")


CPU = type(default_registry().create("CpuAcc"))
GPU = type(default_registry().create("GpuAcc"))
OWN = {"id": BackendId("OtherCpuAcc"), "factory_id": FactoryId("Other")}
REQUIRING = {"fallback_memory_required": True}
OTHER = type("Other", (CPU,), OWN)
"""CpuAcc with handles of its own, so that tensors cross between it and CpuAcc."""
REQUIRING_CPU, REQUIRING_OTHER = type("Requiring", (CPU,), REQUIRING), type("RequiringOther", (CPU,), OWN | REQUIRING)
"""The same, whose tensors are shared in fallback memory, by the option for tests."""


class Counting(CustomAllocator):
    """Counts the bytes that it has allocated and not freed."""

    source = MemorySource.MALLOC

    def __init__(self) -> None:
        self.held_bytes = 0

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        self.held_bytes += size_bytes
        return MemoryRef.of_array(aligned_empty((size_bytes,), DataType.UINT8, alignment_bytes))

    @override
    def free(self, memory: MemoryRef) -> None:
        self.held_bytes -= memory.size_bytes


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measurement."""

    source: str
    target: str
    place: str
    size_bytes: int
    road: str
    strategies: tuple[str, ...]
    """One for each crossing."""
    best_us: float
    held_bytes: int
    lost_bytes: int


class Case:
    """A loaded network whose crossings take one road."""

    def __init__(self, source: type[Backend], target: type[Backend], place: str, size_bytes: int, road: str) -> None:
        self.network = chain(size_bytes)
        owners = {"middle": "sts", "end": "sst"}[place]
        registry = BackendRegistry()
        for backend in (source, target):
            registry.register(backend.id, backend, origin="benchmark")
        hints = {
            layer.name: str((source if owner == "s" else target).id)
            for layer, owner in zip(self.network.layers, owners, strict=True)
        }
        options = OptimizerOptions(simplify=False, hints=hints, import_enabled=road != "copy")
        optimized = optimize(self.network, list(hints.values())[:1], registry, options)
        self.allocator = Counting()
        allocators: dict[str, CustomAllocator] = {str(backend.id): self.allocator for backend in (source, target)}
        self.runtime = Runtime(
            CreationOptions(custom_allocators=allocators, fallback_allocators=(self.allocator,)), registry
        )
        self.number = self.runtime.load_network(optimized)
        info = self.network.inputs[0]
        self.inputs = [np.random.default_rng(0).integers(-100, 100, info.shape).astype(np.int8)]
        self.row = Row(
            source=source.id,
            target=target.id,
            place=place,
            size_bytes=size_bytes,
            road=road,
            strategies=tuple(crossing.strategy.value for crossing in optimized.crossings),
            best_us=float("inf"),
            held_bytes=0,
            lost_bytes=sum(
                each.size_bytes - each.unaligned_bytes for each in self.runtime.fallback_memory(self.number)
            ),
        )
        np.testing.assert_array_equal(self.run()[0], self.network.run(self.inputs)[0])

    def run(self) -> list[np.ndarray]:
        """Run the network once and keep the best time."""
        start = perf_counter_ns()
        outputs = self.runtime.enqueue_workload(self.number, self.inputs)
        best = min(self.row.best_us, (perf_counter_ns() - start) / 1000)
        self.row = replace(self.row, best_us=best, held_bytes=self.allocator.held_bytes)
        return outputs


def chain(size_bytes: int) -> Network:
    """Return three layers of int8 on tensors of one size, less 8 bytes, so that alignment costs something."""
    network = Network("chain")
    info = TensorInfo(name="x", shape=(1, size_bytes - 8), dtype=DataType.INT8, quantization=Quantization.of(0.1))
    tensor = network.add_input(info)
    for index in range(3):
        tensor = network.add_relu_layer(tensor, name=f"layer{index}")
    network.set_outputs([tensor])
    return network


def pairs() -> list[tuple[str, type[Backend], type[Backend]]]:
    """Return a road, its source and its target for each combination."""
    found: list[tuple[str, type[Backend], type[Backend]]] = []
    for road in ROADS:
        requiring = road == "fallback import"
        cpu, other = (REQUIRING_CPU, REQUIRING_OTHER) if requiring else (CPU, OTHER)
        found += [(road, other, cpu), (road, cpu, GPU), (road, GPU, cpu)]
    return found


def measure(place: str, size_bytes: int, rounds: int) -> list[Row]:
    """Return the rows of one place and size."""
    cases = []
    for road, source, target in pairs():
        try:
            case = Case(source, target, place, size_bytes, road)
        except FerruleError as error:
            print(f"{source.id} to {target.id} by {road} is left out: {error}")
            continue
        if set(case.row.strategies) == {road}:
            cases.append(case)
        else:  # an end cannot take this road
            case.runtime.close()
    for _ in range(rounds):
        for case in cases:
            case.run()
    for case in cases:
        case.runtime.close()
    return [case.row for case in cases]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=LARGEST)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    print(f"{'bytes':>10} {'place':6} {'from':12} {'to':12} {'road':16} {'us':>10} {'held':>11} {'lost':>6}")
    for place in ("middle", "end"):
        size = SMALLEST
        while size <= options.largest:
            for row in measure(place, size, options.rounds):
                rows.append(row)
                print(
                    f"{row.size_bytes:>10} {row.place:6} {row.source:12} {row.target:12} {row.road:16} "
                    f"{row.best_us:>10.1f} {row.held_bytes:>11} {row.lost_bytes:>6}"
                )
            size *= 4
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
