# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of the TensorFlow Lite reader for any length of time.

python tests/formats/fuzz_tflite.py --seconds 600 [--seed 1] [--keep FOLDER] [file.tflite ...]

Without files it mutates the models in FERRULE_MODELS, if that is set, and the scripted one-layer models. Every input
must give a network or a one-line FerruleError, within a time and a memory limit; a network must survive validation and
the round trip through the writer. Failing inputs are written to the folder. With `--atheris`, and atheris installed,
coverage guides the mutations; the folder becomes its corpus, and libFuzzer gets the options that this program does not
know (`-max_total_time=600`).
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

TIME_LIMIT_S = 10
MEMORY_LIMIT_BYTES = 1 << 30
"""Limit on top of the process's memory before the first input."""


class OutOfTimeError(Exception):
    """An input took longer than the limit."""


def corpus(files: list[Path]) -> list[bytes]:
    """Return the files to mutate."""
    from call_models import call_models
    from run_time_models import models as run_time_models
    from sample_networks import valid_samples
    from stored_weights import models_with_stored_weights

    from ferrule.formats import to_tflite

    if not files and "FERRULE_MODELS" in os.environ:
        files = sorted(Path(os.environ["FERRULE_MODELS"]).glob("*.tflite"))
    scripted = [
        *(to_tflite(graph) for graph in valid_samples()),
        *call_models(),
        *models_with_stored_weights(),
        *run_time_models(),
    ]
    return [path.read_bytes() for path in files] + scripted


def limit_memory() -> None:
    """Make allocations fail beyond the size that a model like these can need."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_LIMIT_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def on_alarm(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Abort an input that takes too long."""
    raise OutOfTimeError(f"more than {TIME_LIMIT_S} s")


def run(options: argparse.Namespace) -> int:
    """Mutate until the time is up; return 1 if any input failed."""
    from import_check import check_import
    from mutation import mutate, mutate_values

    seeds = corpus(options.files)
    small = [data for data in seeds if len(data) < 100_000] or seeds
    choice = random.Random(options.seed)
    limit_memory()
    signal.signal(signal.SIGALRM, on_alarm)
    end = time.monotonic() + options.seconds
    inputs = accepted = failures = 0
    slowest_s = 0.0
    while time.monotonic() < end:
        base = choice.choice(small if choice.random() < 0.9 else seeds)
        data = mutate_values(base, choice) if choice.random() < 0.5 else mutate(base, seeds, choice)
        started = time.monotonic()
        signal.alarm(TIME_LIMIT_S)
        try:
            accepted += check_import(data)
        except Exception:  # noqa: BLE001
            failures += 1
            path = options.keep / f"fuzz_tflite_{options.seed}_{inputs}.tflite"
            path.write_bytes(data)
            print(f"{path}:\n{traceback.format_exc()}", flush=True)  # noqa: T201
        finally:
            signal.alarm(0)
        slowest_s = max(slowest_s, time.monotonic() - started)
        inputs += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(  # noqa: T201
        f"{inputs} inputs, {accepted} accepted, {failures} failed; slowest {slowest_s:.2f} s, peak {peak} MiB"
    )
    return 1 if failures else 0


def run_atheris(folder: Path, arguments: list[str]) -> None:
    """Hand over to atheris, with this module's mutations and the corpus written to a folder."""
    import atheris

    with atheris.instrument_imports(include=["ferrule.formats", "ferrule.graph"]):
        from import_check import check_import
        from mutation import mutate
    seeds = corpus([])
    for index, data in enumerate(seeds):
        (folder / f"seed_{index}").write_bytes(data)

    def custom_mutator(data: bytes, max_size: int, seed: int) -> bytes:
        return mutate(bytes(data), seeds, random.Random(seed))[:max_size]

    def one_input(data: bytes) -> None:
        check_import(bytes(data))

    atheris.Setup([sys.argv[0], str(folder), "-max_len=400000", *arguments], one_input, custom_mutator=custom_mutator)
    atheris.Fuzz()


def main() -> int:
    """Read the options, and fuzz."""
    parser = argparse.ArgumentParser(description="Fuzz the TensorFlow Lite reader.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path())
    parser.add_argument("--atheris", action="store_true")
    options, rest = parser.parse_known_args()
    if options.atheris:
        run_atheris(options.keep, rest)
        return 0
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
