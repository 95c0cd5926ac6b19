# SPDX-License-Identifier: Apache-2.0
"""The shared test families for Woofles on the host."""

from __future__ import annotations

import numpy as np
import pytest

from ferrule._typing import override
from ferrule.backends.shared.allocators import DmaBufAllocator
from ferrule.backends.tensor_handle import HandleCapability, MemoryRef, MemorySource
from ferrule.backends.woofles.backend import Woofles
from ferrule.graph import DataType, TensorInfo
from ferrule.testing.backends import BackendFamily, Subject


class TestWoofles(BackendFamily):
    @override
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="Woofles")


def test_its_handles_are_mapped_and_import_dma_bufs() -> None:
    (factory,) = Woofles().tensor_handle_factories(None)
    assert (factory.supports_map_unmap, factory.import_flags, factory.export_flags) == (
        True,
        MemorySource.DMA_BUF,
        MemorySource.UNDEFINED,
    )
    assert factory.capabilities() == {HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED}
    info = TensorInfo("x", (2, 8), DataType.INT8)
    handle = factory.create_handle(info, managed=False)
    assert not handle.import_memory(MemoryRef.of_array(np.zeros((2, 8), np.int8)))
    assert not handle.import_memory(MemoryRef(MemorySource.DMA_BUF, 16, fd=0)), "memory without a map"
    allocator = DmaBufAllocator()
    memory = allocator.allocate(1024, 64)
    assert handle.import_memory(memory.part(64, info))
    handle.map()[...] = 7
    handle.unmap()
    assert memory.array is not None
    assert (memory.array == 7).nonzero()[0].tolist() == list(range(64, 80))
    handle.end_import()
    allocator.free(memory)
