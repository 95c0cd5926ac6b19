# SPDX-License-Identifier: Apache-2.0
"""Workers that are processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, TypeVar

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.child_process import ending
from ferrule.evaluation.sweep.workers import Attempt, Resources, WorkerLostError, Workers
from ferrule.finalizing import put_off

_T = TypeVar("_T")
_GRACE_S = 10.0
"""Seconds for a process to remove its temporary files after SIGTERM, before it is killed."""

_ENDS = (signal.SIGINT, signal.SIGTERM)
"""The signals that end a process: Ctrl-C reaches all processes of a terminal, and then they are terminated, too."""


@frozen(eq=False, kw_only=False)
class _Call:
    """A call that waits for a process."""

    function: Callable[..., Any]
    arguments: tuple[object, ...]
    resources: Resources
    future: Attempt = field(default_factory=Attempt)


class LocalWorkers(Workers):
    """Processes of this machine, each of which works on one call at a time; a lost process is replaced.

    `capacity` states how much of a resource this machine has, by name; the amount of others is 1. Processes start with
    the first call that needs them.
    """

    def __init__(self, count: int, capacity: Mapping[str, float] | None = None) -> None:
        self._count = count
        self._capacity = dict(capacity or {})
        self._taken: dict[str, float] = {}
        self._waiting: deque[_Call] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._processes: dict[int, _Process] = {}
        self._threads: list[threading.Thread] = []

    @override
    def slots(self) -> int:
        return self._count

    @override
    def lacking(self, resources: Mapping[str, float]) -> str:
        short = [
            f"{name} = {amount:g}, of which this machine has {self._capacity.get(name, 1):g}"
            for name, amount in resources.items()
            if amount > self._capacity.get(name, 1)
        ]
        return f"a run takes {', '.join(short)}" if short else ""

    @override
    def ask(self, function: Callable[..., _T], *arguments: object) -> dict[str, _T]:
        return {"this machine": function(*arguments)}

    @override
    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._closed = True
            waiting, self._waiting = list(self._waiting), deque()
            self._changed.notify_all()
            processes = [each.process for each in self._processes.values()]
        for call in waiting:
            call.future.cancel()
        for process in processes:
            process.terminate()
        for thread in self._threads:
            thread.join(_GRACE_S)
        for process in processes:
            process.kill()
        for thread in self._threads:
            thread.join()

    @override
    def submit(self, resources: Resources, function: Callable[..., Any], *arguments: object) -> Attempt:
        call = _Call(function, arguments, resources)
        with self._changed:
            if self._closed:
                raise RuntimeError("the workers have ended")
            self._waiting.append(call)
            if len(self._threads) < self._count:
                number = len(self._threads)
                thread = threading.Thread(target=self._serve, args=(number,), name=f"worker-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify_all()
        return call.future

    def _serve(self, number: int) -> None:
        """Work on calls with one process, as long as there are any."""
        while (call := self._next()) is not None:
            try:
                if call.future.set_running_or_notify_cancel():
                    self._answer(call, number)
            finally:
                with self._changed:
                    for name, amount in call.resources:
                        self._taken[name] -= amount
                    self._changed.notify_all()
        if number in self._processes:
            self._processes[number].process.terminate()
            self._processes[number].end()

    def _answer(self, call: _Call, number: int) -> None:
        process = self._process(number)
        call.future.worker = f"worker-{number}"
        try:
            process.connection.send((call.function, call.arguments))
            succeeded, result = process.connection.recv()
        except (EOFError, OSError):
            reason = process.end()
            call.future.set_exception(WorkerLostError(f"worker-{number} {reason}"))
            return
        except Exception as error:  # noqa: BLE001 a call that cannot be sent must end its future
            call.future.set_exception(error)
            return
        if succeeded:
            call.future.set_result(result)
        else:
            call.future.set_exception(RuntimeError(result))

    def _process(self, number: int) -> _Process:
        with self._changed:
            found = self._processes.get(number)
            if found is None or not found.process.is_alive():
                found = self._processes[number] = _Process(number)
                if self._closed:
                    found.process.terminate()
            return found

    def _next(self) -> _Call | None:
        """Return the first call whose resources are free, when there is one; None at the end."""
        with self._changed:
            while not self._closed:
                for call in self._waiting:
                    if all(
                        self._capacity.get(name, 1) - self._taken.get(name, 0) >= amount
                        for name, amount in call.resources
                    ):
                        self._waiting.remove(call)
                        for name, amount in call.resources:
                            self._taken[name] = self._taken.get(name, 0) + amount
                        return call
                self._changed.wait()
        return None


class _Process:
    """A process that works on the calls that its connection brings, until it ends, which ends the connection."""

    def __init__(self, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=serve, args=(theirs,), name=f"ferrule-worker-{number}", daemon=False
        )
        self.process.start()
        theirs.close()  # so that the end of the process is the end of the connection

    def end(self) -> str:
        """Wait until a process that ends has ended, and return how; for the thread that uses the connection."""
        self.process.join(_GRACE_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()
        code = self.process.exitcode or 0
        return f"{'was killed by' if code < 0 else 'has ended with'} {ending(code)}"


def serve(connection: Connection) -> None:
    """Work on the calls that a connection brings, until it closes; the main function of a worker's process."""
    for number in _ENDS:
        signal.signal(number, _leave)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            function, arguments = connection.recv()
            try:
                answer = (True, function(*arguments))
            except Exception:  # noqa: BLE001 the other side gets the traceback
                answer = (False, traceback.format_exc())
            connection.send(answer)


def _leave(number: int, frame: FrameType | None) -> None:
    if put_off(number, frame):
        return
    for each in _ENDS:
        signal.signal(each, _stay)  # another one must not interrupt the removal of temporary files
    raise SystemExit(128 + number)


def _stay(_number: int, _frame: FrameType | None) -> None:
    """Ignore a signal; with SIG_IGN in its place, Python prints an error for a signal that has just arrived."""
