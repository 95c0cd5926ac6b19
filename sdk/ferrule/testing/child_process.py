# SPDX-License-Identifier: Apache-2.0
"""Runs a child process with a limit that a loaded machine does not use up."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ferrule.emulation.process_clock import ProcessClock

_LOOK_S = 0.5


def run_child(
    command: Sequence[str],
    limit_s: float,
    *,
    given: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    together: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command, and return the finished process with its output.

    Args:
        command: the program and its arguments.
        limit_s: seconds in which the process works, or sleeps; a process that waits for a processor uses none up.
        given: what it reads; without it, the parent's own input.
        environment: its variables; by default those of this process.
        pass_fds: descriptors that it keeps.
        together: whether what it writes to its standard error is part of its output.

    Raises:
        subprocess.TimeoutExpired: it did not end within the limit, and was killed.
    """
    child = subprocess.Popen(
        command,
        stdin=None if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if together else subprocess.PIPE,
        env=environment,
        pass_fds=tuple(pass_fds),
    )
    with child:
        clock = ProcessClock(child.pid)
        end_s = clock() + limit_s
        try:
            while clock() < end_s:
                with suppress(subprocess.TimeoutExpired):
                    output, errors = child.communicate(given, timeout=_LOOK_S)
                    return subprocess.CompletedProcess(command, child.returncode, output, errors)
                given = None  # it has been taken
        except BaseException:
            child.kill()
            raise
        child.kill()
    raise subprocess.TimeoutExpired(command, limit_s)
