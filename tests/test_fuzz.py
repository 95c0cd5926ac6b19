# SPDX-License-Identifier: Apache-2.0
"""A slice of every fuzz campaign, and the campaign's own limits. `make fuzz` runs whole campaigns."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import fuzz_campaign as fuzz
import pytest
from fuzz_targets import TARGETS
from fuzzing import Check, Target, numbers

SEED = 1


@pytest.mark.parametrize("target", [each for each in TARGETS if each.sample], ids=lambda target: target.name)
def test_a_slice_of_the_campaign(tmp_path: Path, target: Target) -> None:
    target.needs()
    check = target.prepare(tmp_path)
    for index in range(target.sample):
        try:
            check(numbers(SEED, target.name, index))
        except Exception as error:
            error.add_note(f"python tests/fuzz.py {target.name} --seed {SEED} --index {index}")
            raise


def test_the_shares_of_the_readers_are_a_whole() -> None:
    assert sum(target.share for target in TARGETS if target.reads) == pytest.approx(1)
    assert len({target.name for target in TARGETS}) == len(TARGETS)


def _naughty(folder: Path) -> Check:
    del folder

    def check(choice: random.Random) -> bool:
        del choice
        check.index += 1  # type: ignore[attr-defined]
        match check.index:  # type: ignore[attr-defined]
            case 1:
                raise ValueError("not a FerruleError")
            case 2:
                while True:
                    pass
            case 3:
                bytearray(3 << 30)
        return True

    check.index = 0  # type: ignore[attr-defined]
    return check


def test_errors_hangs_and_large_memory_are_failures(tmp_path: Path) -> None:
    """Run in a process of its own, since the limits stay."""
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import fuzz_campaign as fuzz, test_fuzz\n"
        "from fuzzing import Target\n"
        "from pathlib import Path\n"
        "target = Target(name='naughty', share=1, prepare=test_fuzz._naughty, limit_s=0.2)\n"
        f"fuzz.child(target, 1, 10, 14, Path({str(tmp_path)!r}))\n"
    )
    (tmp_path / "progress").write_bytes(bytes(8))
    environment_path = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", program], check=True, cwd=environment_path, timeout=300)
    *failures, figures = map(json.loads, (tmp_path / "report").read_text(encoding="utf-8").splitlines())
    assert [each["index"] for each in failures] == [10, 11, 12]
    for each, kind in zip(failures, ("ValueError: not a FerruleError", "OutOfTimeError", "MemoryError"), strict=True):
        assert kind in each["error"]
    assert figures["accepted"] == 1
    assert int.from_bytes((tmp_path / "progress").read_bytes(), "little") == 13


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (target,) = (each for each in TARGETS if each.name == "gdb")
    first = fuzz.Campaign(tmp_path, 7, 500, [target])
    assert [(start, end) for _, start, end in first.pieces()] == [(0, 20)]
    first.run(1)
    second = fuzz.Campaign(tmp_path, 7, 500, [target])
    assert not list(second.pieces())
    assert second.summarise() == 0
    rows = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["targets"]
    assert (rows["gdb"]["inputs"], rows["gdb"]["failures"]) == (20, 0)
    assert "20 inputs" in capsys.readouterr().out


def test_a_process_that_dies_or_hangs_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "STUCK_S", 0.0)
    progress = tmp_path / "progress"
    progress.write_bytes(bytes(8))
    with subprocess.Popen([sys.executable, "-c", "import os; os.abort()"]) as dead:
        assert fuzz._watch(dead, progress, 60.0) == "the process ended with -6"
    with subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({2**20})"]) as sleeper:
        started = time.monotonic()
        assert fuzz._watch(sleeper, progress, 0.1) == "the process hung"
    assert time.monotonic() > started


def test_a_process_that_gets_no_processor_is_not_hung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "STUCK_S", 0.0)
    monkeypatch.setattr(fuzz, "ProcessClock", lambda _pid: lambda: 7.0)
    progress = tmp_path / "progress"
    progress.write_bytes(bytes(8))
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(2)"]) as waiting:
        assert fuzz._watch(waiting, progress, 0.1) == ""
