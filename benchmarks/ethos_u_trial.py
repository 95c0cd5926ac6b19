# SPDX-License-Identifier: Apache-2.0
"""What the trial of Ethos-U's streams adds to the time to compile, where all of them pass.

    python benchmarks/ethos_u_trial.py [folder with the models, else $FERRULE_MODELS] [--repeats N]

Processor time from a loaded network to its streams, that of Vela included, in a new process that finds no result of
Vela or of a trial. `added` is the time of the trials beside all other time, as the median of the repeats. Exit
code 1 if it is above the goal, or if a layer is left to the core.
"""

from __future__ import annotations

import os

# Read by OpenBLAS when numpy is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from ethos_u import LARGE, MODELS
from mobilenet_v2 import mobilenet_v2
from vela_divided import NoStore

import ferrule
from ferrule.backends.ethos_u import compiler, native_structs, trial, vela
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

GOAL = 0.15


def spent_s() -> float:
    """Return the processor time of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def compile_once(model: str) -> None:
    """Compile a model for the NPU; print the seconds of the trial, those of all else, and the layers on the core."""
    network = mobilenet_v2() if model == LARGE else ferrule.load(model)
    native_structs.functions()  # compiled once for each version of Ferrule
    registry = Runtime().registry
    trial_s = 0.0
    verdict = trial.verdict

    def timed(*arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 those of the function
        nonlocal trial_s
        start = time.process_time()
        found = verdict(*arguments, **keywords)
        trial_s += time.process_time() - start
        return found

    for module, name, value in ((compiler, "verdict", timed), (vela, "Store", NoStore), (trial, "Store", NoStore)):
        setattr(module, name, value)
    start = spent_s()
    divided = optimize(network, ["EthosU", "CpuRef"], registry, OptimizerOptions())
    vela.vela_process().close()
    left = sum(each.backend != "EthosU" for each in divided.assignment.values())
    print(json.dumps([trial_s, spent_s() - start - trial_s, left]))


def measured(model: str) -> tuple[float, float, int]:
    """Return what `compile_once` prints in a new process."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Vela and numpy would be compiled by Python each time
    command = [sys.executable, __file__, "--once", model]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    trial_s, rest_s, left = json.loads(done.stdout)
    return trial_s, rest_s, left


def row(name: str, folder: Path, repeats: int) -> bool:
    """Print the row of a model and return whether it meets the goal."""
    model = str(folder / MODELS[name]) if name in MODELS else name
    found = [measured(model) for _ in range(repeats + 1)][1:]  # the first writes Python's own caches
    added = median(trial_s / rest_s for trial_s, rest_s, _ in found)
    left = max(each[2] for each in found)
    is_met = added <= GOAL and not left
    notes = ("" if is_met else " MISSED") + (f", {left} layers on the core" if left else "")
    trial_s, rest_s = (median(each[column] for each in found) for column in (0, 1))
    print(f"{name:13}{rest_s:9.3f} s{trial_s:9.3f} s{added:8.1%}{notes}", flush=True)
    return is_met


def main() -> int:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?", type=Path, default=os.environ.get("FERRULE_MODELS"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--once", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        compile_once(options.once)
        return 0
    if options.models is None:
        parser.error("give the folder with the models, or set FERRULE_MODELS")
    print(f"{'model':13}{'compile':>11}{'trial':>11}{'added':>8}")
    met = [row(name, options.models, options.repeats) for name in (*MODELS, LARGE)]
    print(f"goal: at most {GOAL:.0%}")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
