# SPDX-License-Identifier: Apache-2.0
"""Custom memory allocators and protected mode."""

from __future__ import annotations

import pytest
from mock_backends import Accepting, CountingAllocator, Mock, assigned, chain, check_chain, mock, registry_of

from ferrule.backends.capability import PROTECTED_CONTENT_ALLOCATION
from ferrule.backends.context import CreationOptions
from ferrule.backends.tensor_handle import MemorySource
from ferrule.runtime import Runtime

PROTECTED = MemorySource.DMA_BUF_PROTECTED


def capable(value: object) -> type[Accepting]:
    return type("Capable", (Accepting,), {"capabilities": lambda self: {PROTECTED_CONTENT_ALLOCATION: value}})


def reason_of(backend: type[Mock], options: CreationOptions) -> str:
    with Runtime(options, registry_of(backend)) as runtime:
        (row,) = runtime.backends
        assert (backend.id in runtime.registry) == (not row.reason)
        return row.reason


def test_an_accepted_allocator_gives_the_memory_of_its_backend_alone() -> None:
    allocator = CountingAllocator()
    with Runtime(CreationOptions(custom_allocators={"Mock": allocator}), registry_of(Mock, Accepting)) as runtime:
        mine = runtime.load_network(assigned(chain(), {}))
        other = runtime.load_network(assigned(chain(), {}, Accepting))
        for number in (mine, other):
            check_chain(runtime, number)
        assert allocator.total == 1
    assert allocator.held == []


def test_a_refused_allocator_makes_its_backend_unusable() -> None:
    reason = reason_of(Mock, CreationOptions(custom_allocators={"Mock": CountingAllocator(MemorySource.DMA_BUF)}))
    assert reason == "it refuses its custom allocator: the allocator returns DMA_BUF memory, but Mock needs MALLOC"
    never = mock("Never", use_custom_memory_allocator=lambda self, allocator: "never")
    options = CreationOptions(custom_allocators={"Never": CountingAllocator()})
    assert reason_of(never, options) == "it refuses its custom allocator: never"
    assert reason_of(never, CreationOptions()) == ""


def test_protected_memory_needs_the_capability() -> None:
    options = CreationOptions(custom_allocators={"Accepting": CountingAllocator(PROTECTED)})
    assert reason_of(Accepting, options) == "it lacks the capability ProtectedContentAllocation"
    assert reason_of(capable(True), options) == ""


@pytest.mark.parametrize("value", [False, 1, "yes"])
def test_a_capability_needs_its_very_value(value: object) -> None:
    options = CreationOptions(custom_allocators={"Accepting": CountingAllocator(PROTECTED)})
    assert "lacks the capability" in reason_of(capable(value), options)


def test_protected_mode_leaves_only_backends_with_protected_memory() -> None:
    assert reason_of(Mock, CreationOptions(protected_mode=True)) == "protected mode needs a custom allocator for it"
    plain = CreationOptions(protected_mode=True, custom_allocators={"Accepting": CountingAllocator()})
    assert "lacks the capability" in reason_of(Accepting, plain)
    assert reason_of(capable(True), plain) == "protected mode needs protected memory, its custom allocator gives MALLOC"
    protected = CreationOptions(protected_mode=True, custom_allocators={"Accepting": CountingAllocator(PROTECTED)})
    assert reason_of(capable(True), protected) == ""
