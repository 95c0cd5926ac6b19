# SPDX-License-Identifier: Apache-2.0
"""Workers of a dask.distributed cluster."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ferrule._typing import override
from ferrule.child_process import usable_processors
from ferrule.errors import FerruleError, MissingToolError
from ferrule.evaluation.sweep.processes import LocalWorkers
from ferrule.evaluation.sweep.workers import Attempt, Resources, WorkerLostError, Workers

if TYPE_CHECKING:
    from distributed import Client

_T = TypeVar("_T")
LOCAL = "local"
"""Instead of a scheduler's address: a scheduler and workers on this machine."""
REMEDY = "pip install 'ferrule[cluster]'"
_CONNECT_S = 30
_WAIT_S = 120
"""How long to wait for the first workers."""
_REFRESH_S = 5.0
"""How often the number of workers is asked for."""


def workers_for(scheduler: str | None, count: int | None, capacity: Mapping[str, float] | None = None) -> Workers:
    """Return the workers of a scheduler, or `LocalWorkers` without one; raises as `ClusterWorkers` does.

    Without a count, this machine starts one for each processor, and those of another scheduler are at least one.
    """
    if scheduler is None:
        return LocalWorkers(count or usable_processors(), capacity)
    return ClusterWorkers(scheduler, (count or usable_processors()) if scheduler == LOCAL else count, capacity)


class ClusterWorkers(Workers):
    """The workers of a scheduler, given by its address; with "local", a scheduler and `count` processes are started.

    A scheduler repeats the call of a lost worker by itself, as often as its setting allowed-failures says.

    Raises:
        MissingToolError: dask.distributed is not installed.
        FerruleError: there is no scheduler, or it has not `count` workers in time.
    """

    def __init__(self, address: str, count: int | None, capacity: Mapping[str, float] | None = None) -> None:
        try:
            import dask
            import distributed
        except ImportError as error:
            raise MissingToolError(
                "the Python package distributed is missing, which --scheduler needs", hint=REMEDY
            ) from error
        self._cluster = None
        self._client: Client
        if address == LOCAL:
            settings = {
                "distributed.scheduler.allowed-failures": 0,  # the campaign repeats and counts
                "distributed.comm.timeouts.connect": f"{_WAIT_S}s",  # a busy machine starts processes slowly
            }
            with dask.config.set(settings):
                self._cluster = distributed.LocalCluster(
                    n_workers=count or 1,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address="127.0.0.1:0",  # any free port; None takes 8787, which another sweep may have
                    resources=dict(capacity or {}),
                    silence_logs=50,
                )
        limit_s = _WAIT_S if self._cluster else _CONNECT_S
        try:
            self._client = distributed.Client(self._cluster or address, timeout=limit_s, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise FerruleError(
                f"there is no scheduler at {address}: {error}", hint="start one with the command dask scheduler"
            ) from error
        try:
            self._client.wait_for_workers(count or 1, timeout=_WAIT_S)
        except TimeoutError:
            found = len(self._info())
            self.__exit__()
            raise FerruleError(
                f"the scheduler at {address} has {found} workers after {_WAIT_S} s, expected {count or 1}",
                hint=f"start workers with the command dask worker {address} --nthreads 1",
            ) from None
        self._begun: dict[str, int] = {}
        """How often each call whose result has not come yet was begun."""
        self._topic = f"ferrule-sweep-{self._client.id}"
        self._client.subscribe_topic(self._topic, self._note)
        self._numbers = itertools.count()
        self._slots, self._asked = 0, 0.0

    @override
    def slots(self) -> int:
        if not self._slots or time.monotonic() > self._asked + _REFRESH_S:
            self._slots = max(1, sum(int(worker["nthreads"]) for worker in self._info().values()))
            self._asked = time.monotonic()
        return self._slots

    @override
    def lacking(self, resources: Mapping[str, float]) -> str:
        for worker in self._info().values():
            if all(worker.get("resources", {}).get(name, 0) >= amount for name, amount in resources.items()):
                return ""
        wanted = " ".join(f"{name}={amount:g}" for name, amount in resources.items())
        return f'no worker of the scheduler was started with --resources "{wanted}", which a run takes'

    @override
    def ask(self, function: Callable[..., _T], *arguments: object) -> dict[str, _T]:
        found: dict[str, _T] = self._client.run(function, *arguments)
        return found

    @override
    def __exit__(self, *error: object) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    @override
    def submit(self, resources: Resources, function: Callable[..., Any], *arguments: object) -> Attempt:
        key = f"ferrule-run-{self._client.id}-{next(self._numbers)}"
        attempt = Attempt()
        attempt.set_running_or_notify_cancel()
        self._begun[key] = 0
        future = self._client.submit(
            _announced,
            self._topic,
            key,
            function,
            arguments,
            key=key,
            resources=dict(resources),
            pure=False,
        )
        self._client.loop.add_callback(self._finish, key, future, attempt)
        return attempt

    async def _finish(self, key: str, future: Any, attempt: Attempt) -> None:  # noqa: ANN401 dask's Future
        """Wait for a result, in the client's event loop: many are waited for at the same time."""
        from distributed.scheduler import KilledWorker

        result: Any = None
        problem: BaseException | None = None
        try:
            attempt.worker, result = await self._client.gather(future, asynchronous=True)
        except KilledWorker as error:
            problem = WorkerLostError(f"worker {error.last_worker.address} was lost")
        except BaseException as error:  # noqa: BLE001 the future must end, whatever the cluster does
            problem = error
        attempt.begun = self._begun.pop(key)
        future.release()
        if problem is None:
            attempt.set_result(result)
        else:
            attempt.set_exception(problem)

    def _note(self, event: tuple[float, str]) -> None:
        """Count a beginning of a call, of which the scheduler tells.

        The scheduler also repeats a call whose result has come here if the worker that keeps the result is lost before
        the scheduler hears so: that does not count.
        """
        _, key = event
        if key in self._begun:
            self._begun[key] += 1

    def _info(self) -> Mapping[str, Mapping[str, Any]]:
        found: Mapping[str, Mapping[str, Any]] = self._client.scheduler_info(n_workers=-1)["workers"]
        return found


def _announced(topic: str, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
    """Tell the scheduler, on a worker, that a call begins, and return the worker's name and the result.

    The scheduler has heard it before the call begins, so that one which ends its worker at once is counted, too.
    """
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()
    sync(worker.loop, worker.scheduler.log_event, topic=topic, msg=key)
    return str(worker.name), function(*arguments)
