# SPDX-License-Identifier: Apache-2.0
"""Sweeps on a dask.distributed cluster: a real scheduler and two worker processes, one of which is killed."""

from __future__ import annotations

import builtins
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import children
import msgspec
import pytest
import sweep_jobs
from children import ran
from needs import require_module

from ferrule.errors import FerruleError, MissingToolError
from ferrule.evaluation.sweep import ClusterWorkers, Plan, ResultsFile, Settings, carry_out_plan
from ferrule.report.sweep_document import SweepDocument

Planned = Callable[..., Plan]
SUPPORT = Path(__file__).parents[2] / "support"

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::DeprecationWarning:distributed",
    "ignore:Creating scratch directories is taking",  # on a busy disk; as an error, it would end the scheduler
)


@pytest.fixture(autouse=True)
def _distributed() -> None:
    require_module("distributed", "pip install 'ferrule[cluster]'")


def test_a_cluster_repeats_the_run_of_a_killed_worker(planned: Planned, tmp_path: Path) -> None:
    plan = planned("[[needs]]\nmatch = { seed = [0, 1] }\nresources = { BOARD = 1 }", seeds=range(5))
    notes = tmp_path / "notes"
    notes.mkdir()
    with ClusterWorkers("local", 2, {"BOARD": 1}) as workers, ResultsFile(tmp_path / "rows.jsonl") as results:
        assert workers.slots() == 2
        assert '--resources "NPU=1"' in workers.lacking({"NPU": 1})
        document = carry_out_plan(plan, workers, results, Settings(job=sweep_jobs.dying(notes, {3: 1})))
    begun = sweep_jobs.begun(notes)
    assert [row.status for row in document.rows] == ["done"] * 5
    assert document.rows[3].attempts == begun[document.rows[3].run] == 2
    # The lost worker may have kept a result: one that has come already is computed once more for nobody.
    assert all(row.attempts in {1, begun[row.run]} for row in document.rows)
    assert {row.worker for row in document.rows} <= {"0", "1"}


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *arguments: object, **keywords: object) -> object:
        if name == "distributed":
            raise ImportError(name)
        return imported(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingToolError, match="distributed is missing") as caught:
        ClusterWorkers("local", 1)
    assert caught.value.hint == "pip install 'ferrule[cluster]'"


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nothing://x", "127.0.0.1:port"])
def test_an_address_without_a_scheduler(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.evaluation.sweep.cluster._CONNECT_S", 0.2)
    with pytest.raises(FerruleError, match=f"there is no scheduler at {re.escape(address)}"):
        ClusterWorkers(address, 1)


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """Yield the address of a scheduler with two workers without nannies, and the workers' processes."""
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker"]
    log = (folder / "cluster.log").open("w")
    environment = children.environment(SUPPORT)
    file = folder / "scheduler.json"

    def start(command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, text=True, cwd=folder)

    processes = [
        start(
            [
                *dask,
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--dashboard-address",
                "127.0.0.1:0",
                "--scheduler-file",
                str(file),
            ]
        )
    ]
    try:
        once = ["--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        processes += [start([*worker, *once, "--name", name, "--resources", "BOARD=1"]) for name in ("a", "b")]
        until(lambda: file.exists() and file.stat().st_size > 0)
        yield json.loads(file.read_text())["address"], processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
        log.close()


def until(condition: Callable[[], bool], progress: Callable[[], object] = lambda: None) -> None:
    """Wait for other processes; fail after ten minutes without progress, however slow the machine is."""
    seen, deadline = progress(), time.monotonic() + 600
    while not condition():
        if (now := progress()) != seen:
            seen, deadline = now, time.monotonic() + 600
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.nightly
@pytest.mark.emu
@pytest.mark.timeout(4 * 3600)
def test_a_thousand_runs_with_a_killed_worker_and_a_stop(model: Path, tmp_path: Path) -> None:
    path, rows = tmp_path / "sweep.toml", tmp_path / "sweep.jsonl"
    path.write_text(
        f'models = ["{model.name}"]\n'
        'boards = ["mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505", "nrf52840dk"]\n'
        '[options]\ngoal = ["speed", "balanced", "size", "memory"]\noptimization = ["Os", "O2"]\n'
        f"seed = {list(range(25))}\n"
        '[[needs]]\nmatch = { board = "mps2-an500" }\nresources = { BOARD = 1 }\n',
        encoding="utf-8",
    )

    def count() -> int:
        return rows.read_bytes().count(b"\n") if rows.exists() else 0

    with cluster(tmp_path) as (address, (_, worker, _)):
        command = [sys.executable, "-m", "ferrule", "sweep", str(path), "--scheduler", address, "--workers", "2"]
        environment = children.environment(SUPPORT)  # as the workers': rows are kept only in the same one
        sweep = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
        until(lambda: count() > 300 or sweep.poll() is not None, count)
        worker.kill()
        until(lambda: count() > 600 or sweep.poll() is not None, count)
        sweep.send_signal(signal.SIGINT)
        _, said = sweep.communicate(timeout=1200)
        assert sweep.returncode == 130, said
        assert "the same command goes on after them" in said
        stopped = count()
        assert 600 < stopped < 1000
        command[-1] = "1"
        done = ran(
            [*command, "--parquet", "rows.parquet", "--json", "-"], cwd=tmp_path, env=environment, timeout=7200,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = msgspec.json.decode(done.stdout, type=SweepDocument)
    assert len(document.rows) == document.planned == count() == 1000
    assert {row.verdict for row in document.rows} == {"exact"}
    assert {row.attempts for row in document.rows} == {1, 2}
    assert len({row.firmware_digest for row in document.rows}) >= 5
