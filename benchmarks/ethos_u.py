# SPDX-License-Identifier: Apache-2.0
"""The functional model of Ethos-U beside the prototype that it began as, in the same run, one thread each.

    python benchmarks/ethos_u.py --prototype FOLDER [folder with the models, else $FERRULE_MODELS] [--rounds N]

Warm: an inference whose weights are decoded; both run in this process in turn, and a `ratio` above 1 means that the
model is faster. Cold: the CPU time from the bytes of Vela's file to the first outputs, with all weights to decode, in a
new process that has imported everything and executed another stream. Both are medians of processor time. Without
--prototype, its columns are empty. The outputs of both are compared. Exit code 1 if a goal is missed.
"""

from __future__ import annotations

import os

# Read by OpenBLAS when numpy is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import importlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from mobilenet_v2 import mobilenet_v2
from vela_campaign import compile_in_process

from ferrule.backends.ethos_u import EthosUStream
from ferrule.formats import to_tflite
from ferrule.graph import Array

CONFIGURATION = "ethos-u55-128"
MODELS = {
    "ad": "ad01_int8.tflite",
    "kws": "kws_ref_model.tflite",
    "vww": "vww_96_int8.tflite",
    "ic": "pretrainedResnet_quant.tflite",
}
LARGE = "mobilenet_v2"
TURN = 5
"""Runs of one before the other has its turn."""
WARM_GOAL = 3.0
COLD_GOALS_S = {"vww": 0.08, LARGE: 1.0}
_TABLE = "sigmoid_uint16_table.json"


def inputs_of(stream: EthosUStream) -> list[Array]:
    """Return random inputs."""
    random = np.random.default_rng(0)
    limits = [np.iinfo(tensor.dtype.numpy) for tensor in stream.inputs]
    return [
        random.integers(limit.min, limit.max, tensor.shape, tensor.dtype.numpy, endpoint=True)
        for tensor, limit in zip(stream.inputs, limits, strict=True)
    ]


def import_prototype(folder: Path, place: Path) -> Any:  # noqa: ANN401 a module without types
    """Import the prototype's interpreter from a copy of its folder, beside the table that it reads."""
    from ferrule.operators.arithmetic.sigmoid_table import SIGMOID_TABLE

    code = place / "a" / "b"
    (place / "shared" / "data").mkdir(parents=True)
    (place / "shared" / "data" / _TABLE).write_text(json.dumps({"values": [int(value) for value in SIGMOID_TABLE]}))
    code.mkdir(parents=True)
    for name in ("u55.py", "mlw.py", "velafile.py"):
        shutil.copy(folder / name, code / name)
    sys.path.insert(0, str(code))
    return importlib.import_module("u55"), importlib.import_module("velafile")


def prototype_of(modules: Any, stream: EthosUStream, inputs: Sequence[Array]) -> Callable[[], list[Array]]:  # noqa: ANN401
    """Return a function that executes the stream on the prototype."""
    interpreter, files = modules
    compiled = stream.stream
    words = [int(word) for word in files.parse_cop(compiled.payload)["stream"]]
    arena = np.zeros(compiled.scratch_bytes + 64, np.uint8)
    weights = np.frombuffer(compiled.read_only, np.uint8)
    npu = interpreter.NPU(compiled.configuration.macs, {0: weights, 1: arena, 2: arena})

    def run() -> list[Array]:
        for tensor, array in zip(stream.inputs, inputs, strict=True):
            arena[tensor.offset : tensor.offset + tensor.size_bytes] = array.reshape(-1).view(np.uint8)
        npu.run(words)
        return [arena[t.offset : t.offset + t.size_bytes].view(t.dtype.numpy).copy() for t in stream.outputs]

    return run


def medians(runs: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Return the median processor time of each run in seconds; they take turns, so that all see the same load.

    A turn has several runs, since a first one finds the processor's caches as the other has left them.
    """
    times: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run()
    for _ in range(rounds):
        for run, measured in zip(runs, times, strict=True):
            start = time.process_time()
            for _ in range(TURN):
                run()
            measured.append((time.process_time() - start) / TURN)
    return [median(each) for each in times]


def cold(file: Path, other: Path, repeats: int) -> float:
    """Return the median processor time of a first inference, in seconds."""
    command = [sys.executable, __file__, "--cold", str(file), str(other)]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(repeats)]
    return median(map(float, found))


def measure_cold(file: Path, other: Path) -> None:
    """Print the processor time from a file's bytes to the first outputs."""
    warm = EthosUStream.read(other)
    warm.run(inputs_of(warm))
    data = file.read_bytes()
    random = inputs_of(EthosUStream.read(data))
    start = time.process_time()
    EthosUStream.read(data).run(random)
    print(time.process_time() - start)


def row(name: str, folder: Path, modules: Any, options: argparse.Namespace) -> bool:  # noqa: ANN401
    """Print the row of a model and return whether it meets the goals."""
    stream = EthosUStream.read(folder / f"{name}.npz")
    inputs = inputs_of(stream)
    macs = stream.run(inputs).macs
    runs: list[Callable[[], Any]] = [lambda: stream.run(inputs)]
    if modules is not None:
        theirs = prototype_of(modules, stream, inputs)
        for found, wanted in zip(stream.run(inputs).outputs.values(), theirs(), strict=True):
            np.testing.assert_array_equal(found.reshape(-1), wanted)
        runs.append(theirs)
    rounds = options.rounds if name != LARGE else max(options.rounds // 10, 3)
    warm_s = medians(runs, rounds)
    other = "ad" if name != "ad" else "kws"
    cold_s = cold(folder / f"{name}.npz", folder / f"{other}.npz", options.repeats)
    ratio = warm_s[1] / warm_s[0] if modules is not None else float("nan")
    goal = COLD_GOALS_S.get(name)
    met = (goal is None or cold_s <= goal) and (modules is None or name == LARGE or ratio >= WARM_GOAL)
    their_ms = f"{warm_s[1] * 1e3:9.2f} ms{ratio:8.2f}" if modules is not None else " " * 20
    notes = ("" if goal is None else f"  (goal {goal} s)") + ("" if met else " MISSED")
    print(f"{name:13}{macs / 1e6:8.1f}{warm_s[0] * 1e3:9.2f} ms{their_ms}{cold_s:9.3f} s{notes}")
    return met


def main() -> int:
    """Compile the models, and print a table with a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?", type=Path, default=os.environ.get("FERRULE_MODELS"))
    parser.add_argument("--prototype", type=Path, help="the folder with u55.py, mlw.py and velafile.py")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5, help="processes for each cold figure")
    parser.add_argument("--cold", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cold:
        measure_cold(*options.cold)
        return 0
    if options.models is None:
        parser.error("give the folder with the models, or set FERRULE_MODELS")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model, file in MODELS.items():
            data = compile_in_process((Path(options.models) / file).read_bytes(), CONFIGURATION)
            (folder / f"{model}.npz").write_bytes(data)
        (folder / f"{LARGE}.npz").write_bytes(compile_in_process(to_tflite(mobilenet_v2()), CONFIGURATION))
        modules = import_prototype(options.prototype, folder) if options.prototype else None
        print(f"{'model':13}{'MMAC':>8}{'warm':>12}{'prototype':>12}{'ratio':>8}{'cold':>11}")
        met = [row(model, folder, modules, options) for model in (*MODELS, LARGE)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
