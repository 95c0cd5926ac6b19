# SPDX-License-Identifier: Apache-2.0
"""DMA_START: a copy of bytes between regions, or from a region into the internal memory."""

from __future__ import annotations

from ferrule.backends.ethos_u.commands import Long, Short
from ferrule.backends.ethos_u.errors import UnsupportedModeError
from ferrule.backends.ethos_u.kernel import Work
from ferrule.backends.ethos_u.machine import INTERNAL, Machine, Range
from ferrule.backends.ethos_u.stream import Operation

_INTERNAL_BIT = 0x100
MAX_BYTES = 1 << 28
"""The longest copy that is executed."""


class Copy:
    """DMA_START, prepared from its registers."""

    def __init__(self, operation: Operation) -> None:
        registers = operation.registers
        source, destination = registers[Short.DMA0_SRC_REGION], registers[Short.DMA0_DST_REGION]
        if (source | destination) >> 9 & 3:
            raise UnsupportedModeError("a DMA with two or three dimensions is not supported")
        size_bytes = registers.address(Long.DMA0_LEN)  # a length has its upper bits in the parameter, too
        if size_bytes > MAX_BYTES:
            raise UnsupportedModeError(f"a DMA of {size_bytes} bytes, more than the {MAX_BYTES} that are executed")
        self._source = Range(_region(source), registers.address(Long.DMA0_SRC), size_bytes)
        self._destination = Range(_region(destination), registers.address(Long.DMA0_DST), size_bytes)
        self.work = Work(
            reads=(self._source,),
            writes=(self._destination,),
            bytes_read=size_bytes,
            bytes_written=size_bytes,
            effort=size_bytes,
        )

    def execute(self, machine: Machine) -> None:
        """Do the operation; errors as for `Kernel`."""
        source = machine.view(self._source, "source of the DMA")
        machine.view(self._destination, "destination of the DMA", writable=True)[...] = source


def _region(register: int) -> int:
    return INTERNAL if register & _INTERNAL_BIT else register & 7
