# SPDX-License-Identifier: Apache-2.0
"""A compiled stream that can be executed on arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ferrule.backends.ethos_u.compiled import (
    FAST_SCRATCH_REGION,
    READ_ONLY_REGION,
    SCRATCH_REGION,
    CompiledStream,
    StreamTensor,
)
from ferrule.backends.ethos_u.machine import ArrayMemory
from ferrule.backends.ethos_u.npu import MAX_EFFORT, Npu, Step
from ferrule.backends.ethos_u.stream import parse_payload
from ferrule.graph import Array

BYTE_TABLE = 256
"""The entries of a look-up table of 8 bits."""


class StreamInstance:
    """A stream with memory of its own and an NPU that executes it."""

    def __init__(self, stream: CompiledStream, *, effort_limit: int = MAX_EFFORT, check_hazards: bool = False) -> None:
        """`effort_limit` and `check_hazards` are those of the NPU."""
        self.stream = stream
        scratch, fast = (np.zeros(size, np.uint8) for size in (stream.scratch_bytes, stream.fast_scratch_bytes))
        self._regions = {
            READ_ONLY_REGION: np.frombuffer(stream.read_only, np.uint8),
            SCRATCH_REGION: scratch,
            FAST_SCRATCH_REGION: fast if fast.size else scratch,
        }
        self.payload = parse_payload(stream.payload)
        memory = ArrayMemory(self._regions)
        self._npu = Npu(stream.configuration, memory, effort_limit=effort_limit, check_hazards=check_hazards)

    def place(self, tensor: StreamTensor) -> Array:
        """Return the bytes of a tensor."""
        return self._regions[tensor.region][tensor.offset : tensor.offset + tensor.size_bytes]

    def write(self, tensor: StreamTensor, array: Array) -> None:
        """Set the elements of a tensor."""
        stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        self.place(tensor)[:] = stored.reshape(-1).view(np.uint8)

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Execute the stream: read one array per input, and write one array per output, in the stream's order."""
        for tensor, array in zip(self.stream.inputs, inputs, strict=True):
            self.write(tensor, array)
        self._npu.run(self.payload)
        for tensor, array in zip(self.stream.outputs, outputs, strict=True):
            array[...] = self.place(tensor).view(tensor.dtype.numpy).reshape(array.shape)

    def steps(self) -> Iterator[Step]:
        """Execute one operation for each item."""
        return self._npu.steps(self.payload.words)

    def tables(self) -> frozenset[bytes]:
        """Execute the stream on what its memory holds, and return the look-up tables of 8 bits that it uses."""
        used = (self._npu.table(step.operation) for step in self.steps())
        return frozenset(table for table in used if len(table) == BYTE_TABLE)
