# SPDX-License-Identifier: Apache-2.0
"""Regions of memory, their parts, and copies to and from memory that is mapped or not."""

from __future__ import annotations

import numpy as np
import pytest
from mock_backends import CountingAllocator
from numpy.testing import assert_array_equal

from ferrule._typing import override
from ferrule.backends.context import CustomAllocator
from ferrule.backends.shared.host_memory import HostTensorHandle, address, aligned_empty
from ferrule.backends.tensor_handle import MemoryRef, MemorySource
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, TensorInfo

X = TensorInfo("x", (2, 3), DataType.FLOAT32)


class Hidden(CustomAllocator):
    """Memory that the process cannot map: a block is a number, and its bytes are here."""

    source = MemorySource.DMA_BUF

    def __init__(self) -> None:
        self.blocks: dict[int, bytearray] = {}

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        number = len(self.blocks)
        self.blocks[number] = bytearray(size_bytes)
        return MemoryRef(self.source, size_bytes, fd=number)

    @override
    def free(self, memory: MemoryRef) -> None:
        assert memory.fd is not None
        del self.blocks[memory.fd]

    @override
    def populate_data(self, memory: MemoryRef, data: Array) -> None:
        assert memory.fd is not None
        self.blocks[memory.fd][memory.offset : memory.offset + data.nbytes] = data.tobytes()

    @override
    def retrieve_data(self, memory: MemoryRef, data: Array) -> None:
        assert memory.fd is not None
        found = self.blocks[memory.fd][memory.offset : memory.offset + data.nbytes]
        data.reshape(-1).view(np.uint8)[:] = np.frombuffer(found, np.uint8)


def test_an_array_is_a_whole_block() -> None:
    array = np.ones((2, 3), np.float32)
    memory = MemoryRef.of_array(array)
    assert (memory.source, memory.size_bytes, memory.offset) == (MemorySource.MALLOC, 24, 0)
    assert memory.address == address(array)
    assert memory.block is None
    assert memory.array is array


def test_a_part_knows_its_block() -> None:
    block = MemoryRef(MemorySource.DMA_BUF | MemorySource.MALLOC, 256, aligned_empty((256,), DataType.UINT8), fd=7)
    part = block.part(64, X)
    assert (part.source, part.fd, part.offset, part.size_bytes) == (block.source, 7, 64, 24)
    assert part.address == block.address
    assert part.block is block
    assert part.array is not None
    assert (part.array.shape, part.array.dtype) == ((2, 3), np.float32)
    assert block.array is not None
    block.array[...] = 0
    part.array[...] = 1.9
    assert set(np.flatnonzero(block.array)) <= set(range(64, 88))
    assert HostTensorHandle(X).import_memory(part)
    inner = part.part(8, TensorInfo("y", (4,), DataType.INT8))
    assert (inner.offset, inner.block, inner.address) == (72, block, block.address)


def test_a_part_of_memory_without_a_map_has_no_address() -> None:
    part = MemoryRef(MemorySource.DMA_BUF, 256, fd=7).part(128, X)
    assert (part.array, part.address, part.fd, part.offset) == (None, None, 7, 128)
    assert not HostTensorHandle(X).can_import(part)


@pytest.mark.parametrize("allocator", [CountingAllocator(), Hidden()], ids=["mapped", "hidden"])
def test_data_gets_into_memory_and_out_of_it(allocator: CustomAllocator) -> None:
    block = allocator.allocate(256, 64)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    allocator.populate_data(block.part(64, X), values)
    found = np.zeros_like(values)
    allocator.retrieve_data(block.part(64, X), found)
    assert_array_equal(found, values)
    whole = np.zeros(256, np.uint8)
    allocator.retrieve_data(block, whole)
    assert whole[64:88].tobytes() == values.tobytes()
    allocator.free(block)


def test_copies_that_cannot_be_made_are_errors() -> None:
    allocator = CountingAllocator()
    block = allocator.allocate(16, 64)
    with pytest.raises(FerruleError, match="24 B do not fit in 16 B"):
        allocator.populate_data(block, np.zeros((2, 3), np.float32))
    hidden = MemoryRef(MemorySource.DMA_BUF, 16)
    with pytest.raises(FerruleError, match=r"custom allocator \(CountingAllocator\) allocates .* has no retrieve_data"):
        allocator.retrieve_data(hidden, np.zeros(4, np.float32))
