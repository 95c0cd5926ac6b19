# SPDX-License-Identifier: Apache-2.0
"""Wall-clock time of `ferrule --help` and of a cold `ferrule run`, each in a new process.

Cold means empty caches: the engine's compiled hooks and zig's own cache go to a new folder. The goals are 0.25 s for
the help and 10 s for the run.

    FERRULE_MODELS=... python benchmarks/cold_run.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HELP_GOAL_S = 0.25
RUN_GOAL_S = 10.0
REPEATS = 5


def seconds(*arguments: str, **environment: str) -> float:
    """Return the wall-clock time of `ferrule` with these arguments, in seconds."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "ferrule", *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - started


def main() -> None:
    """Measure both commands and print the times."""
    helped = sorted(seconds("--help") for _ in range(REPEATS))
    print(f"ferrule --help: {helped[0]:.3f} s best, {helped[REPEATS // 2]:.3f} s median (goal {HELP_GOAL_S} s)")
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        sys.exit("set FERRULE_MODELS to the folder of the MLPerf Tiny models for the run")
    model = str(Path(folder) / "kws_ref_model.tflite")
    with tempfile.TemporaryDirectory() as cache:
        caches = {"FERRULE_CACHE": cache, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
        cold = seconds("run", model, **caches)
        warm = seconds("run", model, **caches)
    print(f"ferrule run kws: {cold:.2f} s cold, {warm:.2f} s warm (goal {RUN_GOAL_S:g} s)")


if __name__ == "__main__":
    main()
