# SPDX-License-Identifier: Apache-2.0
"""The process that runs one shared object for `ferrule.backends.dynamic.isolation`.

It reads pickled requests from a connection, and answers each with one message of MessagePack: the parent trusts the
requests that it makes, but no answer. All objects stay here; requests name them by number. Tensors are copied.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ferrule.backends.context import BackendEvent, CreationOptions, NetworkId
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.dynamic.answers import OptimizedPart
from ferrule.backends.dynamic.backend import DynamicBackend, backend_factory
from ferrule.backends.dynamic.library import Library
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.shared.host_memory import ALIGNMENT_BYTES, HostTensorHandle
from ferrule.backends.shared.host_memory.canaries import Fenced
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import MemoryManager, MemoryRef, MemorySource, TensorHandle, TensorHandleFactory
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import FerruleError
from ferrule.graph import Graph, Layer, SubgraphView, Tensor, TensorInfo
from ferrule.operators.operator import Operands

PARENT_POLL_S = 1.0


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request: a value, or the type and message of an exception."""

    value: msgspec.Raw = msgspec.Raw(b"\xc0")
    kind: str = ""
    message: str = ""


def read(handle: TensorHandle) -> bytes:
    """Return the bytes of a tensor."""
    data = handle.map().tobytes()
    handle.unmap()
    return data


def write(handle: TensorHandle, data: bytes) -> None:
    """Write the bytes of a tensor."""
    array = handle.map()
    array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)
    handle.unmap()


@dataclass
class _Network:
    """The part of a loaded network: its memory and the factory of its workloads."""

    memory: MemoryManager
    workloads: WorkloadFactory
    acquired: bool = False

    def acquire(self) -> None:
        if not self.acquired:
            self.memory.acquire()
            self.acquired = True


@dataclass
class _Prepared:
    """A workload, and the handles that it reads and writes, by tensor."""

    network: _Network
    workload: Workload
    inputs: Mapping[str, TensorHandle]
    outputs: Sequence[TensorHandle]
    fences: Sequence[Fenced]
    """The memory of those that are in the host's."""
    name: str
    """The layer."""

    def check(self, inputs: Mapping[str, bytes]) -> None:
        """Raise BrokenBackendError if the backend has written an input, or outside the memory of a tensor."""
        damages = [damage for fence in self.fences if (damage := fence.damage())]
        written = [name for name, data in inputs.items() if read(self.inputs[name]) != data]
        damages += [f"its input '{name}' was written" for name in written]
        if damages:
            raise BrokenBackendError(
                f"layer '{self.name}': the backend wrote what is not its output: {'; '.join(damages)}",
                hint="a fault of the shared object; its results cannot be trusted",
            )


def _handle(factories: Sequence[TensorHandleFactory], info: TensorInfo, fences: list[Fenced]) -> TensorHandle:
    """Return a handle that shows its bytes: one that maps, or one with imported memory, whose fences are added.

    Without factories, the handle is the host's, with such memory.
    """
    if not factories:
        host = HostTensorHandle(info, managed=False)
        fences.append(Fenced(info, ALIGNMENT_BYTES))
        host.import_memory(MemoryRef.of_array(fences[-1].array))
        return host
    for factory in factories:
        if factory.supports_map_unmap:
            return factory.create_handle(info, managed=True)
    for factory in factories:
        alignment = max(factory.memory_alignment(MemorySource.MALLOC), ALIGNMENT_BYTES)
        handle, fenced = factory.create_handle(info, managed=False), Fenced(info, alignment)
        if handle.import_memory(MemoryRef.of_array(fenced.array)):
            fences.append(fenced)
            return handle
    raise FerruleError(
        f"tensor '{info.name}' has no memory in a process of its own: handles of "
        f"{', '.join(repr(str(factory.id)) for factory in factories)} can neither be mapped nor import memory"
    )


@dataclass
class Server:
    """Answers requests; each public method is one, and its arguments are those of the request."""

    backend: DynamicBackend
    _objects: dict[int, Any] = field(default_factory=dict)
    _next: int = 1

    def drop(self, numbers: Sequence[int]) -> None:
        """Forget objects."""
        for number in numbers:
            gone = self._objects.pop(number, None)
            if isinstance(gone, _Network) and gone.acquired:
                gone.memory.release()

    def start(self) -> bool:
        """Return whether the backend runs layers."""
        return self.backend.has_host_face()

    def capabilities(self) -> dict[str, bool | int | float | str]:
        """Return the capabilities."""
        return dict(self.backend.capabilities())

    def supports(self, graph: Graph, layer: Layer, target: Target) -> str:
        """Return the reason why the backend does not support a layer; "" if it does."""
        return self.backend.layer_support().supports(graph, layer, target).reason

    def optimize(self, graph: Graph, target: Target) -> OptimizedPart:
        """Return the backend's answer to a subgraph, which is the whole of the given graph."""
        return self.backend.optimized(SubgraphView.of(graph, [layer.name for layer in graph.layers]), target)

    def network(self, options: ModelOptions) -> int:
        """Make the backend's part of a network."""
        memory = self.backend.memory_manager(None)
        assert memory is not None
        workloads = self.backend.workload_factory(memory, options)
        assert workloads is not None
        return self._keep(_Network(memory, workloads))

    def workload(
        self, number: int, layer: Layer, operands: Operands, constants: tuple[Tensor | None, ...], target: Target
    ) -> int:
        """Prepare a layer."""
        network: _Network = self._objects[number]
        read = [info if constant is None else None for info, constant in zip(operands.inputs, constants, strict=True)]
        fences: list[Fenced] = []
        handles = self._handles(network, [info for info in (*read, *operands.outputs) if info is not None], fences)
        outputs = tuple(handles[info.name] for info in operands.outputs)
        info = WorkloadInfo(
            layer=layer,
            operands=operands,
            inputs=tuple(None if each is None else handles[each.name] for each in read),
            constants=constants,
            outputs=outputs,
            target=target,
        )
        workload = network.workloads.create_workload(info)
        inputs = {each.name: handles[each.name] for each in read if each is not None}
        return self._keep(_Prepared(network, workload, inputs, outputs, fences, layer.name))

    def execute(self, number: int, inputs: Mapping[str, bytes]) -> list[bytes]:
        """Run a layer on the bytes of its inputs, and return those of its outputs."""
        prepared: _Prepared = self._objects[number]
        prepared.network.acquire()
        for name, data in inputs.items():
            write(prepared.inputs[name], data)
        event = prepared.workload.execute()
        if event is not None:
            event.wait()
        prepared.check(inputs)
        return list(map(read, prepared.outputs))

    def context(self, options: CreationOptions) -> int:
        """Make the context of a runtime; 0 if the backend has none."""
        return self._keep(self.backend.context(options))

    def notice(self, number: int, moment: str, network: NetworkId) -> bool:
        """Notify a context."""
        return bool(getattr(self._objects[number], moment)(network))

    def profiling(self, options: CreationOptions) -> int:
        """Make the profiling of a runtime; 0 if the backend has none."""
        return self._keep(self.backend.profiling_context(options))

    def enable(self, number: int, enabled: bool) -> bool:
        """Switch profiling on or off."""
        return bool(self._objects[number].enable_profiling(enabled=enabled))

    def events(self, number: int) -> list[BackendEvent]:
        """Return the events since the last call."""
        events: list[BackendEvent] = self._objects[number].take_events()
        return events

    def _handles(self, network: _Network, infos: Sequence[TensorInfo], fences: list[Fenced]) -> dict[str, TensorHandle]:
        """Return a handle for each tensor of one layer, of the backend's own kind if it has one."""
        own = self.backend.tensor_handle_factories(network.memory) if self.backend.has_own_handles else ()
        handles = {info.name: _handle(own, info, fences) for info in infos}
        for handle in handles.values():
            handle.manage()
        for handle in handles.values():
            handle.allocate()
        return handles

    def _keep(self, made: object) -> int:
        if made is None:
            return 0
        number, self._next = self._next, self._next + 1
        self._objects[number] = made
        return number


def serve(connection: Connection, path: Path) -> None:
    """Load the shared object, and answer requests until the connection is closed."""
    server = Server(backend_factory(Library(path, alone=True))())
    while True:
        try:
            method, arguments, dropped = pickle.loads(connection.recv_bytes())  # noqa: S301 from the parent
        except (EOFError, OSError):
            return
        server.drop(dropped)
        connection.send_bytes(msgspec.msgpack.encode(_answer(getattr(server, method), arguments)))


def _answer(method: Callable[..., object], arguments: tuple[object, ...]) -> Reply:
    try:
        return Reply(value=msgspec.Raw(msgspec.msgpack.encode(method(*arguments))))
    except Exception as error:  # noqa: BLE001 it is raised in the parent
        return Reply(kind=type(error).__name__, message=str(error))


def end_with_parent(parent: int) -> None:
    """End this process soon after its parent has ended, even while the shared object runs."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(descriptor: int, path: str, parent: int) -> None:
    """Serve one shared object."""
    end_with_parent(parent)
    serve(Connection(descriptor), Path(path))
