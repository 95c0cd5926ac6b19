# SPDX-License-Identifier: Apache-2.0
"""Canaries: bytes around the memory of a tensor that nothing may write."""

from __future__ import annotations

import numpy as np

from ferrule.backends.shared.host_memory.aligned import aligned_empty
from ferrule.graph import Array, DataType, TensorInfo

MARGIN_BYTES = 256
"""The least number of canaries on either side."""
_PATTERN = (np.arange(251) ^ 0xA5).astype(np.uint8)


def canaries(size_bytes: int) -> Array:
    """Return the values of canaries, which differ from their neighbours."""
    values: Array = np.resize(_PATTERN, size_bytes)
    return values


class Fenced:
    """An aligned array with canaries directly before its first byte and directly behind its last one."""

    def __init__(self, info: TensorInfo, alignment_bytes: int = 1) -> None:
        self._margin = max(MARGIN_BYTES, alignment_bytes)
        self._end = self._margin + info.size_bytes
        self._block = aligned_empty((self._end + self._margin,), DataType.UINT8, max(alignment_bytes, MARGIN_BYTES))
        self._block[:] = self._wanted = canaries(self._block.size)
        self._name = info.name
        self.array: Array = self._block[self._margin : self._end].view(info.dtype.numpy).reshape(info.shape)

    def damage(self) -> str:
        """Return a description of the first changed canary; "" if all are intact."""
        changed = np.flatnonzero(self._block != self._wanted)
        before, behind = changed[changed < self._margin], changed[changed >= self._end]
        if before.size:
            return f"byte {self._margin - int(before[-1])} before '{self._name}' was written"
        return f"byte {int(behind[0]) - self._end + 1} behind '{self._name}' was written" if behind.size else ""
