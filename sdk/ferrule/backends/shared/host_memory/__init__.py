# SPDX-License-Identifier: Apache-2.0
"""Tensors in plain memory of the process: handles, their factory, a memory manager, and transfer workloads."""

from ferrule.backends.shared.host_memory.aligned import ALIGNMENT_BYTES, address, aligned_empty, is_aligned
from ferrule.backends.shared.host_memory.handle import (
    HOST_FACTORY,
    FutureEvent,
    HostTensorHandle,
    HostTensorHandleFactory,
)
from ferrule.backends.shared.host_memory.manager import HostMemoryManager, take_block
from ferrule.backends.shared.host_memory.transfer import MemCopyWorkload, MemImportWorkload, TensorImportError

__all__ = [
    "ALIGNMENT_BYTES",
    "HOST_FACTORY",
    "FutureEvent",
    "HostMemoryManager",
    "HostTensorHandle",
    "HostTensorHandleFactory",
    "MemCopyWorkload",
    "MemImportWorkload",
    "TensorImportError",
    "address",
    "aligned_empty",
    "is_aligned",
    "take_block",
]
