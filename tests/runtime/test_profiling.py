# SPDX-License-Identifier: Apache-2.0
"""Profiles: an event per workload, in JSON and as a Chrome trace."""

from __future__ import annotations

import json
import threading
from time import perf_counter_ns

import pytest
from mock_backends import Mock, Slow, assigned, chain, mock, registry_of, sample

from ferrule.backends.context import BackendEvent, BackendProfilingContext, CreationOptions
from ferrule.backends.contract import BrokenBackendError
from ferrule.runtime import Profiler, Runtime

ON = CreationOptions(profiling=True)


class Timer:
    """A profiling backend that reports one event per run."""

    def __init__(self, *, works: bool = True) -> None:
        self.enabled: list[bool] = []
        self.works = works

    def enable_profiling(self, *, enabled: bool) -> bool:
        self.enabled.append(enabled)
        return self.works

    def take_events(self) -> list[BackendEvent]:
        return [BackendEvent(name="kernel", start_ns=perf_counter_ns(), duration_ns=1500)]


def profiled(backend: type[Mock] = Mock, runs: int = 2) -> Profiler:
    with Runtime(ON, registry_of(backend)) as runtime:
        number = runtime.load_network(assigned(chain(), {}, backend))
        for _ in range(runs):
            runtime.enqueue_workload(number, [sample()])
        return runtime.profiler(number)


def test_every_workload_is_an_event() -> None:
    events = profiled().events
    assert [(event.name, event.run) for event in events] == [
        (name, run) for run in (0, 1) for name in ("layer0", "layer1", "layer2", "layer3", "run")
    ]
    layer = events[0]
    assert (layer.category, layer.backend, layer.device) == ("LEAKY_RELU", "Mock", "Mock")
    assert layer.thread == threading.get_native_id()
    assert layer.thread_name == threading.current_thread().name
    assert all(event.duration_ns > 0 for event in events)
    whole = events[4]
    for event in events[:4]:
        assert whole.start_ns <= event.start_ns
        assert event.start_ns + event.duration_ns <= whole.start_ns + whole.duration_ns


def test_nothing_is_recorded_unless_asked_for() -> None:
    with Runtime(registry=registry_of(Mock)) as runtime:
        number = runtime.load_network(assigned(chain(), {}))
        runtime.enqueue_workload(number, [sample()])
        profiler = runtime.profiler(number)
        assert profiler.events == ()
        profiler.enabled = True
        runtime.enqueue_workload(number, [sample()])
        assert len(profiler.events) == 5
        profiler.clear()
        assert profiler.events == ()


def test_json_holds_the_same_events() -> None:
    profiler = profiled()
    document = json.loads(profiler.to_json())
    assert (document["network"], document["clock"]) == ("chain", "perf_counter_ns")
    assert [event["name"] for event in document["events"]] == [event.name for event in profiler.events]
    assert set(document["events"][0]) == set(profiler.events[0].__struct_fields__)


def test_the_chrome_trace_follows_the_format() -> None:
    """The format is https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU."""
    timer = Timer()
    profiler = profiled(mock("Timed", profiling_context=lambda self, options: timer))
    document = json.loads(profiler.to_chrome_trace())
    events = document["traceEvents"]
    assert {event["ph"] for event in events} == {"X", "M"}
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    complete = [event for event in events if event["ph"] == "X"]
    assert {event["tid"] for event in complete} == set(names)
    assert "Timed" in names.values()
    assert len(complete) == len(profiler.events)
    for event, entry in zip(profiler.events, complete, strict=True):
        assert entry["ts"] == event.start_ns / 1000
        assert entry["dur"] == event.duration_ns / 1000
        assert isinstance(entry["pid"], int)
        assert isinstance(entry["tid"], int)


def test_backends_events_are_merged() -> None:
    timer = Timer()
    profiler = profiled(mock("Timed", profiling_context=lambda self, options: timer))
    assert timer.enabled == [True]
    kernels = [event for event in profiler.events if event.category == "backend"]
    assert [(event.name, event.backend, event.run, event.thread) for event in kernels] == [
        ("kernel", "Timed", 0, 0),
        ("kernel", "Timed", 1, 0),
    ]


def test_a_backend_that_cannot_profile_is_left_alone() -> None:
    timer = Timer(works=False)
    profiler = profiled(mock("Timed", profiling_context=lambda self, options: timer))
    assert not [event for event in profiler.events if event.category == "backend"]


def test_profiling_contexts_are_asked_for_only_when_profiling() -> None:
    asked = []

    def profiling_context(self: Mock, options: CreationOptions) -> BackendProfilingContext | None:
        asked.append(options.profiling)
        return None

    backend = mock("Timed", profiling_context=profiling_context)
    with Runtime(registry=registry_of(backend)), Runtime(ON, registry_of(backend)):
        assert asked == [True]


def test_asynchronous_workloads_are_marked() -> None:
    events = profiled(Slow, runs=1).events
    layers = [event for event in events if event.category != "run"]
    assert all(event.asynchronous for event in layers)
    whole = events[-1]
    assert whole.duration_ns > 4 * Slow.delay_s * 1e9
    assert sum(event.duration_ns for event in layers) < whole.duration_ns


def test_a_failing_run_is_recorded_up_to_the_failure() -> None:
    failing = type("Failing", (Slow,), {"failure": ValueError("odd"), "id": "Failing"})
    with Runtime(ON, registry_of(failing)) as runtime:
        number = runtime.load_network(assigned(chain(), {}, failing))
        with pytest.raises(BrokenBackendError, match="odd"):
            runtime.enqueue_workload(number, [sample()])
        assert runtime.profiler(number).events[-1].name == "run"
