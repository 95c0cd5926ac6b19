# SPDX-License-Identifier: Apache-2.0
"""Sweeps on a dask.distributed cluster: a real scheduler and two worker processes, one of which is killed."""

from __future__ import annotations

import builtins
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sweep_jobs
from needs import require_module

from ferrule.errors import FerruleError, MissingToolError
from ferrule.evaluation.sweep import ClusterWorkers, Plan, ResultsFile, Settings, carry_out_plan
from ferrule.progress import Step

Planned = Callable[..., Plan]
SUPPORT = Path(__file__).parents[2] / "support"

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning:distributed")


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
        document = carry_out_plan(plan, workers, results, Settings(job=sweep_jobs.dying(notes, seed=3, times=1)))
    begun = sweep_jobs.begun(notes)
    assert [row.status for row in document.rows] == ["done"] * 5
    assert [row.attempts for row in document.rows] == [begun[row.run] for row in document.rows]
    assert document.rows[3].attempts == 2
    assert {row.worker for row in document.rows} <= {"0", "1"}


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *arguments: Any, **keywords: Any) -> Any:
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
