# SPDX-License-Identifier: Apache-2.0
"""The process that runs one shared object for `ferrule.backends.dynamic.isolation`.

It reads pickled requests from a connection, each of which names a function and the number of its first argument, and
answers each with one message of MessagePack: the parent trusts the requests that it makes, but no answer. All objects
stay here. Tensors are copied.
"""

from __future__ import annotations

import itertools
import os
import pickle
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.dynamic.backend import DynamicBackend, backend_factory
from ferrule.backends.dynamic.library import Library
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.shared.host_memory import ALIGNMENT_BYTES, HostTensorHandle
from ferrule.backends.shared.host_memory.canaries import Fenced
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import MemoryManager, MemoryRef, MemorySource, TensorHandle, TensorHandleFactory
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import FerruleError
from ferrule.graph import Layer, Tensor, TensorInfo
from ferrule.operators.operator import Operands

PARENT_POLL_S = 1.0
BACKEND = 1
"""The number of the backend among the objects; 0 is none."""


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
class Part:
    """The backend's part of a loaded network: its memory and the factory of its workloads."""

    _backend: DynamicBackend
    _memory: MemoryManager
    _workloads: WorkloadFactory
    _acquired: bool = False

    def acquire(self) -> None:
        """Get the memory, before the first run."""
        if not self._acquired:
            self._memory.acquire()
            self._acquired = True

    def release(self) -> None:
        """Release the memory."""
        if self._acquired:
            self._memory.release()

    def prepared(
        self, layer: Layer, operands: Operands, constants: tuple[Tensor | None, ...], target: Target
    ) -> Prepared:
        """Prepare a layer."""
        read = [info if constant is None else None for info, constant in zip(operands.inputs, constants, strict=True)]
        fences: list[Fenced] = []
        handles = self._handles([info for info in (*read, *operands.outputs) if info is not None], fences)
        info = WorkloadInfo(
            layer=layer,
            operands=operands,
            inputs=tuple(None if each is None else handles[each.name] for each in read),
            constants=constants,
            outputs=tuple(handles[each.name] for each in operands.outputs),
            target=target,
        )
        return Prepared(self, self._workloads.create_workload(info), info, fences)

    def _handles(self, infos: Sequence[TensorInfo], fences: list[Fenced]) -> dict[str, TensorHandle]:
        """Return a handle for each tensor of one layer, of the backend's own kind if it has one."""
        own = self._backend.tensor_handle_factories(self._memory) if self._backend.has_own_handles else ()
        handles = {info.name: _handle(own, info, fences) for info in infos}
        for handle in handles.values():
            handle.manage()
        for handle in handles.values():
            handle.allocate()
        return handles


def part_of(backend: DynamicBackend, options: ModelOptions) -> Part:
    """Return the backend's part of a new network."""
    memory = backend.memory_manager(None)
    assert memory is not None
    workloads = backend.workload_factory(memory, options)
    assert workloads is not None
    return Part(backend, memory, workloads)


@dataclass
class Prepared:
    """A workload, and the handles that it reads and writes."""

    _part: Part
    _workload: Workload
    _info: WorkloadInfo
    _fences: Sequence[Fenced]
    """The memory of the handles that are in the host's."""

    def execute(self, inputs: Mapping[str, bytes]) -> list[bytes]:
        """Run the layer on the bytes of its inputs, and return those of its outputs."""
        self._part.acquire()
        handles = {handle.info.name: handle for handle in self._info.inputs if handle is not None}
        for name, data in inputs.items():
            write(handles[name], data)
        event = self._workload.execute()
        if event is not None:
            event.wait()
        damages = [damage for fence in self._fences if (damage := fence.damage())]
        written = [name for name, data in inputs.items() if read(handles[name]) != data]
        damages += [f"its input '{name}' was written" for name in written]
        if damages:
            raise BrokenBackendError(
                f"layer '{self._info.layer.name}': the backend wrote what is not its output: {'; '.join(damages)}",
                hint="a fault of the shared object; its results cannot be trusted",
            )
        return list(map(read, self._info.outputs))


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


def serve(connection: Connection, path: Path) -> None:
    """Load the shared object, and answer requests until the connection is closed."""
    objects: dict[int, Any] = {BACKEND: backend_factory(Library(path, alone=True))()}
    numbers = itertools.count(BACKEND + 1)

    def keep(made: object) -> int:
        if made is None:
            return 0
        number = next(numbers)
        objects[number] = made
        return number

    while True:
        try:
            request = pickle.loads(connection.recv_bytes())  # noqa: S301 from the parent
        except (EOFError, OSError):
            return
        function, number, arguments, keywords, makes, dropped = request
        for each in dropped:
            gone = objects.pop(each, None)
            if isinstance(gone, Part):
                gone.release()
        try:
            answer = function(objects[number], *arguments, **keywords)
            reply = Reply(value=msgspec.Raw(msgspec.msgpack.encode(keep(answer) if makes else answer)))
        except Exception as error:  # noqa: BLE001 it is raised in the parent
            reply = Reply(kind=type(error).__name__, message=str(error))
        connection.send_bytes(msgspec.msgpack.encode(reply))


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
