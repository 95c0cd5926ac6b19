# SPDX-License-Identifier: Apache-2.0
"""Loaded networks, which are ready to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, get_ident
from time import perf_counter_ns

import numpy as np
from msgspec.structs import replace

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.context import BackendProfilingContext
from ferrule.backends.device import BackendId
from ferrule.backends.shared.host_memory import MemImportWorkload
from ferrule.backends.tensor_handle import Event, MemoryManager
from ferrule.errors import FerruleError, InputError
from ferrule.graph import Array, Graph
from ferrule.interface import option
from ferrule.network.samples import beginnings, in_real_numbers
from ferrule.optimizer.optimized import Crossing
from ferrule.runtime.binding import Arrays, InputPort, OutputPort, given_samples, ordered_outputs, part_of
from ferrule.runtime.debug import DebugSwitch
from ferrule.runtime.direct import DirectRun
from ferrule.runtime.errors import Faults
from ferrule.runtime.fallback_memory import FallbackMemory
from ferrule.runtime.kept_state import KeptState
from ferrule.runtime.profiler import Profiler, WorkloadEvent, backend_event, run_event, step_event
from ferrule.runtime.step import Step
from ferrule.runtime.tensors import TensorTable


@frozen(eq=False)
class Parts:
    """The parts of a loaded network."""

    graph: Graph
    tensors: TensorTable
    steps: tuple[Step, ...]
    """One for each layer, and for the end of each import."""
    joined: tuple[Step, ...]
    """The same work in fewer steps, where backends have joined their workloads."""
    inputs: tuple[InputPort, ...]
    outputs: tuple[OutputPort, ...]
    sources: tuple[InputPort, ...]
    """The ports of the inputs, then those of the states' old values."""
    results: tuple[OutputPort, ...]
    """The ports of the outputs, then those of the states' new values."""
    state: KeptState | None
    """None for a network without state."""
    links: tuple[MemImportWorkload, ...]
    fallback: FallbackMemory
    managers: tuple[MemoryManager, ...]
    profiling: Mapping[BackendId, BackendProfilingContext]
    debug: DebugSwitch


class LoadedNetwork:
    """A network that is ready to run; its runs exclude each other, but not runs of other networks."""

    def __init__(self, parts: Parts, profiler: Profiler) -> None:
        self.profiler = profiler
        self.debug = parts.debug
        self.fallback_blocks = parts.fallback.blocks
        self._parts: Parts | None = parts
        self._lock = Lock()
        self._acquired = False
        self._direct: DirectRun | None = None
        self._decided = False
        """Whether `_direct` is known; it is decided after the first run."""
        self._runner: int | None = None

    def run(
        self,
        inputs: Arrays,
        outputs: Arrays | None,
        *,
        real: bool = False,
        reset_each: bool | Sequence[bool] = False,
    ) -> list[Array]:
        """Run the network once for each sample; see `Runtime.enqueue_workload`."""
        if self._runner is not None:
            self.check_outside()
        with self._lock:
            if self._direct is not None and not real and reset_each is False and not self.profiler.enabled:
                self._runner = get_ident()
                try:
                    found = self._direct.run(inputs, outputs)
                finally:
                    self._runner = None
                if found is not None:
                    return found
            parts = self._loaded()
            graph = parts.graph
            if real and outputs is not None:
                raise InputError(
                    f"network '{graph.name}' got output buffers and {option('real')}, which returns new arrays",
                    hint="give buffers for the stored values, and dequantise these by TensorInfo.dequantize",
                )
            samples = given_samples(graph, parts.inputs, inputs, real=real)
            resets = beginnings(len(samples), reset_each)
            buffers = ordered_outputs(parts.outputs, graph.name, outputs, len(samples))
            if not self._acquired:
                self._acquire(parts)
            if len(samples) == 1:
                self._run_sample(parts, samples[0], buffers, reset=resets[0])
            else:
                for index, sample in enumerate(_apart(samples, outputs)):
                    taken = [part_of(port.info, each, index) for port, each in zip(parts.outputs, buffers, strict=True)]
                    self._run_sample(parts, sample, taken, reset=resets[index])
            if not self._decided and not self.profiler.enabled:
                self._decided = True
                if parts.state is None and not parts.links:
                    self._direct = DirectRun.of(parts.joined, parts.sources, parts.results)
            return in_real_numbers(graph.outputs, buffers) if real else buffers

    def _run_sample(self, parts: Parts, arrays: Sequence[Array], buffers: list[Array], *, reset: bool) -> None:
        run = _ProfiledRun(parts, self.profiler) if self.profiler.enabled else _Run(parts)
        state = parts.state
        given, taken = arrays, buffers
        if state is not None:
            if reset:
                state.reset()
            old, new = state.begin()
            given, taken = (*arrays, *old), [*buffers, *new]
        self._runner = get_ident()
        try:
            run.run(given, taken)
        finally:
            self._runner = None
        if state is not None:
            state.end()

    def reset_state(self) -> None:
        """Let the next run begin with the initial state; see `Runtime.reset_state`."""
        self.check_outside()
        with self._lock:
            state = self._loaded().state
            if state is not None:
                state.reset()

    def _loaded(self) -> Parts:
        if self._parts is None:
            raise FerruleError("the network was unloaded", hint="load it again")
        return self._parts

    def release(self) -> None:
        """Wait for the current run, then release all memory; later runs fail, and a second call does nothing."""
        with self._lock:
            parts, self._parts, self._direct = self._parts, None, None
            if parts is None:
                return
            faults = Faults()
            if self._acquired:
                faults.during(_release, parts.managers)
            faults.during(parts.fallback.release)
            faults.throw()

    def _acquire(self, parts: Parts) -> None:
        """Acquire the memory of all managers; if one fails, release the others again."""
        for index, manager in enumerate(parts.managers):
            try:
                manager.acquire()
            except BaseException:
                with suppress(Exception):  # the original exception takes precedence
                    _release(parts.managers[:index])
                raise
        self._acquired = True

    def check_outside(self) -> None:
        """Raise FerruleError in a callback of the network's own run, which would wait for itself."""
        if self._runner == get_ident():
            raise FerruleError("a network cannot be run, reset or unloaded from within its own run")


def _apart(samples: list[Sequence[Array]], outputs: Arrays | None) -> list[Sequence[Array]]:
    """Return the samples, as copies if the caller's buffers overlap them: a run must not change later samples."""
    if outputs is None:
        return samples
    buffers = list(outputs.values()) if isinstance(outputs, Mapping) else list(outputs)
    if any(np.may_share_memory(array, buffer) for sample in samples for array in sample for buffer in buffers):
        return [[array.copy() for array in sample] for sample in samples]
    return samples


class _Run:
    """One run: binds inputs and outputs, executes the steps and always cleans up."""

    __slots__ = ("_open", "_parts")

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._open: list[tuple[Step, Event]] = []

    def run(self, arrays: Sequence[Array], buffers: Sequence[Array]) -> None:
        """Execute all steps and fill the buffers."""
        parts = self._parts
        try:
            for port, array in zip(parts.sources, arrays, strict=True):
                port.feed(array)
            for index, output in enumerate(parts.results):
                output.offer(buffers[index], (*arrays, *buffers[:index]))
            self._execute(self._steps())
            self._settle()
            for output, buffer in zip(parts.results, buffers, strict=True):
                output.collect(buffer)
        except BaseException:
            with suppress(Exception):  # the original exception takes precedence
                self._settle()
            with suppress(Exception):
                self._clean_up()
            raise
        self._clean_up()

    def _steps(self) -> Sequence[Step]:
        return self._parts.joined

    def _execute(self, steps: Sequence[Step]) -> None:
        for step in steps:
            for handle in step.waits:
                if handle.ready is not None:
                    self._wait(handle.ready)
            try:
                event = step.execute()
                if event is not None:
                    self._started(step, event)
            except Exception as error:
                if step.waiting:
                    self._settle()  # raises the same failure, with the place of the writer
                step.locate(error)
                raise

    def _wait(self, event: Event) -> None:
        try:
            event.wait()
        except Exception:
            self._settle()  # raises the same failure, with the place of the writer
            raise

    def _started(self, step: Step, event: Event) -> None:
        if not step.in_order:
            event.wait()
            return
        self._open.append((step, event))
        for handle in step.outputs:
            handle.ready = event

    def _settle(self) -> None:
        """Wait for all open events; then raise the first failure, if there is one."""
        failure: Exception | None = None
        for step, event in self._open:
            try:
                event.wait()
            except Exception as error:  # noqa: BLE001 - raised below, when no work uses our memory any more
                if failure is None:
                    step.locate(error)
                    failure = error
        for step, _ in self._open:
            for handle in step.outputs:
                handle.ready = None
        self._open.clear()
        if failure is not None:
            raise failure

    def _clean_up(self) -> None:
        faults = Faults()
        parts: Iterable[MemImportWorkload | InputPort | OutputPort] = (
            *self._parts.links,
            *self._parts.sources,
            *self._parts.results,
        )
        for part in parts:
            faults.during(part.end)
        faults.throw()


class _ProfiledRun(_Run):
    """A run that records when each step began and ended."""

    __slots__ = ("_events", "_number", "_profiler", "_waited_ns")

    def __init__(self, parts: Parts, profiler: Profiler) -> None:
        super().__init__(parts)
        self._profiler = profiler
        self._number = profiler.begin_run()
        self._events: list[WorkloadEvent] = []
        self._waited_ns = 0

    @override
    def run(self, arrays: Sequence[Array], buffers: Sequence[Array]) -> None:
        start = perf_counter_ns()
        try:
            super().run(arrays, buffers)
        except BaseException:
            with suppress(Exception):  # the original exception takes precedence
                self._collect(start)
            raise
        self._collect(start)

    @override
    def _steps(self) -> Sequence[Step]:
        return self._parts.steps

    def _collect(self, start: int) -> None:
        self._events.append(run_event(self._number, start, perf_counter_ns()))
        faults = Faults()
        for backend, context in self._parts.profiling.items():
            faults.during(self._take, backend, context)
        self._profiler.add(self._events)
        faults.throw()

    def _take(self, backend: BackendId, context: BackendProfilingContext) -> None:
        self._events += [backend_event(event, backend, self._number) for event in context.take_events()]

    @override
    def _execute(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._waited_ns = 0
            start = perf_counter_ns()
            before = len(self._open)
            super()._execute((step,))
            event = step_event(step, run_event(self._number, start, perf_counter_ns()), self._memory(step.crossing))
            waited = event.duration_ns if step.waiting else self._waited_ns
            self._events.append(replace(event, asynchronous=len(self._open) > before, wait_ns=waited))

    def _memory(self, crossing: Crossing | None) -> str:
        """Return the names of the allocators of the memory that a crossing's handles import."""
        if crossing is None or not crossing.memory:
            return ""
        known = self._parts.fallback.allocators
        return " and ".join(dict.fromkeys(known[name] for name in (crossing.tensor, crossing.layer) if name in known))

    @override
    def _wait(self, event: Event) -> None:
        start = perf_counter_ns()
        super()._wait(event)
        self._waited_ns += perf_counter_ns() - start


def _release(managers: Sequence[MemoryManager]) -> None:
    """Release the memory of all managers, the last one first, even if one of them fails."""
    faults = Faults()
    for manager in reversed(managers):
        faults.during(manager.release)
    faults.throw()
