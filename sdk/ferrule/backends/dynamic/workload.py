# SPDX-License-Identifier: Apache-2.0
"""Workloads of a dynamic backend, which read and write tensors in place."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace

from ferrule._typing import override
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.handles import DynamicHandle, DynamicMemory
from ferrule.backends.dynamic.library import DynamicLibraryError, Tables
from ferrule.backends.dynamic.records import LayerRecord, OptionsRecord, TargetRecord, TensorRecord, workload_record
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
        self._options = OptionsRecord(options)

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        record = workload_record(info)
        target = TargetRecord(info.target)
        given = abi.WorkloadInfo(
            layer=ctypes.pointer(record.struct),
            device=target.struct.device,
            options=self._options.array,
            option_count=self._options.count,
            memory=None if self._memory is None else self._memory.pointer,
            target=ctypes.pointer(target.struct),
        )
        keep = (record, self._memory, self._options, info.constants)
        return DynamicWorkload(self._tables, given, record, info, keep)


class _HostTensor:
    """A tensor in host memory, and the record that points to it during a run."""

    __slots__ = ("_record", "_seen", "handle")

    def __init__(self, record: TensorRecord, handle: TensorHandle) -> None:
        self.handle = handle
        self._record = record
        self._seen: Callable[[], Array | None] = lambda: None
        """Weak reference to the array that the record points to; weak so that the memory is not kept alive."""

    def point(self) -> None:
        """Map the handle, and point the record to its memory."""
        array = self.handle.map()
        if array is not self._seen():
            if not array.flags.c_contiguous:
                self.handle.unmap()
                raise RuntimeError(f"the handle of tensor '{self._record.info.name}' has no dense memory")
            self._record.struct.data = address(array)
            self._seen = weakref.ref(array)


class DynamicWorkload:
    """A layer prepared by the backend."""

    def __init__(
        self, tables: Tables, given: ctypes.Structure, record: LayerRecord, info: WorkloadInfo, keep: object
    ) -> None:
        failed = {
            abi.ERR_UNSUPPORTED: (UnsupportedError, f"does not run layer '{info.layer.name}'"),
            abi.ERR_FAILED: (DynamicLibraryError, f"cannot prepare layer '{info.layer.name}'"),
        }
        self._pointer = tables.create(self, tables.workloads, given, keep=keep, failed=failed)
        self._tables = tables
        self._record = record
        self._name = info.layer.name
        pairs = [*zip(record.inputs, info.inputs, strict=True), *zip(record.outputs, info.outputs, strict=True)]
        self._own: list[DynamicHandle] = []
        self._host: list[_HostTensor] = []
        for tensor, handle in pairs:
            if tensor is None or handle is None:
                continue
            if isinstance(handle, DynamicHandle) and handle.tables.library is tables.library:
                tensor.struct.handle = handle.pointer
                self._own.append(handle)
            else:
                self._host.append(_HostTensor(tensor, handle))
        self._event = ctypes.c_void_p()

    def execute(self) -> Event | None:
        """Run the layer on the memory of its handles, without a copy."""
        for own in self._own:
            if own.ready is not None and not self._is_own(own.ready):
                own.ready.wait()
        mapped = self._map()
        self._event.value = None
        event = None if self._tables.events is None else self._event
        arrays = (self._record.input_array, self._record.output_array)
        status, reason = self._tables.workloads.execute(self._pointer, *arrays, event)
        if status == abi.OK and self._event.value is not None:
            return DynamicEvent(self, self._tables, self._event.value, self._name, mapped)
        _unmap(mapped)
        if status != abi.OK:
            raise DynamicLibraryError(f"layer '{self._name}' failed on backend '{self._tables.library.id}': {reason}")
        return None

    def _map(self) -> list[TensorHandle]:
        """Point the records to the current memory of the host tensors; return the mapped handles."""
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
        return isinstance(event, DynamicEvent) and event.library is self._tables.library


class DynamicEvent:
    """The completion of an asynchronous workload of the backend."""

    def __init__(
        self, workload: DynamicWorkload, tables: Tables, pointer: int, name: str, mapped: Sequence[TensorHandle]
    ) -> None:
        self.library = tables.library
        self._table = tables.events
        self._pointer = pointer
        self._name = name
        self._mapped = list(mapped)
        self._lock = threading.Lock()
        weakref.finalize(self, _release_event, self._table, pointer, (workload, tables, tuple(mapped)))

    def wait(self) -> None:
        """Wait until the workload has ended; DynamicLibraryError if it failed."""
        with self._lock:
            status, reason = self._table.wait(self._pointer)
            _unmap(self._mapped)
            self._mapped.clear()
        if status != abi.OK:
            raise DynamicLibraryError(f"layer '{self._name}' failed on backend '{self.library.id}': {reason}")

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
