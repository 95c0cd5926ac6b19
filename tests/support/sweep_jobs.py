# SPDX-License-Identifier: Apache-2.0
"""What workers do in tests of sweeps instead of compiling: functions that a worker's process can import."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ferrule.evaluation.sweep.run import Run
from ferrule.report.evidence import Evidence
from ferrule.report.sweep_document import SweepRow

Job = partial[SweepRow]


def answer(run: Run) -> SweepRow:
    """Return a row at once."""
    evidence = Evidence(samples=run.samples, elements=4 * run.samples, numbers=4 * run.samples, runs=1)
    found = {"count": len(run.board), "unit": "instructions", "samples": run.samples}
    return run.row(status="done", verdict="exact", evidence=evidence, **found)


def claim(run: Run) -> SweepRow:
    """Return a row that claims a success on no evidence."""
    return run.row(status="done", verdict="exact")


def differ(run: Run) -> SweepRow:
    """Return the row of a run that differs from the reference."""
    return run.row(status="done", verdict="different")


def _note(folder: Path, run: Run, event: str) -> int:
    """Add a line to a run's file, and return how often this event is in it."""
    path = folder / run.digest
    with path.open("a") as file:
        file.write(f"{event} {os.getpid()}\n")
    return sum(line.startswith(event) for line in path.read_text().splitlines())


def _die(folder: str, times: Mapping[str, int], run: Run) -> SweepRow:
    begun = _note(Path(folder), run, "begun")
    if begun <= times.get(run.options["seed"], 0):
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(run)


def dying(folder: Path, times: Mapping[int, int]) -> Job:
    """Return a job that kills its worker the first times that it runs with a seed: how often, by seed."""
    return partial(_die, str(folder), {str(seed): number for seed, number in times.items()})


def begun(folder: Path) -> Mapping[str, int]:
    """Return how often the runs of `dying` and `measuring` jobs were begun, by digest."""
    return {path.name: path.read_text().count("begun") for path in folder.iterdir()}


def _wait(folder: str, run: Run) -> SweepRow:
    _note(Path(folder), run, "begun")
    time.sleep(600)
    return answer(run)


def waiting(folder: Path) -> Job:
    """Return a job that does not end by itself."""
    return partial(_wait, str(folder))


def _take(folder: str, run: Run) -> SweepRow:
    """Fail if another run has one of the run's resources: a folder that exists while it is taken."""
    held = [Path(folder) / name for name, _ in run.resources]
    for each in held:
        each.mkdir()
    time.sleep(0.01)
    for each in held:
        each.rmdir()
    return answer(run)


def taking(folder: Path) -> Job:
    """Return a job that fails if another run has one of its resources."""
    return partial(_take, str(folder))
