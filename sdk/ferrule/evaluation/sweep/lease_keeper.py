# SPDX-License-Identifier: Apache-2.0
"""A program that holds a place of labgrid for another process, and releases it even if that process is killed.

It reads one line of JSON (command, place, wait_s, limit_s, environment), acquires the place and says "held". It
releases the place when its standard input ends, which happens however the other process ends, or when the time limit
has passed, and then says "released", or "expired". It uses the standard library alone, so that it starts quickly.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

OWN_VARIABLES = ("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
"""The variables of this Python's environment, which the client's Python must not read."""
CLIENT_LIMIT_S = 60.0
"""Time limit for one call of the client."""
AGAIN_S = 1.0
"""Pause before the place is tried again."""
RELEASES = 3
"""How often a release that fails is tried."""
_Call = Callable[[str], tuple[int | None, str]]
"""Calls the client with a verb for the place."""


def keep() -> int:
    """Hold the place that standard input names; return 0 if it was released."""
    line = sys.stdin.readline()
    if not line.endswith("\n"):  # the other process has ended before it asked for anything
        return 0
    settings = json.loads(line)
    call = partial(_call, settings["command"], settings["place"], settings["environment"])
    ended: queue.SimpleQueue[None] = queue.SimpleQueue()
    threading.Thread(target=_wait_for_end, args=(ended,), daemon=True).start()
    reason = _acquire(call, settings["wait_s"], ended)
    if reason is None:
        return 0
    if reason:
        _say({"state": "refused", "reason": reason})
        return 1
    _say({"state": "held"})
    expired = not _ends_within(ended, settings["limit_s"])
    problem = _release(call)
    _say({"state": "expired" if expired else "released", "reason": problem})
    return bool(problem)


def _acquire(call: _Call, wait_s: float, ended: queue.SimpleQueue[None]) -> str | None:
    """Return "" once the place is held, a reason if it is not, or None if the other process has ended meanwhile."""
    give_up = time.monotonic() + wait_s
    while True:
        code, said = call("acquire")
        if code == 0:
            return ""
        if code is None or time.monotonic() >= give_up:
            return said
        if _ends_within(ended, min(AGAIN_S, max(0.0, give_up - time.monotonic()))):
            return None


def _release(call: _Call) -> str:
    said = ""
    for attempt in range(RELEASES):
        code, said = call("release")
        if code == 0:
            return ""
        if attempt + 1 < RELEASES:
            threading.Event().wait(AGAIN_S)
    return said


def _call(command: list[str], place: str, extra: dict[str, str], verb: str) -> tuple[int | None, str]:
    """Return the client's exit code, None if it cannot be started, and what it said."""
    environment = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
    try:
        done = subprocess.run(
            [*command, "-p", place, verb],
            env={**environment, **extra},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=CLIENT_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return -1, f"{command[0]} {verb} has not ended within {CLIENT_LIMIT_S:.0f} s"
    except OSError as error:
        return None, f"{command[0]} cannot be started: {error.strerror or error}"
    return done.returncode, " ".join((done.stderr or done.stdout).split())[-500:] or f"exit code {done.returncode}"


def _wait_for_end(ended: queue.SimpleQueue[None]) -> None:
    sys.stdin.read()
    ended.put(None)


def _ends_within(ended: queue.SimpleQueue[None], limit_s: float) -> bool:
    try:
        ended.get(timeout=limit_s)
    except queue.Empty:
        return False
    return True


def _say(message: dict[str, str]) -> None:
    try:
        print(json.dumps(message), flush=True)  # noqa: T201 its standard output is the protocol
    except BrokenPipeError:  # the other process was killed; the place is released all the same
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(keep())
