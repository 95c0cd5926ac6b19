# SPDX-License-Identifier: Apache-2.0
"""Tests of the adapter on the host: two threads contend for one device, over a fake of FreeRTOS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ferrule.errors import MissingToolError
from ferrule.resources import root
from ferrule.testing import host_compiler, sanitizer_environment

FOLDER = Path(__file__).parents[1]
TAKE = "xSemaphoreTake(dev->lock, ticks) == pdTRUE"
UNSUPPORTED = -2
BUSY, TIMEOUT, INTERRUPT, OWNER = -8, -9, -10, -11  # of ferrule/status.h
pytestmark = pytest.mark.cc


def contend(folder: Path, adapter: Path, *flags: str) -> dict[str, int]:
    """Compile and run a program from the adapter, device.c and the fake; return the numbers that it prints."""
    compiler = host_compiler("a test of the adapter")
    sources = [root() / "src_c/device/device.c", adapter, FOLDER / "tests/contend.c", FOLDER / "tests/fake/freertos.c"]
    includes = [root() / "include", FOLDER / "include", FOLDER / "tests/fake"]
    program = folder / "contend"
    argv = [
        *(*compiler, "-std=c11", "-g", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-pthread", *flags),
        *(f"-I{path}" for path in includes),
        *("-o", str(program), *map(str, sources)),
    ]
    assert subprocess.run(argv, timeout=60, check=False).returncode == 0, "the adapter does not compile"
    out = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True).stdout
    return {name: int(value) for name, value in (line.rsplit(" ", 1) for line in out.splitlines())}


@pytest.mark.parametrize(("timeout_ms", "refused"), [(20, TIMEOUT), (0, BUSY)])
def test_one_task_at_a_time(tmp_path: Path, timeout_ms: int, refused: int) -> None:
    """A second task waits for the time-out at most, and cannot close a device that another task opened."""
    found = contend(tmp_path, FOLDER / "src/freertos.c", f"-DFERRULE_FREERTOS_OPEN_TIMEOUT_MS={timeout_ms}")
    assert (found.pop("foreign open"), found.pop("foreign close"), found.pop("interrupt")) == (
        refused,
        OWNER,
        INTERRUPT,
    )
    assert (found.pop("ticks"), found.pop("cut")) == (3, UNSUPPORTED)
    del found["errors"]  # the number of time-outs depends on the host's load
    assert {name for name, value in found.items() if value != 0} == set()


def test_tasks_that_wait_long_enough_all_get_their_turn(tmp_path: Path) -> None:
    """With the adapter's default time-out, no call fails."""
    assert contend(tmp_path, FOLDER / "src/freertos.c")["errors"] == 0


def mutant(folder: Path, changes: dict[str, str]) -> Path:
    """Return the adapter with pieces of it replaced."""
    text = (FOLDER / "src/freertos.c").read_text(encoding="utf-8")
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = folder / "mutant.c"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_the_mutex_both_would_be_in(tmp_path: Path) -> None:
    """Without the mutex, both tasks are inside at once, which shows that the tests above can fail."""
    assert contend(tmp_path, mutant(tmp_path, {TAKE: "dev->lock != NULL || ticks == 0u"}))["overlaps"] > 0


def test_a_wait_that_is_rounded_down_is_noticed(tmp_path: Path) -> None:
    """1001 microseconds can be less than two ticks, because the first tick may come at once."""
    hasty = mutant(
        tmp_path, {"ferrule_tick_count(microseconds, phase_us(),": "ferrule_tick_count(microseconds, 0u * phase_us(),"}
    )
    assert contend(tmp_path, hasty)["ticks"] < 3


def test_a_second_notification_counts_once(tmp_path: Path) -> None:
    """A wait that always ends at once does not pass for one that was notified."""
    sleepless = mutant(
        tmp_path,
        {"xSemaphoreTake(dev->notified, ticks_of(timeout_us)) == pdTRUE": "dev != NULL || ticks_of(timeout_us) > 0u"},
    )
    assert contend(tmp_path, sleepless)["notified twice"] == 1


@pytest.fixture
def thread_sanitizer() -> None:
    """Skip where the compiler has no thread sanitizer."""
    try:
        sanitizer_environment(["thread"])
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("thread_sanitizer")
def test_threads_touch_the_handle_one_after_another(tmp_path: Path) -> None:
    """The thread sanitizer finds no race in the adapter and the device API."""
    assert contend(tmp_path, FOLDER / "src/freertos.c", "-fsanitize=thread")["errors"] == 0


@pytest.mark.usefixtures("thread_sanitizer")
def test_without_the_guard_they_would_not(tmp_path: Path) -> None:
    """The thread sanitizer ends the program with an error."""
    enter, leave = "briefly */\n    taskENTER_CRITICAL();", "(void)dev;\n    taskEXIT_CRITICAL();"
    unguarded = mutant(tmp_path, {enter: "briefly */", leave: "(void)dev;"})
    with pytest.raises(subprocess.CalledProcessError):
        contend(tmp_path, unguarded, "-fsanitize=thread")
