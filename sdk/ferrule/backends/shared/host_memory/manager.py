# SPDX-License-Identifier: Apache-2.0
"""The memory of one backend in one loaded network: one array whose layout the planner computes."""

from __future__ import annotations

from ferrule._typing import override
from ferrule.backends.shared.host_memory.aligned import aligned_empty
from ferrule.backends.shared.host_memory.planned import PlannedMemoryManager, mapped
from ferrule.backends.tensor_handle import MemoryRef
from ferrule.graph import Array, DataType, TensorInfo


class HostMemoryManager(PlannedMemoryManager[Array]):
    """Places slots in one array of the process; slots whose lifetimes do not overlap share bytes.

    The order of the `begin` and `end` calls is the order in which tensors become live and dead in each run; a slot
    without an `end` stays live. The array comes from the custom allocator if there is one.
    """

    @override
    def _new_block(self, size_bytes: int) -> Array:
        return aligned_empty((size_bytes,), DataType.UINT8)

    @override
    def _block_in(self, memory: MemoryRef) -> Array:
        return mapped(memory)

    @override
    def _part(self, block: Array, offset: int, info: TensorInfo) -> Array:
        return block[offset : offset + info.size_bytes].view(info.dtype.numpy).reshape(info.shape)
