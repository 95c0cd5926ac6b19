# SPDX-License-Identifier: Apache-2.0
"""Access to a model's inputs and outputs in the memory of an emulated board, beside the link.

The link costs the firmware more than a hundred instructions per byte; an emulator reaches the memory itself. The
addresses are those of the firmware's own tables, `struct ferrule_link_model` in `include/ferrule/link.h`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

from ferrule._frozen import positional
from ferrule.link.errors import LinkError

_MODEL = struct.Struct("<10I2I")
"""Ten pointers, of which the sixth and the seventh are those of the inputs and outputs, and the numbers of both."""
_TENSOR = struct.Struct("<3I8I2B2x")
"""Name, data, bytes, shape, rank, type."""


class BoardMemory(Protocol):
    """The memory of an emulated board, as the core addresses it."""

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return bytes; fewer if the memory ends earlier."""

    def write(self, address: int, data: bytes) -> None:
        """Replace bytes of a RAM.

        Raises:
            FerruleError: the bytes do not lie within a RAM.
        """


@positional
class TensorPlace:
    """A tensor in the board's memory."""

    address: int
    size_bytes: int


@positional
class DirectTensors:
    """The inputs and outputs of one model in the memory of an emulated board."""

    memory: BoardMemory
    inputs: tuple[TensorPlace, ...]
    outputs: tuple[TensorPlace, ...]

    @classmethod
    def of(cls, memory: BoardMemory, model_address: int) -> DirectTensors:
        """Return the tensors of the `struct ferrule_link_model` at an address.

        Raises:
            LinkError: the memory does not hold such a structure.
        """
        fields = _MODEL.unpack(_exactly(memory, model_address, _MODEL.size))
        inputs, outputs, input_count, output_count = fields[5], fields[6], fields[10], fields[11]
        return cls(memory, _places(memory, inputs, input_count), _places(memory, outputs, output_count))

    def write(self, inputs: Sequence[bytes]) -> None:
        """Write the bytes of all inputs; LinkError if a size differs from the firmware's."""
        for place, data in zip(self.inputs, inputs, strict=True):
            if len(data) != place.size_bytes:
                raise LinkError(f"an input has {len(data)} bytes, the firmware's has {place.size_bytes}")
            self.memory.write(place.address, data)

    def read(self, index: int) -> bytes:
        """Return the bytes of an output."""
        place = self.outputs[index]
        return _exactly(self.memory, place.address, place.size_bytes)


def _places(memory: BoardMemory, address: int, count: int) -> tuple[TensorPlace, ...]:
    data = _exactly(memory, address, count * _TENSOR.size)
    return tuple(TensorPlace(fields[1], fields[2]) for fields in _TENSOR.iter_unpack(data))


def _exactly(memory: BoardMemory, address: int, size_bytes: int) -> bytes:
    data = memory.read(address, size_bytes)
    if len(data) != size_bytes:
        raise LinkError(f"the board has no memory for the {size_bytes} bytes at {address:#010x}")
    return data
