# SPDX-License-Identifier: Apache-2.0
"""Measures the runtime's own cost per run and per workload, without the kernels.

A chain of layers on four floats is run twice: on a backend whose workloads do nothing, which measures the runtime's
loop, and on CpuRef, whose kernels are timed separately and subtracted. Copies and imports between two backends, and
profiling, are measured as well. Times are process CPU time, the best of several rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from time import process_time_ns
from typing import ClassVar

import numpy as np

from ferrule import override
from ferrule.backends import (
    BackendId,
    BackendRegistry,
    CreationOptions,
    FactoryId,
    LayerSupport,
    MemoryManager,
    ModelOptions,
    Workload,
    WorkloadFactory,
    WorkloadInfo,
)
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.shared.host_memory import HostMemoryBackend
from ferrule.graph import DataType, Graph, TensorInfo
from ferrule.network import Network
from ferrule.operators import OPERATORS, Operands
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

SHAPE = (1, 4)
GOAL_US = 5.0


class NothingWorkload:
    """Does nothing."""

    def execute(self) -> None:
        """Return at once."""


class NothingFactory(WorkloadFactory):
    """Makes workloads that do nothing."""

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        del info
        return NothingWorkload()


class Nothing(HostMemoryBackend):
    """A backend that supports every layer and does nothing."""

    id: ClassVar[BackendId] = BackendId("Nothing")
    factory_id: ClassVar[FactoryId] = FactoryId("Nothing")

    @override
    def layer_support(self) -> LayerSupport:
        return CpuRef().layer_support()

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        del memory, options
        return NothingFactory()


def chain(length: int) -> Network:
    """Return a network of `length` layers that no pass removes."""
    network = Network(f"chain_{length}")
    name = network.add_input(TensorInfo(name="input", shape=SHAPE, dtype=DataType.FLOAT32))
    for index in range(length):
        name = network.add_leaky_relu_layer(name, 0.5 + index / 1000)
    network.set_outputs([name])
    return network


def best_us(call: Callable[[], object], rounds: int, repeats: int) -> float:
    """Return the shortest mean time of a call over all rounds, in microseconds."""
    found = []
    for _ in range(rounds):
        start = process_time_ns()
        for _ in range(repeats):
            call()
        found.append((process_time_ns() - start) / repeats / 1000)
    return min(found)


def kernels_us(graph: Graph, rounds: int, repeats: int) -> float:
    """Return the time of all kernels of a graph without the runtime, in microseconds."""
    array = np.ones(SHAPE, np.float32)
    calls = [
        (
            OPERATORS[layer.type].kernel,
            layer.descriptor,
            Operands(inputs=graph.input_infos(layer), outputs=graph.output_infos(layer)),
            [array],
        )
        for layer in graph.layers
    ]

    def call() -> None:
        for kernel, descriptor, operands, arrays in calls:
            kernel(descriptor, operands, arrays)

    return best_us(call, rounds, repeats)


def run_us(
    backends: Sequence[str],
    length: int,
    arguments: argparse.Namespace,
    *,
    profiling: bool = False,
    options: OptimizerOptions | None = None,
) -> tuple[float, Graph]:
    """Return the time of one run of the chain through enqueue_workload in microseconds, and its graph."""
    registry = BackendRegistry()
    registry.register("Nothing", Nothing)
    registry.register("CpuRef", CpuRef)
    with Runtime(CreationOptions(profiling=profiling), registry) as runtime:
        optimized = optimize(chain(length), backends, runtime.registry, options or OptimizerOptions())
        network = runtime.load_network(optimized)
        inputs = [np.ones(SHAPE, np.float32)]
        outputs = [np.empty(SHAPE, np.float32)]

        def call() -> None:
            runtime.enqueue_workload(network, inputs, outputs)

        call()
        return best_us(call, arguments.rounds, arguments.repeats), optimized.graph


def per_step(names: Sequence[str], arguments: argparse.Namespace, options: OptimizerOptions) -> tuple[float, int]:
    """Return the time and the number of compatibility layers of a chain that alternates between two backends."""
    hints = {layer.name: names[index % 2] for index, layer in enumerate(chain(arguments.length).layers)}
    mixed = OptimizerOptions(
        hints=hints, import_enabled=options.import_enabled, export_enabled=options.export_enabled, simplify=False
    )
    time, graph = run_us(names, arguments.length, arguments, options=mixed)
    return time, len(graph.layers) - arguments.length


def main() -> int:
    """Print the table; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=100, help="layers of the chain")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=200)
    arguments = parser.parse_args()
    length = arguments.length

    fixed, _ = run_us(["Nothing"], 1, arguments)
    nothing, _ = run_us(["Nothing"], length, arguments)
    reference, graph = run_us(["CpuRef"], length, arguments)
    kernels = kernels_us(graph, arguments.rounds, arguments.repeats)
    profiled, _ = run_us(["Nothing"], length, arguments, profiling=True)
    loop = (nothing - fixed) / (length - 1)
    net = (reference - kernels) / length
    print(f"a run of one layer that does nothing      {fixed:8.2f} us")
    print(f"the runtime's loop, per workload          {loop:8.3f} us")
    print(f"CpuRef, per workload                      {reference / length:8.3f} us")
    print(f"  of which the kernel                     {kernels / length:8.3f} us")
    print(f"  runtime and CpuRef net of the kernel    {net:8.3f} us   goal: under {GOAL_US} us")
    print(f"profiling, per workload                   {(profiled - nothing) / length:8.3f} us")
    for label, options in (("copy", OptimizerOptions()), ("import", OptimizerOptions(import_enabled=True))):
        time, added = per_step(("Nothing", "CpuRef"), arguments, options)
        half = (nothing + reference) / 2
        print(
            f"{label} between two backends, each           {(time - half) / max(added, 1):8.3f} us   ({added} of them)"
        )
    return 0 if net < GOAL_US else 1


if __name__ == "__main__":
    sys.exit(main())
