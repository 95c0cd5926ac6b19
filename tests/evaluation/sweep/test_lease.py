# SPDX-License-Identifier: Apache-2.0
"""Leases of a place of labgrid: always released, also if the holder is killed or exceeds its time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import fake_labgrid
import pytest
from children import ran

from ferrule.evaluation.sweep import lease_keeper
from ferrule.evaluation.sweep.file import LeaseEntry
from ferrule.evaluation.sweep.lease import LeaseError, leased

Entry = Callable[..., LeaseEntry]

HOLDER = """
import sys, msgspec
from ferrule.evaluation.sweep.lease import LeaseEntry, leased
with leased(msgspec.json.decode(sys.argv[1], type=LeaseEntry)):
    print("held", flush=True)
    sys.stdin.read()
"""

OTHER = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
os.unlink(sys.argv[2])
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The folder of the lab."""
    folder = tmp_path / "lab"
    folder.mkdir()
    return folder


@pytest.fixture
def entry(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """A function that returns a lease of the place `nucleo`."""
    monkeypatch.setenv("PYTHONPATH", "/not/for/the/client")
    command = (sys.executable, "-S", "-E", fake_labgrid.__file__)

    def make(*, wait_s: float = 60, limit_s: float = 60) -> LeaseEntry:
        return LeaseEntry(
            place="nucleo", command=command, wait_s=wait_s, limit_s=limit_s, environment={"FAKE_LAB": str(lab)}
        )

    return make


def until(condition: Callable[[], bool]) -> None:
    """Wait for another process; fail after a minute."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


def log(lab: Path) -> list[str]:
    return (lab / "log").read_text().splitlines()


def test_a_place_is_held_during_the_block(lab: Path, entry: Entry) -> None:
    with leased(entry()):
        assert (lab / "nucleo").exists()
    assert not (lab / "nucleo").exists()
    assert log(lab) == ["acquire nucleo", "release nucleo"]


def test_without_a_lease_nothing_is_held(lab: Path) -> None:
    with leased(None):
        assert list(lab.iterdir()) == []


def test_an_error_in_the_block_releases_the_place(lab: Path, entry: Entry) -> None:
    with pytest.raises(ZeroDivisionError), leased(entry()):
        raise ZeroDivisionError
    assert not (lab / "nucleo").exists()


def test_a_place_that_another_user_has_is_refused_after_the_wait(lab: Path, entry: Entry) -> None:
    (lab / "nucleo").touch()
    with (
        pytest.raises(LeaseError, match=r"nucleo was not acquired: .*already acquired by other/user"),
        leased(entry(wait_s=0.01)),
    ):
        pytest.fail("the block was entered")
    assert (lab / "nucleo").exists()


def test_a_run_waits_for_the_place(lab: Path, entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    (lab / "nucleo").touch()
    holder = subprocess.Popen([sys.executable, "-S", "-c", OTHER, str(lab / "log"), str(lab / "nucleo")])
    with leased(entry()):
        assert (lab / "nucleo").exists()
    assert holder.wait() == 0
    assert log(lab)[-2:] == ["acquire nucleo", "release nucleo"]


def test_a_block_that_takes_too_long_loses_the_place(lab: Path, entry: Entry) -> None:
    late = pytest.raises(LeaseError, match=r"longer than the 0\.05 s for which it may hold place nucleo")
    with late, leased(entry(limit_s=0.05)):
        until(lambda: not (lab / "nucleo").exists())
    assert log(lab) == ["acquire nucleo", "release nucleo"]


def test_a_killed_holder_releases_the_place(lab: Path, entry: Entry) -> None:
    import msgspec

    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, msgspec.json.encode(entry()).decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == b"held\n"
    assert (lab / "nucleo").exists()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    until(lambda: not (lab / "nucleo").exists())
    holder.stdin.close()
    holder.stdout.close()


@pytest.mark.parametrize("begun", ["", '{"command": '])
def test_a_holder_that_is_killed_at_once_holds_nothing(begun: str, lab: Path) -> None:
    keeper = [sys.executable, "-S", lease_keeper.__file__]
    done = ran(keeper, stdin=begun, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(lab.iterdir()) == []


def test_a_release_that_fails_is_tried_again(lab: Path, entry: Entry) -> None:
    (lab / "refuse-release").write_text("once\n")
    with leased(entry()):
        pass
    assert log(lab) == ["acquire nucleo", "release nucleo", "release nucleo"]


def test_a_place_that_stays_held_is_an_error(lab: Path, entry: Entry) -> None:
    held = pytest.raises(LeaseError, match=r"nucleo was not released: .*cannot reach the coordinator")
    with held as caught, leased(entry()):
        (lab / "refuse-release").write_text("again\n" * 9)
    assert caught.value.hint is not None
    assert caught.value.hint.endswith("-p nucleo release")


def test_a_client_that_is_not_there() -> None:
    refused = pytest.raises(LeaseError, match="/no/client cannot be started: No such file")
    with refused, leased(LeaseEntry(place="nucleo", command=("/no/client",))):
        pytest.fail("the block was entered")
