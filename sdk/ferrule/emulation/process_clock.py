# SPDX-License-Identifier: Apache-2.0
"""The time that passes for a child process: a loaded machine does not count against an emulator.

Linux tells a process's processor time and whether its threads sleep (proc(5), /proc/PID/stat and /proc/PID/task).
Elsewhere the time is that of the host.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple


class _Sample(NamedTuple):
    """A look at a process."""

    processor_s: float
    asleep: bool
    """Whether all of its threads sleep: none runs, waits for a processor or a disk, or is stopped."""


class ProcessClock:
    """A clock that advances by the processor time of a process, and by the host's time while the process sleeps.

    It is to be read every half second or so, since what happens between two looks is estimated from the second one.
    """

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._seconds = self._host_s = time.monotonic()
        self._last = self._look()

    def __call__(self) -> float:
        """Return the seconds that have passed; those of the host, if the process cannot be observed."""
        now, host_s = self._look(), time.monotonic()
        passed_s = host_s - self._host_s
        if self._last is not None and now is not None:
            worked_s = now.processor_s - self._last.processor_s
            passed_s = max(worked_s, passed_s) if now.asleep else worked_s
        self._last, self._host_s = now, host_s
        self._seconds += passed_s
        return self._seconds

    def _look(self) -> _Sample | None:
        if self._pid is None:
            return None
        folder = Path("/proc") / str(self._pid)
        try:
            fields = _fields(folder)
            threads = [_fields(each)[0] for each in (folder / "task").iterdir()]
        except (OSError, IndexError):
            self._pid = None  # it has ended, or this is no Linux
            return None
        processor_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return _Sample(processor_s=processor_s, asleep=set(threads) <= {"S", "I"})


def _fields(folder: Path) -> list[str]:
    """Return the fields of a stat file from the state on; the name before it may have blanks and parentheses."""
    return (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
