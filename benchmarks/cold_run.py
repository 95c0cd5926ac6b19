# SPDX-License-Identifier: Apache-2.0
"""Times of `ferrule --help` and of a cold and a warm `ferrule run`, each in a new process.

Cold means empty caches: the engine's compiled hooks and zig's own cache go to a new folder. The goals are 0.25 s of
wall-clock time for the help, 10 s for the cold run, and 1.2 s of processor time, of user and system together, for a
warm one. Of the times of several runs the least counts, since other programs make them longer.

    FERRULE_MODELS=... python benchmarks/cold_run.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HELP_GOAL_S = 0.25
RUN_GOAL_S = 10.0
WARM_GOAL_S = 1.2
REPEATS = 5
WARM_REPEATS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The times of a process and of those that it started, in seconds."""

    wall_s: float
    processor_s: float


def times(*arguments: str, **environment: str) -> Times:
    """Return the times of `ferrule` with these arguments."""
    started, before = time.perf_counter(), _processor_s()
    subprocess.run(
        [sys.executable, "-m", "ferrule", *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return Times(wall_s=time.perf_counter() - started, processor_s=_processor_s() - before)


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure the commands and print the times."""
    helped = sorted(times("--help").wall_s for _ in range(REPEATS))
    print(f"ferrule --help: {helped[0]:.3f} s best, {helped[REPEATS // 2]:.3f} s median (goal {HELP_GOAL_S} s)")
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        sys.exit("set FERRULE_MODELS to the folder of the MLPerf Tiny models for the run")
    model = str(Path(folder) / "kws_ref_model.tflite")
    with tempfile.TemporaryDirectory() as cache:
        caches = {"FERRULE_CACHE": cache, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
        cold = times("run", model, **caches)
        warm = sorted(times("run", model, **caches).processor_s for _ in range(WARM_REPEATS))
    print(f"ferrule run kws, cold: {cold.wall_s:.2f} s (goal {RUN_GOAL_S:g} s)")
    print(
        f"ferrule run kws, warm: {warm[0]:.2f} s of processor time best, {warm[WARM_REPEATS // 2]:.2f} s median"
        f" (goal {WARM_GOAL_S:g} s)"
    )


if __name__ == "__main__":
    main()
