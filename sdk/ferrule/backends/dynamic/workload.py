# SPDX-License-Identifier: Apache-2.0
"""Workloads of a dynamic backend, which read and write tensors in place."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence

from ferrule._typing import override
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.handles import DynamicHandle, DynamicMemory
from ferrule.backends.dynamic.library import DynamicLibraryError, ReasonBuffer, Tables
from ferrule.backends.dynamic.records import LayerRecord, OptionsRecord, TargetRecord, TensorRecord, workload_record
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.shared.host_memory import address
from ferrule.backends.tensor_handle import Event, TensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Array


class DynamicWorkloadFactory(WorkloadFactory):
    """Creates the workloads of one loaded network."""

    def __init__(
        self, tables: Tables, table: abi.WorkloadsTable, memory: DynamicMemory | None, options: ModelOptions
    ) -> None:
        self._tables = tables
        self._table = table
        self._memory = memory
        self._options = OptionsRecord(options)

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        record = workload_record(
            info.layer,
            info.operands.inputs,
            info.constants,
            info.operands.outputs,
        )
        target = TargetRecord(info.target)
        given = abi.WorkloadInfoStruct(
            layer=ctypes.pointer(record.struct),
            device=target.struct.device,
            options=self._options.array,
            option_count=self._options.count,
            memory=None if self._memory is None else self._memory.pointer,
            target=ctypes.pointer(target.struct),
        )
        made, reason = ctypes.c_void_p(), ReasonBuffer()
        status = self._table.create(
            self._tables.address, ctypes.byref(given), ctypes.byref(made), reason.address, reason.size_bytes
        )
        if status == abi.ERR_UNSUPPORTED:
            raise UnsupportedError(
                f"backend '{self._tables.library.id}' does not run layer '{info.layer.name}': {reason.take(status)}"
            )
        if status != abi.OK:
            raise DynamicLibraryError(
                f"backend '{self._tables.library.id}' cannot prepare layer '{info.layer.name}': {reason.take(status)}"
            )
        keep = (record, self._memory, self._options, info.constants)
        return DynamicWorkload(self._tables, self._table, made.value, record, info, keep)


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
        self,
        tables: Tables,
        table: abi.WorkloadsTable,
        pointer: int | None,
        record: LayerRecord,
        info: WorkloadInfo,
        keep: object,
    ) -> None:
        self._tables = tables
        self._execute = table.execute
        self._pointer = pointer
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
        self._reason = ReasonBuffer()
        self._event = ctypes.c_void_p()
        self._events = tables.events
        self._event_pointer = None if tables.events is None else ctypes.byref(self._event)
        weakref.finalize(self, _destroy, table.destroy, pointer, (tables, keep))

    def execute(self) -> Event | None:
        """Run the layer on the memory of its handles, without a copy."""
        for own in self._own:
            if own.ready is not None and not self._is_own(own.ready):
                own.ready.wait()
        mapped = self._map()
        self._event.value = None
        status = self._execute(
            self._pointer,
            self._record.input_array,
            self._record.output_array,
            self._event_pointer,
            self._reason.address,
            self._reason.size_bytes,
        )
        if status == abi.OK and self._events is not None and self._event.value is not None:
            return DynamicEvent(self, self._tables, self._events, self._event.value, self._name, mapped)
        _unmap(mapped)
        if status != abi.OK:
            raise DynamicLibraryError(
                f"layer '{self._name}' failed on backend '{self._tables.library.id}': {self._reason.take(status)}"
            )
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
        self,
        workload: DynamicWorkload,
        tables: Tables,
        table: abi.EventsTable,
        pointer: int,
        name: str,
        mapped: Sequence[TensorHandle],
    ) -> None:
        self._workload = workload
        self.library = tables.library
        self._table = table
        self._pointer = pointer
        self._name = name
        self._mapped = list(mapped)
        self._lock = threading.Lock()
        weakref.finalize(self, _release_event, table, pointer, (workload, tables, tuple(mapped)))

    def wait(self) -> None:
        """Wait until the workload has ended; DynamicLibraryError if it failed."""
        with self._lock:
            reason = ReasonBuffer()
            status = self._table.wait(self._pointer, reason.address, reason.size_bytes)
            self._finish()
        if status != abi.OK:
            raise DynamicLibraryError(
                f"layer '{self._name}' failed on backend '{self.library.id}': {reason.take(status)}"
            )

    def done(self) -> bool:
        """Return whether the workload has ended."""
        return bool(self._table.done(self._pointer))

    def _finish(self) -> None:
        _unmap(self._mapped)
        self._mapped.clear()


def _unmap(handles: Iterable[TensorHandle]) -> None:
    for handle in handles:
        handle.unmap()


def _release_event(table: abi.EventsTable, pointer: int, keep: object) -> None:
    """Wait for the event, so that no freed memory is written to, and release it."""
    del keep
    reason = ReasonBuffer()
    table.wait(pointer, reason.address, reason.size_bytes)
    table.release(pointer)


def _destroy(function: object, pointer: int | None, keep: object) -> None:
    """Destroy an object of the backend; `keep` holds references that must outlive it."""
    del keep
    assert callable(function)
    function(pointer)
