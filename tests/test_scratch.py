# SPDX-License-Identifier: Apache-2.0
"""Locks, temporary files and atomic writes, also where a process is killed."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from children import ran
from needs import require_program

from ferrule.errors import FerruleError
from ferrule.scratch import PREFIX, ScratchFolder, locked, sweep, write_file

SUPPORT = Path(__file__).parent / "support"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_temporary_folder_is_private_and_goes(temporary: Path) -> None:
    with ScratchFolder() as scratch:
        assert scratch.path.parent == temporary
        assert scratch.path.stat().st_mode & 0o777 == 0o700
        (scratch.path / "file").write_text("")
        assert scratch.is_open
    assert not scratch.is_open
    assert list(temporary.iterdir()) == []


def test_a_forgotten_temporary_folder_goes(temporary: Path) -> None:
    ScratchFolder()
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(temporary: Path) -> None:
    temporary.rmdir()
    temporary.write_text("")
    with pytest.raises(FerruleError, match="temporary/ferrule-scratch-") as caught:
        ScratchFolder()
    assert "TMPDIR" in (caught.value.hint or "")


def test_a_folder_that_takes_no_entries_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder such as /proc exists, and every new entry in it is "not found"."""

    def refuse(path: Path, **_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "no such file", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(FileNotFoundError):
        ScratchFolder(tmp_path)


def test_a_fork_does_not_delete_its_parents_folder(temporary: Path) -> None:
    code = (
        "import os, sys; from ferrule.scratch import ScratchFolder\n"
        "scratch = ScratchFolder()\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit(0)\n"
        "os.waitpid(child, 0); sys.exit(not scratch.path.is_dir())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "TMPDIR": str(temporary)})
    assert list(temporary.iterdir()) == []


def test_the_folders_of_the_living_stay_and_those_of_the_dead_go(temporary: Path) -> None:
    code = (
        "import os, signal; from ferrule.scratch import ScratchFolder; scratch = ScratchFolder();"
        "(scratch.path / 'full').write_text(''); os.kill(os.getpid(), signal.SIGKILL)"
    )
    with ScratchFolder() as living:
        done = subprocess.run([sys.executable, "-c", code], check=False, env={**os.environ, "TMPDIR": str(temporary)})
        assert done.returncode == -signal.SIGKILL
        (temporary / "ferrule-other").mkdir()
        (temporary / f"{PREFIX}link").symlink_to(temporary / "ferrule-other")
        assert len(list(temporary.iterdir())) == 4
        with ScratchFolder() as mine:
            left = {path.name for path in temporary.iterdir()}
            assert left == {living.path.name, mine.path.name, "ferrule-other", f"{PREFIX}link"}


def test_what_another_user_owns_is_not_swept(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary / f"{PREFIX}other").mkdir()
    own = os.getuid()
    monkeypatch.setattr("os.getuid", lambda: own + 1)
    sweep(temporary)
    assert (temporary / f"{PREFIX}other").is_dir()
    monkeypatch.undo()
    sweep(temporary)
    assert not (temporary / f"{PREFIX}other").exists()


def test_a_lock_excludes_others_until_it_is_released(tmp_path: Path) -> None:
    waits, order = threading.Event(), []

    def other() -> None:
        with locked(tmp_path, waiting=waits.set):
            order.append("other")

    thread = threading.Thread(target=other)
    with locked(tmp_path):
        thread.start()
        waits.wait()
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_a_child_holds_the_lock_that_it_inherits(tmp_path: Path) -> None:
    """The compilers of a killed build still write their objects: the next build must wait for them."""
    refused: list[bool] = []
    with locked(tmp_path) as handle:
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(handle,))
    assert child.stdin is not None
    with locked(tmp_path, waiting=lambda: (refused.append(True), child.stdin.close())):
        assert child.wait() == 0
    assert refused == [True]


def test_a_folder_made_anew_while_waiting_is_locked(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()

    def replace() -> None:
        folder.rename(tmp_path / "old")
        folder.mkdir()
        os.close(handles.pop())

    handles = [os.open(folder, os.O_RDONLY)]
    fcntl.flock(handles[0], fcntl.LOCK_EX)
    with locked(folder, waiting=replace) as handle:
        assert os.path.samestat(os.fstat(handle), folder.stat())


def test_a_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_file(link, b"new")
    assert (target.read_bytes(), target.stat().st_mode & 0o777, link.is_symlink()) == (b"new", 0o640, True)
    assert {path.name for path in tmp_path.iterdir()} == {"target", "link"}


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")

    def full(_: Path, __: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_file(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_device_is_written_in_place() -> None:
    write_file(Path("/dev/null"), b"data")
    with pytest.raises(OSError, match="No space left"):
        write_file(Path("/dev/full"), b"data")
    assert Path("/dev/full").is_char_device()


@pytest.mark.cc
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.nightly)])
def test_after_a_death_at_any_call_the_next_run_is_right(tmp_path: Path, stride: int) -> None:
    """A build, a generation, an update with --force and a report are killed at their calls that change files."""
    library = tmp_path / "killer.so"
    gcc = require_program("gcc", "apt-get install gcc")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([gcc, *flags, str(SUPPORT / "killer.c"), "-ldl"], check=True)
    done = ran(
        [sys.executable, str(SUPPORT / "killing.py"), str(tmp_path), str(library), str(stride)],
        env={**os.environ, "LD_PRELOAD": str(library), "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    calls = {name: int(number) for name, number in (line.split() for line in done.stdout.splitlines())}
    assert set(calls) == {"build", "create", "update", "report"}
    assert min(calls.values()) >= 4
    assert calls["build"] > 20
