# SPDX-License-Identifier: Apache-2.0
"""Feature maps: where their elements are, and the copies between them and dense arrays.

A feature map has up to four tiles. Columns below WIDTH0 are in tile 0, or tile 2 from row HEIGHT0 on; the others are in
tile 1, or tile 3 from row HEIGHT1 on. Each tile has a base address. NHWC has STRIDE_Y and STRIDE_X; NHCWB16 has bricks
of 16 channels, a STRIDE_C from brick to brick, and no STRIDE_X. Strides are signed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.commands import Long, Short
from ferrule.backends.ethos_u.errors import StreamError, UnsupportedModeError
from ferrule.backends.ethos_u.machine import Bytes, Machine, Range
from ferrule.backends.ethos_u.stream import Registers

Elements = NDArray[Any]

MAX_ELEMENTS = 1 << 23
"""The largest feature map that is executed; no network of a microcontroller comes near."""
BRICK = 16
_TYPES: dict[tuple[int, int], np.dtype[Any]] = {
    (0, 0): np.dtype(np.uint8),
    (1, 0): np.dtype(np.int8),
    (1, 1): np.dtype(np.int16),
    (0, 2): np.dtype(np.uint32),
    (1, 2): np.dtype(np.int32),
}


@frozen
class Tile:
    """A rectangle of a feature map with an address of its own."""

    y0: int
    y1: int
    x0: int
    x1: int
    base: int
    """The address of its first element."""
    bytes: Range
    """From its lowest address, which is below `base` if a stride is negative, to the end of its highest element."""


@frozen
class FeatureMap:
    """A feature map of one operation."""

    name: str
    """IFM, IFM2 or OFM."""
    region: int
    dtype: np.dtype[Any]
    brick: int
    """Channels that lie together: 16 in NHCWB16, all of them in NHWC."""
    height: int
    width: int
    depth: int
    stride_y: int
    stride_x: int
    """Bytes from column to column, in either layout."""
    stride_c: int
    """Bytes from brick to brick; not used by NHWC."""
    zero_point: int
    """0 where the NPU ignores the register."""
    tiles: tuple[Tile, ...] = ()

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.height * self.width * self.depth

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return self.elements * self.dtype.itemsize

    def bounds(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the lowest address of an element of a tile and the end of the highest, from the first element."""
        starts = np.arange(0, self.depth, self.brick)
        runs = starts // self.brick * self.stride_c
        ends = runs + np.minimum(self.depth - starts, self.brick) * self.dtype.itemsize
        y, x = (rows - 1) * self.stride_y, (columns - 1) * self.stride_x
        return min(y, 0) + min(x, 0) + int(runs.min()), max(y, 0) + max(x, 0) + int(ends.max())

    def ranges(self) -> tuple[Range, ...]:
        """Return the bytes from the first to the last element of each tile."""
        return tuple(tile.bytes for tile in self.tiles)

    def views(self, machine: Machine) -> list[Bytes]:
        """Return the bytes of each tile, which can be written if this is the OFM; NpuBusError if one is outside."""
        return [machine.view(each, self.name, writable=self.name == "OFM") for each in self.ranges()]

    def read(self, machine: Machine) -> Elements:
        """Return the stored elements as an array of (height, width, depth)."""
        out = np.empty((self.height, self.width, self.depth), self.dtype)
        for inside, outside in self._parts(out, machine):
            inside[...] = outside
        return out

    def write(self, machine: Machine, values: Elements) -> None:
        """Store an array of (height, width, depth), converted to the type of the elements; it wraps around."""
        for inside, outside in self._parts(np.ascontiguousarray(values, self.dtype), machine):
            outside[...] = inside

    def _parts(self, dense: Elements, machine: Machine) -> Iterator[tuple[Elements, Elements]]:
        """Yield pairs of arrays of one shape: elements in the dense array, and the same elements in memory."""
        for tile, view in zip(self.tiles, self.views(machine), strict=True):
            inside = dense[tile.y0 : tile.y1, tile.x0 : tile.x1]
            for first in range(0, self.depth, self.brick):
                part = inside[:, :, first : first + self.brick]
                start = tile.base - tile.bytes.start + first // self.brick * self.stride_c
                strides = self.stride_y, self.stride_x, self.dtype.itemsize
                yield part, np.ndarray(part.shape, self.dtype, view, start, strides)


def element_type(registers: Registers, name: str) -> tuple[np.dtype[Any], int]:
    """Return the type of a feature map, and the channels that lie together; 0 for all.

    Raises:
        UnsupportedModeError: Vela emits no such type or layout.
    """
    precision = registers[Short[f"{name}_PRECISION"]]
    width = precision >> (1 if name == "OFM" else 2) & 3
    dtype = _TYPES.get((precision & 1, width))
    if dtype is None:
        kind = f"{'u' if not precision & 1 else ''}int{8 << width}"
        raise UnsupportedModeError(f"{name} of type {kind} is not supported")
    layout = precision >> 6 & 3
    if layout > 1:
        raise UnsupportedModeError(f"{name} has the layout {layout}, expected 0 (NHWC) or 1 (NHCWB16)")
    return dtype, BRICK * layout


def zero_point(registers: Registers, name: str, dtype: np.dtype[Any]) -> int:
    """Return the zero point of a feature map; the NPU ignores that of an IFM or IFM2 of 32 bits."""
    code = Short[f"{name}_ZERO_POINT"]
    if name != "OFM" and dtype.itemsize >= 4:
        return 0
    return registers.signed(code) if dtype.kind == "i" else registers[code]


def feature_map(registers: Registers, name: str, height: int, width: int, depth: int) -> FeatureMap:
    """Return the feature map that the registers describe, with an extent that depends on the operation.

    Raises:
        StreamError: the extent is empty.
        UnsupportedModeError: the feature map is too large, or its type or layout is not supported.
    """
    if min(height, width, depth) < 1:
        raise StreamError(f"{name} has the extent {height} x {width} x {depth}")
    if height * width * depth > MAX_ELEMENTS:
        raise UnsupportedModeError(
            f"{name} has {height} x {width} x {depth} elements, more than the {MAX_ELEMENTS} that are executed"
        )
    dtype, brick = element_type(registers, name)
    stride_y, stride_x, stride_c = (registers.stride(Long[f"{name}_STRIDE_{axis}"]) for axis in "YXC")
    whole = FeatureMap(
        name=name,
        region=registers[Short[f"{name}_REGION"]] & 7,
        dtype=dtype,
        brick=brick or depth,
        height=height,
        width=width,
        depth=depth,
        stride_y=stride_y,
        stride_x=brick * dtype.itemsize if brick else stride_x,
        stride_c=stride_c,
        zero_point=zero_point(registers, name, dtype),
    )
    return replace(whole, tiles=_tiles(registers, whole))


def _tiles(registers: Registers, of: FeatureMap) -> tuple[Tile, ...]:
    width0, height0, height1 = (
        registers[Short[f"{of.name}_{extent}_M1"]] + 1 for extent in ("WIDTH0", "HEIGHT0", "HEIGHT1")
    )
    tiles = []
    for x0, x1, split, upper, lower in ((0, width0, height0, 0, 2), (width0, of.width, height1, 1, 3)):
        right = min(x1, of.width)
        for y0, y1, base in ((0, min(split, of.height), upper), (split, of.height, lower)):
            if right <= x0 or y1 <= y0:
                continue
            address = registers.address(Long[f"{of.name}_BASE{base}"])
            low, end = of.bounds(y1 - y0, right - x0)
            extent = Range(of.region, address + low, end - low)
            tiles.append(Tile(y0=y0, y1=y1, x0=x0, x1=right, base=address, bytes=extent))
    return tuple(tiles)
