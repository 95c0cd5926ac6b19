# SPDX-License-Identifier: Apache-2.0
"""The duration of each command on the device, on the clock of the process."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from ferrule._frozen import positional
from ferrule.backends.context import BackendEvent

if TYPE_CHECKING:
    import pyopencl as cl

MOST_EVENTS = 100_000
"""The number of commands kept until `take_events`; older ones are dropped."""


@positional
class _Command:
    name: str
    event: cl.Event
    submitted_ns: int
    """Time of submission, on the clock of time.perf_counter_ns; the event has the same time on the device's clock."""


class Recorder:
    """The profiling context of a runtime: keeps the events of commands while profiling is enabled.

    A session with a recorder uses a command queue that measures; several threads may record.
    """

    def __init__(self) -> None:
        self._commands: deque[_Command] = deque(maxlen=MOST_EVENTS)
        self._enabled = False
        self._lock = threading.Lock()

    def enable_profiling(self, *, enabled: bool) -> bool:
        """Switch profiling on or off; always succeeds."""
        self._enabled = enabled
        return True

    def record(self, name: str, event: cl.Event, submitted_ns: int) -> None:
        """Keep a command that has just been enqueued, if profiling is enabled."""
        if self._enabled:
            with self._lock:
                self._commands.append(_Command(name, event, submitted_ns))

    def take_events(self) -> list[BackendEvent]:
        """Return the commands completed since the last call, in the order of submission; failed ones are left out.

        Commands that are still running are kept for the next call.
        """
        with self._lock:
            commands, self._commands = self._commands, deque(maxlen=MOST_EVENTS)
            running = [command for command in commands if command.event.command_execution_status > 0]
            self._commands.extend(running)
        return [_measured(command) for command in commands if command.event.command_execution_status == 0]


def _measured(command: _Command) -> BackendEvent:
    profile = command.event.profile
    return BackendEvent(
        name=command.name,
        start_ns=command.submitted_ns + profile.start - profile.queued,
        duration_ns=profile.end - profile.start,
    )
