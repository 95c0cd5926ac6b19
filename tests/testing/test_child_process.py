# SPDX-License-Identifier: Apache-2.0
"""Child processes with a limit in the time for which they work or sleep."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ferrule.testing.child_process import run_child

ECHO = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stdout.flush(); sys.stderr.write('e'); sys.exit(3)"


def python(program: str) -> list[str]:
    return [sys.executable, "-S", "-c", program]


@pytest.mark.parametrize("size", [0, 3, 300_000])
def test_input_and_output_of_any_size(size: int) -> None:
    done = run_child(python(ECHO), 60, given=b"a" * size)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"A" * size, b"e")


def test_output_and_errors_together() -> None:
    assert run_child(python(ECHO), 60, given=b"a", together=True).stdout == b"Ae"


@pytest.mark.parametrize("program", ["import time; time.sleep(600)", "while True: pass"])
def test_what_sleeps_or_works_for_too_long_is_ended(program: str) -> None:
    with pytest.raises(subprocess.TimeoutExpired, match=r"timed out after 0\.2 seconds"):
        run_child(python(program), 0.2)


def test_it_may_take_longer_than_one_look() -> None:
    done = run_child(
        python("import sys, time; print(sys.stdin.read()); time.sleep(1.2); print('end')"), 60, given=b"in"
    )
    assert done.stdout.decode().split() == ["in", "end"]
