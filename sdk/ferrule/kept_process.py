# SPDX-License-Identifier: Apache-2.0
"""Child processes that answer one request after the other, for programs that start slowly or may crash."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ferrule.child_process import ProcessClock, end, ending

_CHILD = Path(__file__).with_name("kept_child.py")
_PATIENCE_S = 0.5
"""How long a child that is told to end may take before it is killed."""
_LOOK_S = 0.5
"""Time between two looks at a child's clock."""


class KeptDiedError(Exception):
    """The process ended while it worked on a request; the message says how."""


class KeptProcess:
    """Runs the function `answer` of a script in a child process, which is kept for the next request.

    The child starts with the first request and gets no signals of the terminal. It ends with this process, since its
    input ends then, or after a minute without a request; another one follows with the next request. Threads may call
    the methods, one of which is answered at a time.
    """

    def __init__(self, script: Path, most: int | None = None) -> None:
        """Create it for a script; after `most` answers, a new child follows, so that what a child keeps is bounded."""
        self._script, self._most = script, most
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._answered = 0
        self._owner = 0
        atexit.register(self.close)

    def run(self, log: Path, arguments: Sequence[str], timeout_s: float) -> str:
        """Let the script answer, write what it prints meanwhile to a new file, and return its answer.

        The limit is that of a `ProcessClock`.

        Raises:
            KeptDiedError: the request, or something else, killed the process.
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
                    self._answered += 1
                    if self._answered == self._most:
                        self._end()
                    return str(json.loads(answer))
                code = self._end()
                if log.exists():  # otherwise it had ended before, since it was idle for too long, or was killed
                    break
            raise KeptDiedError(ending(code))

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._end()

    def _running(self) -> subprocess.Popen[str]:
        if self._child is None or self._owner != os.getpid():  # a forked process must not talk to its parent's child
            self._owner, self._answered = os.getpid(), 0
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", str(_CHILD), str(self._script)],
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
    try:
        with _watched(child, timeout_s, late):
            child.stdin.write(request)
            child.stdin.flush()
            answer = child.stdout.readline()
    except BrokenPipeError:
        answer = ""
    except BaseException:  # such as Ctrl-C, which the child does not get
        child.kill()
        raise
    if late.is_set():
        raise TimeoutError
    return answer


@contextmanager
def _watched(child: subprocess.Popen[str], timeout_s: float, late: threading.Event) -> Iterator[None]:
    """Kill a child that takes longer than a limit for the block, and set `late`."""
    done = threading.Event()

    def watch() -> None:
        clock = ProcessClock(child.pid)
        end_s = clock() + timeout_s
        while not done.wait(min(_LOOK_S, timeout_s)):
            if clock() >= end_s and not done.is_set():
                late.set()
                child.kill()
                return

    watcher = threading.Thread(target=watch, name="kept-process", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
