# SPDX-License-Identifier: Apache-2.0
"""Processes that answer one request after the other: what becomes of them if they die, hang or have been idle."""

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

from ferrule.kept_process import KeptDiedError, KeptProcess

LIMIT_S = 300.0
SCRIPT = """
import os, sys, time

def answer(arguments):
    word, *rest = arguments
    if word == "say":
        print(*rest)
        os.system("echo and a child of it")
    elif word == "die":
        print("last words")
        sys.stdout.flush()
        os.kill(os.getpid(), 9)
    elif word == "sleep":
        time.sleep(600)
    elif word == "nap":
        time.sleep(1.2)
    elif word == "fail":
        raise ValueError("no")
    return f"{word} by {os.getpid()}"
"""


@pytest.fixture(autouse=True)
def _posix() -> None:
    if sys.platform == "win32":
        lacking("signals of POSIX", "run the tests on Linux, where they stop and kill the processes")


@pytest.fixture
def process(tmp_path: Path) -> Iterator[KeptProcess]:
    (tmp_path / "script.py").write_text(SCRIPT)
    made = KeptProcess(tmp_path / "script.py")
    yield made
    made.close()


def child(process: KeptProcess) -> subprocess.Popen[str]:
    found = process._child
    assert found is not None
    return found


def test_one_process_answers_and_what_is_printed_has_a_file(process: KeptProcess, tmp_path: Path) -> None:
    answers = [process.run(tmp_path / f"log{index}", ["say", "\u03b1", str(index)], LIMIT_S) for index in range(2)]
    assert answers == [f"say by {child(process).pid}"] * 2
    printed = (tmp_path / "log1").read_text(encoding="utf-8").splitlines()
    assert sorted(printed) == ["and a child of it", "\u03b1 1"]


def test_a_death_is_told_and_another_process_follows(process: KeptProcess, tmp_path: Path) -> None:
    with pytest.raises(KeptDiedError, match=r"^SIGKILL$"):
        process.run(tmp_path / "a", ["die"], LIMIT_S)
    assert (tmp_path / "a").read_text() == "last words\n"
    with pytest.raises(KeptDiedError, match=r"^exit code 1$"):
        process.run(tmp_path / "b", ["fail"], LIMIT_S)
    assert "ValueError: no" in (tmp_path / "b").read_text()
    assert process.run(tmp_path / "c", ["say"], LIMIT_S) == f"say by {child(process).pid}"


def test_one_that_has_ended_before_a_request_is_replaced(process: KeptProcess, tmp_path: Path) -> None:
    first = process.run(tmp_path / "a", ["say"], LIMIT_S)
    os.kill(child(process).pid, signal.SIGKILL)
    assert process.run(tmp_path / "b", ["say"], LIMIT_S) not in {"", first}


def test_a_script_that_cannot_start_is_tried_twice(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        f"with open({str(tmp_path / 'starts')!r}, 'a') as file:\n    file.write('x')\nraise ImportError\n"
    )
    with pytest.raises(KeptDiedError, match="exit code 1"):
        KeptProcess(tmp_path / "script.py").run(tmp_path / "log", [], LIMIT_S)
    assert (tmp_path / "starts").read_text() == "xx"


def test_what_takes_too_long_is_killed(process: KeptProcess, tmp_path: Path) -> None:
    process.run(tmp_path / "a", ["say"], LIMIT_S)
    late = child(process)
    with pytest.raises(TimeoutError):
        process.run(tmp_path / "b", ["sleep"], 0.01)
    assert late.returncode == -signal.SIGKILL
    assert process.run(tmp_path / "c", ["nap"], LIMIT_S).startswith("nap"), "several looks at its clock"


def test_a_process_is_replaced_after_so_many_answers(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    process = KeptProcess(tmp_path / "script.py", most=2)
    answers = [process.run(tmp_path / f"log{index}", ["say"], LIMIT_S) for index in range(5)]
    process.close()
    assert [answers.count(each) for each in dict.fromkeys(answers)] == [2, 2, 1]


def test_it_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    code = (
        "import os, sys; from pathlib import Path; from ferrule.kept_process import KeptProcess; "
        f"here = Path({str(tmp_path)!r}); "
        "print(KeptProcess(here / 'script.py').run(here / 'log', ['say'], 300), flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False)
    pid = int(done.stdout.rpartition(" ")[2])
    end_s = time.monotonic() + LIMIT_S
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < end_s:  # noqa: PTH110
        time.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
