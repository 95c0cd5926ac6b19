# SPDX-License-Identifier: Apache-2.0
"""Arrays at aligned addresses."""

from __future__ import annotations

import math

import numpy as np

from ferrule.graph import Array, DataType, Shape

ALIGNMENT_BYTES = 64
"""The size of a cache line, and of the widest vector register of the supported hosts."""


def address(array: Array) -> int:
    """Return the address of the first element."""
    return int(array.__array_interface__["data"][0])


def is_aligned(array: Array, alignment_bytes: int) -> bool:
    """Return whether the address of the first element is a multiple of `alignment_bytes`."""
    return address(array) % alignment_bytes == 0


def aligned_empty(shape: Shape, dtype: DataType, alignment_bytes: int = ALIGNMENT_BYTES) -> Array:
    """Return an uninitialised C-contiguous array whose address is a multiple of `alignment_bytes`."""
    size = math.prod(shape) * dtype.size_bytes
    memory = np.empty(size + alignment_bytes - 1, np.uint8)
    start = -address(memory) % alignment_bytes
    return memory[start : start + size].view(dtype.numpy).reshape(shape)
