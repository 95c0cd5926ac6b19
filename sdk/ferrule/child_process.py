# SPDX-License-Identifier: Apache-2.0
"""Child processes: their number, start, time limits, end together with their own children, and errors."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import AnyStr, NamedTuple

from ferrule.errors import FerruleError

LAST_LINES = 20
"""The lines of a command's output that an error quotes."""
_LOOK_S = 0.5
"""Time between two looks at a child's clock."""
_POSIX = os.name == "posix"


class CommandError(FerruleError):
    """A command could not be started, took too long, or failed; the error keeps it, its folder, exit code and output.

    `exit_code` is None if the command did not end by itself.
    """

    def __init__(
        self,
        title: str,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        exit_code: int | None = None,
        output: str = "",
        hint: str | None = None,
    ) -> None:
        """Create the error; its message is a title and the last lines of the output."""
        self.argv = tuple(argv)
        self.cwd = cwd
        self.exit_code = exit_code
        self.output = output
        self.last_lines = tuple(last_lines(output))
        super().__init__("\n".join((title, *self.last_lines)), hint=hint)


def last_lines(output: str) -> list[str]:
    """Return the lines of a command's output that an error quotes."""
    return output.splitlines()[-LAST_LINES:]


def first_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the first line that a command has printed, to its standard error if nothing to its output."""
    return (done.stdout.strip() or done.stderr.strip()).partition("\n")[0]


def ending(code: int) -> str:
    """Return how a process ended, as its exit code tells: the name of a signal, or the exit code itself."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}" if code >= 0 else f"signal {-code}"


def start(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    reads: bool = False,
    together: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own, with pipes for its output; OSError if that fails.

    Ctrl-C in the terminal does not reach the command: who starts it kills it.

    Args:
        argv: the program and its arguments.
        cwd: its folder; by default that of this process.
        environment: its variables; by default those of this process.
        pass_fds: descriptors that it keeps.
        reads: whether its standard input is a pipe, too; otherwise it is empty.
        together: whether what it writes to its standard error is part of its output.
    """
    return subprocess.Popen(
        argv,
        cwd=cwd,
        env=environment,
        pass_fds=tuple(pass_fds),
        stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if together else subprocess.PIPE,
        process_group=0 if _POSIX else None,
    )


def kill(process: subprocess.Popen[AnyStr]) -> None:
    """Kill a process, with the other processes of its group if it leads one."""
    if _POSIX:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def end(process: subprocess.Popen[AnyStr], patience_s: float) -> int:
    """Return the exit code of a process that has been told to end; it is killed after `patience_s`."""
    try:
        return process.wait(patience_s)
    except subprocess.TimeoutExpired:
        kill(process)
        return process.wait()


def run(
    argv: Sequence[str],
    limit_s: float,
    *,
    given: bytes = b"",
    check: bool = True,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    together: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return its exit code and output; if it is interrupted, it is killed.

    Args:
        argv: the program and its arguments.
        limit_s: seconds in which the process works, or sleeps; a process that waits for a processor uses none up.
        given: what it reads from its standard input.
        check: whether an exit code other than 0 is an error.
        cwd: see `start`, as for the other arguments.
        environment: see `start`.
        pass_fds: see `start`.
        together: see `start`.

    Raises:
        CommandError: it cannot be started, it did not end within the limit, or it failed.
    """
    what = shlex.join(argv) if cwd is None else f"{shlex.join(argv)} in {cwd}"
    try:
        child = start(argv, cwd=cwd, environment=environment, pass_fds=pass_fds, reads=bool(given), together=together)
    except OSError as error:
        raise CommandError(f"{what} cannot be started: {error.strerror or error}", argv, cwd=cwd) from error
    with child:
        try:
            output, errors = _communicated(child, given or None, limit_s)
        except BaseException as error:
            kill(child)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            title = f"{what} did not end within {limit_s:g} s"
            raise CommandError(title, argv, cwd=cwd, output=_text(error.output)) from None
    code = child.returncode
    done = subprocess.CompletedProcess(argv, code, _text(output), _text(errors))
    if check and code:
        said = done.stderr if done.stderr.strip() else done.stdout
        raise CommandError(f"{what} ended with {code}", argv, cwd=cwd, exit_code=code, output=said)
    return done


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")


def _communicated(child: subprocess.Popen[bytes], given: bytes | None, limit_s: float) -> tuple[bytes, bytes | None]:
    """Return what a child writes to its output and its standard error; TimeoutExpired after the limit."""
    clock = ProcessClock(child.pid)
    end_s = clock() + limit_s
    while True:
        try:
            return child.communicate(given, timeout=_LOOK_S)
        except subprocess.TimeoutExpired:
            given = None  # it has been taken
            if clock() >= end_s:
                raise


class _Sample(NamedTuple):
    """A look at a process."""

    processor_s: float
    asleep: bool
    """Whether all of its threads sleep: none runs, waits for a processor or a disk, or is stopped."""


class ProcessClock:
    """A clock that advances by the processor time of a process, and by the host's time while the process sleeps.

    So a loaded machine does not count against the process. Linux tells both (proc(5), /proc/PID/stat and
    /proc/PID/task); elsewhere the time is that of the host. The clock is to be read every half second or so, since what
    happens between two looks is estimated from the second one.
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


def usable_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
