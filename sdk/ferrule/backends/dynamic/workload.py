# SPDX-License-Identifier: Apache-2.0
"""Workloads of a dynamic backend, which read and write tensors in place."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from ferrule._typing import override
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.handles import DynamicHandle, DynamicMemory
from ferrule.backends.dynamic.library import DynamicLibraryError, Tables
from ferrule.backends.dynamic.records import options_array, target_struct, workload_struct
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.shared.host_memory import address
from ferrule.backends.tensor_handle import Event, TensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Array


class DynamicWorkloadFactory(WorkloadFactory):
    """Creates the workloads of one loaded network."""

    def __init__(self, tables: Tables, memory: DynamicMemory | None, options: ModelOptions) -> None:
        self._tables = tables
        self._memory = memory
        self._options = options_array(options)

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        layer, target = workload_struct(info), target_struct(info.target)
        given = abi.WorkloadInfo(
            layer=ctypes.pointer(layer),
            device=target.device,
            options=self._options,
            option_count=len(self._options),
            memory=None if self._memory is None else self._memory.pointer,
            target=ctypes.pointer(target),
        )
        return DynamicWorkload(self._tables, given, info, (given, self._memory, info.constants))


@dataclass(slots=True, eq=False)
class _HostTensor:
    """A tensor in host memory, and the struct that points to it during a run."""

    _struct: Any
    handle: TensorHandle
    _seen: Callable[[], Array | None] = lambda: None
    """Weak reference to the array that the struct points to; weak so that the memory is not kept alive."""

    def point(self) -> None:
        """Map the handle, and point the struct to its memory."""
        array = self.handle.map()
        if array is not self._seen():
            if not array.flags.c_contiguous:
                self.handle.unmap()
                raise RuntimeError(f"the handle of tensor '{self.handle.info.name}' has no dense memory")
            self._struct.data = address(array)
            self._seen = weakref.ref(array)


class DynamicWorkload:
    """A layer prepared by the backend."""

    def __init__(self, tables: Tables, given: Any, info: WorkloadInfo, keep: object) -> None:  # noqa: ANN401 - a struct of the header
        failed = {
            abi.ERR_UNSUPPORTED: (UnsupportedError, f"does not run layer '{info.layer.name}'"),
            abi.ERR_FAILED: (DynamicLibraryError, f"cannot prepare layer '{info.layer.name}'"),
        }
        self._pointer = tables.create(self, tables.workloads, given, keep=keep, failed=failed)
        self.tables = tables
        layer = given.layer.contents
        self._arrays = layer.inputs, layer.outputs
        self.name = info.layer.name
        pointers = (*layer.inputs[: layer.input_count], *layer.outputs[: layer.output_count])
        self._own: list[DynamicHandle] = []
        self._host: list[_HostTensor] = []
        for pointer, handle in zip(pointers, (*info.inputs, *info.outputs), strict=True):
            if isinstance(handle, DynamicHandle) and handle.tables.library is tables.library:
                pointer.contents.handle = handle.pointer
                self._own.append(handle)
            elif handle is not None:
                self._host.append(_HostTensor(pointer.contents, handle))
        self._event = ctypes.c_void_p()

    def execute(self) -> Event | None:
        """Run the layer on the memory of its handles, without a copy."""
        for own in self._own:
            if own.ready is not None and not self._is_own(own.ready):
                own.ready.wait()
        mapped = self._map()
        self._event.value = None
        event = None if self.tables.events is None else self._event
        status, reason = self.tables.workloads.execute(self._pointer, *self._arrays, event)
        if status == abi.OK and self._event.value is not None:
            return DynamicEvent(self, self._event.value, mapped)
        _unmap(mapped)
        self.check(status, reason)
        return None

    def check(self, status: int, reason: str) -> None:
        """Raise DynamicLibraryError if the layer failed."""
        if status != abi.OK:
            raise DynamicLibraryError(f"layer '{self.name}' failed on backend '{self.tables.library.id}': {reason}")

    def _map(self) -> list[TensorHandle]:
        """Point the structs to the current memory of the host tensors; return the mapped handles."""
        mapped: list[TensorHandle] = []
        try:
            for tensor in self._host:
                tensor.point()
                mapped.append(tensor.handle)
        except BaseException:
            _unmap(mapped)
            raise
        return mapped

    def _is_own(self, event: Event) -> bool:
        return isinstance(event, DynamicEvent) and event.library is self.tables.library


class DynamicEvent:
    """The completion of an asynchronous workload of the backend."""

    def __init__(self, workload: DynamicWorkload, pointer: int, mapped: Sequence[TensorHandle]) -> None:
        self.library = workload.tables.library
        self._table = workload.tables.events
        self._workload = workload
        self._pointer = pointer
        self._mapped = list(mapped)
        self._lock = threading.Lock()
        weakref.finalize(self, _release_event, self._table, pointer, (workload, tuple(mapped)))

    def wait(self) -> None:
        """Wait until the workload has ended; DynamicLibraryError if it failed."""
        with self._lock:
            status, reason = self._table.wait(self._pointer)
            _unmap(self._mapped)
            self._mapped.clear()
        self._workload.check(status, reason)

    def done(self) -> bool:
        """Return whether the workload has ended."""
        return bool(self._table.done(self._pointer))


def _unmap(handles: Iterable[TensorHandle]) -> None:
    for handle in handles:
        handle.unmap()


def _release_event(table: SimpleNamespace, pointer: int, keep: object) -> None:
    """Wait for the event, so that no freed memory is written to, and release it."""
    del keep
    table.wait(pointer)
    table.release(pointer)
