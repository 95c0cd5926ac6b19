# SPDX-License-Identifier: Apache-2.0
"""Memory between backends that both import: its lifetimes, its failures, and the bits that pass through it."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from compare import assert_arrays_equal
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_backends import SHAPE, CountingAllocator, chain, registry_of, sample
from numpy.testing import assert_array_equal

from ferrule._typing import override
from ferrule.backends import Backend, BackendId
from ferrule.backends.context import CreationOptions, CustomAllocator
from ferrule.backends.shared.allocators import DmaBufAllocator
from ferrule.backends.shared.host_memory import aligned_empty
from ferrule.backends.tensor_handle import MemoryManager, MemoryRef, MemorySource, TensorHandleFactory
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, Graph, LayerType, Quantization, TensorInfo
from ferrule.memory import Lifetime
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.runtime import FallbackBlock, NetworkLoadError, Runtime, WorkloadEvent
from ferrule.runtime.fallback_memory import FallbackEnd, FallbackMemory, FallbackTensor
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.fallback import shared_memory
from ferrule.testing.backends.partners import (
    PARTNERS,
    LateWorkloads,
    PartnerCpu,
    PartnerFactory,
    PartnerGpu,
    PartnerHandle,
    PartnerMapper,
    PartnerNpu,
)
from ferrule.testing.backends.random_networks import random_network

MALLOC, DMA_BUF = MemorySource.MALLOC, MemorySource.DMA_BUF
PROTECTED = MemorySource.DMA_BUF_PROTECTED
IMPORTING = OptimizerOptions(simplify=False, import_enabled=True)
BOTH = replace(IMPORTING, export_enabled=True)


def divided(network: Graph, owners: Sequence[type[Backend]], options: OptimizerOptions = IMPORTING) -> OptimizedNetwork:
    """Return a network with its layers on these backends, in order."""
    hints = {layer.name: str(owner.id) for layer, owner in zip(network.layers, owners, strict=True)}
    return optimize(network, list(dict.fromkeys(hints.values())), registry_of(*PARTNERS), replace(options, hints=hints))


class CountingDmaBufs(CountingAllocator):
    """Counts dma-bufs, or their stand-ins."""

    def __init__(self) -> None:
        super().__init__(MALLOC | DMA_BUF)
        self._inner = DmaBufAllocator()

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        memory = self._inner.allocate(size_bytes, alignment_bytes)
        self.held.append(id(memory))
        self.total += 1
        return memory

    @override
    def free(self, memory: MemoryRef) -> None:
        super().free(memory)
        self._inner.free(memory)


class Setup:
    """A runtime with all partners, and allocators that count."""

    def __init__(self) -> None:
        self.allocators = [CountingAllocator(MALLOC), CountingDmaBufs()]
        creation = CreationOptions(fallback_allocators=self.allocators, profiling=True)
        self.runtime = Runtime(creation, registry_of(*PARTNERS))

    @property
    def held(self) -> int:
        return sum(len(allocator.held) for allocator in self.allocators)

    def check(self, optimized: OptimizedNetwork, network: Network, runs: int = 2) -> None:
        number = self.runtime.load_network(optimized)
        for seed in range(runs):
            inputs = [sample(seed + index, info.shape) for index, info in enumerate(network.inputs)]
            assert_arrays_equal(self.runtime.enqueue_workload(number, inputs), network.run(inputs))
        self.runtime.unload_network(number)


@pytest.fixture
def setup() -> Iterator[Setup]:
    before = shared_memory()
    found = Setup()
    with found.runtime:
        yield found
    assert (found.held, shared_memory()) == (0, before)


def blocks(setup: Setup, optimized: OptimizedNetwork) -> tuple[FallbackBlock, ...]:
    """Return the blocks of a network's fallback memory."""
    number = setup.runtime.load_network(optimized)
    found = setup.runtime.fallback_memory(number)
    setup.runtime.unload_network(number)
    return found


def kinds(optimized: OptimizedNetwork, type_: LayerType) -> int:
    return sum(layer.type is type_ for layer in optimized.graph.layers)


ROADS = [
    pytest.param([PartnerGpu, PartnerCpu], 1, 0, id="gpu-cpu"),
    pytest.param([PartnerCpu, PartnerGpu], 1, 0, id="cpu-gpu"),
    pytest.param([PartnerGpu, PartnerNpu], 1, 0, id="gpu-npu"),
    pytest.param([PartnerNpu, PartnerGpu], 1, 0, id="npu-gpu"),
    pytest.param([PartnerGpu, PartnerNpu, PartnerGpu], 2, 0, id="gpu-npu-gpu"),
    pytest.param([PartnerNpu, PartnerGpu, PartnerNpu], 2, 0, id="npu-gpu-npu"),
    pytest.param([PartnerCpu, PartnerNpu, PartnerCpu], 2, 0, id="cpu-npu-cpu"),
    pytest.param([PartnerNpu, PartnerMapper, PartnerNpu], 2, 2, id="npu-mapper-npu"),
]


@pytest.mark.parametrize("options", [IMPORTING, BOTH], ids=["copied", "lent"])
@pytest.mark.parametrize(("owners", "imports", "copies"), ROADS)
def test_roads(setup: Setup, owners: list[type[Backend]], imports: int, copies: int, options: OptimizerOptions) -> None:
    network = chain(len(owners))
    optimized = divided(network, owners, options)
    assert kinds(optimized, LayerType.FALLBACK_IMPORT) == imports
    assert kinds(optimized, LayerType.MEM_COPY) == copies
    setup.check(optimized, network)


def fan() -> Network:
    """Return a network in which two tensors cross at one place, one is read by three layers, and one is an output."""
    network = Network("fan")
    x = network.add_input(TensorInfo("x", SHAPE, DataType.FLOAT32))
    a, b = network.add_leaky_relu_layer(x, 0.5, name="a"), network.add_leaky_relu_layer(x, 0.25, name="b")
    c, d = network.add_add_layer(a, b, name="c"), network.add_sub_layer(a, b, name="d")
    e = network.add_add_layer(c, a, name="e")
    network.set_outputs([network.add_add_layer(e, d, name="f"), a, c, x])
    return network


@pytest.mark.parametrize("options", [IMPORTING, BOTH], ids=["copied", "lent"])
@pytest.mark.parametrize(
    "owners",
    [
        [PartnerNpu, PartnerNpu, PartnerGpu, PartnerCpu, PartnerMapper, PartnerNpu],
        [PartnerGpu, PartnerGpu, PartnerNpu, PartnerNpu, PartnerCpu, PartnerGpu],
        [PartnerCpu, PartnerGpu, PartnerCpu, PartnerGpu, PartnerNpu, PartnerCpu],
        [PartnerGpu, PartnerCpu, PartnerGpu, PartnerMapper, PartnerGpu, PartnerMapper],
    ],
    ids=["npu-first", "gpu-first", "both-directions", "mapped"],
)
def test_several_tensors_cross_and_are_outputs_too(
    setup: Setup, owners: list[type[Backend]], options: OptimizerOptions
) -> None:
    network = fan()
    setup.check(divided(network, owners, options), network)


def buffers(network: Network, alignment_bytes: int, shift: int = 0) -> list[Array]:
    """Return an output buffer each, `shift` elements after an aligned address."""
    return [
        aligned_empty((info.shape[0] * info.shape[1] + shift,), info.dtype, alignment_bytes)[shift:].reshape(info.shape)
        for info in network.outputs
    ]


def test_elements_are_aligned_whatever_the_ends_need(setup: Setup) -> None:
    """PartnerCpu's handles need no alignment, and 7 bytes lie before the floats."""
    network = Network("odd")
    small = network.add_input(TensorInfo("small", (7,), DataType.INT8, quantization=Quantization.of(0.5)))
    large = network.add_input(TensorInfo("large", (3,), DataType.FLOAT32))
    network.set_outputs(
        [
            network.add_relu_layer(network.add_relu_layer(small, name="a"), name="b"),
            network.add_relu_layer(network.add_relu_layer(large, name="c"), name="d"),
        ]
    )
    other = type("OtherCpu", (PartnerCpu,), {"id": "OtherCpu", "factory_id": "OtherCpu/Host"})
    registry = registry_of(PartnerCpu, other)
    options = replace(IMPORTING, hints={"b": "OtherCpu", "d": "OtherCpu"})
    with Runtime(registry=registry) as runtime:
        number = runtime.load_network(optimize(network, ["PartnerCpu"], registry, options))
        (block,) = runtime.fallback_memory(number)
        assert block.tensor_bytes == 7 + 12
        inputs = [np.arange(-3, 4, dtype=np.int8), np.array([-1.5, 0.0, 2.5], np.float32)]
        assert_arrays_equal(runtime.enqueue_workload(number, inputs), network.run(inputs))


def watch(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, MemoryRef]]:
    """Return a list that all imports of partners' handles go into."""
    seen: list[tuple[str, MemoryRef]] = []
    original = PartnerHandle.import_memory

    def import_memory(self: PartnerHandle, memory: MemoryRef) -> bool:
        seen.append((self.info.name, memory))
        return original(self, memory)

    monkeypatch.setattr(PartnerHandle, "import_memory", import_memory)
    return seen


@pytest.mark.parametrize(("shift", "lent"), [(0, True), (1, False)])
def test_an_output_that_crosses_is_in_the_callers_buffer_if_all_ends_can_import_it(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, shift: int, lent: bool
) -> None:
    network = chain(2)
    network.set_outputs([network.layers[1].outputs[0], network.layers[0].outputs[0]])
    optimized = divided(network, [PartnerGpu, PartnerCpu], BOTH)
    number = setup.runtime.load_network(optimized)
    crossing = network.layers[0].outputs[0]
    for seed in range(2):
        seen = watch(monkeypatch)
        given = buffers(network, 64, shift)
        found = setup.runtime.enqueue_workload(number, [sample(seed)], given)
        for one, other, expected in zip(found, given, network.run([sample(seed)]), strict=True):
            assert one is other
            assert_array_equal(one, expected)
        imported = [memory.array is given[1] for name, memory in seen if name == crossing]
        assert imported == ([True] if lent else []), "the end that was imported at load is not imported again"
    assert_array_equal(
        setup.runtime.enqueue_workload(number, [sample(7)], buffers(network, 64, 1 - shift))[1],
        network.run([sample(7)])[1],
    )


def test_the_writers_backend_makes_the_workload_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, str]] = []
    waits = 0
    original = WorkloadFactory.create_fallback_import

    def create(factory: WorkloadFactory, info: WorkloadInfo) -> Workload:
        made.append((type(factory).__name__, info.layer.name))
        workload = original(factory, info)

        class Noted:
            def execute(self) -> None:
                nonlocal waits
                waits += 1
                assert info.inputs[0] is not None
                ready = info.inputs[0].ready
                assert ready is not None
                assert not ready.done(), "nothing else has waited for the queue"
                workload.execute()
                assert ready.done()

        return Noted()

    monkeypatch.setattr(LateWorkloads, "create_fallback_import", create, raising=False)
    network = chain(3)
    with Runtime(registry=registry_of(*PARTNERS)) as runtime:
        number = runtime.load_network(divided(network, [PartnerCpu, PartnerGpu, PartnerNpu]))
        assert made == [("LateWorkloads", "[ layer1 (0) -> layer2 (0) ]")]
        found = runtime.enqueue_workload(number, [sample()])
        assert_array_equal(found[0], network.run([sample()])[0])
    assert waits == 1


def test_memory_is_imported_once_and_kept(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watch(monkeypatch)
    network = chain(4)
    optimized = divided(network, [PartnerCpu, PartnerNpu, PartnerGpu, PartnerCpu])
    number = setup.runtime.load_network(optimized)
    counts = len(seen), [allocator.total for allocator in setup.allocators]
    assert sum(counts[1]) == 2, "one block of plain memory, one of dma-buf"
    for seed in range(3):
        assert_array_equal(setup.runtime.enqueue_workload(number, [sample(seed)])[0], network.run([sample(seed)])[0])
    assert counts == (len(seen), [allocator.total for allocator in setup.allocators])
    for _, memory in seen:
        assert memory.address is not None
        assert memory.block is not None
        assert (memory.address + memory.offset) % 64 == 0


def test_several_networks_and_loading_again(setup: Setup) -> None:
    network = chain(3)
    optimized = divided(network, [PartnerCpu, PartnerNpu, PartnerGpu])
    numbers = [setup.runtime.load_network(optimized) for _ in range(3)]
    held = setup.held
    for seed, number in enumerate(numbers):
        assert_array_equal(setup.runtime.enqueue_workload(number, [sample(seed)])[0], network.run([sample(seed)])[0])
    setup.runtime.unload_network(numbers[1])
    assert setup.held == held * 2 // 3
    setup.check(optimized, network)
    assert_array_equal(setup.runtime.enqueue_workload(numbers[2], [sample(5)])[0], network.run([sample(5)])[0])


class OtherGpu(PartnerGpu):
    id: ClassVar[BackendId] = BackendId("OtherGpu")


def test_a_late_readers_bytes_are_kept_until_it_is_waited_for() -> None:
    """The GPU reads a's tensor at the end of the run; if b's took its bytes after the GPU's step, it would read b's."""
    network = Network("late")
    x = network.add_input(TensorInfo("x", SHAPE, DataType.FLOAT32))
    late = network.add_leaky_relu_layer(network.add_leaky_relu_layer(x, 0.5, name="a"), 0.25, name="late")
    b = network.add_leaky_relu_layer(x, 0.75, name="b")
    network.set_outputs([late, network.add_leaky_relu_layer(b, 0.125, name="c")])
    registry = registry_of(PartnerCpu, PartnerGpu, OtherGpu)
    hints = {"late": "PartnerGpu", "c": "OtherGpu"}
    optimized = optimize(network, ["PartnerCpu"], registry, replace(IMPORTING, hints=hints))
    with Runtime(registry=registry) as runtime:
        number = runtime.load_network(optimized)
        assert_arrays_equal(runtime.enqueue_workload(number, [sample()]), network.run([sample()]))
        (block,) = runtime.fallback_memory(number)
        assert (block.size_bytes, block.tensor_bytes) == (2 * 64, 2 * 64)


def test_what_is_waited_for_is_free(setup: Setup) -> None:
    """The GPU's result is waited for before b's tensor is written, so b's takes the bytes of a's."""
    network = chain(6)
    optimized = divided(network, [PartnerCpu, PartnerGpu, PartnerCpu, PartnerCpu, PartnerGpu, PartnerCpu])
    (block,) = blocks(setup, optimized)
    assert (block.size_bytes, block.tensor_bytes) == (2 * 64, 4 * 64)
    setup.check(optimized, network)


def crossings(setup: Setup, optimized: OptimizedNetwork, network: Network) -> list[WorkloadEvent]:
    """Return the events of the crossings of one run."""
    number = setup.runtime.load_network(optimized)
    setup.runtime.enqueue_workload(number, [sample(0, info.shape) for info in network.inputs])
    return [event for event in setup.runtime.profiler(number).events if event.strategy]


def test_the_profile_has_each_crossing(setup: Setup) -> None:
    network = chain(4)
    optimized = divided(network, [PartnerCpu, PartnerGpu, PartnerMapper, PartnerNpu])
    number = setup.runtime.load_network(optimized)
    setup.runtime.enqueue_workload(number, [sample()])
    profiler = setup.runtime.profiler(number)
    found = [
        (event.category, event.strategy, event.transfer, event.size_bytes, event.memory)
        for event in profiler.events
        if event.strategy
    ]
    assert found == [
        ("FALLBACK_IMPORT", "fallback import", "imported", 64, "custom allocator"),
        ("MEM_COPY", "copy", "copied", 64, ""),
        ("MEM_COPY", "copy", "copied", 64, "custom allocator"),
    ]
    waits = {event.name: event.wait_ns for event in profiler.events if event.category == "MEM_COPY"}
    assert waits["[ layer1 (0) -> layer2 (0) ]"] > 0
    trace = json.loads(profiler.to_chrome_trace())["traceEvents"]
    shown = [event["args"] for event in trace if "strategy" in event.get("args", {})]
    assert [tuple(args[key] for key in ("strategy", "transfer", "bytes", "memory")) for args in shown] == [
        row[1:] for row in found
    ]
    assert all("wait_us" in event["args"] for event in trace if event["ph"] == "X")


@pytest.mark.parametrize(("owners", "imports", "copies"), ROADS)
def test_with_copies_each_crossing_is_counted(
    setup: Setup, owners: list[type[Backend]], imports: int, copies: int
) -> None:
    network = chain(len(owners))
    for transfers in ({}, {str(owner.id): "copy" for owner in owners}):
        optimized = divided(network, owners, replace(IMPORTING, fallback_transfers=transfers))
        events = crossings(setup, optimized, network)
        expected = len(owners) - 1 if transfers else copies
        assert [event.transfer for event in events].count("copied") == expected
        assert len(events) == len(owners) - 1
        setup.check(optimized, network)


@settings(max_examples=20)
@given(data=st.data())
def test_any_division_over_any_memory_gives_the_same_bits(data: st.DataObject) -> None:
    network = random_network(data.draw(st.integers(0, 10_000)), data.draw(st.integers(2, 7)))
    owners = [data.draw(st.sampled_from(PARTNERS)) for _ in network.layers]
    copying = data.draw(st.sets(st.sampled_from([str(partner.id) for partner in PARTNERS]), max_size=2))
    options = replace(
        IMPORTING,
        export_enabled=data.draw(st.booleans()),
        fallback_transfers=dict.fromkeys(copying, "copy"),
        allocators=data.draw(st.sampled_from([(MALLOC, MALLOC | DMA_BUF), (MALLOC | DMA_BUF,)])),
    )
    setup = Setup()
    with setup.runtime:
        number = setup.runtime.load_network(divided(network, owners, options))
        for seed in range(2):
            inputs = random_inputs(network, seed)
            found = setup.runtime.enqueue_workload(number, inputs)
            for one, other in zip(found, network.run(inputs), strict=True):
                assert one.tobytes() == other.tobytes()
    assert setup.held == 0


class TestFailures:
    ROAD = (PartnerCpu, PartnerNpu, PartnerGpu, PartnerCpu)

    @pytest.mark.parametrize("failing", [0, 1])
    def test_of_an_allocation(self, setup: Setup, failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
        def allocate(size_bytes: int, alignment_bytes: int) -> MemoryRef:
            raise MemoryError("all gone")

        optimized, before = divided(chain(4), self.ROAD), shared_memory()
        with monkeypatch.context() as patch:
            patch.setattr(setup.allocators[failing], "allocate", allocate)
            with pytest.raises(
                FerruleError, match=r"fallback memory of tensor 'layer.*' between 'Partner.*' of Partner.*: .*all gone"
            ):
                setup.runtime.load_network(optimized)
        assert (setup.held, shared_memory()) == (0, before)
        setup.check(optimized, chain(4))

    @pytest.mark.parametrize("failing", range(4))
    @pytest.mark.parametrize("how", ["refuses", "raises"])
    def test_of_an_import(self, setup: Setup, failing: int, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
        optimized, before = divided(chain(4), self.ROAD), shared_memory()
        held: list[PartnerHandle] = []
        count = 0
        original, ending = PartnerHandle.import_memory, PartnerHandle.end_import

        def import_memory(handle: PartnerHandle, memory: MemoryRef) -> bool:
            nonlocal count
            count += 1
            if count == failing + 1:
                if how == "raises":
                    raise OSError("no such buffer")
                return False
            held.append(handle)
            return original(handle, memory)

        def end_import(handle: PartnerHandle) -> None:
            held.remove(handle)
            ending(handle)

        with monkeypatch.context() as patch:
            patch.setattr(PartnerHandle, "import_memory", import_memory)
            patch.setattr(PartnerHandle, "end_import", end_import)
            with pytest.raises(FerruleError) as error:
                setup.runtime.load_network(optimized)
        message = str(error.value)
        del error
        assert (held, setup.held, shared_memory()) == ([], 0, before)
        if how == "refuses":
            for part in ("does not import", "tensor 'layer", "'Partner", "' of Partner", " between ", " and "):
                assert part in message
        else:
            assert "no such buffer" in message
        setup.check(optimized, chain(4))

    @pytest.mark.parametrize(
        ("owners", "layer"),
        [
            ([PartnerGpu, PartnerCpu], "layer0"),
            ([PartnerNpu, PartnerGpu, PartnerGpu, PartnerNpu], "layer1"),
            ([PartnerCpu, PartnerGpu, PartnerMapper], "layer1"),
            ([PartnerCpu, PartnerGpu], "layer1"),
        ],
    )
    def test_of_a_wait(
        self, setup: Setup, monkeypatch: pytest.MonkeyPatch, owners: list[type[Backend]], layer: str
    ) -> None:
        network = chain(len(owners))
        number = setup.runtime.load_network(divided(network, owners, BOTH))
        held, shared = setup.held, shared_memory()
        with monkeypatch.context() as patch:
            patch.setattr(PartnerGpu, "failure", ValueError("the queue is lost"))
            with pytest.raises(FerruleError, match=rf"layer '{layer}' .*the queue is lost"):
                setup.runtime.enqueue_workload(number, [sample()])
        assert (setup.held, shared_memory()) == (held, shared)
        found = setup.runtime.enqueue_workload(number, [sample()])
        assert_array_equal(found[0], network.run([sample()])[0])

    def test_of_an_import_of_the_callers_memory(self, setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
        """A handle that refuses what it said that it can import costs a copy."""
        network = chain(2)
        network.set_outputs([network.layers[1].outputs[0], network.layers[0].outputs[0]])
        number = setup.runtime.load_network(divided(network, [PartnerGpu, PartnerCpu], BOTH))
        given = buffers(network, 64)
        original = PartnerHandle.import_memory

        def import_memory(handle: PartnerHandle, memory: MemoryRef) -> bool:
            return memory.array is not given[1] and original(handle, memory)

        monkeypatch.setattr(PartnerHandle, "import_memory", import_memory)
        assert_arrays_equal(setup.runtime.enqueue_workload(number, [sample()], given), network.run([sample()]))

    def test_of_freeing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def free(memory: MemoryRef) -> None:
            raise OSError("cannot free")

        setup = Setup()
        setup.runtime.load_network(divided(chain(4), self.ROAD))
        monkeypatch.setattr(setup.allocators[0], "free", free)
        with pytest.raises(OSError, match="cannot free"):
            setup.runtime.close()
        assert [len(allocator.held) for allocator in setup.allocators] == [1, 0]


class FdAllocator(CustomAllocator):
    """Memory that the process cannot map, known by file descriptors."""

    source = PROTECTED
    name = "unmapped"
    blocks: ClassVar[dict[int, Array]] = {}

    @override
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        fd = 1000 + len(self.blocks)
        self.blocks[fd] = aligned_empty((size_bytes,), DataType.UINT8, alignment_bytes)
        return MemoryRef(self.source, size_bytes, fd=fd)

    @override
    def free(self, memory: MemoryRef) -> None:
        assert memory.fd is not None
        del self.blocks[memory.fd]


class FdHandle(PartnerHandle):
    """Imports memory by its file descriptor and its offset."""

    @override
    def import_memory(self, memory: MemoryRef) -> bool:
        if memory.array is not None or memory.fd not in FdAllocator.blocks:
            return False
        block = MemoryRef.of_array(FdAllocator.blocks[memory.fd], PROTECTED)
        return super().import_memory(block.part(memory.offset, self.info))


class FdFactory(PartnerFactory):
    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> FdHandle:
        inner = super().create_handle(info, managed=managed).inner
        return FdHandle(inner, maps=False)


class FdGpu(PartnerGpu):
    id: ClassVar[BackendId] = BackendId("FdGpu")

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
        mapped, _ = super().tensor_handle_factories(memory)
        return mapped, FdFactory(f"{self.id}/Fd", None, PROTECTED, 64)


class OtherFdGpu(FdGpu):
    id: ClassVar[BackendId] = BackendId("OtherFdGpu")


def test_memory_that_the_process_cannot_map_passes_between_two_devices() -> None:
    network = chain(4)
    registry = registry_of(FdGpu, OtherFdGpu)
    hints = {"layer1": "OtherFdGpu", "layer3": "OtherFdGpu"}
    optimized = optimize(network, ["FdGpu"], registry, replace(IMPORTING, hints=hints, allocators=(PROTECTED,)))
    assert kinds(optimized, LayerType.FALLBACK_IMPORT) == 3
    assert kinds(optimized, LayerType.MEM_COPY) == 0
    with Runtime(CreationOptions(fallback_allocators=(FdAllocator(),)), registry) as runtime:
        number = runtime.load_network(optimized)
        assert [block.allocator for block in runtime.fallback_memory(number)] == ["unmapped"]
        for seed in range(2):
            found = runtime.enqueue_workload(number, [sample(seed)])
            assert_array_equal(found[0], network.run([sample(seed)])[0])
    assert not FdAllocator.blocks


class TestAllocators:
    @pytest.mark.parametrize(
        ("kinds", "protected", "allocator", "message"),
        [
            (
                DMA_BUF,
                False,
                MALLOC,
                "no allocator has DMA_BUF memory for tensor 't' between 'PartnerNpu/Import' of A and",
            ),
            (MALLOC, True, MALLOC, "in protected mode, no allocator has MALLOC and DMA_BUF_PROTECTED memory"),
            (PROTECTED, True, PROTECTED, ""),
        ],
    )
    def test_without_one_the_load_is_refused(
        self, kinds: MemorySource, protected: bool, allocator: MemorySource, message: str
    ) -> None:
        info = TensorInfo("t", SHAPE, DataType.FLOAT32)
        (factory,) = PartnerNpu().tensor_handle_factories(None)
        handle = factory.create_handle(info, managed=False)
        ends = [FallbackEnd(handle=handle, factory=factory, backend=name) for name in "AB"]
        tensors, lives = {"t": FallbackTensor(info, kinds, ends)}, {"t": Lifetime(first=0, last=1)}

        def make() -> FallbackMemory:
            return FallbackMemory(tensors, lives, [CountingAllocator(allocator)], protected=protected)

        if not message:
            assert make().blocks[0].size_bytes == 64
            return
        with pytest.raises(NetworkLoadError, match=message):
            make()

    def test_the_applications_come_first(self, setup: Setup) -> None:
        number = setup.runtime.load_network(divided(chain(2), [PartnerCpu, PartnerGpu]))
        (block,) = setup.runtime.fallback_memory(number)
        assert block.allocator == "custom allocator"
        assert [allocator.total for allocator in setup.allocators] == [1, 0]

    def test_a_message_names_the_runtimes_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def allocate(self: DmaBufAllocator, size_bytes: int, alignment_bytes: int) -> MemoryRef:
            raise MemoryError("all gone")

        monkeypatch.setattr(DmaBufAllocator, "allocate", allocate)
        optimized = divided(chain(2), [PartnerNpu, PartnerGpu])
        name = re.escape(DmaBufAllocator().name)
        with (
            Runtime(registry=registry_of(*PARTNERS)) as runtime,
            pytest.raises(
                FerruleError, match=rf"fallback memory of .*: allocator '{name}' cannot provide 320 B: all gone"
            ),
        ):
            runtime.load_network(optimized)

    def test_the_runtimes_own_is_plain_memory(self) -> None:
        with Runtime(registry=registry_of(*PARTNERS)) as runtime:
            number = runtime.load_network(divided(chain(2), [PartnerCpu, PartnerGpu]))
            (block,) = runtime.fallback_memory(number)
            assert (block.allocator, block.size_bytes) == ("malloc", 64)
            assert_array_equal(runtime.enqueue_workload(number, [sample()])[0], chain(2).run([sample()])[0])

    def test_dma_bufs_or_their_stand_in_leave_nothing_open(self) -> None:
        network = chain(3)
        before, shared = descriptors(), shared_memory()
        with Runtime(CreationOptions(profiling=True), registry_of(*PARTNERS)) as runtime:
            for seed in range(2):
                number = runtime.load_network(divided(network, [PartnerNpu, PartnerGpu, PartnerNpu]))
                (block,) = runtime.fallback_memory(number)
                assert block.allocator == DmaBufAllocator().name
                assert descriptors() > before
                assert all(now > then for now, then in zip(shared_memory(), shared, strict=True))
                found = runtime.enqueue_workload(number, [sample(seed)])
                named = [event.memory for event in runtime.profiler(number).events if event.strategy]
                assert named == [block.allocator] * 2, "the profile says which memory is a stand-in"
                assert_array_equal(found[0], network.run([sample(seed)])[0])
                runtime.unload_network(number)
                assert (descriptors(), shared_memory()) == (before, shared)


def descriptors() -> int:
    """Return the number of open file descriptors; a mapping has one until its last array is gone."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))
