# SPDX-License-Identifier: Apache-2.0
"""Transfers between backends: copies, imports, asynchronous workloads, debug layers."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

import numpy as np
import pytest
from compare import assert_arrays_equal
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_backends import (
    SHAPE,
    Fussy,
    Mock,
    Slow,
    SlowWorkload,
    Unmapped,
    assigned,
    chain,
    check_chain,
    mock,
    registry_of,
    sample,
    with_transfer,
)
from numpy.testing import assert_array_equal

from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.shared.host_memory import (
    HostMemoryManager,
    HostTensorHandle,
    HostTensorHandleFactory,
    TensorImportError,
    aligned_empty,
)
from ferrule.backends.tensor_handle import Event, MemoryRef, MemorySource, TensorHandleFactory
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, Graph, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.runtime.errors import NetworkLoadError

BOTH = OptimizerOptions(import_enabled=True, export_enabled=True)
OPTIONS = pytest.mark.parametrize("options", [OptimizerOptions(), BOTH], ids=["copied", "imported"])


@OPTIONS
@pytest.mark.parametrize("type_", [LayerType.MEM_COPY, LayerType.MEM_IMPORT])
@pytest.mark.parametrize("after", ["layer0", "layer1", "layer3"])
def test_a_tensor_changes_hands(type_: LayerType, after: str, options: OptimizerOptions) -> None:
    graph = with_transfer(chain(), type_, after)
    names = [layer.name for layer in graph.layers]
    behind = dict.fromkeys(names[names.index(after) + 1 :], Mock)
    with Runtime(registry=registry_of(CpuRef, Mock)) as runtime:
        number = runtime.load_network(assigned(graph, behind, CpuRef, options))
        for seed in range(3):
            x = sample(seed)
            (output,) = runtime.enqueue_workload(number, [x])
            assert_array_equal(output, chain().run([x])[0])


def test_an_import_makes_no_copy() -> None:
    seen: list[tuple[Array, Array]] = []

    class Watched(HostTensorHandle):
        def import_memory(self, memory: MemoryRef) -> bool:
            done = super().import_memory(memory)
            assert memory.array is not None
            seen.append((memory.array, self.map()))
            return done

    class WatchedFactory(TensorHandleFactory):
        id = Mock.factory_id
        import_flags = export_flags = MemorySource.MALLOC

        def create_handle(self, info: TensorInfo, *, managed: bool) -> HostTensorHandle:
            return Watched(info, managed=managed)

    watching = mock(
        "Mock",
        tensor_handle_factories=lambda self, memory: (WatchedFactory(),),
        memory_manager=lambda self, allocator: None,
    )
    graph = with_transfer(chain(), LayerType.MEM_IMPORT, "layer1")
    behind = dict.fromkeys(("transfer_layer1", "layer2", "layer3"), watching)
    with Runtime(registry=registry_of(CpuRef, watching)) as runtime:
        number = runtime.load_network(assigned(graph, behind, CpuRef))
        runtime.enqueue_workload(number, [sample()])
        runtime.enqueue_workload(number, [sample()])
    assert len(seen) == 2
    assert all(np.shares_memory(memory, mapped) for memory, mapped in seen)


class DemandingFactory(HostTensorHandleFactory):
    """Imports only memory at addresses that are multiples of 64."""

    def __init__(self, manager: HostMemoryManager | None) -> None:
        super().__init__(Mock.factory_id, manager, alignment_bytes=64)


DEMANDING = mock(
    "Mock",
    tensor_handle_factories=lambda self, memory: (DemandingFactory(memory),),
)


@pytest.mark.parametrize("elements", [0, 1])
def test_the_callers_memory_suits_whoever_imports_it_in_the_end(elements: int) -> None:
    """CpuRef accepts memory at any address and passes it on to a backend that does not."""
    size = int(np.prod(SHAPE))
    memory = aligned_empty((size + elements,), DataType.FLOAT32)[elements:].reshape(SHAPE)
    buffer = aligned_empty((size + elements,), DataType.FLOAT32)[elements:].reshape(SHAPE)
    memory[...] = sample()
    network = chain()
    network.set_outputs(["layer1", "layer3"])  # the demanding backend reads the first of them, too
    options = OptimizerOptions(hints={"layer2": DEMANDING.id}, import_enabled=True, export_enabled=True, simplify=False)
    graph = with_transfer(chain(), LayerType.MEM_IMPORT, "layer1")
    with Runtime(registry=registry_of(CpuRef, DEMANDING)) as runtime:
        optimized = optimize(network, [CpuRef.id], runtime.registry, options)
        assert LayerType.MEM_IMPORT in {layer.type for layer in optimized.graph.layers}
        number = runtime.load_network(optimized)
        (first, last) = runtime.enqueue_workload(number, [memory], {"layer1": buffer})
        assert first is buffer
        assert_arrays_equal((first, last), network.run([memory]))
        behind = dict.fromkeys((layer.name for layer in graph.layers[2:]), DEMANDING)
        chained = runtime.load_network(assigned(graph, behind, CpuRef, BOTH))
        assert_array_equal(runtime.enqueue_workload(chained, [memory])[0], chain().run([memory])[0])


def test_a_refused_import_is_an_error_that_names_both_backends() -> None:
    """Arm NN ignores the refusal and continues with zeros."""
    graph = with_transfer(chain(), LayerType.MEM_IMPORT, "layer1")
    behind = dict.fromkeys(("transfer_layer1", "layer2", "layer3"), Fussy)
    with Runtime(registry=registry_of(CpuRef, Fussy)) as runtime:
        number = runtime.load_network(assigned(graph, behind, CpuRef))
        for _ in range(2):
            with pytest.raises(TensorImportError, match=r"'Fussy' did not import tensor 'layer1' .* 'CpuRef'"):
                runtime.enqueue_workload(number, [sample()])


@pytest.mark.parametrize("elements", [0, 1], ids=["aligned", "misaligned"])
def test_a_backend_without_map_works_on_imported_memory(elements: int) -> None:
    """The runtime imports the caller's arrays where they are aligned, and its own elsewhere."""
    size = int(np.prod(SHAPE))
    buffer, x = (aligned_empty((size + elements,), DataType.FLOAT32)[elements:].reshape(SHAPE) for _ in range(2))
    with Runtime(registry=registry_of(Unmapped)) as runtime:
        number = runtime.load_network(optimize(chain(), [Unmapped.id], runtime.registry, BOTH))
        for seed in range(3):
            x[...] = sample(seed)
            (output,) = runtime.enqueue_workload(number, [x], [buffer])
            assert_array_equal(output, chain().run([x])[0])


@pytest.mark.parametrize(
    ("graph", "options"),
    [
        (chain(), OptimizerOptions(export_enabled=True)),
        (with_transfer(chain(), LayerType.MEM_COPY, "layer1"), BOTH),
        (with_transfer(chain(), LayerType.MEM_IMPORT, "layer1"), BOTH),
        (with_transfer(chain(), LayerType.DEBUG, "layer1"), BOTH),
    ],
    ids=["input", "copy", "import", "debug"],
)
def test_a_network_that_needs_a_map_of_handles_without_is_not_loaded(graph: Graph, options: OptimizerOptions) -> None:
    with (
        Runtime(registry=registry_of(Unmapped)) as runtime,
        pytest.raises(NetworkLoadError, match="has handles of 'Unmapped/Factory', which cannot be mapped"),
    ):
        runtime.load_network(assigned(graph, {}, Unmapped, options))


@pytest.mark.parametrize("where", ["inputs", "outputs"])
def test_a_factory_that_breaks_its_promise_at_the_border_is_an_error(where: str) -> None:
    options = OptimizerOptions(import_enabled=where == "inputs", export_enabled=where == "outputs")
    with Runtime(registry=registry_of(Fussy)) as runtime:
        number = runtime.load_network(assigned(chain(), {}, Fussy, options))
        with pytest.raises(TensorImportError, match="'Fussy/Factory' does not import"):
            runtime.enqueue_workload(number, [sample()])


@OPTIONS
def test_asynchronous_workloads_are_waited_for_at_the_outputs_only(
    options: OptimizerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    length, started, all_started = 6, list[SlowWorkload](), threading.Event()
    execute = SlowWorkload.execute

    def start(workload: SlowWorkload) -> Event:
        started.append(workload)
        if len(started) == length:
            all_started.set()
        return execute(workload)

    def delay(_seconds: float) -> None:
        assert all_started.wait(60), "a workload was waited for before the others were started"

    monkeypatch.setattr(SlowWorkload, "execute", start)
    monkeypatch.setattr("mock_backends.sleep", delay)
    with Runtime(registry=registry_of(Slow)) as runtime:
        number = runtime.load_network(assigned(chain(length), {}, Slow, options))
        for seed in range(3):
            started.clear()
            all_started.clear()
            (output,) = runtime.enqueue_workload(number, [sample(seed)])
            assert len(started) == length
            assert_array_equal(output, chain(length).run([sample(seed)])[0])


@OPTIONS
@pytest.mark.parametrize("type_", [None, LayerType.MEM_COPY, LayerType.MEM_IMPORT])
@pytest.mark.parametrize("slow", [("layer0", "layer1"), ("layer2", "layer3")])
def test_another_backend_waits_for_asynchronous_workloads(
    type_: LayerType | None, slow: tuple[str, str], options: OptimizerOptions
) -> None:
    graph = chain() if type_ is None else with_transfer(chain(), type_, "layer1")
    backends = dict.fromkeys(slow, Slow) | ({"transfer_layer1": Slow} if slow[0] == "layer2" else {})
    with Runtime(registry=registry_of(Slow, Mock)) as runtime:
        number = runtime.load_network(assigned(graph, backends, options=options))
        for seed in range(3):
            (output,) = runtime.enqueue_workload(number, [sample(seed)])
            assert_array_equal(output, chain().run([sample(seed)])[0])


def diamond(width: int, depth: int) -> Network:
    """Return branches from one input whose results are added up, so that tensors have short and long lifetimes."""
    network = Network("diamond")
    start = network.add_input(TensorInfo("x", SHAPE, DataType.FLOAT32))
    ends = []
    for branch in range(width):
        name = start
        for index in range(depth):
            name = network.add_leaky_relu_layer(name, 0.3 + branch / 10 + index / 100, name=f"b{branch}_{index}")
        ends.append(name)
    total = ends[0]
    for index, end in enumerate(ends[1:]):
        total = network.add_add_layer(total, end, name=f"sum{index}")
    network.set_outputs([total, ends[0]])
    return network


@settings(max_examples=25)
@given(st.data())
def test_any_mixture_of_backends_in_any_memory_gives_the_same_bits(data: st.DataObject) -> None:
    """Workloads read each other's handles without waiting, so the runtime must wait; reused bytes would show."""
    network = diamond(data.draw(st.integers(2, 3)), data.draw(st.integers(1, 3)))
    fast = type("Fast", (Slow,), {"delay_s": 0.0, "id": "Fast", "factory_id": "Fast/Factory"})
    second = type("Late", (Slow,), {"delay_s": 0.002, "id": "Late", "factory_id": "Late/Factory"})
    factories = {"tensor_handle_factories": Slow.tensor_handle_factories}
    kinds = (mock("One", **factories), mock("Two", **factories), fast, second)
    chosen = {layer.name: data.draw(st.sampled_from(kinds)) for layer in network.layers}
    optimized = assigned(network, chosen, options=data.draw(st.sampled_from([OptimizerOptions(), BOTH])))
    owners = {str(found) for found in optimized.factories.values()}
    owned = {name: data.draw(st.sampled_from(sorted(owners))) for name in optimized.factories}
    optimized = replace(optimized, factories=owned)
    with Runtime(registry=registry_of(*kinds)) as runtime:
        number = runtime.load_network(optimized)
        for seed in range(2):
            outputs = runtime.enqueue_workload(number, [sample(seed)])
            assert_arrays_equal(outputs, network.run([sample(seed)]))


def test_a_failure_in_an_asynchronous_workload_is_raised_and_located() -> None:
    failing = type("Failing", (Slow,), {"failure": ValueError("bits fell off"), "id": "Failing"})
    with Runtime(registry=registry_of(failing, Mock)) as runtime:
        for backends in ({}, {"layer1": Mock}):
            failing.failure = ValueError("bits fell off")
            number = runtime.load_network(assigned(chain(), backends, failing))
            with pytest.raises(BrokenBackendError) as caught:
                runtime.enqueue_workload(number, [sample()])
            assert str(caught.value) == (
                "layer 'layer0' (LEAKY_RELU) on backend 'Failing', device 'Failing': backend 'Failing' failed in "
                "wait() of the event of execute(): ValueError: bits fell off"
            )


def test_an_event_of_a_backend_that_claims_to_be_synchronous_is_waited_for() -> None:
    quiet = type("Quiet", (Slow,), {"capabilities": lambda self: {}, "id": "Quiet"})
    with Runtime(registry=registry_of(quiet, Mock)) as runtime:
        number = runtime.load_network(assigned(chain(), {"layer1": Mock}, quiet))
        check_chain(runtime, number)


def debugged() -> Graph:
    return with_transfer(chain(), LayerType.DEBUG, "layer1")


def test_debug_layers_call_back_with_the_values() -> None:
    seen: list[tuple[str, str, Array]] = []

    def show(layer: str, info: TensorInfo, values: Array) -> None:
        assert not values.flags.writeable
        seen.append((layer, info.name, values.copy()))

    with Runtime(registry=registry_of(Mock)) as runtime:
        number = runtime.load_network(assigned(debugged(), {}))
        runtime.register_debug_callback(number, show)
        check_chain(runtime, number)
    ((layer, tensor, values),) = seen
    assert (layer, tensor) == ("layer1", "layer1_moved")
    assert_array_equal(values, chain(2).run([sample()])[0])


def test_what_a_debug_callback_raises_ends_the_run() -> None:
    def show(layer: str, info: TensorInfo, values: Array) -> None:
        raise StopIteration(layer)

    with Runtime(registry=registry_of(Mock)) as runtime:
        number = runtime.load_network(assigned(debugged(), {}))
        runtime.register_debug_callback(number, show)
        with pytest.raises(StopIteration, match="layer1"):
            runtime.enqueue_workload(number, [sample()])


def test_a_debug_callback_cannot_run_its_own_network() -> None:
    def show(layer: str, info: TensorInfo, values: Array) -> None:
        for call in (
            lambda: runtime.enqueue_workload(number, [sample()]),
            lambda: runtime.unload_network(number),
            runtime.close,
        ):
            with pytest.raises(FerruleError, match="within its own run"):
                call()

    with Runtime(registry=registry_of(Mock)) as runtime:
        number = runtime.load_network(assigned(debugged(), {}))
        runtime.register_debug_callback(number, show)
        check_chain(runtime, number)
        runtime.enqueue_workload(number, [sample()])


def test_without_a_callback_the_range_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), Runtime(registry=registry_of(Mock)) as runtime:
        number = runtime.load_network(assigned(debugged(), {}))
        runtime.enqueue_workload(number, [sample()])
    assert "layer1: layer1_moved float32[2, 8] from -" in caplog.text
