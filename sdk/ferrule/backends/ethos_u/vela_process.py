# SPDX-License-Identifier: Apache-2.0
"""The process in which Vela runs: started for the first model, and kept for the next ones, since it starts slowly."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ferrule.child_process import end, ending

_CHILD = Path(__file__).with_name("vela_child.py")
_PATIENCE_S = 0.5
"""How long a child that is told to end may take before it is killed."""


class VelaDiedError(Exception):
    """The process of Vela ended while it was compiling; the message says how."""


class VelaProcess:
    """Runs Vela in a child process; one that has ended is followed by another. Threads may call the methods.

    The child gets no signals of the terminal. It ends with this process, since its input ends then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._owner = 0

    def run(self, log: Path, arguments: Sequence[str], timeout_s: float) -> str:
        """Run Vela with its arguments and write what it prints to a file; return "" or its error.

        Raises:
            VelaDiedError: the model, or something else, killed the process.
            TimeoutError: it did not answer in time, and was killed.
            OSError: it cannot be started.
        """
        request = json.dumps([str(log), *arguments]) + "\n"
        with self._lock:
            code = 0
            for _ in range(2):
                try:
                    answer = _answer(self._running(), request, timeout_s)
                except BaseException:
                    self._end()
                    raise
                if answer:
                    return str(json.loads(answer))
                code = self._end()
                if code or log.exists():  # otherwise it had ended before, since it was idle for too long
                    break
            raise VelaDiedError(ending(code))

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._end()

    def _running(self) -> subprocess.Popen[str]:
        if self._child is None or self._owner != os.getpid():  # a forked process must not talk to its parent's child
            self._owner = os.getpid()
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        return self._child

    def _end(self) -> int:
        """End the child if there is one, and return its exit code."""
        child, self._child = self._child, None
        if child is None or self._owner != os.getpid():
            return 0
        if child.stdin is not None:
            with contextlib.suppress(OSError):  # it may have ended before it read everything
                child.stdin.close()
        if child.stdout is not None:
            child.stdout.close()
        return end(child, _PATIENCE_S)


def _answer(child: subprocess.Popen[str], request: str, timeout_s: float) -> str:
    """Return the child's answer; "" if it has ended."""
    assert child.stdin is not None
    assert child.stdout is not None
    late = threading.Event()

    def stop() -> None:
        late.set()
        child.kill()

    timer = threading.Timer(timeout_s, stop)
    timer.daemon = True
    timer.start()
    try:
        child.stdin.write(request)
        child.stdin.flush()
        answer = child.stdout.readline()
    except BrokenPipeError:
        answer = ""
    except BaseException:  # such as Ctrl-C, which the child does not get
        child.kill()
        raise
    finally:
        timer.cancel()
    if late.is_set():
        raise TimeoutError
    return answer


@cache
def vela_process() -> VelaProcess:
    """Return the process of Vela that all of this process shares."""
    process = VelaProcess()
    atexit.register(process.close)
    return process
