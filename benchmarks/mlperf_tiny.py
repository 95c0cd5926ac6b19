# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of MLPerf Tiny over the runner's own protocol, on an emulated board.

Each benchmark's firmware is generated with --app mlperf-tiny and driven through its UART: inputs are loaded, inferences
timed by the board's clock, and the results compared with numpy's (to the three decimals that the protocol has). The
models are those of FERRULE_MODELS. With --dataset, a folder in the layout of the official runner (NAME/y_labels.csv and
the files that it lists), the accuracy against its labels is printed, too.

With --runner CHECKOUT, the official runner of a checkout of github.com/mlcommons/tiny drives the same firmware at a
pseudo-terminal, in performance mode, and in accuracy mode if --dataset is given; it needs matplotlib, pyserial, PyYAML
and scikit-learn. On an emulator a cycle is an instruction: compare firmware, not boards.

python benchmarks/mlperf_tiny.py [kws01 ...] [--board mps2-an386] [--engine unicorn] [--samples 20]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from mlperf_bench import (
    BENCHMARKS,
    MODELS,
    Sample,
    at_a_port,
    device,
    equal,
    expected,
    firmware,
    official_runner,
    random_samples,
    read_samples,
    write_data,
)

import ferrule
from ferrule.network import Network

TIMED = 5
"""Inferences against the clock."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a benchmark."""

    name: str
    per_second: float
    equal: int
    samples: int
    correct: int | None
    """Samples whose largest result has the label's index; None without labels."""


def run(name: str, network: Network, elf: Path, samples: list[Sample], board: str, engine: str) -> Outcome:
    """Drive a benchmark's firmware by our runner."""
    benchmark, same, correct, per_second = BENCHMARKS[name], 0, 0, 0.0
    labelled = all(sample.label is not None for sample in samples) and not benchmark.error
    with device(elf, board, engine) as (_, runner):
        if runner.names()["model"] != name:
            raise SystemExit(f"{elf} answers as {runner.names()}")
        for index, sample in enumerate(samples):
            runner.load(sample.data)
            found = runner.infer(TIMED if index == 0 else 1)
            per_second = found.per_second if index == 0 else per_second
            wanted = expected(benchmark, network, sample.data)
            same += equal(found.results, wanted)
            correct += int(np.argmax(found.results)) == sample.label
    return Outcome(name, per_second, same, len(samples), correct if labelled else None)


def official(name: str, elf: Path, data: Path, modes: str, options: argparse.Namespace, folder: Path) -> None:
    """Let the official runner drive a benchmark's firmware, and print its verdicts."""
    for mode in modes:
        logs = folder / f"{name}-{mode}"
        logs.mkdir()
        with at_a_port(elf, options.board, options.engine) as port:
            text = official_runner(options.runner, port, mode, data, logs)
        for line in text.splitlines():
            if any(word in line for word in ("Median throughput", "Top 1%", "AUC", "ERROR")):
                print(f"official runner, {name}: {line.partition('ulp-mlperf: ')[2] or line}")


def main() -> int:
    """Run the benchmarks; return 1 if a result differs from numpy's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--engine", default="unicorn")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--dataset", type=Path, help="a folder in the layout of the official runner")
    parser.add_argument("--runner", type=Path, help="a checkout of github.com/mlcommons/tiny")
    options = parser.parse_args()
    unknown = set(options.names) - set(MODELS)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; known: {', '.join(MODELS)}")
    folder = os.environ.get("FERRULE_MODELS")
    if folder is None:
        raise SystemExit("FERRULE_MODELS must name the folder with MLPerf Tiny's models")
    failed = False
    print("| benchmark | inferences/s | equal to numpy | correct |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="mlperf-tiny-") as scratch:
        for name in options.names or MODELS:
            model = Path(folder) / MODELS[name]
            network = ferrule.load(model)
            elf = firmware(name, model, Path(scratch) / name, options.board)
            samples = (
                random_samples(name, network, options.samples)
                if options.dataset is None
                else read_samples(options.dataset, name, options.samples)
            )
            done = run(name, network, elf, samples, options.board, options.engine)
            failed |= done.equal != done.samples
            correct = "no labels" if done.correct is None else f"{done.correct} of {done.samples}"
            print(f"| {name} | {done.per_second:.3f} | {done.equal} of {done.samples} | {correct} |", flush=True)
            if options.runner is not None:
                data = options.dataset
                if data is None:
                    data = Path(scratch) / f"{name}-data"
                    write_data(data, name, samples)
                official(name, elf, data, "p" if options.dataset is None else "pa", options, Path(scratch))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
