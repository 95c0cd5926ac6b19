# SPDX-License-Identifier: Apache-2.0
"""The numpy core compared with LiteRT's reference kernels on the four int8 MLPerf Tiny models, one thread each.

    python benchmarks/numpy_core.py [folder with the models, else $FERRULE_MODELS] [--rounds N]

Both run in this process in interleaved rounds; the best round counts. A `ratio` above 1 means that the numpy core is
faster.
"""

from __future__ import annotations

import os

# Read by OpenBLAS when numpy is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from ferrule import load
from ferrule.graph import Array, TensorInfo
from ferrule.network import Network

CASES = (
    ("ic", "pretrainedResnet_quant.tflite", 1),
    ("kws", "kws_ref_model.tflite", 1),
    ("vww", "vww_96_int8.tflite", 1),
    ("ad", "ad01_int8.tflite", 64),
    ("ad", "ad01_int8.tflite", 1),
)


def with_batch(network: Network, batch: int) -> Network:
    """Return the network with a different batch size."""

    def widened(info: TensorInfo) -> TensorInfo:
        return replace(info, shape=(batch, *info.shape[1:]))

    result = Network(network.name)
    for tensor in network.tensors:
        if tensor.data is not None:
            result.add_constant(tensor.info, tensor.data)
    for info in network.inputs:
        result.add_input(widened(info))
    for layer in network.layers:
        result.add_layer(layer, [widened(info) for info in network.output_infos(layer)])
    result.set_outputs(info.name for info in network.outputs)
    return result


def litert(path: Path, batch: int, data: Array) -> Callable[[], None]:
    """Return a function that runs LiteRT's reference kernels."""
    interpreter = Interpreter(
        model_path=str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    detail = interpreter.get_input_details()[0]
    if batch > 1:
        interpreter.resize_tensor_input(detail["index"], data.shape)
    interpreter.allocate_tensors()

    def run() -> None:
        interpreter.set_tensor(detail["index"], data)
        interpreter.invoke()

    return run


def ours(path: Path, batch: int, data: Array) -> Callable[[], None]:
    """Return a function that runs the numpy core."""
    network = load(path)
    if batch > 1:
        network = with_batch(network, batch)

    def run() -> None:
        network.run([data])

    return run


def best_of(runs: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Return the best time of each run in seconds; the rounds are interleaved, so that all see the same load."""
    best = [float("inf")] * len(runs)
    for run in runs:
        run()
    for _ in range(rounds):
        for index, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[index] = min(best[index], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="?", type=Path, default=os.environ.get("FERRULE_MODELS"))
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    if options.models is None:
        parser.error("give the folder with the models, or set FERRULE_MODELS")
    print(f"{'model':6}{'batch':>6}{'LiteRT reference':>19}{'ferrule':>12}{'ratio':>8}")
    for name, file, batch in CASES:
        path = Path(options.models) / file
        info = load(path).inputs[0]
        data = np.random.default_rng(0).integers(-128, 128, (batch, *info.shape[1:]), np.int8)
        theirs_s, ours_s = best_of([litert(path, batch, data), ours(path, batch, data)], options.rounds)
        print(f"{name:6}{batch:6}{theirs_s * 1e3:16.3f} ms{ours_s * 1e3:9.3f} ms{theirs_s / ours_s:8.2f}")


if __name__ == "__main__":
    main()
