# SPDX-License-Identifier: Apache-2.0
"""DMA_START: a copy of bytes between regions, or from a region into the internal memory."""

from __future__ import annotations

from ferrule._frozen import positional
from ferrule.backends.ethos_u.commands import Long, Short
from ferrule.backends.ethos_u.errors import NpuBusError, UnsupportedModeError
from ferrule.backends.ethos_u.kernel import Work
from ferrule.backends.ethos_u.machine import INTERNAL, Bytes, Machine, Range
from ferrule.backends.ethos_u.stream import Operation

_INTERNAL_BIT = 0x100
MAX_BYTES = 1 << 28
"""The longest copy that is executed."""


@positional
class _End:
    """One end of a copy."""

    region: int
    """INTERNAL for the internal memory."""
    offset: int

    def view(self, machine: Machine, size_bytes: int, access: str, *, writable: bool) -> Bytes:
        if self.region != INTERNAL:
            return machine.view(self.region, self.offset, size_bytes, access, writable=writable)
        memory = machine.internal
        if self.offset + size_bytes > len(memory):
            raise NpuBusError(
                region=INTERNAL,
                offset=self.offset,
                size_bytes=size_bytes,
                reason=f"the internal memory has {len(memory)} bytes",
                writable=writable,
                access=access,
            )
        return memory[self.offset : self.offset + size_bytes]


class Copy:
    """DMA_START, prepared from its registers."""

    def __init__(self, operation: Operation) -> None:
        registers = operation.registers
        source, destination = registers[Short.DMA0_SRC_REGION], registers[Short.DMA0_DST_REGION]
        if (source | destination) >> 9 & 3:
            raise UnsupportedModeError("a DMA with two or three dimensions is not supported")
        low, high = registers.payload(Long.DMA0_LEN)
        self.size_bytes = low | high << 32
        if self.size_bytes > MAX_BYTES:
            raise UnsupportedModeError(f"a DMA of {self.size_bytes} bytes, more than the {MAX_BYTES} that are executed")
        self.source = _end(source, registers.address(Long.DMA0_SRC))
        self.destination = _end(destination, registers.address(Long.DMA0_DST))
        self.work = Work(
            macs=0,
            reads=(self._range(self.source),),
            writes=(self._range(self.destination),),
            bytes_read=self.size_bytes,
            bytes_written=self.size_bytes,
            effort=self.size_bytes,
        )

    def _range(self, end: _End) -> Range:
        return Range(region=end.region, start=end.offset, end=end.offset + self.size_bytes)

    def execute(self, machine: Machine) -> None:
        """Do the operation; errors as for `Kernel`."""
        source = self.source.view(machine, self.size_bytes, "source of the DMA", writable=False)
        destination = self.destination.view(machine, self.size_bytes, "destination of the DMA", writable=True)
        destination[...] = source


def _end(register: int, offset: int) -> _End:
    return _End(INTERNAL if register & _INTERNAL_BIT else register & 7, offset)
