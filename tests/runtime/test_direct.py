# SPDX-License-Identifier: Apache-2.0
"""The short way of a run, which networks take from the second run on if their tensors keep their memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from compare import assert_arrays_equal
from mock_backends import Mock, Slow, assigned, chain, mock, registry_of, sample, with_transfer
from small_networks import two_by_two

from ferrule._typing import override
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.cpu_ref.workloads import CpuRefWorkloadFactory
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.tensor_handle import MemoryManager
from ferrule.backends.workload import Workload, WorkloadFactory
from ferrule.errors import FerruleError, InputError
from ferrule.graph import Array, LayerType
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.runtime.direct import DirectRun
from ferrule.testing.backends.comparison import random_inputs


def direct_of(runtime: Runtime, number: int) -> DirectRun | None:
    return runtime._networks[number]._direct  # type: ignore[index]


class Calling(CpuRefWorkloadFactory):
    """CpuRef's workloads, with what `native_call` returns for each."""

    answer: Callable[[Workload], object]

    @override
    def native_call(self, workload: Workload) -> Callable[[], object] | None:
        return self.answer(workload)  # type: ignore[return-value]


def calling(answer: Callable[[Workload], object]) -> type[Mock]:
    def factory(self: Mock, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        del self, memory, options
        made = Calling()
        made.answer = answer  # type: ignore[method-assign]
        return made

    return mock("Calling", workload_factory=factory)


@pytest.mark.parametrize("backend", ["CpuAcc", "CpuRef"])
def test_later_runs_are_direct_and_equal(backend: str) -> None:
    network = two_by_two()
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, [backend], runtime.registry))
        found: set[int] = set()
        for seed in range(4):
            given = random_inputs(network, seed)
            buffers = [np.empty(info.shape, np.int8) for info in network.outputs]
            assert (direct_of(runtime, number) is None) == (seed == 0)
            returned = runtime.enqueue_workload(number, given, buffers)
            assert all(one is other for one, other in zip(returned, buffers, strict=True))
            fresh = runtime.enqueue_workload(number, tuple(given))
            found |= {id(each) for each in fresh}
            for outputs in (buffers, fresh):
                assert_arrays_equal(outputs, network.run(given))
            assert_arrays_equal(runtime.enqueue_workload(number, [each.copy() for each in given]), fresh)


def test_kernels_are_called_without_python() -> None:
    with Runtime() as runtime:
        number = runtime.load_network(optimize(two_by_two(), ["CpuAcc"], runtime.registry))
        runtime.enqueue_workload(number, random_inputs(two_by_two(), 1))
        direct = direct_of(runtime, number)
        assert direct is not None
        assert len(direct.calls) == 1
        assert direct.calls != tuple(step.execute for step in direct.steps)


def test_arrays_by_name_and_several_samples_go_the_long_way() -> None:
    network = two_by_two()
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry))
        given = random_inputs(network, 1)
        expected = runtime.enqueue_workload(number, given)
        named = {info.name: array for info, array in zip(network.inputs, given, strict=True)}
        assert_arrays_equal(runtime.enqueue_workload(number, named), expected)
        buffers = {info.name: np.empty(info.shape, np.int8) for info in network.outputs}
        assert_arrays_equal(runtime.enqueue_workload(number, given, buffers), expected)
        twice = runtime.enqueue_workload(number, [np.concatenate((array, array)) for array in given])
        for both, one in zip(twice, expected, strict=True):
            assert_arrays_equal([both[:1], both[1:]], [one, one])
        strided = [np.repeat(array, 2, axis=-1)[..., ::2] for array in given]
        assert not any(array.flags.c_contiguous for array in strided)
        assert_arrays_equal(runtime.enqueue_workload(number, strided), expected)


def wrong_arrays(given: list[Array]) -> list[list[object]]:
    return [
        given[:1],
        [given[0], given[1].astype(np.uint8)],
        [given[0], given[1][..., :2]],
        [given[0], given[1].tolist()],
    ]


@pytest.mark.parametrize("which", range(4))
def test_arrays_that_do_not_fit_are_refused_as_in_the_first_run(which: int) -> None:
    network = two_by_two()
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry))
        given = random_inputs(network, 1)
        buffers = [np.empty(info.shape, np.int8) for info in network.outputs]
        wrong = [(wrong_arrays(given)[which], buffers), (given, wrong_arrays(buffers)[which])]
        refusals = []
        for _ in range(2):
            for arguments in wrong:
                with pytest.raises(InputError) as refusal:
                    runtime.enqueue_workload(number, *arguments)  # type: ignore[arg-type]
                refusals.append(str(refusal.value))
            assert_arrays_equal(runtime.enqueue_workload(number, given, buffers), network.run(given))
        assert refusals[:2] == refusals[2:]


def test_a_buffer_that_cannot_be_written_is_refused_and_keeps_its_contents() -> None:
    network = two_by_two()
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry))
        given = random_inputs(network, 1)
        buffers = [np.zeros(info.shape, np.int8) for info in network.outputs]
        buffers[1].flags.writeable = False
        runtime.enqueue_workload(number, given)
        with pytest.raises(InputError, match="is read-only"):
            runtime.enqueue_workload(number, given, buffers)
        assert not any(buffer.any() for buffer in buffers)


def test_buffers_may_overlap_the_inputs() -> None:
    with Runtime(registry=registry_of(Mock)) as runtime:
        number = runtime.load_network(assigned(chain(), {}, Mock))
        for _ in range(3):
            array = sample()
            runtime.enqueue_workload(number, [array], [array])
            assert_arrays_equal([array], chain().run([sample()]))


def test_profiles_have_each_layer_of_later_runs() -> None:
    network = two_by_two()
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry))
        given = random_inputs(network, 1)
        profiler = runtime.profiler(number)
        for enabled in (False, True, False, True):
            profiler.clear()
            profiler.enabled = enabled
            assert_arrays_equal(runtime.enqueue_workload(number, given), network.run(given))
            assert len(profiler.events) == (3 if enabled else 0)


def test_networks_with_imports_and_asynchronous_steps_have_no_short_way() -> None:
    linked = assigned(with_transfer(chain(), LayerType.MEM_IMPORT, "layer1"), {}, Mock)
    for optimized, kind in ((linked, Mock), (assigned(chain(), {}, Slow), Slow)):
        with Runtime(registry=registry_of(kind)) as runtime:
            number = runtime.load_network(optimized)
            for _ in range(2):
                assert_arrays_equal(runtime.enqueue_workload(number, [sample()]), chain().run([sample()]))
                assert direct_of(runtime, number) is None
    with Runtime() as runtime:
        options = OptimizerOptions(import_enabled=True, export_enabled=True)
        number = runtime.load_network(optimize(two_by_two(), ["CpuAcc"], runtime.registry, options))
        runtime.enqueue_workload(number, random_inputs(two_by_two(), 1))
        assert direct_of(runtime, number) is None


def test_a_step_that_fails_later_is_named_and_the_network_runs_again() -> None:
    broken = [False]

    class Failing(CpuRefWorkloadFactory):
        @override
        def join(self, workloads: object) -> None:
            return None

        @override
        def create_workload(self, info: object) -> Workload:  # type: ignore[override]
            made = super().create_workload(info)  # type: ignore[arg-type]

            class Wrapped:
                def execute(self) -> None:
                    if broken[0]:
                        raise FerruleError("it is too warm")
                    made.execute()

            return Wrapped()

    def factory(self: Mock, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        del self, memory, options
        return Failing()

    kind = mock("Failing", workload_factory=factory)
    with Runtime(registry=registry_of(kind)) as runtime:
        number = runtime.load_network(assigned(chain(), {}, kind))
        runtime.enqueue_workload(number, [sample()])
        assert direct_of(runtime, number) is not None
        broken[0] = True
        with pytest.raises(FerruleError, match=r"^layer 'layer0' .* on backend 'Failing', device 'Failing': it is too"):
            runtime.enqueue_workload(number, [sample()])
        broken[0] = False
        assert_arrays_equal(runtime.enqueue_workload(number, [sample()]), chain().run([sample()]))


def test_native_calls_take_the_place_of_workloads() -> None:
    runs: list[str] = []

    def answer(workload: Workload) -> Callable[[], object]:
        def call() -> None:
            runs.append("called")
            workload.execute()

        return call

    kind = calling(answer)
    with Runtime(registry=registry_of(kind)) as runtime:
        number = runtime.load_network(assigned(chain(), {}, kind))
        for expected in (0, 4, 8):
            assert_arrays_equal(runtime.enqueue_workload(number, [sample()]), chain().run([sample()]))
            assert len(runs) == expected


@pytest.mark.parametrize("answer", [lambda workload: 3, lambda workload: 1 // 0], ids=["wrong", "failing"])
def test_a_wrong_native_call_names_the_backend(answer: Callable[[Workload], object]) -> None:
    kind = calling(answer)
    with Runtime(registry=registry_of(kind)) as runtime:
        number = runtime.load_network(assigned(chain(), {}, kind))
        with pytest.raises(BrokenBackendError, match=r"backend 'Calling'.*native_call\(\)"):
            runtime.enqueue_workload(number, [sample()])


def test_an_unloaded_network_is_not_run() -> None:
    with Runtime() as runtime:
        number = runtime.load_network(optimize(two_by_two(), ["CpuAcc"], runtime.registry))
        given = random_inputs(two_by_two(), 1)
        runtime.enqueue_workload(number, given)
        loaded = runtime._networks[number]
        runtime.unload_network(number)
        with pytest.raises(FerruleError, match="was unloaded"):
            loaded.run(given, None)
