# SPDX-License-Identifier: Apache-2.0
"""The clock of a child process: it stands while the process may not run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import lacking

from ferrule.emulation.process_clock import ProcessClock

PROGRAM = """
import sys, time
print("up", flush=True)
sys.stdin.readline()
begin = time.process_time()
while time.process_time() < begin + 0.3:
    pass
print("worked", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A process that waits for a line, works for 0.3 s of processor time, and waits for another."""
    if not Path("/proc/self/task").exists():
        lacking("/proc of Linux", "run the test on Linux")
    argv = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        while state(process.pid) != "S":
            time.sleep(0.01)
        yield process
        os.kill(process.pid, signal.SIGCONT)
        process.kill()


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_time_passes_while_the_process_sleeps(child: subprocess.Popen[str]) -> None:
    clock = ProcessClock(child.pid)
    first, began = clock(), time.monotonic()
    time.sleep(0.1)
    assert 0.1 <= clock() - first <= time.monotonic() - began + 0.01


def test_no_time_passes_while_it_is_stopped(child: subprocess.Popen[str]) -> None:
    clock = ProcessClock(child.pid)
    os.kill(child.pid, signal.SIGSTOP)
    while state(child.pid) != "T":
        time.sleep(0.01)
    first = clock()
    time.sleep(0.1)
    assert clock() == first


def test_work_counts_by_its_processor_time(child: subprocess.Popen[str]) -> None:
    """However long the machine takes for it."""
    clock = ProcessClock(child.pid)
    assert child.stdin is not None
    assert child.stdout is not None
    first = clock()
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "worked\n"
    assert clock() - first >= 0.25  # the kernel counts in hundredths of a second


def test_a_process_that_cannot_be_observed_has_the_time_of_the_host() -> None:
    for pid in (None, 1 << 30):
        clock, before = ProcessClock(pid), time.monotonic()
        assert before <= clock() <= time.monotonic()
