# SPDX-License-Identifier: Apache-2.0
"""CpuAcc and CpuRef in the runtime compared with LiteRT on the four int8 MLPerf Tiny models, one thread each.

    python benchmarks/runtime.py [folder with the models, else $FERRULE_MODELS] [--rounds N] [--json FILE]

LiteRT runs with its reference kernels, with its optimised kernels but no delegate, and with its defaults (XNNPACK). All
run in this process in interleaved rounds; the best round counts. A round is one `enqueue_workload` with the caller's
arrays, or `set_tensor`, `invoke` and `get_tensor`. Ratios above 1 mean that CpuAcc is faster; the goals are 10 against
the reference kernels (ic, kws, vww), and a third against the optimised ones.
"""

from __future__ import annotations

# first, because it limits BLAS to one thread
from numpy_core import CASES, best_of, with_batch  # isort: skip

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from ferrule import load
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

LITERT = {
    "reference": OpResolverType.BUILTIN_REF,
    "no delegate": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "XNNPACK": OpResolverType.AUTO,
}
ONE_THREAD = OptimizerOptions(model_options={"CpuAcc": {"num_threads": 1}})
OURS = ("CpuAcc", "CpuRef")
REFERENCE_GOAL = 10.0
NO_DELEGATE_GOAL = 1 / 3


def litert(path: Path, kind: OpResolverType, data: Array) -> Callable[[], Array]:
    """Return a function that runs LiteRT."""
    interpreter = Interpreter(model_path=str(path), experimental_op_resolver_type=kind, num_threads=1)
    detail = interpreter.get_input_details()[0]
    if data.shape[0] > 1:
        interpreter.resize_tensor_input(detail["index"], data.shape)
    interpreter.allocate_tensors()
    output = interpreter.get_output_details()[0]["index"]

    def run() -> Array:
        interpreter.set_tensor(detail["index"], data)
        interpreter.invoke()
        return np.asarray(interpreter.get_tensor(output))

    return run


def ours(runtime: Runtime, network: Network, backend: str, data: Array) -> Callable[[], Array]:
    """Return a function that runs the network in the runtime on one backend."""
    loaded = runtime.load_network(optimize(network, [backend], runtime.registry, ONE_THREAD))
    info = network.outputs[0]
    output = np.empty(info.shape, info.dtype.numpy)

    def run() -> Array:
        runtime.enqueue_workload(loaded, [data], [output])
        return output

    return run


def measure(path: Path, batch: int, rounds: int) -> dict[str, float]:
    """Return the best time of each contender in milliseconds, after checking that Ferrule's results are bit-exact."""
    network = load(path)
    if batch > 1:
        network = with_batch(network, batch)
    data = np.random.default_rng(0).integers(-128, 128, network.inputs[0].shape, np.int8)
    with Runtime() as runtime:
        runs = {backend: ours(runtime, network, backend, data) for backend in OURS}
        first, *others = (run() for run in runs.values())
        if not all(np.array_equal(first, other) for other in others):
            raise SystemExit(f"{path.name}: {' and '.join(OURS)} disagree")
        runs |= {name: litert(path, kind, data) for name, kind in LITERT.items()}
        times = best_of(list(runs.values()), rounds)
    return {name: 1e3 * seconds for name, seconds in zip(runs, times, strict=True)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="?", type=Path, default=os.environ.get("FERRULE_MODELS"))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path, help="write the milliseconds there, too")
    options = parser.parse_args()
    if options.models is None:
        parser.error("give the folder with the models, or set FERRULE_MODELS")
    names = (*OURS, *LITERT)
    print(f"{'ms':6}{'batch':>6}" + "".join(f"{name:>13}" for name in names) + "   CpuAcc is faster than")
    print(" " * 77 + "".join(f"{name:>13}" for name in LITERT))
    results, missed = {}, []
    for name, file, batch in CASES:
        times = measure(Path(options.models) / file, batch, options.rounds)
        results[f"{name} {batch}"] = times
        ratios = {kind: times[kind] / times["CpuAcc"] for kind in LITERT}
        print(
            f"{name:6}{batch:6}"
            + "".join(f"{times[kind]:13.4f}" for kind in names)
            + "".join(f"{ratio:12.2f}x" for ratio in ratios.values())
        )
        if name != "ad" and ratios["reference"] < REFERENCE_GOAL:
            missed.append(f"{name}: {ratios['reference']:.1f}x the reference kernels, goal {REFERENCE_GOAL:g}x")
        if ratios["no delegate"] < NO_DELEGATE_GOAL:
            missed.append(f"{name} ({batch}): {ratios['no delegate']:.2f}x the kernels without delegates, goal 0.33x")
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print("\n".join(missed) if missed else "all goals are met")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
