# SPDX-License-Identifier: Apache-2.0
"""Memory of a dynamic backend's handles: references (version 1.2), file descriptors, and factories without map."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ferrule.backends.backend import Backend
from ferrule.backends.context import CreationOptions
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.dynamic import Reason, load_dynamic_backends
from ferrule.backends.dynamic.handles import DynamicHandle
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.allocators import DmaBufAllocator, MallocAllocator
from ferrule.backends.shared.host_memory import address
from ferrule.backends.tensor_handle import HandleCapability, MemoryRef, MemorySource
from ferrule.graph import DataType, Layer, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

pytestmark = pytest.mark.cc
INFO = TensorInfo("x", (2, 8), DataType.FLOAT32)
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
BOTH = OptimizerOptions(import_enabled=True, export_enabled=True)
Compile = Callable[..., Path]


class Access:
    def begin(self) -> None:
        raise AssertionError

    def end(self) -> None:
        raise AssertionError


def chain() -> Network:
    network = Network("chain")
    network.add_input(INFO)
    network.set_outputs([network.add_relu_layer(network.add_relu_layer("x", name="a"), name="b")])
    return network


@pytest.fixture
def full(tmp_path: Path, compile_backend: Compile) -> Callable[..., Backend]:
    """Return a function that compiles full.c with its own handles, and returns its backend."""

    def make(*defines: str) -> Backend:
        folder = tmp_path / "_".join(("full", *defines))  # a file that is in use cannot be replaced
        folder.mkdir()
        compile_backend(folder, "OWN_HANDLES", *defines, name="Test_Full", source="full.c")
        registry = BackendRegistry()
        (row,) = load_dynamic_backends(registry, folder)
        assert row.accepted, row
        return registry.create("Full")

    return make


def handle_of(backend: Backend) -> DynamicHandle:
    (factory,) = backend.tensor_handle_factories(None)
    handle = factory.create_handle(INFO, managed=False)
    assert isinstance(handle, DynamicHandle)
    return handle


def log(folder: Path) -> str:
    text = (ctypes.c_char * 65536).in_dll(ctypes.CDLL(str(folder / "Test_Full_backend.so")), "full_log")
    return text.value.decode()


def test_a_part_of_a_block_is_imported_by_reference(full: Callable[..., Backend], tmp_path: Path) -> None:
    handle = handle_of(full("BY_REF"))
    block = MallocAllocator().allocate(256, 64)
    part, askew = block.part(64, INFO), block.part(8, INFO)
    assert part.array is not None
    part.array[...] = X
    assert handle.can_import(part)
    assert not handle.can_import(askew), "its offset is no multiple of 16"
    assert not handle.import_memory(askew)
    assert not handle.import_memory(block.part(0, TensorInfo("y", (8,), DataType.FLOAT32)))
    assert handle.import_memory(part)
    assert address(handle.map()) == address(part.array)
    handle.unmap()
    handle.end_import()
    with pytest.raises(RuntimeError, match="nothing is imported"):
        handle.map()
    assert "import-ref map unmap end-import-ref" in log(tmp_path / "full_BY_REF")


def test_memory_without_a_map_is_imported_by_its_file_descriptor(full: Callable[..., Backend]) -> None:
    handle = handle_of(full("BY_REF"))
    allocator = DmaBufAllocator()
    memory = allocator.allocate(4096, 64)
    part = memory.part(1024, INFO)
    assert part.array is not None
    part.array[...] = X
    assert handle.import_memory(
        MemoryRef(MemorySource.DMA_BUF, 64, None, part.fd, 1024, MemoryRef(MemorySource.DMA_BUF, 4096))
    )
    assert_array_equal(handle.map(), X)
    assert address(handle.map()) != address(part.array)
    assert not handle.import_memory(MemoryRef(MemorySource.DEVICE, 64))
    assert not handle.import_memory(MemoryRef(MemorySource.DMA_BUF, 32, fd=part.fd)), "of another size"
    handle.end_import()
    allocator.free(memory)


def test_alignments_and_capabilities_are_those_of_the_kind_and_the_connection(full: Callable[..., Backend]) -> None:
    (factory,) = full("BY_REF").tensor_handle_factories(None)
    assert factory.import_flags == MemorySource.MALLOC | MemorySource.DMA_BUF
    assert [factory.memory_alignment(kind) for kind in factory.import_flags] == [32, 4096]
    first, second = chain().layers
    foreign = Layer(
        "c",
        LayerType.PRE_COMPILED,
        PreCompiledDescriptor(payload=object(), label="c"),
        inputs=("x",),
        outputs=("y",),
    )
    assert factory.capabilities() == {HandleCapability.FALLBACK_IMPORT_DISABLED}
    assert factory.capabilities(first, second) == {HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED}
    assert factory.capabilities(foreign, first) == {HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED}
    assert factory.capabilities(first, foreign) == {HandleCapability.PADDING_REQUIRED}
    assert factory.capabilities(None, first) == frozenset()
    (older,) = full().tensor_handle_factories(None)
    assert older.capabilities(first, second) == {HandleCapability.FALLBACK_IMPORT_DISABLED}


def test_a_backend_of_version_1_1_imports_by_the_old_function(full: Callable[..., Backend], tmp_path: Path) -> None:
    """Its table ends before the functions of 1.2; it gets one kind of memory, and no memory without an address."""
    backend = full("MINOR=1")
    handle = handle_of(backend)
    allocator = DmaBufAllocator()
    part = allocator.allocate(256, 64).part(64, INFO)
    assert part.array is not None
    part.array[...] = X
    assert handle.import_memory(part)
    assert_array_equal(handle.map(), X)
    handle.end_import()
    assert not handle.import_memory(MemoryRef(MemorySource.DMA_BUF, 64, fd=part.fd))
    assert not handle.import_memory(replace(part, access=Access())), "memory whose accesses are bracketed"
    (factory,) = backend.tensor_handle_factories(None)
    assert factory.memory_alignment(MemorySource.MALLOC) == 16
    assert "import map end-import" in log(tmp_path / "full_MINOR=1")


@pytest.mark.parametrize("isolated", [False, True], ids=["here", "isolated"])
def test_a_factory_without_map_works_on_imported_memory(
    tmp_path: Path, compile_backend: Compile, isolated: bool
) -> None:
    compile_backend(tmp_path, "OWN_HANDLES", "BY_REF", "NO_MAP", name="Test_Full", source="full.c")
    registry = BackendRegistry()
    registry.register("CpuRef", CpuRef)
    options = CreationOptions(dynamic_backends_path=tmp_path, isolate_dynamic_backends=isolated)
    with Runtime(options, registry) as runtime:
        optimized = optimize(chain(), ["Full"], runtime.registry, BOTH)
        number = runtime.load_network(optimized)
        for scale in (1, -2):
            (output,) = runtime.enqueue_workload(number, [X * scale])
            assert_array_equal(output, chain().run([X * scale])[0])


def test_a_factory_that_maps_has_both_functions(tmp_path: Path, compile_backend: Compile) -> None:
    compile_backend(tmp_path, "OWN_HANDLES", "NO_MAP", "ONLY_UNMAP", name="Test_Full", source="full.c")
    (row,) = load_dynamic_backends(BackendRegistry(), tmp_path)
    assert row.reason is Reason.INVALID_TABLE
    assert "handle factory 0 supports map, and its function 'map' is null" in row.message
