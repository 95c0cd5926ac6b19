# SPDX-License-Identifier: Apache-2.0
"""What an operation works on: the memory behind the regions, and the memory inside of the NPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.errors import NpuBusError

Bytes = NDArray[np.uint8]

LUT_BYTES = 2048
"""The end of the internal memory that holds the look-up tables."""
ADDRESS_BITS = 40
"""Addresses of Ethos-U65; those of U55 have 32."""


class Memory(Protocol):
    """The memory outside of the NPU, by region."""

    def view(self, region: int, offset: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return `size_bytes` bytes of a region, one-dimensional and contiguous; writes to it reach the memory.

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

    def view(self, region: int, offset: int, size_bytes: int, *, writable: bool = False) -> Bytes:
        """Return a part of a region; a read-only array cannot be written."""
        array = self._regions.get(region)
        if array is None:
            reason = "there is no such region"
        elif offset < 0 or size_bytes < 0 or offset + size_bytes > len(array):
            reason = f"the region has {len(array)} bytes"
        elif writable and not array.flags.writeable:
            reason = "the region is read-only"
        else:
            return array[offset : offset + size_bytes]
        raise NpuBusError(region=region, offset=offset, size_bytes=size_bytes, reason=reason, writable=writable)


@frozen
class Range:
    """Bytes that an operation accesses; the internal memory has the region INTERNAL."""

    region: int
    start: int
    end: int

    def meets(self, other: Range) -> bool:
        """Return whether two ranges have a byte in common."""
        return self.region == other.region and self.start < other.end and other.start < self.end

    @override
    def __str__(self) -> str:
        where = "internal memory" if self.region == INTERNAL else f"region {self.region}"
        return f"{where} {self.start:#x}-{self.end:#x}"


INTERNAL = -1
"""The region of ranges in the internal memory."""


@dataclass(slots=True, kw_only=True, eq=False)
class Machine:
    """The memories of one NPU."""

    configuration: Configuration
    memory: Memory
    internal: Bytes
    """The internal memory of the first core, SHRAM; look-up tables are in it."""

    def view(self, region: int, offset: int, size_bytes: int, access: str, *, writable: bool = False) -> Bytes:
        """Return a part of a region for what `access` names.

        Raises:
            NpuBusError: some of the bytes are not accessible.
        """
        if offset < 0 or offset + size_bytes > 1 << ADDRESS_BITS:
            raise NpuBusError(
                region=region,
                offset=offset,
                size_bytes=size_bytes,
                reason=f"addresses have {ADDRESS_BITS} bits",
                writable=writable,
                access=access,
            )
        try:
            return self.memory.view(region, offset, size_bytes, writable=writable)
        except NpuBusError as error:
            raise error.named(access) from None

    def table(self, index: int, size_bytes: int) -> Bytes:
        """Return the look-up table at slot `index`; slots have 256 bytes.

        Raises:
            NpuBusError: the table does not fit into the internal memory.
        """
        start = len(self.internal) - LUT_BYTES + 256 * index
        if start + size_bytes > len(self.internal):
            raise NpuBusError(
                region=INTERNAL,
                offset=start,
                size_bytes=size_bytes,
                reason=f"the internal memory has {len(self.internal)} bytes",
                access="look-up table",
            )
        return self.internal[start : start + size_bytes]
