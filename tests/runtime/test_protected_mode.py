# SPDX-License-Identifier: Apache-2.0
"""Protected mode in a whole runtime: memory between backends is from a protected allocator, or the load fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from mock_backends import CountingAllocator, chain, registry_of, sample
from numpy.testing import assert_array_equal

from ferrule._typing import override
from ferrule.backends import Backend, BackendId
from ferrule.backends.capability import PROTECTED_CONTENT_ALLOCATION, Capabilities
from ferrule.backends.context import CreationOptions, CustomAllocator
from ferrule.backends.tensor_handle import FactoryId, MemorySource
from ferrule.graph import LayerType
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.runtime import NetworkLoadError, Runtime
from ferrule.testing.backends.fallback import shared_memory
from ferrule.testing.backends.partners import PartnerCpu, PartnerNpu

PLAIN = MemorySource.MALLOC
PROTECTED = MemorySource.DMA_BUF_PROTECTED


class Safe(Backend):
    """A backend that works in protected memory."""

    @override
    def capabilities(self) -> Capabilities:
        return {PROTECTED_CONTENT_ALLOCATION: True}

    @override
    def use_custom_memory_allocator(self, allocator: CustomAllocator) -> str:
        return ""


class SafeCpu(Safe, PartnerCpu):
    """Its handles are mapped and import plain memory."""

    id: ClassVar[BackendId] = BackendId("SafeCpu")
    factory_id: ClassVar[FactoryId] = FactoryId("SafeCpu/Host")


class OtherSafeCpu(SafeCpu):
    id: ClassVar[BackendId] = BackendId("OtherSafeCpu")
    factory_id: ClassVar[FactoryId] = FactoryId("OtherSafeCpu/Host")


class SafeNpu(Safe, PartnerNpu):
    """Its handles import protected dma-bufs and cannot be mapped."""

    id: ClassVar[BackendId] = BackendId("SafeNpu")
    factories = (("Import", PROTECTED, 256),)


BACKENDS: tuple[type[Backend], ...] = (SafeCpu, OtherSafeCpu, SafeNpu)
ROADS = {
    "cpu-npu-cpu": ((SafeCpu, SafeNpu, SafeCpu), (PLAIN | PROTECTED,)),
    "cpu-other-cpu": ((SafeCpu, OtherSafeCpu, SafeCpu), (PLAIN,)),
}
"""The owners of the layers, and the memory that the optimizer plans with."""


@dataclass
class Protection:
    """A runtime in protected mode, whose backends have allocators of protected memory of their own."""

    fallback: Sequence[CustomAllocator]
    own: dict[str, CountingAllocator] = field(
        default_factory=lambda: {str(each.id): CountingAllocator(PLAIN | PROTECTED) for each in BACKENDS}
    )

    def runtime(self) -> Runtime:
        creation = CreationOptions(protected_mode=True, custom_allocators=self.own, fallback_allocators=self.fallback)
        return Runtime(creation, registry_of(*BACKENDS))

    @property
    def held(self) -> int:
        return sum(len(allocator.held) for allocator in self.own.values())


def divided(runtime: Runtime, owners: Sequence[type[Backend]], memory: tuple[MemorySource, ...]) -> OptimizedNetwork:
    network = chain(len(owners))
    hints = {layer.name: str(owner.id) for layer, owner in zip(network.layers, owners, strict=True)}
    options = OptimizerOptions(simplify=False, import_enabled=True, hints=hints, allocators=memory)
    return optimize(network, ["SafeCpu"], runtime.registry, options)


@pytest.mark.parametrize("road", ROADS)
def test_memory_between_backends_is_protected(road: str) -> None:
    """Plain memory is not used even if it comes first and all ends import it."""
    plain, protected = CountingAllocator(PLAIN), CountingAllocator(PLAIN | PROTECTED)
    protection = Protection([plain, protected])
    with protection.runtime() as runtime:
        optimized = divided(runtime, *ROADS[road])
        assert [layer.type for layer in optimized.graph.layers].count(LayerType.FALLBACK_IMPORT) == 2
        number = runtime.load_network(optimized)
        (block,) = runtime.fallback_memory(number)
        assert (len(protected.held), block.size_bytes >= 64) == (1, True)
        for seed in range(2):
            (found,) = runtime.enqueue_workload(number, [sample(seed)])
            assert_array_equal(found, chain(3).run([sample(seed)])[0])
        assert protection.held, "the backends' own tensors are in their protected memory"
    assert (plain.total, protected.total, protected.held, protection.held) == (0, 1, [], 0)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("fallback", [(), (PLAIN,), (PROTECTED,)], ids=["none", "plain", "unmapped"])
def test_without_protected_memory_the_load_is_refused(road: str, fallback: tuple[MemorySource, ...]) -> None:
    """The runtime's own allocators are not protected; protected memory that cannot be mapped does not suit a CPU."""
    allocators = [CountingAllocator(each) for each in fallback]
    protection, shared = Protection(allocators), shared_memory()
    with protection.runtime() as runtime:
        optimized = divided(runtime, *ROADS[road])
        with pytest.raises(NetworkLoadError) as error:
            runtime.load_network(optimized)
        message = str(error.value)
        assert "in protected mode, no allocator has MALLOC and DMA_BUF_PROTECTED memory for tensor 'layer" in message
        assert "(allocators: " in message
        assert "malloc: MALLOC" in message
        assert "fallback_allocators" in str(error.value.hint)
        assert ([each.total for each in allocators], shared_memory()) == ([0] * len(allocators), shared)
        alone = runtime.load_network(divided(runtime, (SafeCpu,), (PLAIN,)))
        (found,) = runtime.enqueue_workload(alone, [sample()])
        assert_array_equal(found, chain(1).run([sample()])[0])
    assert protection.held == 0


def test_a_backend_without_protected_memory_of_its_own_is_left_out() -> None:
    protection = Protection([CountingAllocator(PLAIN | PROTECTED)])
    del protection.own["SafeNpu"]
    with protection.runtime() as runtime:
        (reason,) = [row.reason for row in runtime.backends if row.id == "SafeNpu"]
        assert reason == "protected mode needs a custom allocator for it"
