# SPDX-License-Identifier: Apache-2.0
"""The interface of workers: processes, here or elsewhere, that carry out the runs of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol, Self, TypeVar

from ferrule.errors import FerruleError

_T = TypeVar("_T")
Resources = tuple[tuple[str, float], ...]
"""Amounts by name, sorted."""


class WorkerLostError(FerruleError):
    """The process that worked on a call has ended before its result."""


class Attempt(Future[Any]):
    """A call of a worker; if the worker is lost, the exception is a WorkerLostError."""

    begun: int = 1
    """How often the call was begun; more than once if a scheduler has repeated it by itself."""
    worker: str = ""
    """The worker that made the result."""


class Workers(Protocol):
    """Workers; used as a context manager, they end with its block."""

    def submit(self, resources: Resources, function: Callable[..., Any], *arguments: object) -> Attempt:
        """Let the next free worker that has the resources carry out a call."""

    def slots(self) -> int:
        """Return how many calls can be at work at the same time at present, at least 1."""

    def lacking(self, resources: Mapping[str, float]) -> str:
        """Return why no worker could take a call with these resources; empty if one could."""

    def ask(self, function: Callable[..., _T], *arguments: object) -> dict[str, _T]:
        """Return the results of a call in one process of each machine or worker, by its name."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End the work at once, also that of calls that are being worked on, and remove the processes."""
