# SPDX-License-Identifier: Apache-2.0
"""Tensors in host memory: handles (managed, imported, misaligned), managers, transfers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_backends import CountingAllocator

from ferrule._typing import override
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.shared.host_memory import (
    ALIGNMENT_BYTES,
    FutureEvent,
    HostMemoryBackend,
    HostMemoryManager,
    HostTensorHandle,
    HostTensorHandleFactory,
    MemCopyWorkload,
    MemImportWorkload,
    TensorImportError,
    address,
    aligned_empty,
    is_aligned,
)
from ferrule.backends.tensor_handle import HandleCapability, MemoryRef, MemorySource
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, TensorInfo


def info(name: str = "t", shape: tuple[int, ...] = (2, 3), dtype: DataType = DataType.FLOAT32) -> TensorInfo:
    return TensorInfo(name, shape, dtype)


def misaligned(shape: tuple[int, ...], dtype: str = "float32") -> Array:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return aligned_empty((size + 1,), DataType.UINT8)[1:].view(dtype).reshape(shape)


@pytest.mark.parametrize("alignment", [1, 8, 64, 4096])
def test_aligned_arrays_are_aligned(alignment: int) -> None:
    for shape in ((), (1,), (3, 5)):
        array = aligned_empty(shape, DataType.INT16, alignment)
        assert array.shape == shape
        assert is_aligned(array, alignment)
        assert array.flags.c_contiguous


def test_a_handle_without_manager_owns_aligned_memory() -> None:
    handle = HostTensorHandleFactory().create_handle(info(), managed=True)
    array = handle.map()
    assert array.shape == (2, 3)
    assert array.dtype == np.float32
    assert is_aligned(array, ALIGNMENT_BYTES)
    handle.manage()
    handle.allocate()
    array[...] = 7
    handle.unmap()
    assert (handle.map() == 7).all()


def test_a_managed_handle_has_memory_while_it_is_acquired() -> None:
    manager = HostMemoryManager()
    handle = HostTensorHandleFactory(manager=manager).create_handle(info(), managed=True)
    with pytest.raises(RuntimeError, match="'t' has no memory now"):
        handle.map()
    handle.manage()
    handle.allocate()
    with pytest.raises(RuntimeError, match="no memory"):
        handle.map()
    manager.acquire()
    first = address(handle.map())
    manager.acquire()
    assert address(handle.map()) == first
    manager.release()
    with pytest.raises(RuntimeError, match="no memory"):
        handle.map()
    manager.release()
    manager.acquire()
    assert handle.map().shape == (2, 3)


def test_an_unmanaged_handle_has_only_what_it_imports() -> None:
    handle = HostTensorHandleFactory(manager=HostMemoryManager()).create_handle(info(), managed=False)
    handle.manage()
    handle.allocate()
    with pytest.raises(RuntimeError, match="no memory"):
        handle.map()
    memory = aligned_empty((2, 3), DataType.FLOAT32)
    assert handle.import_memory(MemoryRef.of_array(memory))
    assert handle.map() is memory
    handle.end_import()
    with pytest.raises(RuntimeError, match="no memory"):
        handle.map()


def test_an_import_covers_managed_memory_until_it_ends() -> None:
    handle = HostTensorHandle(info())
    handle.map()[...] = 1
    memory = np.full((2, 3), 5, np.float32)
    assert handle.import_memory(MemoryRef.of_array(memory))
    assert (handle.map() == 5).all()
    handle.end_import()
    assert (handle.map() == 1).all()


@pytest.mark.parametrize(
    ("memory", "why"),
    [
        (misaligned((2, 3)), "misaligned"),
        (np.zeros((3, 2), np.float32), "shape"),
        (np.zeros(6, np.float32), "rank"),
        (np.zeros((2, 3), np.int32), "type"),
        (np.zeros((2, 3), ">f4"), "byte order"),
        (np.zeros((3, 2), np.float32).T, "order"),
        (np.zeros((2, 6), np.float32)[:, ::2], "strides"),
    ],
)
def test_memory_that_does_not_fit_is_not_imported(memory: Array, why: str) -> None:
    handle = HostTensorHandle(info())
    own = handle.map()
    assert not handle.can_import(MemoryRef.of_array(memory)), why
    assert not handle.import_memory(MemoryRef.of_array(memory))
    assert handle.map() is own


def test_only_the_kinds_of_its_flags_are_imported() -> None:
    memory = aligned_empty((2, 3), DataType.FLOAT32)
    assert not HostTensorHandle(info()).import_memory(MemoryRef.of_array(memory, MemorySource.DMA_BUF))
    assert not HostTensorHandle(info()).import_memory(MemoryRef.of_array(memory, MemorySource.UNDEFINED))
    closed = HostTensorHandleFactory(import_flags=MemorySource.UNDEFINED).create_handle(info(), managed=True)
    assert not closed.import_memory(MemoryRef.of_array(memory, MemorySource.MALLOC))


def test_a_factory_asks_for_its_alignment() -> None:
    factory = HostTensorHandleFactory(alignment_bytes=128)
    block = aligned_empty((1024,), DataType.UINT8, 128)
    handle = factory.create_handle(info(shape=(4,)), managed=True)
    assert is_aligned(handle.map(), 128)
    assert handle.import_memory(MemoryRef.of_array(block[128:144].view(np.float32)))
    assert not handle.import_memory(MemoryRef.of_array(block[64:80].view(np.float32)))


class Apart(CpuRef):
    fallback_memory_required = True


@pytest.mark.parametrize(("backend", "required"), [(CpuRef(), False), (Apart(), True)])
def test_a_backend_may_ask_that_others_do_not_work_in_its_memory(backend: HostMemoryBackend, required: bool) -> None:
    (factory,) = backend.tensor_handle_factories(None)
    assert (HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED in factory.capabilities()) == required


def test_read_only_memory_can_be_imported_and_is_not_written() -> None:
    memory = np.zeros((2, 3), np.float32)
    memory.flags.writeable = False
    handle = HostTensorHandle(info())
    assert handle.import_memory(MemoryRef.of_array(memory))
    with pytest.raises(ValueError, match="read-only"):
        handle.map()[...] = 1


def test_map_waits_for_the_writer_and_raises_its_failure() -> None:
    handle = HostTensorHandle(info())
    gate = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        handle.ready = FutureEvent(pool.submit(gate.wait))
        assert not handle.ready.done()
        reader = threading.Thread(target=handle.map)
        reader.start()
        reader.join(0.05)
        assert reader.is_alive()
        gate.set()
        reader.join()
        assert handle.ready.done()
        handle.ready = FutureEvent(pool.submit(int, "x"))
        with pytest.raises(ValueError, match="invalid literal"):
            handle.map()


def test_tensors_that_do_not_meet_share_bytes() -> None:
    manager = HostMemoryManager()
    factory = HostTensorHandleFactory(manager=manager)
    handles = [factory.create_handle(info(f"t{i}", (1000,), DataType.UINT8), managed=True) for i in range(6)]
    for index, handle in enumerate(handles):
        handle.manage()
        if index:
            handles[index - 1].allocate()
    handles[-1].allocate()
    manager.acquire()
    assert manager.size_bytes <= 2 * 1024
    for before, after in pairwise(handles):
        assert not np.shares_memory(before.map(), after.map())


def test_a_slot_without_an_end_lives_on() -> None:
    manager = HostMemoryManager()
    factory = HostTensorHandleFactory(manager=manager)
    first, second = (factory.create_handle(info(name), managed=True) for name in ("first", "second"))
    first.manage()
    second.manage()
    second.allocate()
    third = factory.create_handle(info("third"), managed=True)
    third.manage()
    third.allocate()
    manager.acquire()
    assert not np.shares_memory(first.map(), second.map())
    assert not np.shares_memory(first.map(), third.map())


def test_a_tensor_that_comes_after_a_release_is_laid_out_too() -> None:
    manager = HostMemoryManager()
    factory = HostTensorHandleFactory(manager=manager)
    first, second = (factory.create_handle(info(name), managed=True) for name in ("first", "second"))
    first.manage()
    manager.acquire()
    manager.release()
    second.manage()
    manager.acquire()
    assert not np.shares_memory(first.map(), second.map())


def test_calls_out_of_order_are_errors() -> None:
    manager = HostMemoryManager()
    handle = HostTensorHandleFactory(manager=manager).create_handle(info(), managed=True)
    with pytest.raises(RuntimeError, match="allocated before it is managed"):
        handle.allocate()
    manager.acquire()
    with pytest.raises(RuntimeError, match="managed after"):
        handle.manage()


@st.composite
def walks(draw: st.DrawFn) -> list[tuple[bool, int]]:
    """Draw an order of tensor lifetimes: starts (True) and ends, each tensor starting once and ending once."""
    count = draw(st.integers(1, 12))
    calls = [(True, index) for index in range(count)]
    for index in range(count):
        start = calls.index((True, index))
        calls.insert(draw(st.integers(start + 1, len(calls))), (False, index))
    return calls


@settings(max_examples=60)
@given(walks(), st.lists(st.integers(1, 300), min_size=12, max_size=12))
def test_no_two_living_tensors_share_a_byte(walk: list[tuple[bool, int]], sizes: list[int]) -> None:
    manager = HostMemoryManager()
    factory = HostTensorHandleFactory(manager=manager)
    count = len(walk) // 2
    handles = [factory.create_handle(info(f"t{i}", (sizes[i],), DataType.UINT8), managed=True) for i in range(count)]
    for begins, index in walk:
        (handles[index].manage if begins else handles[index].allocate)()
    manager.acquire()
    living: set[int] = set()
    for begins, index in walk:
        if begins:
            living.add(index)
            handles[index].map()[...] = index
        else:
            assert (handles[index].map() == index).all()
            living.remove(index)
        assert is_aligned(handles[index].map(), ALIGNMENT_BYTES)


def test_the_custom_allocator_gives_the_block_and_gets_it_back() -> None:
    allocator = CountingAllocator()
    manager = HostMemoryManager(allocator)
    handle = HostTensorHandleFactory(manager=manager).create_handle(info(), managed=True)
    handle.manage()
    handle.allocate()
    assert allocator.total == 0
    manager.acquire()
    assert len(allocator.held) == 1
    assert (handle.map().shape, manager.acquired) == ((2, 3), True)
    manager.release()
    assert allocator.held == []
    manager.release()
    assert (allocator.total, manager.acquired) == (1, False)


class Stuck(CountingAllocator):
    """Its memory refuses one side of the brackets round the processor's accesses."""

    def __init__(self, side: str) -> None:
        super().__init__()
        self.calls: list[str] = []
        self._side = side

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        memory = replace(super().allocate(size_bytes, alignment_bytes), access=self)
        self.held[-1] = id(memory)
        return memory

    def begin(self) -> None:
        self._call("begin")

    def end(self) -> None:
        self._call("end")

    def _call(self, side: str) -> None:
        self.calls.append(side)
        if side == self._side:
            raise FerruleError(f"the access cannot {side}")


@pytest.mark.parametrize(("side", "calls"), [("begin", ["begin"]), ("end", ["begin", "end"])])
def test_memory_is_freed_though_its_access_cannot_begin_or_end(side: str, calls: list[str]) -> None:
    allocator = Stuck(side)
    manager = HostMemoryManager(allocator)
    HostTensorHandleFactory(manager=manager).create_handle(info(), managed=True).manage()

    def use() -> None:
        manager.acquire()
        manager.release()

    with pytest.raises(FerruleError, match=f"the access cannot {side}"):
        use()
    assert allocator.calls == calls
    assert allocator.held == []


class Bad(CountingAllocator):
    def __init__(self, block: object) -> None:
        super().__init__()
        self.block = block

    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        if isinstance(self.block, Exception):
            raise self.block
        memory = MemoryRef.of_array(self.block) if isinstance(self.block, np.ndarray) else self.block
        if isinstance(memory, MemoryRef):
            self.held.append(id(memory))
        return memory  # type: ignore[return-value]


def read_only() -> Array:
    block = aligned_empty((24,), DataType.UINT8)
    block.flags.writeable = False
    return block


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (MemoryError("all gone"), "cannot provide 24 B: all gone"),
        (None, "returned NoneType"),
        (np.zeros(23, np.uint8), "returned 23 B, expected 24 B"),
        (MemoryRef(MemorySource.MALLOC, 24), "returned 24 B that cannot be mapped"),
        (MemoryRef(MemorySource.MALLOC, 24, offset=8), "misaligned"),
        (np.zeros(24, np.int8), r"returned int8\[24\]"),
        (misaligned((24,), "uint8"), "misaligned"),
        (read_only(), "read-only"),
    ],
)
def test_a_custom_allocators_nonsense_is_an_error(block: object, message: str) -> None:
    allocator = Bad(block)
    manager = HostMemoryManager(allocator)
    handle = HostTensorHandleFactory(manager=manager).create_handle(info(), managed=True)
    handle.manage()
    handle.allocate()
    with pytest.raises(FerruleError, match=message):
        manager.acquire()
    assert not manager.acquired
    assert not allocator.held


def test_copy_and_import() -> None:
    source, target = HostTensorHandle(info("source")), HostTensorHandle(info("target"))
    source.map()[...] = 3
    MemCopyWorkload(source, target).execute()
    assert (target.map() == 3).all()
    assert not np.shares_memory(source.map(), target.map())
    MemImportWorkload(source, target, source_backend="A", target_backend="B").execute()
    assert target.map() is source.map()


def test_a_refused_import_names_both_backends() -> None:
    source, target = HostTensorHandle(info("source")), HostTensorHandle(info("target", (3, 2)))
    with pytest.raises(TensorImportError, match=r"'B' did not import tensor 'source'.*from backend 'A'") as caught:
        MemImportWorkload(source, target, source_backend="A", target_backend="B").execute()
    assert caught.value.hint
