# SPDX-License-Identifier: Apache-2.0
"""`ferrule evaluate`: 10,000 samples of kws on the host, and samples per processor second on the emulated board.

    python benchmarks/evaluate.py [folder with the MLPerf Tiny models, else $FERRULE_MODELS] [--samples N] [--json FILE]
        [--before CHECKOUT]

First, `ferrule evaluate` runs in a new process with N samples of seeded random values and a proof of 20 samples on
mps2-an386; its processor time includes the start, the compiler and the proof. Goal: 10 seconds for 10,000 samples,
without the proof. Then kws, vww and ad run on the board, a sample at a time in interleaved rounds, in three ways: `run`
is `Firmware.run` with inputs and outputs through the link, which also computes the numpy reference of each sample;
`link` is the firmware alone, through the link; `direct` is what `--on-board all` does. The numbers are samples per
processor second, and the ratios are those of `direct` to the other two. With --before, the checkout of an older version
runs, too, as in `run`; goals against that (or else `run`): 1.7 (kws), 3 (vww, ad).
Last, `--on-board all` runs with one and two jobs; `scaling` is the ratio of their wall-clock times, up to 2 on two
cores. Two processes at the same time, which know nothing of each other, show how much of that the machine permits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import ferrule
from ferrule.emulation import EngineOptions
from ferrule.graph import Array

BOARD = "mps2-an386"
MODELS = {
    "kws": ("kws_ref_model.tflite", 24, 1.7),
    "vww": ("vww_96_int8.tflite", 12, 3.0),
    "ad": ("ad01_int8.tflite", 160, 3.0),
}
"""By name: the file, the samples of a round, and the goal for the ratio."""
CPU_GOAL_S = 10.0
ROUNDS = 3
SCALED = 600
"""The number of samples that are run with one and two jobs."""
RUN = """
import sys, time
import numpy as np
import ferrule
from ferrule.emulation import EngineOptions
path, board, count, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
network = ferrule.load(path)
firmware, shape, link = ferrule.compile(network, board=board), network.inputs[0].shape, EngineOptions(through_link=True)
data = np.random.default_rng(0).integers(-128, 128, (count * shape[0], *shape[1:])).astype(np.int8)
def spent(samples):
    before = time.process_time()
    firmware.run([samples], options=link)
    return time.process_time() - before
print(min((spent(data) - spent(data[: shape[0]])) / (count - 1) for _ in range(rounds)))
"""
"""Prints the processor seconds per sample of `Firmware.run`, for a version of any age."""
LINK = EngineOptions(through_link=True)


def random_samples(network: ferrule.Network, count: int) -> Array:
    """Return samples of all int8 values, the first axis being n times that of the input."""
    shape = network.inputs[0].shape
    return np.random.default_rng(0).integers(-128, 128, (count * shape[0], *shape[1:])).astype(np.int8)


def whole_process(model: Path, folder: Path, options: list[str]) -> dict[str, object]:
    """Return the document of one `ferrule evaluate` in a new process, with its processor and wall-clock seconds."""
    command = [sys.executable, "-m", "ferrule", "evaluate", str(model), "--data", "x.npy", "--labels", "y.npy"]
    before, started = os.times(), time.perf_counter()
    subprocess.run([*command, "--quiet", "--json", "document.json", *options], cwd=folder, check=True)
    after = os.times()
    spent = after.children_user - before.children_user + after.children_system - before.children_system
    document: dict[str, object] = json.loads((folder / "document.json").read_text(encoding="utf-8"))
    return {"cpu_s": spent, "wall_s": time.perf_counter() - started, "document": document}


def at_once(model: Path, folder: Path, options: list[str], count: int) -> list[dict[str, Any]]:
    """Return the documents of several `ferrule evaluate` that run at the same time."""
    with ThreadPoolExecutor(count) as pool:
        folders = [folder / f"process{index}" for index in range(count)]
        for each in folders:
            each.mkdir(exist_ok=True)
            for name in ("x.npy", "y.npy"):
                (each / name).unlink(missing_ok=True)
                (each / name).symlink_to(folder / name)
        done = list(pool.map(lambda each: whole_process(model, each, options)["document"], folders))
    return [each for each in done if isinstance(each, dict)]


def per_sample(run: Callable[[Array], object], data: Array, count: int, alone: Callable[[], object] | None) -> float:
    """Return the processor seconds per sample of a call with `count` samples, without those of a call for the start."""
    start_s = 0.0
    if alone is not None:
        before = time.process_time()
        alone()
        start_s = time.process_time() - before
        count -= 1
    before = time.process_time()
    run(data)
    return (time.process_time() - before - start_s) / count


def on_board(model: Path, count: int) -> dict[str, float]:
    """Return samples per processor second of each way, the best of the rounds."""
    from ferrule.running import RunRequest
    from ferrule.running.session import RunningFirmware

    network = ferrule.load(model)
    firmware = ferrule.compile(network, board=BOARD)
    data = random_samples(network, count)
    rows = data.shape[0] // count
    best = dict.fromkeys(("run", "link", "direct"), float("inf"))
    with RunningFirmware(firmware, RunRequest(options=LINK)) as link, RunningFirmware(firmware) as direct:
        outputs: dict[str, list[Array]] = {}

        def each(running: RunningFirmware, name: str) -> Callable[[Array], None]:
            def call(arrays: Array) -> None:
                outputs[name] = [running.run([sample])[0] for sample in arrays.reshape(-1, rows, *arrays.shape[1:])]

            return call

        for _ in range(ROUNDS):
            ways: dict[str, tuple[Callable[[Array], object], Callable[[], object] | None]] = {
                "run": (lambda x: firmware.run([x], options=LINK), lambda: firmware.run([data[:rows]], options=LINK)),
                "link": (each(link, "link"), None),
                "direct": (each(direct, "direct"), None),
            }
            for name, (run, alone) in ways.items():
                best[name] = min(best[name], per_sample(run, data, count, alone))
        if not all(map(np.array_equal, outputs["link"], outputs["direct"])):
            raise SystemExit(f"{model.name}: the ways disagree")
    return {name: 1.0 / seconds for name, seconds in best.items()}


def of_before(checkout: Path, model: Path, count: int) -> float:
    """Return samples per processor second of an older version."""
    command = [sys.executable, "-c", RUN, str(model), BOARD, str(count), str(ROUNDS)]
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "sdk")}
    done = subprocess.run(command, env=environment, cwd=checkout, check=True, capture_output=True, text=True)
    return 1.0 / float(done.stdout)


def scaling(model: Path, folder: Path) -> dict[str, float]:
    """Print and return the wall-clock seconds of one job, two jobs, and one job in each of two processes."""

    def wall_s(jobs: int, processes: int = 1) -> float:
        more = ["--limit", str(SCALED), "--board", BOARD, "--on-board", "all", "--jobs", str(jobs)]
        return max(float(each["paths"][-1]["wall_s"]) for each in at_once(model, folder, more, processes))

    walls = {"one job": wall_s(1), "two jobs": wall_s(2), "two processes": wall_s(1, processes=2)}
    print(
        f"\n{SCALED} samples of kws on the board:",
        ", ".join(f"{walls[each]:.1f} s with {each}" for each in walls),
        end="",
    )
    print(f"; scaling {walls['one job'] / walls['two jobs']:.2f}", end="")
    print(f", two processes of {SCALED} samples each {2 * walls['one job'] / walls['two processes']:.2f}")
    return walls


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="?", type=Path, default=os.environ.get("FERRULE_MODELS"))
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--before", type=Path, help="the checkout of an older version to compare with")
    options = parser.parse_args()
    if options.models is None:
        parser.error("give the folder with the models, or set FERRULE_MODELS")
    folder, missed = Path(options.models).resolve(), []
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as place:
        kws = ferrule.load(folder / MODELS["kws"][0])
        here = Path(place)
        random = np.random.default_rng(1)
        np.save(here / "x.npy", random_samples(kws, options.samples))
        np.save(here / "y.npy", random.integers(0, 12, options.samples))
        whole_process(kws_file := folder / MODELS["kws"][0], here, ["--limit", "1", "--board", BOARD])  # fills caches
        for title, more in (("host", []), ("host and proof", ["--board", BOARD])):
            done = whole_process(kws_file, here, more)
            figures[title] = {"cpu_s": done["cpu_s"], "wall_s": done["wall_s"]}
            print(f"{options.samples:,} samples of kws, {title}: {done['cpu_s']:.1f} s CPU, {done['wall_s']:.1f} s")
            goal_s = CPU_GOAL_S * options.samples / 10_000
            if title == "host" and float(str(done["cpu_s"])) > goal_s:
                missed.append(f"host: {done['cpu_s']:.1f} s, goal {goal_s:g} s")
        print(f"\n{'per CPU second':16}{'run':>9}{'link':>9}{'direct':>9}{'direct/run':>12}{'direct/link':>13}")
        for name, (file, count, goal) in MODELS.items():
            found = on_board(folder / file, count)
            figures[name] = found
            ratios = [found["direct"] / found[other] for other in ("run", "link")]
            print(f"{name:16}{found['run']:9.1f}{found['link']:9.1f}{found['direct']:9.1f}", end="")
            print(f"{ratios[0]:11.2f}x{ratios[1]:12.2f}x")
            if options.before is not None:
                found["before"] = of_before(options.before, folder / file, count)
                ratios[0] = found["direct"] / found["before"]
                print(f"{'':4}before: {found['before']:.1f}, direct/before {ratios[0]:.2f}x")
            if ratios[0] < goal:
                missed.append(f"{name}: {ratios[0]:.2f}x, goal {goal:g}x")
        figures["walls"] = scaling(kws_file, here)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print("\n".join(["", *missed]) if missed else "all goals are met")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
