# SPDX-License-Identifier: Apache-2.0
"""The backend object itself, its contexts, and several networks, threads and runtimes at once."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ferrule.backends import capability
from ferrule.backends.backend import Backend
from ferrule.backends.capability import (
    ASYNC_EXECUTION,
    FIRMWARE_FLOATS,
    ROUNDING_RULES,
    RUNS_BESIDE,
    declared_rules,
    firmware_float_options,
    has_capability,
    subgraph_cost,
)
from ferrule.backends.context import NetworkId
from ferrule.backends.registry import RESERVED_IDS
from ferrule.errors import FerruleError
from ferrule.graph import DataType
from ferrule.optimizer import optimize
from ferrule.testing.backends.comparison import graph_difference, random_inputs
from ferrule.testing.backends.family import Family
from ferrule.testing.backends.loaded_layer import LoadedLayer
from ferrule.testing.backends.networks import check_run, load, sandwich, some_taken
from ferrule.testing.backends.random_networks import shared_network
from ferrule.testing.backends.subject import Neighbour, Subject, SubjectRuntime

_KNOWN = {value for name, value in vars(capability).items() if name.isupper() and isinstance(value, str)}
_MOMENTS = ("before_load_network", "after_load_network", "before_unload_network", "after_unload_network")


class ObjectFamily(Family):
    """Tests of the backend object, a short-lived factory."""

    def test_id(self, subject: Subject, backend: Backend) -> None:
        """The backend has the id under which it is registered, which is not reserved."""
        assert backend.id == subject.id, f"its id is '{backend.id}'"
        assert backend.id not in RESERVED_IDS, f"'{backend.id}' is a reserved id"

    def test_it_runs_on_the_host(self, backend: Backend) -> None:
        """The backend has a host face, which these families test."""
        assert backend.has_host_face(), f"{backend.id} has no host face: test its firmware with models on a board"

    def test_capabilities(self, backend: Backend) -> None:
        """Capabilities are names with values; those that Ferrule queries are booleans, rules, options, or a cost."""
        declared_rules(backend.capabilities())
        subgraph_cost(backend.capabilities())
        firmware_float_options(backend.capabilities())
        for name, value in backend.capabilities().items():
            assert isinstance(value, (bool, int, float, str)), f"capability {name} is a {type(value).__name__}"
            wrong = name in _KNOWN - {FIRMWARE_FLOATS, ROUNDING_RULES, RUNS_BESIDE} and not isinstance(value, bool)
            assert not wrong, f"capability {name} is {value!r}, expected a bool"

    def test_objects_are_made_anew(self, runtime: SubjectRuntime) -> None:
        """The factory function returns a new object each time."""
        first, second = runtime.backend(), runtime.backend()
        assert first is not second, "the factory function returned one object twice"

    def test_nothing_depends_on_the_objects_life(self, runtime: SubjectRuntime) -> None:
        """The objects made by a backend work after the backend object is gone."""
        graph = some_taken(runtime)
        loaded = LoadedLayer(runtime.backend(), graph, runtime.subject.model_options)
        gc.collect()
        loaded.acquire()
        inputs = random_inputs(graph, 0)
        wrong = graph_difference(graph, inputs, loaded.run(inputs))
        loaded.release()
        assert not wrong, wrong

    def test_events_need_the_capability(self, runtime: SubjectRuntime) -> None:
        """A workload returns events only if the backend has the capability AsyncExecution."""
        backend = runtime.backend()
        graph = some_taken(runtime)
        loaded = LoadedLayer(backend, graph, runtime.subject.model_options)
        loaded.acquire()
        event = loaded.workload.execute()
        if event is not None:
            event.wait()
            assert event.done(), "an event is not done after wait()"
        loaded.release()
        assert event is None or has_capability(backend.capabilities(), ASYNC_EXECUTION), (
            f"its workloads return {type(event).__name__}, and it lacks {ASYNC_EXECUTION}"
        )


class ContextFamily(Family):
    """Tests of the backend's context in a runtime."""

    def test_it_is_told_of_everything_and_content(self, subject: Subject, backend: Backend) -> None:
        """Each notification before and after a load or unload returns True, with several networks loaded at once."""
        context = backend.context(subject.options)
        if context is None:
            return
        for moment in _MOMENTS:
            for number in range(2):
                said = getattr(context, moment)(NetworkId(number))
                assert said is True, f"{moment}({number}) returned {said!r}"

    # of its own: in the class's runtime, what the failed load leaves behind would fail the tests after it instead
    def test_a_failed_load_leaves_it_usable(self, subject: Subject) -> None:
        """After another backend has aborted a load, the next load works."""
        with subject.runtime() as runtime:
            network = shared_network(3, 6, DataType.INT8)
            optimized = optimize(network, runtime.preferences, runtime.registry, subject.optimizer_options())
            broken = replace(optimized, assignment=dict(list(optimized.assignment.items())[:-1]))
            with pytest.raises(FerruleError):
                runtime.load_network(broken)
            check_run(runtime, runtime.load_network(optimized), network)


class RuntimeFamily(Family):
    """Tests with several networks, threads and runtimes, each in runtimes of its own, so that a failure stays there."""

    def test_networks_and_threads_at_once(self, subject: Subject) -> None:
        """Each network computes its own results while others run."""
        with subject.runtime() as runtime:
            networks = [shared_network(seed, 5, DataType.INT8) for seed in (21, 22, 23)]
            numbers = [load(runtime, network) for network in networks]

            def run(turn: int) -> None:
                check_run(runtime, numbers[turn % 3], networks[turn % 3], turn)

            with ThreadPoolExecutor(max_workers=4) as pool:
                list(pool.map(run, range(24)))

    def test_two_runtimes(self, subject: Subject) -> None:
        """Closing one runtime does not affect the other."""
        network = shared_network(5, 5, DataType.INT8)
        first, second = subject.runtime(), subject.runtime()
        try:
            number = load(second, network)
            load(first, network)
            first.close()
            check_run(second, number, network)
        finally:
            first.close()
            second.close()

    def test_runtimes_in_a_loop(self, subject: Subject) -> None:
        """The backend is available in each of several successive runtimes."""
        for _ in range(3):
            with subject.runtime() as runtime:
                assert subject.id in runtime.registry, f"{subject.id} is gone"

    def test_loads_and_unloads(self, subject: Subject) -> None:
        """An unloaded network is gone, and can be loaded again."""
        with subject.runtime() as runtime:
            network = shared_network(9, 5, DataType.INT8)
            optimized = optimize(network, runtime.preferences, runtime.registry, subject.optimizer_options())
            for _ in range(3):
                number = runtime.load_network(optimized)
                check_run(runtime, number, network)
                runtime.unload_network(number)
                with pytest.raises(FerruleError):
                    runtime.enqueue_workload(number, random_inputs(network, 0))

    def test_profile_names_the_backend(self, subject: Subject) -> None:
        """With profiling, each layer has an event that names its backend."""
        with subject.runtime(profiling=True) as runtime:
            options = subject.optimizer_options(simplify=False, hints={"layer": subject.id})
            network = sandwich(some_taken(runtime))
            optimized = optimize(network, [Neighbour.id], runtime.registry, options)
            number = runtime.load_network(optimized)
            runtime.enqueue_workload(number, random_inputs(network, 0))
            seen = {event.name: event.backend for event in runtime.profiler(number).events}
            wanted = {layer.name: optimized.assignment[layer.name].backend for layer in optimized.graph.layers}
            assert wanted.items() <= seen.items(), f"profiled {seen}, expected {wanted}"
