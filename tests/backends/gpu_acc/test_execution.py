# SPDX-License-Identifier: Apache-2.0
"""GpuAcc's execution: asynchronous, on chosen devices, in the backend's own or imported memory."""

from __future__ import annotations

import logging
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from gpu_face import GpuGraph, require_opencl
from mock_backends import CountingAllocator
from numpy.testing import assert_array_equal

from ferrule.backends.backend import Backend
from ferrule.backends.capability import ASYNC_EXECUTION, HAS_FP16
from ferrule.backends.context import BackendUnavailableError, CreationOptions, RuntimePart
from ferrule.backends.device import BackendId
from ferrule.backends.gpu_acc import GpuAcc, opencl
from ferrule.backends.gpu_acc.backend import GpuContext
from ferrule.backends.gpu_acc.handle import GpuImportHandle, GpuTensorHandle
from ferrule.backends.gpu_acc.memory import GpuMemoryManager
from ferrule.backends.gpu_acc.opencl import choose_device
from ferrule.backends.gpu_acc.program import build
from ferrule.backends.gpu_acc.session import Session
from ferrule.backends.gpu_acc.trial import try_platform
from ferrule.backends.shared.host_memory import aligned_empty
from ferrule.backends.target import default_target
from ferrule.backends.tensor_handle import MemoryRef, MemorySource
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.optimizer import optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layer_cases import layer_case

TARGET = default_target(BackendId("GpuAcc"))


def chain(layers: int = 3) -> Network:
    network = Network("chain")
    network.add_input(TensorInfo("x", (1, 4, 4, 8), DataType.INT8, quantization=Quantization.of(0.1, 3)))
    source = "x"
    for _ in range(layers):
        source = network.add_max_pool2d_layer(source, (2, 2), padding="same")
    network.set_outputs([source])
    return network


@pytest.fixture
def opencl_device() -> None:
    require_opencl()


with_opencl = pytest.mark.usefixtures("opencl_device")


@with_opencl
def test_workloads_return_before_they_have_run() -> None:
    import pyopencl as cl

    network = chain()
    graph = GpuGraph(network)
    inputs = random_inputs(network, 1)
    graph.write(inputs)
    session = graph.manager.session
    gate = cl.UserEvent(session.context)
    session.submit(lambda queue, waits: cl.enqueue_marker(queue, wait_for=[gate, *waits]), name="gate")
    events = [workload.execute() for workload in graph.workloads]
    try:
        assert not any(event is None or event.done() for event in events)
    finally:
        gate.set_status(cl.command_execution_status.COMPLETE)
    last = events[-1]
    assert last is not None
    last.wait()
    assert all(event is not None and event.done() for event in events)
    (wanted,) = network.run(inputs)
    assert_array_equal(graph.handles[network.outputs[0].name].map(), wanted)


@with_opencl
def test_a_failed_command_raises_when_waited_for() -> None:
    import pyopencl as cl

    session = Session(choose_device())
    gate = cl.UserEvent(session.context)
    event = session.submit(lambda queue, waits: cl.enqueue_marker(queue, wait_for=[gate, *waits]), name="gate")
    gate.set_status(-5)
    with pytest.raises(RuntimeError, match="OpenCL command failed"):
        event.wait()


@with_opencl
def test_memory_is_imported_where_it_fits_only() -> None:
    info = chain().inputs[0]
    handle = GpuImportHandle(info, managed=False)
    with pytest.raises(RuntimeError, match="no memory"):
        _ = handle.memory
    memory = aligned_empty((1, 4, 4, 8), DataType.INT8)
    memory[...] = 5
    assert not handle.import_memory(MemoryRef.of_array(memory, MemorySource.DEVICE))
    assert not handle.import_memory(MemoryRef.of_array(memory[:, ::2]))
    assert not handle.import_memory(MemoryRef.of_array(memory.view(np.uint8)))
    shifted = aligned_empty((129,), DataType.INT8)[1:].reshape(memory.shape)
    assert not handle.import_memory(MemoryRef.of_array(shifted))
    assert handle.import_memory(MemoryRef.of_array(memory))
    with pytest.raises(RuntimeError, match="'Ferrule/GpuAcc/Import', which cannot be mapped"):
        handle.map()
    assert handle.memory.buffer.size == memory.nbytes
    handle.end_import()
    with pytest.raises(RuntimeError, match="no memory"):
        _ = handle.memory


@with_opencl
def test_layers_read_and_write_imported_memory() -> None:
    network = chain(1)
    graph = GpuGraph(network, imported=("x", network.outputs[0].name))
    (data,) = random_inputs(network, 4)
    source, target = (aligned_empty(info.shape, DataType.INT8) for info in (*network.inputs, *network.outputs))
    source[...] = data
    source.setflags(write=False)
    target[...] = 99
    output = graph.handles[network.outputs[0].name]
    assert graph.handles["x"].import_memory(MemoryRef.of_array(source))
    assert output.import_memory(MemoryRef.of_array(target))
    event = graph.workloads[0].execute()
    assert event is not None
    event.wait()
    assert_array_equal(target, network.run([data])[0])


@with_opencl
def test_what_a_kernel_writes_is_mapped_for_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    network = chain(1)
    graph = GpuGraph(network)
    monkeypatch.setattr(Session, "map", lambda _self, _memory, shape, _dtype, *, writing: np.full(shape, writing))
    found = [graph.handles[name].map() for name in ("x", network.outputs[0].name)]
    assert [(array.all(), array.flags.writeable) for array in found] == [(True, True), (False, False)]


@with_opencl
def test_memory_comes_and_goes_with_its_manager() -> None:
    network = chain(1)
    graph = GpuGraph(network)
    inputs = random_inputs(network, 2)
    before = graph.run(inputs)
    assert graph.manager.size_bytes > 0
    graph.manager.release()
    with pytest.raises(RuntimeError, match="no memory"):
        graph.handles["x"].map()
    graph.manager.acquire()
    assert_array_equal(graph.run(inputs)[0], before[0])


@with_opencl
def test_devices_are_chosen_by_number_and_name() -> None:
    device = choose_device()
    assert choose_device(str(device.number)) is device
    assert choose_device(device.name.upper()) is device
    options = CreationOptions(backend_options={"GpuAcc": {"device": "no such"}})
    with pytest.raises(BackendUnavailableError, match="no such"):
        GpuAcc().context(options)


@with_opencl
def test_instances_are_numbered_devices() -> None:
    device = choose_device()
    (result,) = GpuGraph(chain(), device=f"gpu{device.number}").run(random_inputs(chain(), 1))
    assert_array_equal(result, chain().run(random_inputs(chain(), 1))[0])
    for name in ("gpu", "gpu77"):
        with pytest.raises(UnsupportedError, match=name):
            GpuGraph(chain(), device=name)


@with_opencl
def test_the_device_of_a_runtime_reaches_its_networks() -> None:
    device = choose_device()
    options = CreationOptions(backend_options={"GpuAcc": {"device": str(device.number)}})
    context = GpuAcc().context(options)
    assert isinstance(context, GpuContext)
    elsewhere = replace(device, number=77)
    context.device = elsewhere
    manager = GpuMemoryManager()
    GpuAcc().workload_factory_in(RuntimePart(context=context), manager, {})
    assert manager.session.device is elsewhere
    for wanted in ("", str(device.number)):
        manager = GpuMemoryManager()
        GpuAcc().workload_factory_in(RuntimePart(context=context), manager, {"device": wanted})
        assert manager.session.device is (device if wanted else elsewhere)
    manager = GpuMemoryManager()
    GpuAcc().workload_factory(manager, {})
    assert manager.session.device is device


@with_opencl
def test_loads_in_several_threads_keep_their_devices_apart() -> None:
    device = choose_device()
    contexts = []
    for number in range(8):
        context = GpuContext("GpuAcc", CreationOptions())
        context.device = replace(device, number=number)
        contexts.append(context)

    def load(context: GpuContext) -> bool:
        manager = GpuMemoryManager()
        GpuAcc().workload_factory_in(RuntimePart(context=context), manager, {})
        return manager.session.device is context.device

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(load, contexts * 20))


@with_opencl
def test_tensors_live_in_the_memory_of_a_custom_allocator() -> None:
    class Keeping(CountingAllocator):
        def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
            memory = super().allocate(size_bytes, alignment_bytes)
            assert memory.array is not None
            self.block = memory.array
            self.block[:] = 0
            return memory

    allocator = Keeping()
    network = chain()
    with Runtime(CreationOptions(custom_allocators={"GpuAcc": allocator})) as runtime:
        loaded = runtime.load_network(optimize(network, ["GpuAcc"], runtime.registry))
        for seed in range(3):
            inputs = random_inputs(network, seed)
            assert_array_equal(runtime.enqueue_workload(loaded, inputs)[0], network.run(inputs)[0])
        assert allocator.total == 1
        assert len(allocator.held) == 1
        assert allocator.block.size >= network.inputs[0].size_bytes
        assert allocator.block.any()
    assert allocator.held == []


@with_opencl
def test_an_allocator_of_other_memory_is_refused() -> None:
    options = CreationOptions(custom_allocators={"GpuAcc": CountingAllocator(MemorySource.DMA_BUF)})
    with Runtime(options) as runtime:
        assert "GpuAcc" not in runtime.registry
        (row,) = [row for row in runtime.backends if row.id == "GpuAcc"]
    assert (
        row.reason == "it refuses its custom allocator: the allocator returns DMA_BUF memory, but GpuAcc needs MALLOC"
    )


@with_opencl
def test_an_allocator_that_has_no_memory_is_told() -> None:
    class Empty(CountingAllocator):
        def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
            raise MemoryError("all is taken")

    with pytest.raises(FerruleError, match=r"the custom allocator cannot provide \d+ B: all is taken"):
        GpuGraph(chain(), allocator=Empty())


@with_opencl
def test_each_device_has_a_context_of_its_own() -> None:
    for device in opencl.opencl_devices():
        assert device.context.devices == [device.device]


@with_opencl
def test_kernels_are_timed_on_the_clock_of_the_process() -> None:
    import time

    options = CreationOptions(profiling=True)
    context, recorder = GpuAcc().context(options), GpuAcc().profiling_context(options)
    assert recorder is not None
    assert context is not None
    assert recorder.enable_profiling(enabled=True)
    graph = GpuGraph(chain(), runtime=RuntimePart(context=context, profiling=recorder))
    other = GpuGraph(chain())
    start = time.perf_counter_ns()
    graph.run(random_inputs(chain(), 1))
    other.run(random_inputs(chain(), 1))
    end = time.perf_counter_ns()
    events = recorder.take_events()
    assert len(events) == 3
    assert all("max_pool_2d_s8" in event.name for event in events)
    assert all(start <= event.start_ns <= event.start_ns + event.duration_ns <= end for event in events)
    assert recorder.take_events() == []


def test_without_pyopencl_the_backend_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    opencl.opencl_devices.cache_clear()
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    backend: Backend = GpuAcc()
    network = chain(1)
    assert "pyopencl" in backend.layer_support().supports(network, network.layers[0], TARGET).reason
    with pytest.raises(BackendUnavailableError, match="pyopencl"):
        backend.context(CreationOptions())
    opencl.opencl_devices.cache_clear()


def forget_devices() -> None:
    """Clear the caches, so that the platforms are tried again."""
    opencl.opencl_devices.cache_clear()
    try_platform.cache_clear()


@with_opencl
def test_a_device_whose_compiler_fails_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL lists processors that its compiler does not know; layers would be accepted, and fail when loaded."""
    forget_devices()
    monkeypatch.setenv("PYOPENCL_BUILD_OPTIONS", "-no-such-option")
    network = chain(1)
    reason = GpuAcc().layer_support().supports(network, network.layers[0], TARGET).reason
    forget_devices()
    assert reason.startswith("no OpenCL device can be used: ")
    assert "builds no kernel" in reason


@with_opencl
def test_other_types_are_refused_by_name() -> None:
    network = Network("wide")
    network.add_input(TensorInfo("x", (1, 4, 4, 8), DataType.FLOAT32))
    network.add_max_pool2d_layer("x", (2, 2))
    reason = GpuAcc().layer_support().supports(network, network.layers[0], TARGET).reason
    assert "'x'" in reason
    assert "float32" in reason


@with_opencl
def test_layers_without_a_kernel_are_refused_by_name() -> None:
    network = layer_case(LayerType.SVDF, DataType.INT8, 0)
    reason = GpuAcc().layer_support().supports(network, network.layers[0], TARGET).reason
    assert reason == "there is no OpenCL kernel for SVDF"


def test_capabilities_are_those_it_has() -> None:
    assert GpuAcc().capabilities() == {ASYNC_EXECUTION: True}
    assert HAS_FP16 not in GpuAcc().capabilities()


@with_opencl
def test_what_a_compiler_says_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    number = random.getrandbits(31)  # a driver may keep what it built, without what it said
    with caplog.at_level(logging.DEBUG, "ferrule.backends.gpu_acc"):
        build(choose_device(), f'#warning "unusual"\n__kernel void f(__global int *out) {{ out[0] = {number}; }}')
    assert "unusual" in caplog.text
    with pytest.raises(FerruleError, match="cannot be built for"):
        build(choose_device(), "__kernel nothing")


@with_opencl
def test_tensors_share_one_buffer_without_sub_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA's driver crashes when it releases overlapping sub-buffers; a layer reads and writes at offsets instead."""
    import pyopencl as cl

    def refuse(*_: object) -> None:
        raise AssertionError("a sub-buffer was made")

    monkeypatch.setattr(cl.Buffer, "get_sub_region", refuse)
    network = chain(4)
    network.set_outputs([network.add_reshape_layer(network.outputs[0].name, (8, 16)), "x"])
    graph = GpuGraph(network)
    inputs = random_inputs(network, 3)
    results = graph.run(inputs)
    assert [array.tobytes() for array in results] == [array.tobytes() for array in network.run(inputs)]
    places = [handle.memory for handle in graph.handles.values() if isinstance(handle, GpuTensorHandle)]
    assert len({place.buffer.int_ptr for place in places}) == 1
    assert len({place.offset for place in places}) > 1
