# SPDX-License-Identifier: Apache-2.0
"""The base of backends whose tensors are arrays of the process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import Backend
from ferrule.backends.context import CustomAllocator
from ferrule.backends.device import BackendId
from ferrule.backends.shared.host_memory.handle import HOST_FACTORY, HostTensorHandleFactory
from ferrule.backends.shared.host_memory.manager import HostMemoryManager
from ferrule.backends.tensor_handle import (
    FactoryId,
    HandleCapability,
    MemoryManager,
    MemorySource,
    TensorHandleFactory,
)


class HostMemoryBackend(Backend):
    """A backend whose tensors are arrays of the process, in memory that it or a custom allocator owns."""

    factory_id: ClassVar[FactoryId] = HOST_FACTORY
    """Id of its factory; between backends with the same id nothing is copied."""
    fallback_memory_required: ClassVar[bool] = False
    """For tests only: whether other backends get its tensors in fallback memory, which is slower than an export."""

    @override
    def use_custom_memory_allocator(self, allocator: CustomAllocator) -> str:
        return refuse_other_memory(self.id, allocator)

    @override
    def memory_manager(self, allocator: CustomAllocator | None = None) -> MemoryManager:
        return HostMemoryManager(allocator)

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
        capabilities = {HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED} if self.fallback_memory_required else set()
        return (HostTensorHandleFactory(self.factory_id, memory, capabilities=frozenset(capabilities)),)


def refuse_other_memory(backend: BackendId, allocator: CustomAllocator) -> str:
    """Return "" if an allocator returns plain memory of the process, else the reason why a backend refuses it."""
    if MemorySource.MALLOC not in allocator.source:
        return f"the allocator returns {allocator.source.name} memory, but {backend} needs MALLOC"
    return ""
