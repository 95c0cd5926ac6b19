# SPDX-License-Identifier: Apache-2.0
"""A backend in C with every table: each method of the interface crosses into C."""

from __future__ import annotations

import ctypes
import gc
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from compare import assert_arrays_equal
from numpy.testing import assert_array_equal

from ferrule.backends.backend import Backend
from ferrule.backends.context import BackendUnavailableError, CreationOptions, CustomAllocator, NetworkId
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.device import BackendId
from ferrule.backends.dynamic import load_dynamic_backends
from ferrule.backends.dynamic.backend import DynamicBackend
from ferrule.backends.dynamic.handles import DynamicHandle
from ferrule.backends.dynamic.library import DynamicLibraryError
from ferrule.backends.dynamic.workload import DynamicWorkload
from ferrule.backends.optimization_views import OptimizationViews, PreCompiledDescriptor
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.host_memory import HOST_FACTORY, HostTensorHandle, address, aligned_empty
from ferrule.backends.target import default_target
from ferrule.backends.tensor_handle import HandleCapability, MemoryRef, MemorySource
from ferrule.backends.workload import WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, SubgraphView, TensorInfo
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import NetworkLoadError, Runtime

TARGET = default_target(BackendId("Full"))

pytestmark = pytest.mark.cc

INFO = TensorInfo("x", (2, 8), DataType.FLOAT32)


class Full:
    """The backend, the registry that holds it, and its log."""

    def __init__(self, path: Path) -> None:
        self.registry = BackendRegistry()
        self.registry.register("CpuRef", CpuRef)
        (row,) = load_dynamic_backends(self.registry, path.parent)
        assert row.accepted, row
        self._library = ctypes.CDLL(str(path))

    def create(self) -> Backend:
        return self.registry.create("Full")

    def log(self) -> str:
        text = (ctypes.c_char * 65536).in_dll(self._library, "full_log")
        found = text.value.decode()
        text.value = b""
        return found

    def pointer(self, name: str) -> int | None:
        return ctypes.c_void_p.in_dll(self._library, name).value


@pytest.fixture
def full(tmp_path: Path, compile_backend: Callable[..., Path]) -> Iterator[Callable[..., Full]]:
    """Return a function that compiles the backend with macros and loads it."""

    def make(*defines: str) -> Full:
        return Full(compile_backend(tmp_path, *defines, name="Test_Full", source="full.c"))

    yield make
    gc.collect()


def chain(*names: str) -> Network:
    network = Network("chain")
    last = network.add_input(INFO)
    for name in names:
        last = network.add_relu_layer(last, name=name)
    network.set_outputs([last])
    return network


def sample(seed: int = 1) -> Array:
    array = aligned_empty(INFO.shape, INFO.dtype)
    array[:] = np.random.default_rng(seed).normal(0, 1, INFO.shape)
    return array


def run(
    full: Full,
    network: Network,
    x: Array,
    options: OptimizerOptions | None = None,
    creation: CreationOptions | None = None,
) -> list[Array]:
    with Runtime(creation, full.registry) as runtime:
        optimized = optimize(network, ["Full", "CpuRef"], runtime.registry, options or OptimizerOptions(simplify=False))
        return runtime.enqueue_workload(runtime.load_network(optimized), [x])


def test_layer_support_has_reasons(full: Callable[..., Full]) -> None:
    network = chain("good")
    network.add_tanh_layer("good", name="bad")
    support = full().create().layer_support()
    assert support.supports(network, network.layer("good"), TARGET)
    refused = support.supports(network, network.layer("bad"), TARGET)
    assert not refused
    assert refused.reason == "it runs RELU only"


def test_capabilities_have_their_types(full: Callable[..., Full]) -> None:
    found = full().create().capabilities()
    assert found == {"AsyncExecution": False, "Cores": -3, "Clock": 1.5, "Maker": "tests"}
    assert [type(value) for value in found.values()] == [bool, int, float, str]


def views(full: Full, network: Network, options: Mapping[str, bool] | None = None) -> OptimizationViews:
    view = SubgraphView.of(network, [layer.name for layer in network.layers])
    return full.create().optimize_subgraph(view, default_target(BackendId("Full"), options=options))


def test_the_optimizer_answers_per_layer(full: Callable[..., Full]) -> None:
    backend = full()
    network = chain("one", "compile_a", "compile_b", "erase", "fail", "two")
    found = views(backend, network)
    assert [view.names for view in found.untouched] == [("one", "two")]
    assert [view.names for view in found.failed] == [("fail",)]
    assert [view.names for view in found.deleted] == [("erase",)]
    assert dict(found.reasons) == {"fail": "its name says so"}
    (substitution,) = found.substitutions
    assert substitution.replaced.names == ("compile_a", "compile_b")
    (layer,) = substitution.layers
    assert (layer.inputs, layer.outputs) == (("one",), ("compile_b",))
    descriptor = layer.descriptor
    assert isinstance(descriptor, PreCompiledDescriptor)
    assert (descriptor.payload, descriptor.label, descriptor.macs) == (b"blob", "a few", 12)
    assert backend.log().split().count("chained") == 5  # equal tensors are equal pointers


@pytest.mark.parametrize(
    ("option", "words"),
    [("break", "it was asked to break"), ("twice", "names layer 'one' twice"), ("beyond", "names layer 1 of 1")],
)
def test_wrong_answers_of_the_optimizer(full: Callable[..., Full], option: str, words: str) -> None:
    backend = full()
    with pytest.raises(DynamicLibraryError, match=words):
        views(backend, chain("one"), {option: True})
    assert "not-refused" not in backend.log()


@pytest.mark.parametrize("defines", [(), ("OWN_HANDLES",), ("ASYNC",), ("ASYNC", "OWN_HANDLES", "OWN_MEMORY")])
@pytest.mark.parametrize("shared", [False, True])
def test_networks_run(full: Callable[..., Full], defines: tuple[str, ...], *, shared: bool) -> None:
    network = chain("one", "compile_a", "compile_b", "fail", "two")
    network.add_tanh_layer("two", name="tanh")
    network.add_relu_layer("tanh", name="last")
    network.set_outputs(["last", "two"])
    options = OptimizerOptions(simplify=False, import_enabled=shared, export_enabled=shared)
    backend = full(*defines)
    for seed in range(3):
        x = sample(seed)
        assert_arrays_equal(run(backend, network, x, options), network.run([x]))
    gc.collect()
    words = backend.log().split()
    for made, gone in (
        ("workload", "~workload"),
        ("handle", "~handle"),
        ("memory", "~memory"),
        ("context", "~context"),
    ):
        assert words.count(made) == words.count(gone)
    assert words.count("map") == words.count("unmap")
    assert "blob" in words


def test_tensors_are_not_copied(full: Callable[..., Full]) -> None:
    """The backend receives pointers to the caller's own arrays."""
    backend = full()
    x, y = sample(), aligned_empty(INFO.shape, INFO.dtype)
    options = OptimizerOptions(simplify=False, import_enabled=True, export_enabled=True)
    with Runtime(None, backend.registry) as runtime:
        number = runtime.load_network(optimize(chain("one"), ["Full"], runtime.registry, options))
        (result,) = runtime.enqueue_workload(number, [x], [y])
        assert result is y
        assert backend.pointer("full_input") == address(x)
        assert backend.pointer("full_output") == address(y)
        assert_array_equal(y, np.maximum(x, 0))


@pytest.mark.parametrize("defines", [(), ("ASYNC", "OWN_HANDLES", "OWN_MEMORY")])
def test_several_networks_run_at_once(full: Callable[..., Full], defines: tuple[str, ...]) -> None:
    backend = full(*defines)
    networks = [chain(*(f"{number}_{layer}" for layer in range(number + 1))) for number in range(4)]
    with Runtime(None, backend.registry) as runtime, ThreadPoolExecutor(8) as pool:
        numbers = [runtime.load_network(optimize(net, ["Full"], runtime.registry)) for net in networks]

        def run_one(turn: int) -> bool:
            x = sample(turn)
            (found,) = runtime.enqueue_workload(numbers[turn % 4], [x])
            return np.array_equal(found, np.maximum(x, 0))

        assert all(pool.map(run_one, range(40)))


def test_a_caller_s_array_is_not_kept_for_it(full: Callable[..., Full]) -> None:
    backend = full()
    options = OptimizerOptions(simplify=False, import_enabled=True, export_enabled=True)
    with Runtime(None, backend.registry) as runtime:
        number = runtime.load_network(optimize(chain("one"), ["Full"], runtime.registry, options))
        for seed in range(3):
            x = sample(seed)
            seen = weakref.ref(x)
            assert_array_equal(runtime.enqueue_workload(number, [x])[0], np.maximum(x, 0))
        del x
        gc.collect()
        assert seen() is None


def test_constants_are_not_copied(full: Callable[..., Full]) -> None:
    backend = full()
    data = sample()
    data.setflags(write=False)
    network = Network("constant")
    network.add_input(INFO)
    network.add_constant(TensorInfo("c", INFO.shape, INFO.dtype), data)
    network.add_relu_layer("c", name="y")
    network.set_outputs(["y"])
    with Runtime(None, backend.registry) as runtime:
        optimized = optimize(network, ["Full"], runtime.registry, OptimizerOptions(simplify=False))
        runtime.load_network(optimized)
        assert backend.pointer("full_constant") == address(data)


def test_workloads_get_the_options_of_their_network(full: Callable[..., Full]) -> None:
    backend = full()
    with pytest.raises(UnsupportedError, match="an option refuses it"):
        run(backend, chain("one"), sample(), OptimizerOptions(model_options={"Full": {"refuse": True}}))
    with pytest.raises(DynamicLibraryError, match="an option wants no memory"):
        run(backend, chain("one"), sample(), OptimizerOptions(model_options={"Full": {"refuse": 2}}))


@pytest.mark.parametrize(
    ("faults", "said"),
    [(("BREAK_EXECUTE",), "the device is gone"), (("ASYNC", "BREAK_EVENT"), "it went wrong half-way")],
)
def test_a_failure_names_layer_and_backend(full: Callable[..., Full], faults: tuple[str, ...], said: str) -> None:
    with pytest.raises(DynamicLibraryError, match=rf"layer 'one'.*'Full'.*{said}"):
        run(full(*faults), chain("one"), sample())


def test_a_backend_without_events_is_asked_for_none(full: Callable[..., Full]) -> None:
    network, x = chain("one", "two"), sample()
    assert_array_equal(run(full("ASYNC", "NO_EVENTS"), network, x)[0], network.run([x])[0])


def test_contexts_are_told_of_loads_in_order(full: Callable[..., Full]) -> None:
    backend = full()
    run(backend, chain("one"), sample())
    gc.collect()
    words = [word for word in backend.log().split() if word.endswith(("-load", "-unload", "context"))]
    assert words == ["context", "before-load", "after-load", "before-unload", "after-unload", "~context"]


def test_a_context_refuses_a_load(full: Callable[..., Full]) -> None:
    creation = CreationOptions(backend_options={"Full": {"refuse_load": True}})
    with pytest.raises(NetworkLoadError, match="Full"):
        run(full(), chain("one"), sample(), creation=creation)


def test_a_backend_that_cannot_work_here_says_why(full: Callable[..., Full]) -> None:
    backend = full()
    creation = CreationOptions(backend_options={"Full": {"unavailable": True}})
    with pytest.raises(BackendUnavailableError, match="its device is not there"):
        backend.create().context(creation)
    with Runtime(creation, backend.registry) as runtime:
        assert "Full" not in runtime.registry
        reasons = {row.id: row.reason for row in runtime.backends}
        assert "its device is not there" in reasons["Full"]


def test_profiling_events(full: Callable[..., Full]) -> None:
    backend = full()
    begin = time.perf_counter_ns()
    profiling = backend.create().profiling_context(CreationOptions(profiling=True))
    assert profiling is not None
    assert profiling.enable_profiling(enabled=True)
    run(backend, chain("one", "two"), sample())
    events = profiling.take_events()
    assert [event.name for event in events] == ["one", "two"]
    assert begin < events[0].start_ns <= events[1].start_ns < time.perf_counter_ns()
    assert all(event.duration_ns > 0 for event in events)
    assert profiling.take_events() == []


class Allocator(CustomAllocator):
    """Ordinary memory, with a record of the allocations."""

    source = MemorySource.MALLOC

    def __init__(self) -> None:
        self.given: dict[int, Array] = {}
        self.asked: list[tuple[int, int]] = []

    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        self.asked.append((size_bytes, alignment_bytes))
        if len(self.asked) > 1:
            raise MemoryError
        block = aligned_empty((size_bytes,), DataType.UINT8, alignment_bytes)
        self.given[address(block)] = block
        return MemoryRef.of_array(block)

    def free(self, memory: MemoryRef) -> None:
        assert memory.address is not None
        del self.given[memory.address]


class Protected(Allocator):
    """Protected memory."""

    source = MemorySource.DMA_BUF_PROTECTED


def test_memory_comes_from_a_custom_allocator(full: Callable[..., Full]) -> None:
    backend = full("OWN_MEMORY").create()
    allocator = Allocator()
    assert backend.use_custom_memory_allocator(allocator) == ""
    assert backend.use_custom_memory_allocator(Protected()) == "plain memory only"
    memory = backend.memory_manager(allocator)
    assert memory is not None
    memory.acquire()
    memory.acquire()
    assert allocator.asked == [(1024, 256)]
    (block,) = allocator.given.values()
    assert (block == 0x5A).all()  # the backend wrote to the application's memory
    memory.release()
    assert allocator.given == {}
    with pytest.raises(DynamicLibraryError, match="the allocator has nothing left"):
        memory.acquire()


def test_tensors_in_host_memory_take_an_allocator_too(full: Callable[..., Full]) -> None:
    backend = full().create()
    allocator = Allocator()
    assert backend.use_custom_memory_allocator(allocator) == ""
    assert "no custom allocators" in backend.use_custom_memory_allocator(Protected())
    memory = backend.memory_manager(allocator)
    assert memory is not None
    (factory,) = backend.tensor_handle_factories(memory)
    assert factory.id == HOST_FACTORY
    handle = factory.create_handle(INFO, managed=True)
    handle.manage()
    handle.allocate()
    memory.acquire()
    assert address(handle.map()) in allocator.given
    memory.release()
    assert allocator.given == {}


def own_handle(full: Full, *, managed: bool = True) -> DynamicHandle:
    (factory,) = full.create().tensor_handle_factories(None)
    handle = factory.create_handle(INFO, managed=managed)
    assert isinstance(handle, DynamicHandle)
    return handle


def test_handle_factories_tell_what_they_can(full: Callable[..., Full]) -> None:
    (factory,) = full("OWN_HANDLES").create().tensor_handle_factories(None)
    assert factory.id == "Tests/Full"
    assert factory.import_flags is MemorySource.MALLOC
    assert factory.export_flags is MemorySource.MALLOC
    assert factory.memory_alignment(MemorySource.MALLOC) == 16
    assert factory.supports_map_unmap
    assert factory.capabilities() == {HandleCapability.FALLBACK_IMPORT_DISABLED}
    with pytest.raises(DynamicLibraryError, match="too many dimensions"):
        factory.create_handle(TensorInfo("deep", (1,) * 5, DataType.INT8), managed=True)


def test_handles_show_their_bytes(full: Callable[..., Full]) -> None:
    handle = own_handle(full("OWN_HANDLES"))
    array = handle.map()
    assert (array.shape, array.dtype) == (INFO.shape, np.float32)
    array[:] = 3
    handle.unmap()
    assert (handle.map() == 3).all()
    handle.unmap()


def test_a_workload_gets_its_own_handles_and_the_memory_of_others(full: Callable[..., Full]) -> None:
    backend, network = full("OWN_HANDLES"), chain("one")
    own, other = own_handle(backend), HostTensorHandle(INFO)
    handles = {"x": own, network.outputs[0].name: other}
    info = WorkloadInfo.of(network, network.layers[0], handles.__getitem__, default_target(BackendId("Full")))
    workload = backend.create().workload_factory(None, {}).create_workload(info)
    assert isinstance(workload, DynamicWorkload)
    own.map()[:] = sample()
    own.unmap()
    assert workload.execute() is None
    assert_array_equal(other.map(), np.maximum(sample(), 0))


def test_handles_import(full: Callable[..., Full]) -> None:
    backend = full("OWN_HANDLES")
    handle = own_handle(backend, managed=False)
    with pytest.raises(RuntimeError, match="nothing is imported"):
        handle.map()
    memory = aligned_empty((17,), DataType.FLOAT32)
    x, askew = memory[:16].reshape(INFO.shape), memory[1:].reshape(INFO.shape)
    assert handle.can_import(MemoryRef.of_array(x))
    for array, source in (
        (askew, MemorySource.MALLOC),
        (x, MemorySource.DEVICE),
        (x.T, MemorySource.MALLOC),
        (x.view(np.int32), MemorySource.MALLOC),
        (np.asfortranarray(x), MemorySource.MALLOC),
    ):
        assert not handle.can_import(MemoryRef.of_array(array, source))
        assert not handle.import_memory(MemoryRef.of_array(array, source))
    assert handle.import_memory(MemoryRef.of_array(x))
    assert address(handle.map()) == address(x)
    handle.unmap()
    handle.end_import()
    with pytest.raises(RuntimeError, match="nothing is imported"):
        handle.map()
    assert "import" in backend.log()


def test_what_was_made_outlives_the_backend_object_and_the_registry(full: Callable[..., Full]) -> None:
    backend = full("OWN_HANDLES")
    handle = own_handle(backend)
    context = backend.create().context(CreationOptions())
    backend.registry.close()
    gc.collect()
    handle.map()[:] = 1
    handle.unmap()
    assert context is not None
    assert context.before_load_network(NetworkId(1))


def test_each_object_of_the_backend_is_new(full: Callable[..., Full]) -> None:
    backend = full()
    first, second = backend.create(), backend.create()
    assert first is not second
    assert isinstance(first, DynamicBackend)
    assert first.id == "Full"
    assert first.has_host_face()
    assert first.firmware_target() is None
