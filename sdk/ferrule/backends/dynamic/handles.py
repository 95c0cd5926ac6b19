# SPDX-License-Identifier: Apache-2.0
"""Memory managers, handle factories and handles of a dynamic backend."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from ferrule._typing import override
from ferrule.backends.context import CustomAllocator
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.library import DynamicLibraryError, Tables
from ferrule.backends.dynamic.records import bare_layer, tensor_struct
from ferrule.backends.shared.host_memory import HostMemoryManager, address
from ferrule.backends.tensor_handle import (
    FactoryId,
    HandleCapability,
    MemoryManager,
    MemoryRef,
    MemorySource,
    TensorHandle,
    TensorHandleFactory,
)
from ferrule.graph import Array, Layer, Tensor, TensorInfo

_ALL_SOURCES = (~MemorySource.UNDEFINED).value
_NO_MEMORY = "has no memory for the network"


class AllocatorRecord:
    """A struct ferrule_allocator that wraps the application's allocator."""

    def __init__(self, allocator: CustomAllocator) -> None:
        self._allocator = allocator
        self._given: dict[int, MemoryRef] = {}
        callbacks = abi.calling(abi.Allocator, self._allocate, self._release)
        self.struct = abi.Allocator(None, allocator.source.value, *callbacks)

    def _allocate(self, host: int | None, size_bytes: int, alignment_bytes: int) -> int | None:
        del host
        try:
            memory = self._allocator.allocate(size_bytes, alignment_bytes)
        except MemoryError:
            return None
        if memory.address is None:  # the interface has no other name for memory
            self._allocator.free(memory)
            return None
        where = memory.address + memory.offset
        self._given[where] = memory
        return where

    def _release(self, host: int | None, memory: int | None) -> None:
        del host
        given = self._given.pop(memory or 0, None)
        if given is not None:
            self._allocator.free(given)


class DynamicMemory(MemoryManager):
    """The memory of one network: the backend's own, and host memory for the tensors that live there."""

    def __init__(self, tables: Tables, allocator: CustomAllocator | None) -> None:
        self._tables = tables
        self.pointer: int | None = None
        """The backend's manager; None if it manages no memory."""
        self.host = HostMemoryManager(allocator if tables.memory is None else None)
        if tables.memory is not None:
            record = None if allocator is None else AllocatorRecord(allocator)
            failed = {abi.ERR_FAILED: (DynamicLibraryError, _NO_MEMORY)}
            struct = None if record is None else record.struct
            self.pointer = tables.create(self, tables.memory, struct, keep=record, failed=failed)

    @override
    def acquire(self) -> None:
        self.host.acquire()
        if self._tables.memory is not None:
            status, reason = self._tables.memory.acquire(self.pointer)
            if status != abi.OK:
                raise DynamicLibraryError(f"backend '{self._tables.library.id}' {_NO_MEMORY}: {reason}")

    @override
    def release(self) -> None:
        self.host.release()
        if self._tables.memory is not None:
            self._tables.memory.release(self.pointer)


class DynamicHandleFactory(TensorHandleFactory):
    """A handle factory of the backend."""

    def __init__(self, tables: Tables, table: SimpleNamespace, memory: DynamicMemory | None) -> None:
        self.tables = tables
        self.table = table
        self.memory = memory
        self.id = FactoryId(table.id.decode())
        self.import_flags = MemorySource(table.import_flags & _ALL_SOURCES)
        self.export_flags = MemorySource(table.export_flags & _ALL_SOURCES)
        self.supports_map_unmap = bool(table.supports_map)

    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> DynamicHandle:
        return DynamicHandle(self, info, managed=managed)

    @override
    def memory_alignment(self, source: MemorySource) -> int:
        table = self.table
        alignment = table.alignment_bytes
        if table.memory_alignment:
            alignment = table.memory_alignment(self.tables.address, source.value)
        return max(int(alignment), 1)

    @override
    def capabilities(self, layer: Layer | None = None, connected: Layer | None = None) -> frozenset[HandleCapability]:
        flags = self.table.capabilities
        if self.table.connection_capabilities and not (layer is None and connected is None):
            structs = [None if each is None else bare_layer(each) for each in (layer, connected)]
            flags = self.table.connection_capabilities(self.tables.address, *structs)
        return frozenset(kind for kind in HandleCapability if flags & kind.value)


class DynamicHandle(TensorHandle):
    """A tensor whose bytes the backend owns."""

    def __init__(self, factory: DynamicHandleFactory, info: TensorInfo, *, managed: bool) -> None:
        super().__init__(info)
        self.tables = factory.tables
        self._table = factory.table
        self._imported: MemoryRef | None = None
        self._view: tuple[int, Array] | None = None
        memory, tensor = factory.memory, tensor_struct(Tensor(info))
        failed = {abi.ERR_FAILED: (DynamicLibraryError, f"made no handle for tensor '{info.name}'")}
        own = None if memory is None else memory.pointer
        self.pointer = self.tables.create(self, self._table, own, tensor, managed, keep=memory, failed=failed)
        """The backend's handle."""

    @override
    def manage(self) -> None:
        if self._table.manage:
            self._table.manage(self.pointer)

    @override
    def allocate(self) -> None:
        if self._table.allocate:
            self._table.allocate(self.pointer)

    @override
    def map(self) -> Array:
        if self.ready is not None:
            self.ready.wait()
        if not self._table.map:
            if self._imported is None or self._imported.array is None:
                raise RuntimeError(f"handles of '{self._table.id.decode()}' cannot be mapped")
            return self._imported.array
        data = ctypes.c_void_p()
        status, reason = self._table.map(self.pointer, data)
        if status != abi.OK or data.value is None:
            raise RuntimeError(
                f"backend '{self.tables.library.id}' cannot show tensor '{self.info.name}': {reason or 'status 0'}"
            )
        if self._view is None or self._view[0] != data.value:
            memory = (ctypes.c_uint8 * self.info.size_bytes).from_address(data.value)
            array = np.ctypeslib.as_array(memory).view(self.info.dtype.numpy).reshape(self.info.shape)
            self._view = (data.value, array)
        return self._view[1]

    @override
    def unmap(self) -> None:
        if self._table.unmap:
            self._table.unmap(self.pointer)

    @override
    def can_import(self, memory: MemoryRef) -> bool:
        return self._import(memory, try_only=True)

    @override
    def import_memory(self, memory: MemoryRef) -> bool:
        if not self._import(memory, try_only=False):
            return False
        self._imported = memory
        return True

    @override
    def end_import(self) -> None:
        if self._imported is not None:
            if self._table.import_ref:
                self._table.import_ref(self.pointer, None, False)
            else:
                self._table.import_memory(self.pointer, None, MemorySource.MALLOC.value, False)
            self._imported = None

    def _import(self, memory: MemoryRef, *, try_only: bool) -> bool:
        array, table = memory.array, self._table
        if memory.size_bytes != self.info.size_bytes or not (table.import_ref or table.import_memory):
            return False
        if array is not None and (
            (array.dtype, array.shape) != (self.info.dtype.numpy, self.info.shape) or not array.flags.c_contiguous
        ):
            return False
        if table.import_ref:
            return bool(table.import_ref(self.pointer, _memory_record(memory), try_only))
        if array is None or memory.access is not None:  # version 1.1 has no field for accesses to be bracketed
            return False
        kind = MemorySource.MALLOC if MemorySource.MALLOC in memory.source else memory.source
        return bool(table.import_memory(self.pointer, address(array), kind.value, try_only))


def _memory_record(memory: MemoryRef) -> Any:  # noqa: ANN401 - a struct of the header
    """Return the struct ferrule_memory_ref of a region; its block is the region itself if it is no part of one."""
    block = memory.block or memory
    return abi.MemoryRef(
        source=memory.source.value,
        address=memory.address,
        fd=-1 if memory.fd is None else memory.fd,
        offset=memory.offset,
        bytes=memory.size_bytes,
        block_bytes=block.offset + block.size_bytes,
    )
