# SPDX-License-Identifier: Apache-2.0
"""Loading, execution and unloading of networks."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_networks
from compare import assert_arrays_equal
from mock_backends import SHAPE, CountingAllocator, Mock, assigned, chain, check_chain, mock, registry_of, sample
from numpy.testing import assert_array_equal

from ferrule import formats
from ferrule.backends import Backend
from ferrule.backends.context import CreationOptions, NetworkId
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.tensor_handle import MemoryRef
from ferrule.errors import FerruleError, InputError
from ferrule.graph import Array, DataType, Graph, TensorInfo
from ferrule.network import Network
from ferrule.optimizer.options import OptimizerOptions
from ferrule.runtime import NetworkLoadError, Runtime

BOTH = OptimizerOptions(import_enabled=True, export_enabled=True)
OPTIONS = pytest.mark.parametrize("options", [OptimizerOptions(), BOTH], ids=["copied", "imported"])
MODELS = (
    "ad01_int8.tflite",
    "kws_ref_model.tflite",
    "pretrainedResnet_quant.tflite",
    "vww_96_int8.tflite",
    "ad01_fp32.tflite",
    "pretrainedResnet.tflite",
    "vww_96_float.tflite",
)


def fresh() -> Runtime:
    return Runtime(registry=registry_of(Mock, CpuRef))


@OPTIONS
def test_a_network_gives_what_the_reference_gives(options: OptimizerOptions) -> None:
    network, x = chain(), sample()
    with fresh() as runtime:
        number = runtime.load_network(assigned(network, {}, options=options))
        for inputs in ([x], (x,), {"x": x}):
            (output,) = runtime.enqueue_workload(number, inputs)
            assert_array_equal(output, network.run([x])[0])


@pytest.mark.parametrize("name", MODELS)
@OPTIONS
def test_the_models_run_on_cpu_ref_as_the_network_itself(models: Path, name: str, options: OptimizerOptions) -> None:
    network = formats.load(models / name)
    generator = np.random.default_rng(3)
    with Runtime() as runtime:
        number = runtime.load_network(assigned(network, {}, CpuRef, options))
        for _ in range(2):
            inputs = [
                generator.normal(size=info.shape).astype(np.float32)
                if info.dtype.is_float
                else generator.integers(-128, 128, info.shape, dtype=np.int8)
                for info in network.inputs
            ]
            got = runtime.enqueue_workload(number, inputs)
            assert_arrays_equal(got, network.run(inputs))


@OPTIONS
@pytest.mark.parametrize("kind", ["aligned", "misaligned", "strided"])
def test_outputs_are_written_in_the_callers_buffers(options: OptimizerOptions, kind: str) -> None:
    network, x = chain(), sample()
    memory = np.zeros(200, np.uint8)
    start = -memory.ctypes.data % 64 + (kind == "misaligned")
    buffer = memory[start : start + 64].view(np.float32).reshape(SHAPE)
    if kind == "strided":
        buffer = np.zeros((2, 16), np.float32)[:, ::2]
    (name,) = (info.name for info in network.outputs)
    with fresh() as runtime:
        number = runtime.load_network(assigned(network, {}, options=options))
        for outputs in ([buffer], {name: buffer}):
            buffer[...] = 0
            (output,) = runtime.enqueue_workload(number, [x], outputs)
            assert output is buffer
            assert_array_equal(buffer, network.run([x])[0])


@OPTIONS
def test_inputs_may_be_misaligned_strided_or_read_only(options: OptimizerOptions) -> None:
    network, x = chain(), sample()
    odd = np.zeros(65, np.uint8)[1:].view(np.float32).reshape(SHAPE)
    wide = np.zeros((2, 16), np.float32)
    frozen = x.copy()
    frozen.flags.writeable = False
    odd[...] = x
    wide[:, ::2] = x
    with fresh() as runtime:
        number = runtime.load_network(assigned(network, {}, options=options))
        for array in (odd, wide[:, ::2], frozen, np.asfortranarray(x), x):
            (output,) = runtime.enqueue_workload(number, [array])
            assert_array_equal(output, network.run([x])[0])
            assert_array_equal(array, x)


@OPTIONS
def test_samples_divide_the_first_axis(options: OptimizerOptions) -> None:
    network = two_outputs()
    x = np.concatenate([sample() * factor for factor in (1, -2, 3)])
    expected = network.run([x])
    with fresh() as runtime:
        number = runtime.load_network(assigned(network, {}, options=options))
        for inputs in ([x], {"x": np.asfortranarray(x)}):
            assert_arrays_equal(runtime.enqueue_workload(number, inputs), expected)
        wide = np.zeros((6, 16), np.float32)
        buffers = [wide[:, ::2], np.zeros((6, 8), np.float32)]
        found = runtime.enqueue_workload(number, [x], buffers)
        for output, buffer, wanted in zip(found, buffers, expected, strict=True):
            assert output is buffer
            assert_array_equal(buffer, wanted)
        with pytest.raises(InputError, match=r"is float32\[2, 8\], expected a writeable float32\[6, 8\]"):
            runtime.enqueue_workload(number, [x], [np.zeros(SHAPE, np.float32), buffers[1]])
        with pytest.raises(InputError, match=r"is float32\[5, 8\], expected float32\[2, 8\], or a multiple of 2"):
            runtime.enqueue_workload(number, [x[:5]])


@OPTIONS
def test_buffers_over_later_samples_do_not_change_them(options: OptimizerOptions) -> None:
    network = two_outputs()
    memory = np.concatenate([sample() * factor for factor in (1, -2, 3, 4)])
    expected = network.run([memory[:6]])
    with fresh() as runtime:
        number = runtime.load_network(assigned(network, {}, options=options))
        first, _ = runtime.enqueue_workload(number, [memory[:6]], [memory[2:], np.empty((6, 8), np.float32)])
        assert_array_equal(first, expected[0])


def test_real_numbers_are_quantised_and_dequantised() -> None:
    network, real = small_networks.dense(), np.linspace(-3, 3, 18).reshape(3, 6)
    with Runtime(registry=registry_of(CpuRef)) as runtime:
        number = runtime.load_network(assigned(network, {}, CpuRef))
        (found,) = runtime.enqueue_workload(number, [real], real=True)
        assert found.tobytes() == network.run([real], real=True)[0].tobytes()
        with pytest.raises(InputError, match="output buffers and real=True"):
            runtime.enqueue_workload(number, [real], [np.zeros(found.shape, np.float32)], real=True)
        with pytest.raises(InputError, match="'x' is float64") as caught:
            runtime.enqueue_workload(number, [real])
        assert "real=True" in str(caught.value.hint)


@OPTIONS
def test_a_buffer_may_be_the_input_itself(options: OptimizerOptions) -> None:
    network = two_outputs()
    x = sample()
    expected = network.run([x])
    with fresh() as runtime:
        number = runtime.load_network(assigned(network, {}, options=options))
        mine = x.copy()
        first, second = runtime.enqueue_workload(number, [mine], [mine, np.empty(SHAPE, np.float32)])
        assert_array_equal(first, expected[0])
        assert_array_equal(second, expected[1])


def two_outputs() -> Graph:
    """Return a network whose second layer reads the input after the first has written an output."""
    network = chain(1)
    second = network.add_leaky_relu_layer("x", 0.25, name="late")
    network.set_outputs(["layer0", second])
    return network


@OPTIONS
def test_outputs_may_be_inputs_constants_and_stand_twice(options: OptimizerOptions) -> None:
    network = chain(2)
    fixed = network.add_constant(TensorInfo("fixed", SHAPE, DataType.FLOAT32), sample(9))
    network.set_outputs(["layer1", "x", fixed, "layer0", "layer1", "x"])
    x = sample()
    with fresh() as runtime:
        number = runtime.load_network(assigned(network, {}, options=options))
        got = runtime.enqueue_workload(number, [x])
        assert_arrays_equal(got, network.run([x]))


@OPTIONS
def test_a_network_without_layers(options: OptimizerOptions) -> None:
    network = Graph("empty")
    network.add_input(TensorInfo("x", SHAPE, DataType.FLOAT32))
    network.add_input(TensorInfo("unused", SHAPE, DataType.FLOAT32))
    network.set_outputs(["x"])
    with fresh() as runtime:
        number = runtime.load_network(assigned(network, {}, options=options))
        (output,) = runtime.enqueue_workload(number, [sample(), sample(1)])
        assert_array_equal(output, sample())


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "got 0 inputs, expected 1"),
        ([sample(), sample()], "got 2 inputs"),
        ({}, "input 'x' is missing"),
        ({"y": sample()}, "no input 'y'"),
        ({"x": sample(), "y": sample()}, "no input 'y'"),
        ([sample(shape=(2, 7))], r"is float32\[2, 7\]"),
        ([sample().astype(np.float64)], "float64"),
        ([sample().astype(">f4")], ">f4"),
        ([sample().tolist()], "list as input"),
        ({"x": 3.0}, "float as input"),
    ],
)
def test_wrong_inputs_are_input_errors(inputs: list[Array], message: str) -> None:
    with fresh() as runtime:
        number = runtime.load_network(assigned(chain(), {}))
        with pytest.raises(InputError, match=message):
            runtime.enqueue_workload(number, inputs)
        runtime.enqueue_workload(number, [sample()])


def frozen() -> Array:
    array = np.empty(SHAPE, np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([], "got 0 output buffers, expected 1"),
        ({"y": sample()}, "no output 'y'"),
        ([sample(shape=(2, 7))], r"is float32\[2, 7\]"),
        ([np.empty(SHAPE, np.int32)], "is int32"),
        ([[1.0]], "is list"),
        ([frozen()], "is read-only"),
    ],
)
@OPTIONS
def test_wrong_buffers_are_input_errors(outputs: list[Array], message: str, options: OptimizerOptions) -> None:
    with fresh() as runtime:
        number = runtime.load_network(assigned(chain(), {}, options=options))
        with pytest.raises(InputError, match=message):
            runtime.enqueue_workload(number, [sample()], outputs)


def test_numbers_differ_and_unknown_ones_are_errors() -> None:
    with fresh() as runtime:
        first, second = (runtime.load_network(assigned(chain(length), {})) for length in (1, 2))
        assert first != second
        runtime.unload_network(first)
        third = runtime.load_network(assigned(chain(3), {}))
        assert third not in {first, second}
        for call in (
            lambda: runtime.enqueue_workload(first, [sample()]),
            lambda: runtime.unload_network(first),
            lambda: runtime.profiler(NetworkId(77)),
        ):
            with pytest.raises(FerruleError, match="no loaded network") as caught:
                call()
            assert caught.value.hint == f"loaded: {second}, {third}"


def test_close_is_idempotent_and_final() -> None:
    runtime = fresh()
    number = runtime.load_network(assigned(chain(), {}))
    runtime.close()
    runtime.close()
    with pytest.raises(FerruleError, match="closed"):
        runtime.enqueue_workload(number, [sample()])
    with pytest.raises(FerruleError, match="closed"):
        runtime.load_network(assigned(chain(), {}))


def test_a_backend_that_is_not_there_is_refused() -> None:
    with (
        Runtime(registry=registry_of(CpuRef)) as runtime,
        pytest.raises(NetworkLoadError, match="'Mock' is not usable"),
    ):
        runtime.load_network(assigned(chain(), {}))


def test_a_backend_without_host_face_runs_nothing() -> None:
    firmware_only = mock("FirmwareOnly", workload_factory=lambda self, memory, options: None)
    with (
        Runtime(registry=registry_of(firmware_only)) as runtime,
        pytest.raises(NetworkLoadError, match=r"layer 'layer0' .* 'FirmwareOnly'.*nothing on the host"),
    ):
        runtime.load_network(assigned(chain(), {}, firmware_only))


def test_a_factory_of_a_backend_without_layers_is_found() -> None:
    """The optimizer may leave a tensor with a backend after it has removed that backend's last layer."""
    optimized = replace(assigned(chain(), {"layer1": CpuRef}), assignment=assigned(chain(), {}).assignment)
    with fresh() as runtime:
        number = runtime.load_network(optimized)
        check_chain(runtime, number)


def test_unknown_factories_are_refused() -> None:
    optimized = replace(assigned(chain(), {"layer1": mock("Stranger")}), assignment=assigned(chain(), {}).assignment)
    with fresh() as runtime, pytest.raises(NetworkLoadError, match="factory 'Stranger/Factory'"):
        runtime.load_network(optimized)


def test_incomplete_networks_are_refused() -> None:
    whole = assigned(chain(), {})
    with fresh() as runtime:
        with pytest.raises(NetworkLoadError, match="layer 'layer0' has no backend"):
            runtime.load_network(replace(whole, assignment={}))
        with pytest.raises(NetworkLoadError, match="tensor 'x' has no tensor handle factory"):
            runtime.load_network(replace(whole, factories={}))


def test_backends_without_factories_use_plain_memory() -> None:
    plain = mock("Plain", tensor_handle_factories=lambda self, memory: (), memory_manager=lambda self, allocator: None)
    whole = assigned(chain(), {})
    assignment = {name: replace(found, backend=plain.id) for name, found in whole.assignment.items()}
    optimized = replace(whole, assignment=assignment, factories=dict.fromkeys(whole.factories))
    with Runtime(registry=registry_of(plain)) as runtime:
        number = runtime.load_network(optimized)
        check_chain(runtime, number)


def test_two_runtimes_at_once_and_closing_one_leaves_the_other() -> None:
    """In Arm NN, destroying the first runtime deregisters a backend that the second still uses."""
    registry = registry_of(Mock)
    first, second = Runtime(registry=registry), Runtime(registry=registry)
    numbers = [runtime.load_network(assigned(chain(), {})) for runtime in (first, second)]
    first.close()
    assert Mock.id in second.registry
    check_chain(second, numbers[1])
    second.load_network(assigned(chain(), {}))
    second.close()
    for _ in range(3):
        with Runtime(registry=registry) as again:
            again.load_network(assigned(chain(), {}))
    assert registry.ids() == (Mock.id,)


def test_what_one_runtime_registers_is_its_own() -> None:
    registry = registry_of(CpuRef)
    released: list[str] = []
    with Runtime(registry=registry) as first, Runtime(registry=registry) as second:
        first.registry.register("Extra", mock("Extra"), on_release=lambda: released.append("first"))
        second.registry.register("Extra", mock("Extra"), on_release=lambda: released.append("second"))
        assert "Extra" not in registry
        first.close()
        assert released == ["first"]
        assert "Extra" in second.registry
    assert released == ["first", "second"]


def test_a_folder_for_dynamic_backends_that_is_not_there_is_reported(tmp_path: Path) -> None:
    options = CreationOptions(dynamic_backends_path=tmp_path / "missing")
    with Runtime(options, registry_of(Mock)) as runtime:
        (row,) = runtime.dynamic_report
        assert not row.accepted
        assert runtime.registry.ids() == (Mock.id,)
    with Runtime(CreationOptions(dynamic_backends_path=tmp_path), registry_of(Mock)) as runtime:
        assert runtime.dynamic_report == ()


def run_in_threads(runtime: Runtime, networks: Sequence[Network], numbers: Sequence[NetworkId]) -> None:
    def work(index: int) -> None:
        for turn in range(30):
            x = sample(index * 100 + turn)
            (output,) = runtime.enqueue_workload(numbers[index], [x])
            assert_array_equal(output, networks[index].run([x])[0])

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, index) for index in range(8)]:
            done.result()


def test_different_networks_run_in_many_threads() -> None:
    networks = [chain(length) for length in range(1, 9)]
    with fresh() as runtime:
        run_in_threads(runtime, networks, [runtime.load_network(assigned(network, {})) for network in networks])


@OPTIONS
def test_one_network_runs_in_many_threads(options: OptimizerOptions) -> None:
    network = chain()
    with fresh() as runtime:
        run_in_threads(runtime, [network] * 8, [runtime.load_network(assigned(network, {}, options=options))] * 8)


def test_networks_are_loaded_and_unloaded_in_many_threads() -> None:
    with fresh() as runtime, ThreadPoolExecutor(4) as pool:

        def work(index: int) -> None:
            for turn in range(10):
                number = runtime.load_network(assigned(chain(), {}))
                x = sample(index * 10 + turn)
                assert_array_equal(runtime.enqueue_workload(number, [x])[0], chain().run([x])[0])
                runtime.unload_network(number)

        for done in [pool.submit(work, index) for index in range(4)]:
            done.result()


def test_an_unload_waits_for_the_current_run() -> None:
    entered, gate = threading.Event(), threading.Event()

    class Gated(Mock):
        id = mock("Gated").id

        def workload_factory(self, memory: object, options: object) -> object:  # type: ignore[override]
            inner = CpuRef().workload_factory(None, {})

            class Factory:
                def create_workload(self, info: object) -> object:
                    made = inner.create_workload(info)  # type: ignore[arg-type]

                    class Workload:
                        def execute(self) -> None:
                            entered.set()
                            assert gate.wait(10)
                            made.execute()

                    return Workload()

            return Factory()

    with Runtime(registry=registry_of(Gated)) as runtime, ThreadPoolExecutor(2) as pool:
        number = runtime.load_network(assigned(chain(1), {}, Gated))
        run = pool.submit(runtime.enqueue_workload, number, [sample()])
        assert entered.wait(10)
        unload = pool.submit(runtime.unload_network, number)
        with pytest.raises(TimeoutError):
            unload.result(0.05)
        gate.set()
        assert_array_equal(run.result(10)[0], chain(1).run([sample()])[0])
        unload.result(10)
        with pytest.raises(FerruleError, match="no loaded network"):
            runtime.enqueue_workload(number, [sample()])


def test_memory_is_acquired_before_the_first_run_and_released_at_unload() -> None:
    allocator = CountingAllocator()
    with Runtime(CreationOptions(custom_allocators={"Mock": allocator}), registry_of(Mock)) as runtime:
        number = runtime.load_network(assigned(chain(), {}))
        assert allocator.total == 0
        for _ in range(3):
            runtime.enqueue_workload(number, [sample()])
        assert (allocator.total, len(allocator.held)) == (1, 1)
        runtime.unload_network(number)
        assert allocator.held == []
        runtime.load_network(assigned(chain(), {}))
        runtime.enqueue_workload(runtime.load_network(assigned(chain(), {})), [sample()])
    assert (allocator.total, allocator.held) == (2, [])


def test_memory_that_cannot_be_had_is_asked_for_again() -> None:
    class Failing(CountingAllocator):
        fails = True

        def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
            if self.fails:
                raise MemoryError("none")
            return super().allocate(size_bytes, alignment_bytes)

    first, second = CountingAllocator(), Failing()
    other = mock("Other")
    options = CreationOptions(custom_allocators={"Mock": first, "Other": second})
    with Runtime(options, registry_of(Mock, other)) as runtime:
        number = runtime.load_network(assigned(chain(), {"layer1": other}))
        with pytest.raises(FerruleError, match="cannot provide"):
            runtime.enqueue_workload(number, [sample()])
        assert first.held == []
        second.fails = False
        runtime.enqueue_workload(number, [sample()])
        assert len(first.held) == len(second.held) == 1
    assert first.held == second.held == []


def test_an_unloaded_network_leaves_nothing_behind() -> None:
    kept: list[weakref.ref[object]] = []

    class Tracked(Mock):
        id = mock("Tracked").id

        def memory_manager(self, allocator: object = None) -> object:  # type: ignore[override]
            made = super().memory_manager()
            kept.append(weakref.ref(made))
            return made

        def workload_factory(self, memory: object, options: object) -> object:  # type: ignore[override]
            made = super().workload_factory(None, {})
            kept.append(weakref.ref(made))
            return made

    with Runtime(CreationOptions(profiling=True), registry_of(Tracked)) as runtime:
        optimized = assigned(chain(), {}, Tracked, BOTH)
        kept.append(weakref.ref(optimized.graph))
        number = runtime.load_network(optimized)
        x = sample()
        (output,) = runtime.enqueue_workload(number, [x])
        for array in (x, output):
            kept.append(weakref.ref(array))
        del x, output, array
        gc.collect()
        assert [entry() for entry in kept[-2:]] == [None, None], "arrays of a run that is over"
        runtime.unload_network(number)
        del optimized
        gc.collect()
        assert [entry() for entry in kept] == [None] * 5


def test_no_backend_object_outlives_the_call_that_made_it() -> None:
    """Backend objects from the registry are dropped at once, and a run after garbage collection still works."""
    made: list[weakref.ref[Backend]] = []
    registry = BackendRegistry()

    def factory() -> Backend:
        backend = Mock()
        made.append(weakref.ref(backend))
        return backend

    registry.register("Mock", factory)
    with Runtime(registry=registry) as runtime:
        number = runtime.load_network(assigned(chain(), {}))
        gc.collect()
        assert made
        assert [entry() for entry in made] == [None] * len(made)
        check_chain(runtime, number)
        runtime.unload_network(number)


def test_a_failing_workload_is_located_and_the_network_goes_on() -> None:
    class Moody(Mock):
        id = mock("Moody").id
        failure: Exception | None = None

        def workload_factory(self, memory: object, options: object) -> object:  # type: ignore[override]
            inner = CpuRef().workload_factory(None, {})

            class Factory:
                def create_workload(self, info: object) -> object:
                    made = inner.create_workload(info)  # type: ignore[arg-type]

                    class Workload:
                        def execute(self) -> None:
                            if Moody.failure is not None:
                                raise Moody.failure
                            made.execute()

                    return Workload()

            return Factory()

    with Runtime(registry=registry_of(Moody, Mock)) as runtime:
        number = runtime.load_network(assigned(chain(), {"layer2": Moody}))
        Moody.failure = FerruleError("out of paper")
        with pytest.raises(FerruleError, match=r"layer 'layer2' \(LEAKY_RELU\) on backend 'Moody'.*: out of paper"):
            runtime.enqueue_workload(number, [sample()])
        Moody.failure = OSError("gone")
        message = r"layer 'layer2' \(LEAKY_RELU\) on backend 'Moody'.*failed in execute\(\): OSError: gone"
        with pytest.raises(BrokenBackendError, match=message):
            runtime.enqueue_workload(number, [sample()])
        Moody.failure = None
        check_chain(runtime, number)
