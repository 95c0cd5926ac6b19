# SPDX-License-Identifier: Apache-2.0
"""`ferrule sweep`: runs, results that go on, exit codes, interruptions, bad options."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from needs import require_module

from ferrule.evaluation.sweep import run as sweep_run
from ferrule.report.evidence import Evidence
from ferrule.report.reading import read_document
from ferrule.report.sweep_document import SweepDocument, SweepRow

Ferrule = Callable[..., Any]


@pytest.fixture
def sweep(dense: Path, tmp_path: Path) -> Path:
    """A sweep of two runs."""
    path = tmp_path / "two.toml"
    path.write_text(f'models = ["{dense}"]\n[options]\nseed = [3, 4]\n', encoding="utf-8")
    return path


@pytest.mark.emu
@pytest.mark.usefixtures("zig")
def test_a_sweep_runs_and_goes_on(ferrule: Ferrule, sweep: Path, tmp_path: Path) -> None:
    outcome = ferrule("sweep", sweep, "--workers", "1", "--json", tmp_path / "sweep.json")
    assert (outcome.code, outcome.err.splitlines()[0]) == (0, "sweep two: 2 runs")
    assert "two: 2 of 2 runs, 0 failed, 0 differ from the reference" in outcome.out
    assert f"rows in {tmp_path / 'two.jsonl'}" in outcome.out
    assert "seed=3" in outcome.out
    document = read_document(tmp_path / "sweep.json")
    assert isinstance(document, SweepDocument)
    assert [(row.verdict, row.worker, row.samples) for row in document.rows] == [("exact", "worker-0", 1)] * 2
    first, second = document.rows
    assert first.firmware_digest == second.firmware_digest
    assert len(first.firmware_digest) == len(first.model_digest) == 64
    assert first.toolchain_version.startswith("zig ")
    assert document.environment is not None
    sweep.write_text(sweep.read_text().replace("[3, 4]", "[4]"))
    outcome = ferrule("sweep", sweep, "--json", "-")
    assert outcome.code == 0
    assert "warning: " in outcome.err
    assert "has 1 rows of runs that the sweep does not have" in outcome.err
    assert msgspec.json.decode(outcome.out, type=SweepDocument).rows == (second,)


def test_a_dry_run_lists_and_writes_nothing(ferrule: Ferrule, sweep: Path, tmp_path: Path) -> None:
    outcome = ferrule("sweep", sweep, "--dry-run")
    lines = outcome.out.splitlines()
    assert (outcome.code, lines[-1]) == (0, "2 runs")
    assert lines[0].endswith("mps2-an386 zig unicorn CpuAcc seed=3")
    assert [path.name for path in tmp_path.iterdir()] == ["two.toml"]


@pytest.mark.parametrize("dry", [True, False])
def test_a_sweep_that_excludes_all_its_runs_has_compared_nothing(
    ferrule: Ferrule, sweep: Path, dry: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_run, "_toolchain_version", lambda _: "zig 1")
    sweep.write_text(sweep.read_text() + '\n[[exclude]]\nboard = "mps2-an386"\n')
    outcome = ferrule("sweep", sweep, "--workers", 1, *(["--dry-run"] * dry))
    assert outcome.code == 3
    assert ("0 runs" if dry else "the sweep has compared nothing") in outcome.out


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"verdict": "exact"}, 0),
        ({"verdict": "different"}, 1),
        ({"status": "failed", "error": "no [b]room[/b]"}, 1),
        ({"verdict": "nothing_compared"}, 3),
        ({"verdict": "exact", "judgement": "kept"}, 0),
        ({"verdict": "exact", "judgement": "missed"}, 1),
        ({"verdict": "exact", "judgement": "unproved"}, 4),
        ({"verdict": "nothing_compared", "judgement": "missed"}, 3),
    ],
)
def test_the_exit_code_tells_of_differences_and_failures(
    ferrule: Ferrule, sweep: Path, tmp_path: Path, row: dict[str, str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_run, "_toolchain_version", lambda _: "zig 1")
    from ferrule.evaluation.sweep import ResultsFile, read_plan

    runs = list(read_plan(sweep).runs(sweep_run.versions(("zig",), ("unicorn",))))
    done = {"status": "done", "evidence": Evidence(samples=1, elements=4, numbers=4, runs=1)}
    with ResultsFile(tmp_path / "two.jsonl") as results:
        results.append(runs[0].row(verdict="exact", **done), ())
        results.append(runs[1].row(**done | row), ())
    with (tmp_path / "two.jsonl").open("ab") as file:
        file.write(b'{"ru')
    outcome = ferrule("sweep", sweep, "-q", "--csv", tmp_path / "rows.csv")
    assert outcome.code == code
    assert "the last line was torn" in outcome.err
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 3
    outcome = ferrule("sweep", sweep)
    assert row.get("error", "") in outcome.out
    assert outcome.code == code


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resource", "BOARD"], "--resource BOARD: expected NAME=AMOUNT"),
        (["--resource", "BOARD=0"], "--resource BOARD=0: expected NAME=AMOUNT"),
        (["--resource", "A=1", "--resource", "A=2"], "the amount of 'A' is given twice"),
        (["--resource", "A=1", "--scheduler", "tcp://x:1"], "--resource is for workers that this command starts"),
        (["--parquet", "none/x.parquet"], "--parquet none/x.parquet: there is no folder"),
        (["--results", "none/x.jsonl"], "none/x.jsonl cannot be used: No such file"),
        (["--attempts", "0"], "Invalid value for '--attempts'"),
    ],
)
def test_bad_options(
    ferrule: Ferrule, sweep: Path, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--parquet" in options:
        require_module("pyarrow", "pip install 'ferrule[tables]'")
    monkeypatch.chdir(sweep.parent)
    outcome = ferrule("sweep", sweep, *options)
    assert outcome.code == 2
    assert message in outcome.err


def group_is_alive(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


REFUSED = '[[needs]]\nmatch = { engine = "unicorn" }\nlease = "x"\n[lease.x]\nplace = "p"\ncommand = ["/no/client"]\n'
"""Makes runs fail before they compile, which is quick."""


@pytest.mark.parametrize(
    ("number", "code", "needs"),
    [
        (signal.SIGINT, 130, REFUSED),
        pytest.param(signal.SIGINT, 130, "", marks=[pytest.mark.nightly, pytest.mark.emu]),
        pytest.param(signal.SIGTERM, 143, "", marks=[pytest.mark.nightly, pytest.mark.emu]),
    ],
)
@pytest.mark.usefixtures("zig")
def test_an_interruption_ends_the_workers_and_keeps_the_rows(
    sweep: Path, tmp_path: Path, number: signal.Signals, code: int, needs: str
) -> None:
    sweep.write_text(sweep.read_text().replace("[3, 4]", f"{list(range(2000))}") + needs)
    rows = tmp_path / "two.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "ferrule", "sweep", str(sweep), "--workers", "1"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    deadline = time.monotonic() + 300
    while process.poll() is None and not (rows.exists() and rows.stat().st_size):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    if number is signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == code, said
    assert "Traceback" not in said
    assert f"rows are in {rows}; the same command goes on after them" in said
    found = [msgspec.json.decode(line, type=SweepRow) for line in rows.read_bytes().splitlines()]
    assert 0 < len(found) < 2000
    while group_is_alive(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["two.jsonl", "two.jsonl.inputs", "two.toml"]
