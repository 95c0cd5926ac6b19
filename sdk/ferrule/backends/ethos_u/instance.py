# SPDX-License-Identifier: Apache-2.0
"""A compiled stream that can be executed on arrays."""

from __future__ import annotations

import numpy as np

from ferrule.backends.ethos_u.compiled import (
    FAST_SCRATCH_REGION,
    READ_ONLY_REGION,
    SCRATCH_REGION,
    CompiledStream,
    StreamTensor,
)
from ferrule.backends.ethos_u.machine import ArrayMemory
from ferrule.backends.ethos_u.npu import MAX_EFFORT, Npu
from ferrule.backends.ethos_u.stream import parse_payload
from ferrule.graph import Array

BYTE_TABLE = 256
"""The entries of a look-up table of 8 bits."""


class StreamInstance:
    """A stream with memory of its own and an NPU that executes it."""

    def __init__(self, stream: CompiledStream, *, effort_limit: int = MAX_EFFORT) -> None:
        """`effort_limit` is that of the NPU."""
        self._stream = stream
        scratch = np.zeros(stream.scratch_bytes, np.uint8)
        fast = np.zeros(stream.fast_scratch_bytes, np.uint8) if stream.fast_scratch_bytes else scratch
        self._regions = {
            READ_ONLY_REGION: np.frombuffer(stream.read_only, np.uint8),
            SCRATCH_REGION: scratch,
            FAST_SCRATCH_REGION: fast,
        }
        self._payload = parse_payload(stream.payload)
        self._npu = Npu(stream.configuration, ArrayMemory(self._regions), effort_limit=effort_limit)

    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        """Execute the stream: read one array per input, and write one array per output, in the stream's order."""
        for tensor, array in zip(self._stream.inputs, inputs, strict=True):
            self._place(tensor)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._npu.run(self._payload)
        for tensor, array in zip(self._stream.outputs, outputs, strict=True):
            array[...] = self._place(tensor).view(tensor.dtype.numpy).reshape(array.shape)

    def tables(self) -> frozenset[bytes]:
        """Execute the stream on what its memory holds, and return the look-up tables of 8 bits that it uses."""
        used = (self._npu.table(step.operation) for step in self._npu.steps(self._payload.words))
        return frozenset(table for table in used if len(table) == BYTE_TABLE)

    def _place(self, tensor: StreamTensor) -> Array:
        return self._regions[tensor.region][tensor.offset : tensor.offset + tensor.size_bytes]
