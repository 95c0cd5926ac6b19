# SPDX-License-Identifier: Apache-2.0
"""Child processes: their limits, which a loaded machine does not use up, their end, and their errors."""

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

from ferrule.child_process import CommandError, ProcessClock, ending, run

ECHO = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stdout.flush(); sys.stderr.write('e'); sys.exit(3)"
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])"
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


def python(program: str) -> list[str]:
    return [sys.executable, "-S", "-c", program]


@pytest.mark.parametrize("size", [0, 3, 300_000])
def test_input_and_output_of_any_size(size: int) -> None:
    done = run(python(ECHO), 60, given=b"a" * size, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "A" * size, "e")


def test_output_and_errors_together() -> None:
    assert run(python(ECHO), 60, given=b"a", check=False, together=True).stdout == "Ae"


@pytest.mark.parametrize("program", ["import time; time.sleep(600)", "while True: pass", PARENT])
def test_what_sleeps_or_works_for_too_long_is_ended_with_its_children(program: str) -> None:
    with pytest.raises(CommandError, match=r"did not end within 0\.2 s\nfirst$") as caught:
        run(python(f"print('first', flush=True)\n{program}"), 0.2)
    assert caught.value.exit_code is None


def test_it_may_take_longer_than_one_look() -> None:
    done = run(python("import sys, time; print(sys.stdin.read()); time.sleep(1.2); print('end')"), 60, given=b"in")
    assert done.stdout.split() == ["in", "end"]


def test_an_error_keeps_the_command_with_its_last_lines(tmp_path: Path) -> None:
    argv = python("import sys; print(*range(30), sep='\\n'); sys.exit(7)")
    with pytest.raises(CommandError, match=f" in {tmp_path} ended with 7\n10\n") as caught:
        run(argv, 60, cwd=tmp_path)
    error = caught.value
    assert (error.argv, error.cwd, error.exit_code, len(error.last_lines)) == (tuple(argv), tmp_path, 7, 20)
    with pytest.raises(CommandError, match=r"^/no/program cannot be started: No such file"):
        run(["/no/program"], 60)


def test_how_a_process_ended() -> None:
    assert [ending(code) for code in (0, 3, -signal.SIGSEGV, -99)] == [
        "exit code 0",
        "exit code 3",
        "SIGSEGV",
        "signal 99",
    ]
