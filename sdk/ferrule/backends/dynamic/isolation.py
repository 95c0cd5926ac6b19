# SPDX-License-Identifier: Apache-2.0
"""Dynamic backends in processes of their own: whatever the shared object does, this process gets an error.

The shared object is loaded by a child process only, with the classes that otherwise run it here. Tensors are in this
process's memory and are copied for each layer; so an isolated backend imports no memory, takes no allocators, and its
workloads have ended when they return.
"""

from __future__ import annotations

import math
import os
import pickle
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, get_type_hints

import msgspec

from ferrule._typing import override
from ferrule.backends.backend import LayerSupport, Support
from ferrule.backends.capability import ASYNC_EXECUTION, Capabilities
from ferrule.backends.context import (
    ISOLATED_TIMEOUT_S,
    BackendContext,
    BackendEvent,
    BackendProfilingContext,
    BackendUnavailableError,
    CreationOptions,
    CustomAllocator,
    NetworkId,
)
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.crash_note import current_note
from ferrule.backends.device import BackendId
from ferrule.backends.dynamic.backend import DynamicBackend
from ferrule.backends.dynamic.context import DynamicContext, DynamicProfiling, Notices
from ferrule.backends.dynamic.isolation_child import BACKEND, Part, Prepared, Reply, part_of, read, write
from ferrule.backends.dynamic.library import DynamicLibraryError
from ferrule.backends.optimization_views import (
    ModelOptions,
    OptimizationViews,
    untouched,
)
from ferrule.backends.shared.host_memory import HostMemoryBackend
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import MemoryManager, TensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.child_process import end, ending
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Graph, Layer, SubgraphView

_P = ParamSpec("_P")
_T = TypeVar("_T")
_HINT = "a fault of the shared object; leave the backend out of the preferences"
_SLOW_HINT = "a fault of the shared object, unless it needs longer: CreationOptions.isolated_timeout_s is the limit"
_END_S = 2.0
"""How long a process may take to end after its connection is closed, before it is killed."""
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from ferrule.backends.dynamic.isolation_child import main; main(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))"
)
_ERRORS: dict[str, type[FerruleError]] = {
    kind.__name__: kind for kind in (UnsupportedError, BackendUnavailableError, BrokenBackendError, DynamicLibraryError)
}


class HostProcess:
    """A child process that runs one shared object.

    It answers one question at a time, and has `answer_s` seconds for each.
    """

    def __init__(self, backend: str, path: Path, answer_s: float = ISOLATED_TIMEOUT_S) -> None:
        self._name = f"backend '{backend}' ({path})"
        self._answer_s = answer_s
        self._start_s = max(answer_s, ISOLATED_TIMEOUT_S)
        """The limit of the first answer, before which the process loads Python and the shared object."""
        own, other = socket.socketpair()
        with other:
            self._connection = Connection(own.detach())
            arguments = [msgspec.json.encode(sys.path).decode(), str(other.fileno()), str(path), str(os.getpid())]
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what the shared object prints must not get into a report
                pass_fds=(other.fileno(),),
                start_new_session=True,  # Ctrl-C is for this process alone
            )
        self._end = weakref.finalize(self, _end, self._process, self._connection)
        self._lock = threading.RLock()
        self._dropped: list[int] = []
        self._death = ""

    def ask(
        self, function: Callable[Concatenate[Any, _P], _T], number: int, *arguments: _P.args, **keywords: _P.kwargs
    ) -> _T:
        """Return the result of a function that the process calls with its object of that number and further arguments.

        Raises:
            BrokenBackendError: the process ended or did not answer in time, now or earlier, its answer is malformed, or
                it wrote outside the memory of its tensors.
            FerruleError: the function raised an exception; UnsupportedError and BackendUnavailableError keep their
                types.
        """
        data = self._answer(function, number, arguments, keywords)
        answer: _T = self._value(_result_type(function), function.__name__, data)
        return answer

    def make(
        self, function: Callable[Concatenate[Any, _P], object], number: int, *arguments: _P.args, **keywords: _P.kwargs
    ) -> int:
        """Return the number of what a function returns in the process, 0 for None; raises as `ask` does."""
        data = self._answer(function, number, arguments, keywords, makes=True)
        return self._value(int, function.__name__, data)

    def _answer(
        self,
        function: Callable[..., object],
        number: int,
        arguments: tuple[object, ...],
        keywords: Mapping[str, object],
        *,
        makes: bool = False,
    ) -> bytes:
        method = function.__name__
        with self._lock:
            if self._death:
                raise BrokenBackendError(f"{self._name} cannot answer: {self._death}", hint=_HINT)
            dropped, self._dropped = self._dropped, []
            request = pickle.dumps((function, number, arguments, keywords, makes, dropped))
            try:
                self._connection.send_bytes(request)
                limit, self._start_s = self._start_s or self._answer_s, 0.0
                in_time = self._connection.poll(None if limit == math.inf else limit)
                data = self._connection.recv_bytes() if in_time else None
            except (EOFError, OSError):
                self._end()
                self._death = f"its process ended by {ending(self._process.returncode)} in {_question(method)}"
                raise BrokenBackendError(f"{self._name} failed: {self._death}", hint=_HINT) from None
            except BaseException:
                self._death = f"it was interrupted in {_question(method)}"  # a later answer would be that to this one
                self._end()
                raise
            if data is None:
                self._process.kill()
                self._end()
                self._death = f"it did not answer {_question(method)} within {limit:g} s"
                raise BrokenBackendError(f"{self._name} failed: {self._death}", hint=_SLOW_HINT)
        return data

    def drop_later(self, number: int) -> None:
        """Let the process forget an object, at the latest with the next question."""
        self._dropped.append(number)

    def _value(self, kind: type[_T], method: str, data: bytes) -> _T:
        try:
            reply = msgspec.msgpack.decode(data, type=Reply)
            if not reply.kind:
                return msgspec.msgpack.decode(reply.value, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BrokenBackendError(f"{self._name} returned a malformed answer from {method}: {error}") from error
        if reply.kind in _ERRORS:
            raise _ERRORS[reply.kind](reply.message)
        raise DynamicLibraryError(f"{self._name} failed in {method}: {reply.kind}: {reply.message}")


@cache
def _result_type(function: Callable[..., object]) -> Any:  # noqa: ANN401 a type for msgspec
    """Return the type that a function's annotation states for its result; each execution asks for it."""
    return get_type_hints(function)["return"]


def _question(method: str) -> str:
    return f"{method}(), for {current_note()}" if current_note() else f"{method}()"


def _end(process: subprocess.Popen[bytes], connection: Connection) -> None:
    connection.close()
    end(process, _END_S)


class _Remote:
    """An object in the process, which is dropped together with this one."""

    def __init__(self, process: HostProcess, number: int) -> None:
        self._process = process
        self._number = number
        weakref.finalize(self, process.drop_later, number)


class IsolatedBackend(HostMemoryBackend):
    """A shared object in a process of its own; each has a subclass with its id, see `isolated_factory`."""

    def __init__(self, process: HostProcess) -> None:
        self._process = process
        self._runs = process.ask(DynamicBackend.has_host_face, BACKEND)

    @override
    def layer_support(self) -> LayerSupport:
        return self

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether the backend supports the layer; only the layer and its tensors are sent."""
        part = SubgraphView.of(graph, [layer.name]).to_graph()
        return self._process.ask(DynamicBackend.supports, BACKEND, part, layer, target)

    @override
    def capabilities(self) -> Capabilities:
        found = self._process.ask(DynamicBackend.capabilities, BACKEND)
        return {name: value for name, value in found.items() if name != ASYNC_EXECUTION}

    @override
    def model_options(self) -> None:
        """Accept any options: the C interface has no table that declares options."""

    @override
    def optimize_subgraph(self, view: SubgraphView, target: Target) -> OptimizationViews:
        if not view.names:
            return untouched(view)
        part = SubgraphView.of(view.to_graph(), view.names)
        return self._process.ask(DynamicBackend.optimized, BACKEND, part, target).views(view)

    @override
    def use_custom_memory_allocator(self, allocator: CustomAllocator) -> str:
        return f"{self.id} runs in a process of its own, where custom allocators have no memory"

    @override
    def profiling_context(self, options: CreationOptions) -> BackendProfilingContext | None:
        number = self._process.make(DynamicBackend.profiling_context, BACKEND, _portable(options))
        return _Profiling(self._process, number) if number else None

    @override
    def has_host_face(self) -> bool:
        return self._runs

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory | None:
        return _Workloads(self._process, self._process.make(part_of, BACKEND, dict(options))) if self._runs else None

    @override
    def context(self, options: CreationOptions) -> BackendContext | None:
        number = self._process.make(DynamicBackend.context, BACKEND, _portable(options))
        return _Context(self._process, number) if number else None


def isolated_factory(backend: str, path: Path, answer_s: float = ISOLATED_TIMEOUT_S) -> Callable[[], IsolatedBackend]:
    """Return a factory of backend objects that share one process, which starts with the first of them.

    The process has `answer_s` seconds for each answer.
    """
    lock = threading.Lock()
    processes: list[HostProcess] = []

    kind: type[IsolatedBackend] = type("LibraryBackend", (IsolatedBackend,), {"id": BackendId(backend)})

    def make() -> IsolatedBackend:
        with lock:
            if not processes:
                processes.append(HostProcess(backend, path, answer_s))
        return kind(processes[0])

    return make


def _portable(options: CreationOptions) -> CreationOptions:
    """Return the options without what cannot be sent to another process."""
    return replace(options, custom_allocators={})


class _Workloads(_Remote, WorkloadFactory):
    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        arguments = (info.layer, info.operands, info.constants, info.target)
        return _Workload(self, self._process, self._process.make(Part.prepared, self._number, *arguments), info)


class _Workload(_Remote):
    def __init__(self, factory: _Workloads, process: HostProcess, number: int, info: WorkloadInfo) -> None:
        super().__init__(process, number)
        self._factory = factory
        self._inputs: Mapping[str, TensorHandle] = {handle.info.name: handle for handle in info.inputs if handle}
        self._outputs = info.outputs
        self._name = info.layer.name

    def execute(self) -> None:
        """Run the layer in the process, on copies."""
        inputs = {name: read(handle) for name, handle in self._inputs.items()}
        outputs = self._process.ask(Prepared.execute, self._number, inputs)
        sizes = [handle.info.size_bytes for handle in self._outputs]
        if [len(data) for data in outputs] != sizes:
            raise BrokenBackendError(
                f"layer '{self._name}' returned {[len(data) for data in outputs]} bytes, expected {sizes}", hint=_HINT
            )
        for handle, data in zip(self._outputs, outputs, strict=True):
            write(handle, data)


class _Context(_Remote, Notices):
    @override
    def notice(self, moment: str, network: NetworkId) -> bool:
        return self._process.ask(DynamicContext.notice, self._number, moment, network)


class _Profiling(_Remote):
    def enable_profiling(self, *, enabled: bool) -> bool:
        """Switch profiling on or off; return whether it is now in the requested state."""
        return self._process.ask(DynamicProfiling.enable_profiling, self._number, enabled=enabled)

    def take_events(self) -> list[BackendEvent]:
        """Return the events recorded since the last call."""
        return self._process.ask(DynamicProfiling.take_events, self._number)
