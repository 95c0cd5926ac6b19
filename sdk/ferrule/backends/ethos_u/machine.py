# SPDX-License-Identifier: Apache-2.0
"""What an operation works on: the memory behind the regions, and the memory inside of the NPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import positional
from ferrule._typing import override
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.errors import NpuBusError

Bytes = NDArray[np.uint8]

LUT_BYTES = 2048
"""The end of the internal memory that holds the look-up tables."""
ADDRESS_BITS = 40
"""Addresses of Ethos-U65; those of U55 have 32."""


INTERNAL = -1
"""The region of ranges in the internal memory."""


@positional
class Range:
    """Bytes that an operation accesses; the internal memory has the region INTERNAL."""

    region: int
    start: int
    size_bytes: int

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.start + self.size_bytes

    def meets(self, other: Range) -> bool:
        """Return whether two ranges have a byte in common."""
        return self.region == other.region and self.start < other.end and other.start < self.end

    @override
    def __str__(self) -> str:
        where = "internal memory" if self.region == INTERNAL else f"region {self.region}"
        return f"{where} {self.start:#x}-{self.end:#x}"


class Memory(Protocol):
    """The memory outside of the NPU, by region."""

    def view(self, where: Range, *, writable: bool = False) -> Bytes:
        """Return the bytes of a range, one-dimensional and contiguous; writes to it reach the memory.

        Raises:
            NpuBusError: some of the bytes are not accessible.
        """


class ArrayMemory:
    """Regions that are arrays of bytes; a region that is missing has no bytes."""

    def __init__(self, regions: Mapping[int, Bytes]) -> None:
        for region, array in regions.items():
            if array.dtype != np.uint8 or array.ndim != 1 or not array.flags.c_contiguous:
                raise TypeError(f"region {region} is no contiguous array of uint8 with one axis")
        self._regions = dict(regions)

    def view(self, where: Range, *, writable: bool = False) -> Bytes:
        """Return a part of a region; a read-only array cannot be written."""
        array = self._regions.get(where.region)
        if array is None:
            reason = "there is no such region"
        elif where.start < 0 or where.size_bytes < 0 or where.end > len(array):
            reason = f"the region has {len(array)} bytes"
        elif writable and not array.flags.writeable:
            reason = "the region is read-only"
        else:
            return array[where.start : where.end]
        raise NpuBusError(where, reason, writable=writable)


@dataclass(slots=True, kw_only=True, eq=False)
class Machine:
    """The memories of one NPU."""

    configuration: Configuration
    memory: Memory
    internal: Bytes
    """The internal memory of the first core, SHRAM; look-up tables are in it."""

    def view(self, where: Range, access: str, *, writable: bool = False) -> Bytes:
        """Return the bytes of a range for what `access` names.

        Raises:
            NpuBusError: some of the bytes are not accessible.
        """
        try:
            return self._view(where, writable=writable)
        except NpuBusError as error:
            error.name(access)
            raise

    def _view(self, where: Range, *, writable: bool) -> Bytes:
        if where.region != INTERNAL:
            if where.start < 0 or where.end > 1 << ADDRESS_BITS:
                raise NpuBusError(where, f"addresses have {ADDRESS_BITS} bits", writable=writable)
            return self.memory.view(where, writable=writable)
        if where.end > len(self.internal):
            raise NpuBusError(where, f"the internal memory has {len(self.internal)} bytes", writable=writable)
        return self.internal[where.start : where.end]
