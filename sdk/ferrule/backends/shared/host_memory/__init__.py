# SPDX-License-Identifier: Apache-2.0
"""Tensors in plain memory of the process: handles, their factory and manager, a base for backends, and transfers."""

from ferrule.backends.shared.host_memory.aligned import ALIGNMENT_BYTES, address, aligned_empty, is_aligned
from ferrule.backends.shared.host_memory.backend import HostMemoryBackend
from ferrule.backends.shared.host_memory.compiling import CompilingBackend, layer_alone
from ferrule.backends.shared.host_memory.handle import (
    HOST_FACTORY,
    FutureEvent,
    HostTensorHandle,
    HostTensorHandleFactory,
    fixed_memory,
)
from ferrule.backends.shared.host_memory.manager import HostMemoryManager
from ferrule.backends.shared.host_memory.planned import take_block
from ferrule.backends.shared.host_memory.transfer import MemCopyWorkload, MemImportWorkload, TensorImportError

__all__ = [
    "ALIGNMENT_BYTES",
    "HOST_FACTORY",
    "CompilingBackend",
    "FutureEvent",
    "HostMemoryBackend",
    "HostMemoryManager",
    "HostTensorHandle",
    "HostTensorHandleFactory",
    "MemCopyWorkload",
    "MemImportWorkload",
    "TensorImportError",
    "address",
    "aligned_empty",
    "fixed_memory",
    "is_aligned",
    "layer_alone",
    "take_block",
]
