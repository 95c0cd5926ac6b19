# SPDX-License-Identifier: Apache-2.0
"""Carries out the runs of a sweep: submits them, repeats those whose workers are lost, keeps the rows."""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace

from ferrule._frozen import frozen
from ferrule._version import VERSION
from ferrule.errors import FerruleError
from ferrule.evaluation.sweep.plan import Plan
from ferrule.evaluation.sweep.results import ResultsFile
from ferrule.evaluation.sweep.run import FAILED, Run, carry_out, lacks, recorded, versions
from ferrule.evaluation.sweep.workers import Attempt, Resources, WorkerLostError, Workers
from ferrule.progress import Progress, Step, say_nothing
from ferrule.record import Reads
from ferrule.report import Verdict
from ferrule.report.sections import joined, plural
from ferrule.report.sweep_document import SweepDocument, SweepRow

_Ended = tuple[SweepRow, Reads]
_AHEAD = 4
"""Runs that wait or are at work, for each that can be at work: enough that no worker waits for the next one."""
_LINES = 10
"""Lines of progress in a whole sweep, where progress is printed line by line."""


@frozen
class Settings:
    """How the runs are carried out."""

    attempts: int = 3
    """How often a run is begun, at most, if its worker is lost."""
    retry_failed: bool = False
    """Whether runs whose rows say that they failed are run again."""
    fail_fast: bool = False
    """Whether the sweep ends at the first run that fails or differs."""
    job: Callable[[Run], SweepRow] = carry_out
    """What carries out a run."""


DEFAULTS = Settings()


def carry_out_plan(
    plan: Plan,
    workers: Workers,
    results: ResultsFile,
    settings: Settings = DEFAULTS,
    progress: Progress = say_nothing,
) -> SweepDocument:
    """Carry out the runs that the results lack, and return the rows of all runs of the plan.

    Each row is added to the results as soon as its run ends. Whatever ends this function, the rows are kept, and
    another call goes on after them.

    Raises:
        MissingToolError: a worker lacks an engine or a toolchain.
        FerruleError: workers have different versions, no worker has the resources that a run takes, the scheduler is
            lost, or the results cannot be written.
    """
    found = _agreed(workers.ask(versions, plan.toolchains, plan.engines))
    _require_tools(plan, workers, found)
    for resources in plan.resource_sets():
        reason = workers.lacking(dict(resources))
        if reason:
            raise FerruleError(reason, hint="docs/sweeps.md says how resources are stated")
    campaign = _Campaign(plan, workers, results, settings, progress, found)
    campaign.run()
    return _document(plan, results, found, campaign.outdated)


def _document(plan: Plan, results: ResultsFile, found: Mapping[str, str], outdated: Collection[str]) -> SweepDocument:
    """Return the last rows of a plan's runs, without the outdated ones, in the order of the plan."""
    from ferrule.report.surroundings import environment

    rows = {row.run: row for row in results.rows() if row.run not in outdated}
    planned = [run.digest for run in plan.runs(found)]
    return SweepDocument(
        ferrule_version=VERSION,
        name=plan.name,
        rows=tuple(rows[digest] for digest in planned if digest in rows),
        planned=len(planned),
        environment=environment(),
    )


@frozen
class _Group:
    """The runs that take the same resources: each group has its own place in the queue, so that none waits behind runs
    whose resources are taken.
    """

    resources: Resources
    runs: Iterator[Run]
    at_work: set[str]


class _Campaign:
    """The state of a sweep that is being carried out."""

    def __init__(
        self,
        plan: Plan,
        workers: Workers,
        results: ResultsFile,
        settings: Settings,
        progress: Progress,
        found: Mapping[str, str],
    ) -> None:
        self._plan, self._workers, self._results, self._settings = plan, workers, results, settings
        self._ended: queue.SimpleQueue[tuple[_Group, Run, Future[_Ended]]] = queue.SimpleQueue()
        self._attempts: dict[str, int] = {}
        repeated = {FAILED} if settings.retry_failed else set()
        changes = {
            run.digest: results.changed(run.digest, run.places)
            for run in plan.runs(found)
            if run.digest in results.statuses
        }
        self.outdated = {run: reason for run, reason in changes.items() if reason is not None}
        """By digest of the run: what has changed since its last row was made; a run leaves when it has a new one."""
        for reason, count in Counter(self.outdated.values()).items():
            progress(Step(phase=f"sweep {plan.name}: {plural(count, 'run')} again: {reason}"))
        self._kept = {
            run for run, status in results.statuses.items() if status not in repeated and run not in self.outdated
        }
        self._groups = [
            _Group(resources=taken, runs=self._waiting(taken, found), at_work=set()) for taken in plan.resource_sets()
        ]
        todo = sum(run.digest not in self._kept for run in plan.runs(found))
        self._pace = _Pace(plan.name, todo, progress)

    def run(self) -> None:
        """Carry out all runs; with `fail_fast`, until one does not succeed."""
        for group in self._groups:
            self._fill(group)
        while any(group.at_work for group in self._groups):
            group, run, future = self._ended.get()
            ended = self._row(group, run, future)
            if ended is None:
                continue
            row, reads = ended
            group.at_work.remove(run.digest)
            self._results.append(row, reads)
            self.outdated.pop(run.digest, None)
            self._pace.note(row)
            if self._settings.fail_fast and not row.succeeded:
                return
            self._fill(group)

    def _waiting(self, resources: Resources, found: Mapping[str, str]) -> Iterator[Run]:
        """Yield the runs without a row that take these resources."""
        for run in self._plan.runs(found):
            if run.resources == resources and run.digest not in self._kept:
                yield run

    def _fill(self, group: _Group) -> None:
        wanted = _AHEAD * self._workers.slots()
        while len(group.at_work) < wanted:
            run = next(group.runs, None)
            if run is None:
                return
            group.at_work.add(run.digest)
            self._submit(group, run)

    def _submit(self, group: _Group, run: Run) -> None:
        future = self._workers.submit(group.resources, recorded, self._settings.job, run)
        future.add_done_callback(lambda done: self._ended.put((group, run, done)))

    def _row(self, group: _Group, run: Run, future: Future[_Ended]) -> _Ended | None:
        """Return the row of a run that has ended; None if it was submitted again, since its worker was lost."""
        reads = self._plan.reads
        assert isinstance(future, Attempt)
        attempts = self._attempts[run.digest] = self._attempts.get(run.digest, 0) + future.begun
        try:
            row, reads = future.result()
        except WorkerLostError as error:
            if attempts < self._settings.attempts:
                self._submit(group, run)
                return None
            times = "once" if attempts == 1 else f"{attempts} times"
            row = run.failed(f"the run was begun {times}, and its worker was lost each time; the last: {error}")
        except CancelledError:
            raise FerruleError(
                "the connection to the scheduler was lost", hint="the same command goes on where this sweep has stopped"
            ) from None
        except Exception as error:  # noqa: BLE001 what a cluster reports, such as a result that cannot be sent
            row = run.failed(f"{type(error).__name__}: {error}")
        self._attempts.pop(run.digest)
        return replace(row, worker=future.worker, attempts=max(1, attempts)), reads


@dataclass(slots=True)
class _Pace:
    """Progress of a sweep, with the time that is left."""

    name: str
    todo: int
    say: Progress
    done: int = 0
    bad: dict[str, int] = field(default_factory=lambda: {"failed": 0, "differ": 0})
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.say(Step(phase=f"sweep {self.name}: {self.todo:,} runs"))

    def note(self, row: SweepRow) -> None:
        """Count a run that has ended."""
        self.done += 1
        self.bad["failed"] += row.failed
        self.bad["differ"] += row.verdict == Verdict.DIFFERENT
        left_s = (time.monotonic() - self.started) / self.done * (self.todo - self.done)
        bad = (f"{count:,} {what}" for what, count in self.bad.items() if count)
        text = joined(f"{self.done:,} of {self.todo:,} runs", *bad, f"{in_words(left_s)} left")
        line = self.done * _LINES // self.todo > (self.done - 1) * _LINES // self.todo
        self.say(Step(phase=f"sweep {self.name}: {text}", done=0 if line else self.done))


def in_words(seconds: float) -> str:
    """Return a duration as a reader of a progress line wants it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _agreed(found: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Return the versions that all workers have; FerruleError if they differ."""
    first = next(iter(found))
    for worker, its in found.items():
        for name, text in its.items():
            if text != found[first][name]:
                raise FerruleError(
                    f"{name} is {found[first][name]!r} on worker {first} and {text!r} on worker {worker}",
                    hint="give all workers the same versions, or their results could not be compared",
                )
    return found[first]


def _require_tools(plan: Plan, workers: Workers, found: Mapping[str, str]) -> None:
    from ferrule.errors import MissingToolError
    from ferrule.firmware import toolchain

    for name in plan.toolchains:
        if found[name] == "not installed":
            raise MissingToolError(f"the toolchain {name} is not installed", hint=toolchain(name).remedy)
    for worker, problems in workers.ask(lacks, plan.pairs()).items():
        if problems:
            raise MissingToolError(f"{worker}: {'; '.join(problems)}")
