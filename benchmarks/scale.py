# SPDX-License-Identifier: Apache-2.0
"""Measures how the cost of each phase from a model to its C grows with the number of layers.

Each phase of each network runs in a separate process with a limit on its CPU time. A phase that exceeds the limit
prints "> N s", and its larger networks are skipped. Times are CPU seconds of the process, without imports and earlier
phases. Memory is the largest resident size of that process, imports (about 50 MiB) included. The exponent is log(time
ratio) / log(size ratio) between consecutive sizes: 1 is linear, and n log n is about 1.1 to 1.2.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from ferrule.backends import CoreFeatures, Face, Target, default_device, default_registry
from ferrule.codegen import Plan, generate
from ferrule.formats import load, to_tflite
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.memory import Effort, Region, Requirements, order_layers, plan_graph, schedule_of_graph, verify, views
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.optimizer.simplify import simplify

SHAPE = (1, 16)
UNMEASURABLE_S = 0.05
"""No exponent is printed for shorter times, which are mostly noise."""
MEMORY_BYTES = 4 << 30
REGIONS = (Region(name="sram", size_bytes=1 << 30, reachable_by=frozenset({"core"})),)

# --- networks -----------------------------------------------------------------------------------------------------


def _started(name: str) -> tuple[Network, str]:
    network = Network(name)
    info = TensorInfo(name="x", shape=SHAPE, dtype=DataType.INT8, quantization=Quantization.of(0.05, 3))
    return network, network.add_input(info)


def _relu(network: Network, source: str) -> str:
    """Add a RELU that differs from all others."""
    number = len(network.layers)
    return network.add_relu_layer(source, quantization=Quantization.of(0.05 + number * 1e-5, 3))


def _add(network: Network, left: str, right: str) -> str:
    return network.add_add_layer(left, right, quantization=Quantization.of(0.05, 3))


def chain(layers: int) -> Network:
    """Return a chain of RELUs."""
    network, tensor = _started("chain")
    for _ in range(layers):
        tensor = _relu(network, tensor)
    network.set_outputs([tensor])
    return network


def fan(layers: int) -> Network:
    """Return RELUs that read one input, and the pairwise sum of them."""
    network, source = _started("fan")
    tensors = [_relu(network, source) for _ in range((layers + 1) // 2)]
    while len(tensors) > 1:
        tensors = [_add(network, *pair) if len(pair) == 2 else pair[0] for pair in _pairs(tensors)]
    network.set_outputs(tensors)
    return network


def outputs(layers: int) -> Network:
    """Return RELUs that read one input, each of them an output of the network."""
    network, source = _started("outputs")
    network.set_outputs([_relu(network, source) for _ in range(layers)])
    return network


def _pairs(tensors: Sequence[str]) -> list[Sequence[str]]:
    return [tensors[index : index + 2] for index in range(0, len(tensors), 2)]


def ladder(layers: int) -> Network:
    """Return two rails of RELUs, connected by an ADD at each step."""
    network, left = _started("ladder")
    right = left
    for _ in range(layers // 3):
        left, right = _relu(network, left), _relu(network, right)
        right = _add(network, left, right)
    network.set_outputs([left, right])
    return network


def merged(layers: int) -> Network:
    """Return parallel chains; their number equals the length of each."""
    network, source = _started("merged")
    width = math.isqrt(layers)
    tensors = [source] * width
    for number in range(layers):
        tensors[number % width] = _relu(network, tensors[number % width])
    network.set_outputs(tensors)
    return network


def mesh(layers: int) -> Network:
    """Return RELUs and ADDs that read from the thirty preceding tensors at random."""
    network, source = _started("mesh")
    dice = random.Random(layers)  # noqa: S311 - no secret
    tensors = [source]
    for _ in range(layers):
        left, right = dice.choice(tensors[-30:]), dice.choice(tensors[-30:])
        tensors.append(_relu(network, left) if dice.random() < 0.5 else _add(network, left, right))
    read = {name for layer in network.layers for name in layer.present_inputs}
    network.set_outputs([name for name in tensors if name not in read])
    return network


SHAPES: Mapping[str, Callable[[int], Network]] = {
    one.__name__: one for one in (chain, fan, outputs, ladder, merged, mesh)
}

# --- phases: each function does the preparation and returns the function to measure ----------------------------------

Measured = Callable[[], object]


def _write(network: Network, _folder: Path) -> Measured:
    return lambda: to_tflite(network)


def _read(network: Network, folder: Path) -> Measured:
    path = folder / "model.tflite"
    path.write_bytes(to_tflite(network))
    return lambda: load(path)


def _simplify(network: Network, _folder: Path) -> Measured:
    return lambda: simplify(network)


def _optimize(network: Network, options: OptimizerOptions, *backends: str) -> Measured:
    return lambda: optimize(network, backends, default_registry(), options)


def _one_backend(network: Network, _folder: Path) -> Measured:
    return _optimize(network, OptimizerOptions(simplify=False), "CpuRef")


def _two_backends(network: Network, _folder: Path) -> Measured:
    return _optimize(network, OptimizerOptions(simplify=False, hints=_hints(network, "CpuAcc")), "CpuRef")


def _device(network: Network, _folder: Path) -> Measured:
    options = OptimizerOptions(simplify=False, face=Face.FIRMWARE, hints=_hints(network, "SoftNpu"))
    return _optimize(network, options, "CpuAcc")


def _hints(network: Network, backend: str) -> dict[str, str]:
    """Return hints that assign every other group of three layers to a backend."""
    return {layer.name: backend for number, layer in enumerate(network.layers) if number // 3 % 2}


def _order(network: Network, _folder: Path) -> Measured:
    return lambda: order_layers(network, aliases=views(network), alignment=16)


def _plan(network: Network, _folder: Path) -> Measured:
    order = [layer.name for layer in network.layers]
    return lambda: plan_graph(network, REGIONS, Requirements(order=order))


def _verify(network: Network, _folder: Path) -> Measured:
    order = [layer.name for layer in network.layers]
    found = plan_graph(network, REGIONS, Requirements(order=order, effort=Effort(placements=0, nodes=0)))
    run = schedule_of_graph(network, order)
    return lambda: verify(found.plan, found.requests, REGIONS, run, aliases=found.aliases)


def _generate(network: Network, _folder: Path) -> Measured:
    backend = default_registry().create("CpuAcc")
    face = backend.firmware_target()
    assert face is not None
    core = CoreFeatures(name="cortex-m4", fpu=True, dsp=True, mve=False)
    target = Target(face=Face.FIRMWARE, device=default_device(backend.id), core=core)
    names = [layer.name for layer in network.layers]
    plan = Plan(
        graph=network,
        firmware=dict.fromkeys(names, face),
        targets=dict.fromkeys(names, target),
        workspace_bytes=1 << 30,
    )
    return lambda: generate(plan)


PHASES: Mapping[str, Callable[[Network, Path], Measured]] = {
    "write TFLite": _write,
    "read TFLite": _read,
    "simplify": _simplify,
    "divide, one backend": _one_backend,
    "divide, two backends": _two_backends,
    "divide, a device": _device,
    "order": _order,
    "plan": _plan,
    "verify": _verify,
    "generate": _generate,
}
BUILD = "build"

# --- measuring ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The cost of one phase of one network."""

    seconds: float
    peak_mib: float


def measure(call: Measured, limit_s: int) -> tuple[Figure, object]:
    """Return the cost of a call, and its result; the process is killed after `limit_s` seconds of CPU time."""
    used = math.ceil(process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + limit_s, resource.RLIM_INFINITY))
    start = process_time()
    result = call()
    seconds = process_time() - start
    return Figure(seconds=seconds, peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024), result


def child(phase: str, shape: str, size: int, limit_s: int, folder: Path) -> None:
    """Measure one phase in this process and print the figure; `build` stores its network in the folder."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    stored = folder / "network"
    if phase == BUILD:
        figure, network = measure(lambda: SHAPES[shape](size), limit_s)
        resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        stored.write_bytes(pickle.dumps(network))
    else:
        network = pickle.loads(stored.read_bytes())  # noqa: S301 - written by `build` a moment ago
        figure, _ = measure(PHASES[phase](network, folder), limit_s)
    print(json.dumps({"seconds": figure.seconds, "peak_mib": figure.peak_mib}))


def spawn(phase: str, shape: str, size: int, limit_s: int, folder: Path) -> Figure | str:
    """Return the figure of a phase, or the reason why there is none."""
    command = [sys.executable, __file__, "--child", phase, "--shapes", shape, "--sizes", str(size)]
    done = subprocess.run(
        [*command, "--limit", str(limit_s), "--folder", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return Figure(**json.loads(done.stdout))
    if done.returncode < 0:
        return f"> {limit_s} s"
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"


def exponent(sizes: Sequence[int], figures: Sequence[Figure | str]) -> str:
    """Return the exponents between consecutive sizes, "-" if unknown."""
    found = []
    for index in range(1, len(sizes)):
        before, after = figures[index - 1], figures[index]
        if isinstance(before, Figure) and isinstance(after, Figure) and after.seconds >= UNMEASURABLE_S:
            ratio = math.log(after.seconds / max(before.seconds, 1e-6)) / math.log(sizes[index] / sizes[index - 1])
            found.append(f"{ratio:.1f}")
        else:
            found.append("-")
    return " ".join(found)


def print_shape(shape: str, phases: Sequence[str], arguments: argparse.Namespace) -> None:
    """Measure and print all phases of one shape."""
    sizes: list[int] = arguments.sizes
    heads = "".join(f"{f'{size:,}':>10}" for size in sizes)
    print(f"\n{shape:<22}{heads}   exponents    MiB", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(size) for size in sizes]
        for folder in folders:
            folder.mkdir()
        for phase in (BUILD, *phases):
            figures: list[Figure | str] = []
            for size, folder in zip(sizes, folders, strict=True):
                if figures and isinstance(figures[-1], str):
                    figures.append("not run")
                elif phase != BUILD and not (folder / "network").exists():
                    figures.append("not built")
                else:
                    figures.append(spawn(phase, shape, size, arguments.limit, folder))
            cells = "".join(f"{one.seconds:>8.2f} s" if isinstance(one, Figure) else f"{one:>10}" for one in figures)
            peaks = [one.peak_mib for one in figures if isinstance(one, Figure)]
            print(f"  {phase:<20}{cells}   {exponent(sizes, figures):<10}{max(peaks, default=0):>6.0f}", flush=True)


def main() -> int:
    """Print a table per shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 1000, 5000], help="layers")
    parser.add_argument("--phases", nargs="+", choices=list(PHASES), default=list(PHASES), help=f"besides '{BUILD}'")
    parser.add_argument("--limit", type=int, default=60, help="CPU seconds of one phase")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.shapes[0], arguments.sizes[0], arguments.limit, arguments.folder)
        return 0
    for shape in arguments.shapes:
        print_shape(shape, arguments.phases, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
