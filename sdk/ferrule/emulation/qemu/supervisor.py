# SPDX-License-Identifier: Apache-2.0
"""Runs a command until it ends or standard input closes, as it does when the parent dies; prints its process number.

It is started as a separate script, `python -I -S supervisor.py program arguments...`, so that an emulator never
outlives the Python process that started it.
"""

from __future__ import annotations

import os
import select
import signal
import sys

POLL_S = 0.1


def supervise(argv: list[str]) -> int:
    """Run a command and return its exit code; 128 plus the signal's number if a signal ended it."""
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
    child = os.posix_spawn(argv[0], argv, os.environ, file_actions=null)
    os.write(1, b"%d\n" % child)
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        readable, _, _ = select.select([0], [], [], POLL_S)
        if readable and not os.read(0, 1):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return 0


if __name__ == "__main__":
    sys.exit(supervise(sys.argv[1:]))
