# SPDX-License-Identifier: Apache-2.0
"""Tensor handles, their factories, memory managers and custom allocators."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from ferrule._typing import override
from ferrule.backends.backend import Backend
from ferrule.backends.context import CustomAllocator
from ferrule.backends.shared.host_memory import aligned_empty
from ferrule.backends.shared.host_memory.canaries import Fenced
from ferrule.backends.tensor_handle import MemoryManager, MemoryRef, MemorySource, TensorHandle
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.optimizer import optimize
from ferrule.testing.backends.family import Family
from ferrule.testing.backends.loaded_layer import handle_factory, read, write
from ferrule.testing.backends.networks import check_run, first_taken, sandwich
from ferrule.testing.backends.subject import Neighbour, Subject

SHAPES = ((), (1,), (7,), (2, 3, 4, 5))


def values(info: TensorInfo, seed: int = 0) -> Array:
    """Return random values for a tensor."""
    return np.random.default_rng(seed).integers(0, 2, info.shape).astype(info.dtype.numpy)


def managed(backend: Backend, *infos: TensorInfo) -> tuple[list[MemoryManager], list[TensorHandle]]:
    """Return a backend's memory managers, and handles for tensors that live at the same time."""
    managers, factory = handle_factory(backend)
    handles = [factory.create_handle(info, managed=True) for info in infos]
    for handle in handles:
        handle.manage()
    for handle in handles:
        handle.allocate()
    return managers, handles


@contextmanager
def held(managers: Sequence[MemoryManager]) -> Iterator[None]:
    """Hold the memory of managers."""
    for manager in managers:
        manager.acquire()
    yield
    for manager in managers:
        manager.release()


class HandleFamily(Family):
    """Tests of tensor handles and their factories."""

    def test_ids_are_the_same_for_every_manager(self, backend: Backend) -> None:
        """The ids of the factories are the same for every manager, because each load looks factories up by id."""
        none = [factory.id for factory in backend.tensor_handle_factories(None)]
        some = [factory.id for factory in backend.tensor_handle_factories(backend.memory_manager(None))]
        assert none == some, f"without a manager {none}, with one {some}"
        assert len(set(none)) == len(none), f"an id is repeated: {none}"
        preferences = list(backend.handle_factory_preferences())
        assert len(set(preferences)) == len(preferences), f"a preference is repeated: {preferences}"

    def test_what_factories_promise_is_consistent(self, backend: Backend) -> None:
        """Alignments are powers of two, and data can be written to the handles by mapping or import."""
        for factory in backend.tensor_handle_factories(backend.memory_manager(None)):
            for source in factory.import_flags:
                alignment = factory.memory_alignment(source)
                assert alignment > 0, f"{factory.id} has alignment {alignment}"
                assert math.log2(alignment).is_integer(), (
                    f"{factory.id} has alignment {alignment}, which is not a power of two"
                )
            reached = factory.supports_map_unmap or factory.import_flags
            assert reached, f"{factory.id} can neither be mapped nor import"

    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_what_is_written_is_read(self, backend: Backend, shape: tuple[int, ...]) -> None:
        """`map` returns an array of the tensor's shape and type, and written values persist."""
        for dtype in DataType:
            info = TensorInfo("x", shape, dtype)
            managers, (handle,) = managed(backend, info)
            assert isinstance(handle, TensorHandle), f"{type(handle).__name__} is no handle"
            assert handle.info == info, f"the handle is of {handle.info}, expected {info}"
            wanted = values(info)
            with held(managers):
                write(handle, wanted)
                for _ in range(2):
                    found = read(handle)
                    same = (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
                    assert same, f"{info} is mapped as {found.dtype}{list(found.shape)}"
                    assert np.array_equal(found, wanted), f"the values read from {info} are not those written"

    def test_import_is_as_promised(self, backend: Backend) -> None:
        """A factory with MALLOC among its import flags imports aligned memory; a factory without it refuses."""
        info = TensorInfo("x", (4, 16), DataType.INT32)
        for factory in backend.tensor_handle_factories(backend.memory_manager(None)):
            handle = factory.create_handle(info, managed=False)
            memory = aligned_empty(info.shape, info.dtype, max(factory.memory_alignment(MemorySource.MALLOC), 64))
            np.copyto(memory, values(info, 3))
            promised = MemorySource.MALLOC in factory.import_flags
            able = handle.can_import(MemoryRef.of_array(memory))
            assert handle.import_memory(MemoryRef.of_array(memory)) == able == promised, (
                f"{factory.id}: import flags {factory.import_flags}, can_import said {able}"
            )
            if promised and factory.supports_map_unmap:
                assert np.array_equal(read(handle), memory), "the values read are not those of the imported memory"
            if promised:
                handle.end_import()

    def test_foreign_memory_that_does_not_fit_is_refused(self, backend: Backend) -> None:
        """Memory of another shape or type, or with gaps between the elements, returns False and raises no error."""
        for factory in backend.tensor_handle_factories(backend.memory_manager(None)):
            handle = factory.create_handle(TensorInfo("x", (4, 16), DataType.INT32), managed=False)
            for memory in (
                aligned_empty((4, 15), DataType.INT32, 4096),
                aligned_empty((4, 16), DataType.FLOAT32, 4096),
                aligned_empty((4, 32), DataType.INT32, 4096)[:, ::2],
            ):
                refused = not handle.import_memory(MemoryRef.of_array(memory))
                assert refused, f"{factory.id} imports {memory.dtype}{list(memory.shape)} for int32[4, 16]"


class MemoryFamily(Family):
    """Tests of memory managers and the application's allocators."""

    def test_acquire_and_release_may_be_repeated(self, backend: Backend) -> None:
        """Repeated acquire and release calls do nothing; after a release, memory can be acquired again."""
        info = TensorInfo("x", (3, 5), DataType.FLOAT32)
        managers, (handle,) = managed(backend, info)
        for _ in range(2):
            with held(managers):
                write(handle, values(info, 1))
                with held(managers):
                    found = read(handle)
            assert np.array_equal(found, values(info, 1)), "the values read are not those written"

    def test_tensors_that_live_together_do_not_share_bytes(self, backend: Backend) -> None:
        """Each tensor keeps its own values."""
        infos = [TensorInfo(f"t{i}", (i + 1, 7), DataType.INT16) for i in range(6)]
        managers, handles = managed(backend, *infos)
        wanted = [np.full(info.shape, index, np.int16) for index, info in enumerate(infos)]
        with held(managers):
            for handle, array in zip(handles, wanted, strict=True):
                write(handle, array)
            for handle, array in zip(handles, wanted, strict=True):
                assert np.array_equal(read(handle), array), f"tensor '{handle.info.name}' was overwritten by another"

    def test_managers_are_apart(self, backend: Backend) -> None:
        """Two networks have separate managers."""
        first, second = backend.memory_manager(None), backend.memory_manager(None)
        assert first is None or first is not second, "one manager for two networks"

    def test_custom_allocator_is_refused_or_balanced(self, subject: Subject) -> None:
        """An allocator is refused with a reason, or unused before the first run and has all memory back at unload."""
        with subject.runtime() as runtime:
            refusal = runtime.backend().use_custom_memory_allocator(_Counting())
            taken = first_taken(runtime)
        if refusal or taken is None:
            assert isinstance(refusal, str), f"use_custom_memory_allocator returned {type(refusal).__name__}"
            return
        allocator = _Counting()
        with subject.runtime(allocators={subject.id: allocator}) as runtime:
            network = sandwich(taken)
            options = subject.optimizer_options(simplify=False, hints={"layer": subject.id})
            number = runtime.load_network(optimize(network, [Neighbour.id], runtime.registry, options))
            assert not allocator.total, "memory was allocated before the first run"
            check_run(runtime, number, network, 1)
            assert allocator.total, "an allocator was accepted, but not used"
            runtime.unload_network(number)
            assert not allocator.held, f"{len(allocator.held)} blocks were not freed"


class _Counting(CustomAllocator):
    """An allocator of plain memory that counts its blocks and lays canaries around each."""

    source = MemorySource.MALLOC

    def __init__(self) -> None:
        self.held: dict[int, Fenced] = {}
        self.total = 0

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        """Return a new block."""
        info = TensorInfo("a block of the allocator", (size_bytes,), DataType.UINT8)
        block = Fenced(info, alignment_bytes)
        self.held[id(block.array)] = block
        self.total += 1
        return MemoryRef.of_array(block.array)

    @override
    def free(self, memory: MemoryRef) -> None:
        """Take a block back."""
        block = self.held.pop(id(memory.array), None)
        assert block is not None, "a block was freed that is not allocated"
        damage = block.damage()
        assert not damage, damage
