# SPDX-License-Identifier: Apache-2.0
"""Commands on a full disk, with outputs that cannot be written, and ended by signals: clear errors, nothing lost."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from children import ran
from saved_documents import run_document

from ferrule.cli.arrays import save
from ferrule.cli.main import _COMMANDS
from ferrule.cli.signals import Terminated, signals_raised
from ferrule.errors import FerruleError
from ferrule.report.writers import WRITERS
from ferrule.running import compilation

Ferrule = Callable[..., Any]

ALL = """
import os, sys
from ferrule.cli import main
os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
for arguments in sys.argv[1:]:
    try:
        main(arguments.split())
    except SystemExit as error:
        print(arguments.split()[0], error.code, file=sys.stderr)
"""
SLOW = ("backends", "doctor")
MESSAGE = "error: standard output cannot be written: No space left on device"


def sweep_of(model: Path, folder: Path) -> Path:
    path = folder / "sweep.toml"
    path.write_text(f'models = ["{model}"]\n')
    return path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.cc
@pytest.mark.parametrize("left_out", [SLOW, pytest.param((), marks=pytest.mark.nightly)], ids=["quick", "all"])
def test_every_command_says_that_its_output_is_full(dense: Path, tmp_path: Path, left_out: tuple[str, ...]) -> None:
    calls = {
        "artifact": "run --help",
        "backends": "",
        "boards": "",
        "build": "project",
        "cache": "",
        "calibrate": "--help",
        "compare": "saved.json saved.json",
        "convert": f"{dense} out.tflite",
        "doctor": "--json",
        "ethos-u": "show --help",
        "evaluate": "--help",
        "generate": f"{dense} --out project",
        "init": "model started",
        "inspect": f"{dense} --plan",
        "new": "board mine",
        "quantize": "--help",
        "registers": "Woofles",
        "run": f"{dense} --json -",
        "report": "saved.json",
        "serve-accelerator": "--help",
        "serve-board": "--help",
        "sweep": f"{sweep_of(dense, tmp_path)} --dry-run",
        "verify": f"project/build/firmware.elf {dense}",
    }
    assert calls.keys() == _COMMANDS.keys()
    (tmp_path / "saved.json").write_text(WRITERS["json"]([run_document()]), encoding="utf-8")
    names = sorted(calls.keys() - set(left_out), key=lambda name: (name != "generate", name))
    lines = ["--help", *(f"{name} {calls[name]}" for name in names)]
    done = ran([sys.executable, "-c", ALL, *lines], cwd=tmp_path, timeout=600)
    for line in lines:
        assert f"{MESSAGE}\n{line.split()[0]} 2\n" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", ["/dev/full", "/proc/none/report.json", "{}"])
def test_a_result_that_cannot_be_written_is_named(path: str, tmp_path: Path) -> None:
    place = path.format(tmp_path)
    with pytest.raises(FerruleError, match=rf"{place} cannot be written: "):
        save(Path(place), b"report")


def limited(limit_bytes: int, action: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Call a function while no file may grow above a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        return action()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_without_space_the_old_report_stays(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_bytes(b"old")
    with pytest.raises(FerruleError, match=r"report\.json cannot be written: File too large"):
        limited(1000, lambda: save(report, bytes(5000)))
    assert tree(tmp_path) == {"report.json": b"old"}


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_without_space_a_project_stays_as_it_was(
    ferrule: Ferrule, dense: Path, two_by_two: Path, tmp_path: Path, force: list[str]
) -> None:
    project = tmp_path / "project"
    assert ferrule("generate", dense, "--out", project).code == 0
    before = tree(tmp_path)
    outcome = limited(3000, lambda: ferrule("generate", two_by_two, "--out", project, *force))
    assert (outcome.code, outcome.out) == (2, "")
    assert f"error: {project} cannot be written: File too large" in outcome.err
    assert tree(tmp_path) == before
    outcome = limited(3000, lambda: ferrule("generate", dense, "--out", tmp_path / "new"))
    assert f"error: {tmp_path / 'new'} cannot be written: File too large" in outcome.err
    assert tree(tmp_path) == before


@pytest.mark.parametrize(("obstacle", "message"), [("main.c", "is a folder"), ("board", "is a file")])
def test_force_changes_nothing_if_a_file_cannot_be_placed(
    ferrule: Ferrule, dense: Path, two_by_two: Path, tmp_path: Path, obstacle: str, message: str
) -> None:
    project = tmp_path / "project"
    assert ferrule("generate", dense, "--out", project).code == 0
    (project / "ferrule.mk").write_text("edited")
    (project / obstacle).rename(tmp_path / "aside")
    if message == "is a folder":
        (project / obstacle).mkdir()
    else:
        (project / obstacle).write_text("a note")
    before = tree(tmp_path)
    outcome = ferrule("generate", two_by_two, "--out", project, "--force")
    assert outcome.code == 2
    assert f"{project / obstacle} {message}" in outcome.err
    assert tree(tmp_path) == before


@pytest.mark.parametrize("out", ["/dev/full", "/proc/none/project"])
def test_a_place_that_cannot_hold_a_project_is_named(ferrule: Ferrule, dense: Path, out: str) -> None:
    outcome = ferrule("generate", dense, "--out", out)
    assert outcome.code == 2
    assert out in outcome.err


def test_a_place_that_cannot_hold_files_for_renode_is_named_before_the_project_is_written(
    ferrule: Ferrule, dense: Path, tmp_path: Path
) -> None:
    outcome = ferrule("generate", dense, "--out", tmp_path / "project", "--emit-renode", "/dev/null/renode")
    assert (outcome.code, outcome.out) == (2, "")
    assert "/dev/null is not a folder" in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_removes_temporary_folders(
    ferrule: Ferrule, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    made: list[Path] = []

    def end(*_: object) -> None:
        made.extend(tmp_path.iterdir())
        os.kill(os.getpid(), number)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(compilation, "divide_all", end)
    inherited = signal.signal(number, signal.SIG_DFL)  # nohup makes a process ignore SIGHUP
    try:
        outcome = ferrule("run", dense, "-q")
        assert (outcome.code, outcome.err) == (128 + number, f"ended by {number.name}\n")
        assert len(made) == 1
        assert list(tmp_path.iterdir()) == []
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, inherited)


@pytest.mark.parametrize("explicit", [False, True])
def test_a_signal_in_a_finalizer_is_raised_after_it(explicit: bool) -> None:
    """Python prints exceptions of finalizers and goes on, so that the signal would be lost."""

    class Owner:
        pass

    done: list[str] = []

    def finalize() -> None:
        signal.raise_signal(signal.SIGTERM)
        done.append("whole")

    owners = [Owner()]
    finalizer = weakref.finalize(owners[0], finalize)

    def end() -> None:
        finalizer() if explicit else owners.clear()
        done.append("after it")
        threading.Event().wait(600)

    with pytest.raises(Terminated), signals_raised():
        end()
    assert done == ["whole", "after it"]


def test_a_signal_that_the_caller_ignores_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_raised():
            os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(Terminated), signals_raised():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, old)


_IN_A_KERNEL = """
import hashlib, os, sys, threading
from ferrule.cli.signals import signals_raised
from ferrule.scratch import ScratchFolder
with ScratchFolder(), signals_raised():
    threading.Timer(1, os.kill, (os.getpid(), int(sys.argv[1]))).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # as a product of large matrices: one call that lasts for minutes
"""


@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "ended by SIGTERM")])
def test_a_signal_ends_a_call_that_python_cannot_leave(number: int, said: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _IN_A_KERNEL, str(int(number))]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = ran(command, env=environment)
    assert (done.returncode, done.stderr) == (128 + number, f"{said}\n")
    assert not any(tmp_path.iterdir())
