# SPDX-License-Identifier: Apache-2.0
"""Sweeps on local processes: killed workers, resources, a sweep that goes on, one that ends early."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import sweep_jobs

from ferrule._typing import override
from ferrule.errors import FerruleError, MissingToolError
from ferrule.evaluation.sweep import LocalWorkers, Plan, ResultsFile, Settings, carry_out_plan
from ferrule.evaluation.sweep.campaign import in_words
from ferrule.evaluation.sweep.run import Run
from ferrule.evaluation.sweep.workers import Attempt, Resources, Workers
from ferrule.progress import Step
from ferrule.report.sweep_document import SweepDocument, SweepRow

Planned = Callable[..., Plan]


class AtOnce(Workers):
    """Workers that work in the caller's process."""

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.answers = answers

    @override
    def slots(self) -> int:
        return 1

    @override
    def lacking(self, resources: Mapping[str, float]) -> str:
        return "no board" if resources else ""

    @override
    def ask(self, function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        if self.answers is not None:
            return dict(self.answers)
        return {"here": function(*arguments)}

    @override
    def submit(self, resources: Resources, function: Callable[..., Any], *arguments: object) -> Attempt:
        attempt = Attempt()
        try:
            attempt.set_result(function(*arguments))
        except Exception as error:  # noqa: BLE001 as executors do
            attempt.set_exception(error)
        return attempt


def carried_out(plan: Plan, workers: Workers, path: Path, **settings: object) -> SweepDocument:
    with ResultsFile(path) as results, workers:
        return carry_out_plan(plan, workers, results, Settings(**settings))


def test_the_run_of_a_killed_worker_is_done_again_and_fails_at_last(planned: Planned, tmp_path: Path) -> None:
    plan, notes = planned(seeds=range(4)), tmp_path / "notes"
    notes.mkdir()
    settings = {"job": sweep_jobs.dying(notes, {1: 99, 3: 1}), "attempts": 2}
    document = carried_out(plan, LocalWorkers(1), tmp_path / "rows.jsonl", **settings)
    assert [row.options["seed"] for row in document.rows] == ["0", "1", "2", "3"]
    assert [(row.status, row.attempts) for row in document.rows] == [
        ("done", 1),
        ("failed", 2),
        ("done", 1),
        ("done", 2),
    ]
    assert "begun 2 times" in document.rows[1].error
    assert "killed by SIGKILL" in document.rows[1].error
    assert [sweep_jobs.begun(notes)[row.run] for row in document.rows] == [1, 2, 1, 2]


def test_a_sweep_goes_on_where_it_stopped(planned: Planned, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert len(carried_out(planned(seeds=range(3)), AtOnce(), path, job=sweep_jobs.answer).rows) == 3
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    done: list[str] = []

    def counted(run: Run) -> SweepRow:
        done.append(run.options["seed"])
        return sweep_jobs.answer(run)

    document = carried_out(planned(seeds=range(4)), AtOnce(), path, job=counted)
    assert done == ["2", "3"]
    assert len(document.rows) == document.planned == 4
    assert carried_out(planned(seeds=range(4)), AtOnce(), path, job=counted).rows == document.rows
    assert done == ["2", "3"]


def test_failed_runs_are_repeated_on_request(planned: Planned, tmp_path: Path) -> None:
    plan, path = planned(seeds=range(2)), tmp_path / "rows.jsonl"

    def broken(run: Run) -> SweepRow:
        raise ValueError(run.options["seed"])

    document = carried_out(plan, AtOnce(), path, job=broken)
    assert [row.error for row in document.rows] == ["ValueError: 0", "ValueError: 1"]
    assert carried_out(plan, AtOnce(), path, job=sweep_jobs.answer).rows == document.rows
    document = carried_out(plan, AtOnce(), path, job=sweep_jobs.answer, retry_failed=True)
    assert {row.status for row in document.rows} == {"done"}
    assert len(path.read_bytes().splitlines()) == 4


def test_fail_fast_ends_at_the_first_difference(planned: Planned, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    document = carried_out(planned(seeds=range(9)), AtOnce(), path, job=sweep_jobs.differ, fail_fast=True)
    assert len(document.rows) == 1
    assert document.planned == 9


def test_runs_share_what_there_is(planned: Planned, tmp_path: Path) -> None:
    plan = planned(
        '[options]\ngoal = ["speed", "size"]\nseed = [0, 1, 2, 3, 4]',
        '[[needs]]\nmatch = { goal = "size" }\nresources = { BOARD = 1 }',
        '[[needs]]\nmatch = { goal = "size", seed = [1, 2] }\nresources = { NPU = 1 }',
    )
    board, npu = ("BOARD", 1), ("NPU", 1)
    assert plan.resource_sets() == ((), (board,), (board, npu))
    document = carried_out(plan, LocalWorkers(2), tmp_path / "rows.jsonl", job=sweep_jobs.taking(tmp_path))
    assert len(document.rows) == document.planned == 10
    assert {(row.status, row.error) for row in document.rows} == {("done", "")}


def test_resources_that_nobody_has_are_refused_before_anything_runs(planned: Planned, tmp_path: Path) -> None:
    plan = planned('[[needs]]\nmatch = { board = "mps2-an386" }\nresources = { BOARD = 2 }')
    with pytest.raises(FerruleError, match="BOARD = 2, of which this machine has 1"):
        carried_out(plan, LocalWorkers(1), tmp_path / "rows.jsonl", job=sweep_jobs.answer)
    workers = LocalWorkers(1, {"BOARD": 2})
    assert workers.lacking({"BOARD": 2}) == ""


def test_workers_with_different_versions_are_refused(planned: Planned, tmp_path: Path) -> None:
    workers = AtOnce({"a": {"ferrule": "1", "zig": "zig 1"}, "b": {"ferrule": "1", "zig": "zig 2"}})
    with pytest.raises(FerruleError, match="zig is 'zig 1' on worker a and 'zig 2' on worker b"):
        carried_out(planned(), workers, tmp_path / "rows.jsonl", job=sweep_jobs.answer)


def test_a_toolchain_that_is_not_installed_is_named(planned: Planned, tmp_path: Path) -> None:
    workers = AtOnce({"a": {"ferrule": "1", "zig": "not installed"}})
    with pytest.raises(MissingToolError, match="the toolchain zig is not installed"):
        carried_out(planned(), workers, tmp_path / "rows.jsonl", job=sweep_jobs.answer)


def test_a_process_answers_until_the_block_ends(planned: Planned, tmp_path: Path) -> None:
    plan, notes = planned(), tmp_path / "notes"
    notes.mkdir()
    with LocalWorkers(1) as workers:
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            workers.submit((), divmod, 1, 0).result(timeout=60)
        assert workers.submit((), divmod, 7, 2).result(timeout=60) == (3, 1)
        with pytest.raises(Exception, match=r"pickle|local object"):
            workers.submit((), lambda: 1).result(timeout=60)
        future = workers.submit((), sweep_jobs.waiting(notes), next(plan.runs({"zig": "1"})))
        deadline = time.monotonic() + 60
        while not (found := list(notes.iterdir())) or not found[0].read_text().endswith("\n"):
            assert time.monotonic() < deadline
            os.sched_yield()
    number = int(found[0].read_text().split()[1])
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    with pytest.raises(FerruleError, match=r"worker-0 .*ended|worker-0 was killed"):
        future.result(timeout=60)


def test_progress_has_the_time_left(planned: Planned, tmp_path: Path) -> None:
    steps: list[Step] = []
    with ResultsFile(tmp_path / "rows.jsonl") as results:
        settings = Settings(job=sweep_jobs.answer)
        carry_out_plan(planned(seeds=range(30)), AtOnce(), results, settings, steps.append)
    assert len(steps) == 31
    assert str(steps[0]) == "sweep sweep: 30 runs"
    assert str(steps[-1]) == "sweep sweep: 30 of 30 runs, 0 s left"
    assert sum(step.begins for step in steps) == 11


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "0 s"), (99, "99 s"), (100, "2 min"), (5900, "98 min"), (7200, "2.0 h")]
)
def test_durations(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_a_row_without_evidence_is_not_kept(planned: Planned, tmp_path: Path) -> None:
    plan, path = planned(seeds=range(2)), tmp_path / "rows.jsonl"
    document = carried_out(plan, AtOnce(), path, job=sweep_jobs.claim)
    assert not any(row.succeeded for row in document.rows)
    assert not document.evidence
    again = carried_out(plan, AtOnce(), path, job=sweep_jobs.answer)
    assert all(row.succeeded for row in again.rows)
    assert again.evidence.runs == 2
