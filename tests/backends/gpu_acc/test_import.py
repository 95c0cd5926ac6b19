# SPDX-License-Identifier: Apache-2.0
"""GpuAcc's import of host memory: one buffer per block, and map and unmap around each access of the process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import pytest
from compare import assert_arrays_equal
from gpu_face import GpuGraph, LateSession, ShadowSession, require_opencl

from ferrule.backends.gpu_acc import GpuAcc
from ferrule.backends.gpu_acc.handle import (
    GPU_FACTORY,
    GPU_IMPORT_FACTORY,
    GpuImportHandle,
    GpuImportHandleFactory,
    submit,
)
from ferrule.backends.gpu_acc.memory import GpuMemoryManager
from ferrule.backends.shared.allocators import DmaBufAllocator, MallocAllocator
from ferrule.backends.shared.host_memory import aligned_empty
from ferrule.backends.tensor_handle import HandleCapability, MemoryRef, MemorySource
from ferrule.graph import Array, DataType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.testing.backends.comparison import random_inputs

SHAPE = (1, 3, 5, 7)
"""105 bytes: no multiple of a device's alignment."""
BRACKETS = ("prepare", "publish")


@pytest.fixture(autouse=True)
def opencl_device() -> None:
    require_opencl()


def chain(length: int = 3) -> Network:
    network = Network("chain")
    info = TensorInfo("x", SHAPE, DataType.INT8, quantization=Quantization.of(0.05, 3))
    name = network.add_input(info)
    outputs = []
    for _ in range(length):
        name = network.add_max_pool2d_layer(name, (2, 2), strides=(1, 1), padding="same")
        outputs.append(name)
    network.set_outputs(outputs)
    return network


STEP = 2 * GpuImportHandleFactory().memory_alignment(MemorySource.MALLOC)
"""Bytes between places for tensors: aligned, and more than the 105 bytes of a tensor of `chain`."""


class Crossed(GpuGraph):
    """A graph whose tensors are all imported at offsets of one block, in a session of its own."""

    def __init__(self, network: Network, offsets: Sequence[int], session: ShadowSession | None = None) -> None:
        self.names = [tensor.info.name for tensor in network.tensors if not tensor.is_constant]
        self.session = session or ShadowSession()
        super().__init__(network, imported=self.names, session=self.session)
        self.block = MallocAllocator().allocate(8 * STEP, STEP)
        assert self.block.array is not None
        self.block.array[:] = 99
        self.arrays: dict[str, Array] = {}
        for name, offset in zip(self.names, offsets, strict=True):
            part = self.block.part(offset * STEP, network.info(name))
            assert part.array is not None
            self.arrays[name] = part.array
            assert self.handles[name].import_memory(part)

    def run_crossed(self, data: Array) -> list[Array]:
        """Write the input as another backend does, run all layers, and return what another backend reads."""
        self.arrays["x"][...] = data
        found = []
        for info, workload in zip(self.graph.outputs, self.workloads, strict=True):
            event = workload.execute()
            assert event is not None
            event.wait()
            found.append(np.copy(self.arrays[info.name]))
        return found


@pytest.mark.parametrize("offsets", [(0, 1, 2, 3), (3, 1, 7, 0), (0, 1, 0, 1)], ids=["apart", "mixed", "shared"])
def test_tensors_of_one_block_share_one_buffer(offsets: Sequence[int]) -> None:
    """With "shared", tensors whose lives do not overlap lie in the same bytes."""
    network = chain()
    crossed = Crossed(network, offsets)
    assert crossed.session.host_buffers == 1
    for seed in range(3):
        (data,) = random_inputs(network, seed)
        assert_arrays_equal(crossed.run_crossed(data), network.run([data]))
    whole = crossed.block.array
    assert whole is not None
    used = np.zeros(whole.size, bool)
    for offset in offsets:
        used[offset * STEP : offset * STEP + 105] = True
    assert (whole[~used] == 99).all(), "bytes beside the tensors are not those of the process"
    for name in crossed.names:
        crossed.handles[name].end_import()
    assert not crossed.session.lent


def test_the_process_may_write_as_soon_as_a_tensor_is_imported() -> None:
    """The map commands of an import are complete; a late one would put the device's copy over what is written."""
    info = TensorInfo("x", (STEP,), DataType.INT8)
    session, manager = LateSession(), GpuMemoryManager()
    manager.use(session)
    memory = aligned_empty((4 * STEP,), DataType.INT8, STEP)
    handle = GpuImportHandle(info, managed=False, manager=manager)
    assert handle.import_memory(MemoryRef.of_array(memory).part(STEP, info))
    memory[...] = 7
    session.finish()
    assert (memory == 7).all()
    handle.end_import()


@pytest.mark.parametrize("method", BRACKETS)
@pytest.mark.parametrize("number", range(4))
def test_a_forgotten_bracket_is_found(method: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network = chain()
    crossed = Crossed(network, (0, 1, 2, 3))
    original = getattr(GpuImportHandle, method)

    def forgetful(handle: GpuImportHandle, *arguments: object) -> object:
        if handle.info.name == crossed.names[number]:
            return arguments[0] if arguments else None
        return original(handle, *arguments)

    monkeypatch.setattr(GpuImportHandle, method, forgetful)
    wrong = False
    for seed in range(3):
        (data,) = random_inputs(network, seed)
        pairs = zip(crossed.run_crossed(data), network.run([data]), strict=True)
        wrong |= not all(np.array_equal(found, wanted) for found, wanted in pairs)
    assert wrong


def test_the_process_has_its_memory_again_after_a_command_that_cannot_be_submitted() -> None:
    network = chain()
    crossed = Crossed(network, (0, 1, 2, 3))
    lent = len(crossed.session.lent)
    handles = [handle for handle in crossed.handles.values() if isinstance(handle, GpuImportHandle)]

    def refused(queue: object, waits: object) -> NoReturn:
        raise RuntimeError("refused")

    with pytest.raises(RuntimeError, match="refused"):
        submit(crossed.session, refused, name="refused", handles=handles)
    assert len(crossed.session.lent) == lent
    (data,) = random_inputs(network, 0)
    assert_arrays_equal(crossed.run_crossed(data), network.run([data]))


def test_memory_that_overlaps_a_buffer_in_part_is_refused() -> None:
    info = TensorInfo("x", (STEP,), DataType.INT8)
    manager = GpuMemoryManager()
    block = aligned_empty((4 * STEP,), DataType.INT8, STEP)
    first, second, third = (GpuImportHandle(info, managed=False, manager=manager) for _ in range(3))
    here, behind = block[:STEP], block[STEP : 2 * STEP]
    assert first.import_memory(MemoryRef.of_array(here))
    whole = MemoryRef.of_array(block)
    assert not second.import_memory(whole.part(2 * STEP, info)), "its block overlaps the first tensor"
    assert second.import_memory(MemoryRef.of_array(behind))
    assert third.import_memory(MemoryRef.of_array(here)), "the same memory is in the same buffer"
    for handle in (first, third):
        handle.end_import()
    second.end_import()
    assert second.import_memory(whole.part(2 * STEP, info))
    second.end_import()


def test_a_place_that_the_device_cannot_use_is_refused() -> None:
    info = TensorInfo("x", (64,), DataType.INT8)
    handle = GpuImportHandle(info, managed=False)
    memory = aligned_empty((1024,), DataType.UINT8, 1024)
    block, shifted = MemoryRef.of_array(memory), MemoryRef.of_array(memory[32:])
    assert handle.import_memory(block.part(STEP, info))
    assert not handle.import_memory(shifted.part(32, info)), "a copy of the block would have its elements elsewhere"
    with pytest.raises(RuntimeError, match="no memory"):
        _ = handle.memory
    assert handle.import_memory(block.part(0, info))
    handle.end_import()


def test_a_dma_buf_is_imported_as_its_mapping() -> None:
    allocator = DmaBufAllocator()
    info = TensorInfo("x", (64,), DataType.INT8)
    memory = allocator.allocate(1024, STEP)
    handle = GpuImportHandle(info, managed=False)
    assert handle.import_memory(memory.part(0, info))
    handle.end_import()
    assert not handle.can_import(MemoryRef(MemorySource.DMA_BUF, 64, fd=memory.fd))
    allocator.free(memory)


def test_the_device_uses_a_dma_buf_as_the_processor_does() -> None:
    """The driver works on the mapping; a dma-buf needs to be synchronised for that."""

    class Access:
        def __init__(self) -> None:
            self.log = ""

        def begin(self) -> None:
            self.log += "("

        def end(self) -> None:
            self.log += ")"

    network = chain(1)
    output = network.outputs[0].name
    graph = GpuGraph(network, imported=("x", output))
    access = Access()
    block = aligned_empty((4 * STEP,), DataType.UINT8, STEP)
    memory = MemoryRef(MemorySource.MALLOC | MemorySource.DMA_BUF, block.size, block, access=access)
    for index, name in enumerate(("x", output)):
        assert graph.handles[name].import_memory(memory.part(index * STEP, network.info(name)))
    event = graph.workloads[0].execute()
    assert event is not None
    assert access.log == "(("
    event.wait()
    event.wait()
    assert access.log == "(())"


def test_one_factory_maps_and_the_other_imports() -> None:
    maps, imports = GpuAcc().tensor_handle_factories(None)
    assert (maps.id, imports.id) == (GPU_FACTORY, GPU_IMPORT_FACTORY) == tuple(GpuAcc().handle_factory_preferences())
    nothing = MemorySource.UNDEFINED
    assert (maps.supports_map_unmap, maps.import_flags, maps.export_flags) == (True, nothing, nothing)
    assert (imports.supports_map_unmap, imports.export_flags) == (False, nothing)
    assert imports.import_flags is MemorySource.MALLOC
    assert maps.capabilities() == frozenset()
    assert imports.capabilities() == {HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED}
