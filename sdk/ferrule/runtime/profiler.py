# SPDX-License-Identifier: Apache-2.0
"""Profiles of runs: when each workload ran, on which backend, and for how long."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ferrule.backends.context import BackendEvent
from ferrule.documents import json_text
from ferrule.optimizer.optimized import EdgeStrategy
from ferrule.runtime.step import Step


class WorkloadEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One time span: a workload, a whole run, or work that a backend timed itself."""

    name: str
    """The layer's name, "run" for a whole run, or the backend's name for the event."""
    category: str
    """The layer's type, "run", or "backend"."""
    backend: str
    device: str
    start_ns: int
    """Start, on the clock of time.perf_counter_ns."""
    duration_ns: int
    """Duration; for an asynchronous workload, only the time to start it."""
    thread: int
    """The operating system's thread id; 0 for events that a backend timed on its device."""
    thread_name: str
    run: int
    """Number of the run of this network, starting at 0."""
    asynchronous: bool = False
    wait_ns: int = 0
    """The part of the duration in which the run waited for other work, such as another backend's."""
    strategy: str = ""
    """How a tensor passes from one backend to another: "copy", "export", or "fallback import"; empty otherwise."""
    size_bytes: int = 0
    """Size of that tensor."""
    transfer: str = ""
    """"copied" or "imported" for such a tensor, otherwise empty."""
    memory: str = ""
    """The allocator of the memory that the tensor's handles import, by its name, which says if it is a stand-in."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON document of a profile."""

    network: str
    clock: str
    events: tuple[WorkloadEvent, ...]


class Profiler:
    """The events of one loaded network; it may be read while the network runs.

    Events timed by backends are collected at the end of a run. Backends do not report the network of an event, so if
    several networks run at the same time, the events are assigned to the run that ends first.
    """

    def __init__(self, network: str, *, enabled: bool) -> None:
        self.network = network
        self.enabled = enabled
        """Whether runs are recorded; may be changed between runs."""
        self._events: list[WorkloadEvent] = []
        self._lock = threading.Lock()
        self._runs = 0

    @property
    def events(self) -> tuple[WorkloadEvent, ...]:
        """The events recorded since the last `clear`, in the order in which they were added."""
        with self._lock:
            return tuple(self._events)

    def clear(self) -> None:
        """Delete all events."""
        with self._lock:
            self._events.clear()

    def begin_run(self) -> int:
        """Begin a new run and return its number."""
        with self._lock:
            self._runs += 1
            return self._runs - 1

    def add(self, events: Sequence[WorkloadEvent]) -> None:
        """Add the events of a run."""
        with self._lock:
            self._events.extend(events)

    def to_json(self) -> str:
        """Return all events as a JSON document."""
        profile = Profile(network=self.network, clock="perf_counter_ns", events=self.events)
        return json_text(profile)

    def to_chrome_trace(self) -> str:
        """Return the events in Chrome's trace event format, which chrome://tracing and Perfetto can open.

        Each thread has a track, and so has each backend that times its own work; times are in microseconds.
        """
        events = self.events
        tracks = _tracks(events)
        records = [
            _record("M", 0, "process_name", {"name": self.network}),
            *(_record("M", number, "thread_name", {"name": name}) for name, number in tracks.items()),
            *(_complete(event, tracks[_track(event)]) for event in events),
        ]
        return msgspec.json.encode({"traceEvents": records, "displayTimeUnit": "ns"}).decode()


def run_event(run: int, start_ns: int, end_ns: int) -> WorkloadEvent:
    """Return the event of a whole run by the current thread."""
    return WorkloadEvent(
        name="run",
        category="run",
        backend="",
        device="",
        start_ns=start_ns,
        duration_ns=end_ns - start_ns,
        thread=threading.get_native_id(),
        thread_name=threading.current_thread().name,
        run=run,
    )


def step_event(step: Step, span: WorkloadEvent, memory: str) -> WorkloadEvent:
    """Return the event of a step of a run that took the time of `span`; `memory` is that of its crossing."""
    own = replace(span, name=step.name, category=step.type, backend=step.backend, device=step.device, memory=memory)
    crossing = step.crossing
    if crossing is None:
        return own
    transfer = "copied" if crossing.strategy is EdgeStrategy.COPY else "imported"
    return replace(own, strategy=crossing.strategy.value, size_bytes=crossing.size_bytes, transfer=transfer)


def backend_event(event: BackendEvent, backend: str, run: int) -> WorkloadEvent:
    """Return an event timed by a backend as an event of the profile."""
    span = run_event(run, event.start_ns, event.start_ns + event.duration_ns)
    return replace(span, name=event.name, category="backend", backend=backend, thread=0, thread_name="")


def _track(event: WorkloadEvent) -> str:
    return f"{event.thread_name} ({event.thread})" if event.thread else event.backend


def _tracks(events: Sequence[WorkloadEvent]) -> dict[str, int]:
    """Return the number of each track: thread ids for threads, followed by numbers for backends."""
    threads = {_track(event): event.thread for event in events if event.thread}
    backends = dict.fromkeys(_track(event) for event in events if not event.thread)
    first = max(threads.values(), default=0) + 1
    return threads | {name: first + index for index, name in enumerate(backends)}


def _record(phase: str, track: int, name: str, arguments: Mapping[str, object]) -> dict[str, object]:
    return {"ph": phase, "pid": os.getpid(), "tid": track, "name": name, "args": arguments}


def _complete(event: WorkloadEvent, track: int) -> Mapping[str, object]:
    arguments = {
        "backend": event.backend,
        "device": event.device,
        "run": event.run,
        "asynchronous": event.asynchronous,
        "wait_us": event.wait_ns / 1000,
    }
    if event.strategy:
        arguments |= {
            "strategy": event.strategy,
            "bytes": event.size_bytes,
            "transfer": event.transfer,
            "memory": event.memory,
        }
    times = {"cat": event.category, "ts": event.start_ns / 1000, "dur": event.duration_ns / 1000}
    return _record("X", track, event.name, arguments) | times
