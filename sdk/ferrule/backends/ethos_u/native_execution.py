# SPDX-License-Identifier: Apache-2.0
"""Operations in C, for those that the C supports; the others are executed by numpy, with the same results."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule.backends.ethos_u.activation import SIGMOID, TANH, Activation
from ferrule.backends.ethos_u.arithmetic import Int64, Rounding, Scale
from ferrule.backends.ethos_u.commands import Pool
from ferrule.backends.ethos_u.convolution import Convolution
from ferrule.backends.ethos_u.elementwise import UNARY, ElementwiseKernel
from ferrule.backends.ethos_u.errors import UnsupportedModeError
from ferrule.backends.ethos_u.feature_map import NHCWB16, FeatureMap
from ferrule.backends.ethos_u.kernel import Kernel, Window
from ferrule.backends.ethos_u.machine import Machine
from ferrule.backends.ethos_u.native_structs import (
    WINDOW_FIELDS,
    ConvolutionStruct,
    ElementwiseStruct,
    Functions,
    MapStruct,
    OutputStruct,
    PoolingStruct,
    ScaleStruct,
    WindowStruct,
)
from ferrule.backends.ethos_u.pooling import Pooling
from ferrule.operators.arithmetic.blas import matrix_product

_TYPES = {np.dtype(np.uint8): 0, np.dtype(np.int8): 1, np.dtype(np.int16): 2, np.dtype(np.int32): 3}
_STRIP_ELEMENTS = 1 << 18
"""Rows of patches that fit into a cache of the second level."""
_MAX_ROW_ELEMENTS = 1 << 22
_EXACT_INT32 = 1 << 31
_FLOAT64_BITS = 52
_REAL = ("bias", "factor", "above", "below")


class Workspace:
    """Arrays that the operations of one NPU use one after the other."""

    def __init__(self) -> None:
        self._slots: dict[str, tuple[NDArray[np.uint8], int]] = {}

    def address(self, slot: str, size_bytes: int) -> int:
        """Return the address of at least `size_bytes` bytes, valid until the next call with this slot."""
        array, address = self._slots.get(slot, (None, 0))
        if array is None or array.nbytes < size_bytes:
            array = np.empty(size_bytes, np.uint8)
            address = address_of(array)
            self._slots[slot] = array, address
        return address

    def array(self, slot: str, dtype: type[np.float32], count: int) -> NDArray[np.float32]:
        """Return an array of a slot, valid until the next call with this slot."""
        size_bytes = count * np.dtype(dtype).itemsize
        self.address(slot, size_bytes)
        return self._slots[slot][0][:size_bytes].view(dtype)


def address_of(array: NDArray[Any]) -> int:
    """Return the address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address


class _Map:
    """A feature map whose addresses are looked up again for each execution."""

    def __init__(self, source: FeatureMap, struct: MapStruct, *, writable: bool = False) -> None:
        for name in ("height", "width", "depth", "stride_y", "stride_x", "stride_c", "zero_point"):
            setattr(struct, name, getattr(source, name))
        struct.type = _TYPES[source.dtype]
        struct.bricks = int(source.layout == NHCWB16)
        struct.tiles = len(source.tiles)
        for tile, target in zip(source.tiles, struct.tile, strict=False):
            target.y0, target.y1, target.x0, target.x1 = tile.y0, tile.y1, tile.x0, tile.x1
        self._places = [
            (tile.low, tile.size_bytes, tile.base - tile.low, struct.tile[number])
            for number, tile in enumerate(source.tiles)
        ]
        self._region, self._name, self._writable = source.region, source.name, writable

    def resolve(self, machine: Machine) -> list[NDArray[np.uint8]]:
        """Set the addresses, and return the arrays to which they belong."""
        views = []
        for low, size_bytes, first, target in self._places:
            view = machine.view(self._region, low, size_bytes, self._name, writable=self._writable)
            target.first = address_of(view) + first
            views.append(view)
        return views


def _fill_output(struct: OutputStruct, ofm: FeatureMap, activation: Activation, machine: Machine) -> _Map:
    struct.clips, struct.zero_point = int(activation.clips), activation.zero_point
    struct.low, struct.high = activation.low, activation.high
    if activation.table_bytes:
        struct.table = address_of(machine.table(activation.table_slot, activation.table_bytes))
    return _Map(ofm, struct.map, writable=True)


def _fill_window(struct: WindowStruct, window: Window) -> None:
    for name in WINDOW_FIELDS:
        setattr(struct, name, getattr(window, name))


def _fill_scale(struct: ScaleStruct, scale: Scale) -> None:
    struct.factor, struct.shift, struct.headroom = scale.factor, scale.shift, scale.headroom
    struct.natural = int(scale.mode is Rounding.NATURAL)


class NativeConvolution:
    """CONV or DEPTHWISE: the C gathers, scales and stores; products of matrices are those of BLAS."""

    def __init__(self, kernel: Convolution, functions: Functions, machine: Machine, workspace: Workspace) -> None:
        self.work = kernel.work
        self._kernel, self._functions, self._workspace = kernel, functions, workspace
        view, ofm = kernel.window, kernel.ofm
        struct = self._struct = ConvolutionStruct()
        self._ifm = _Map(kernel.ifm, struct.ifm)
        self._ofm = _fill_output(struct.ofm, ofm, kernel.activation, machine)
        _fill_window(struct.window, view)
        struct.rows = view.top + view.height + view.bottom
        struct.columns = view.left + view.width + view.right
        mode = kernel.mode if kernel.scale is None else kernel.scale.mode
        struct.natural = int(mode is Rounding.NATURAL)
        self._pointer = ctypes.addressof(struct)
        self._row_bytes = 4 * max(ofm.width * ofm.depth, kernel.ifm.width * kernel.ifm.depth)
        self._extended = struct.rows * struct.columns * kernel.ifm.depth
        self._is_point = view.taps == 1 and view.stride_y == view.stride_x == 1 and not view.is_padded
        self._per_row = ofm.width * view.taps * kernel.channels
        strip = max(1, _STRIP_ELEMENTS // max(self._per_row, ofm.width * ofm.depth))
        self._strips = [(y, min(y + strip, ofm.height)) for y in range(0, ofm.height, strip)]
        self._version = -1
        self._arrays: tuple[NDArray[Any], ...] = ()
        self._weights: NDArray[np.int16] | None = None

    def execute(self, machine: Machine) -> None:
        """Do the operation; errors as for `Kernel`."""
        kernel = self._kernel
        kernel.load_weights(machine)
        if self._version != kernel.version:
            self._prepare_weights()
        if kernel.depthwise and self._weights is None:
            kernel.execute(machine)  # the sums may exceed 32 bits
            return
        views = self._ifm.resolve(machine), self._ofm.resolve(machine)
        row = self._workspace.address("row", self._row_bytes)
        if self._weights is not None:
            extended = self._workspace.address("extended", 2 * self._extended)
            self._functions.extend_short(self._pointer, row, extended)
            sums = self._workspace.address("sums", 4 * kernel.ofm.width * kernel.ofm.depth)
            self._functions.depthwise(self._pointer, extended, address_of(self._weights), sums, row)
        else:
            self._dense(row)
        del views

    def _dense(self, row: int) -> None:
        kernel, functions = self._kernel, self._functions
        extended = self._workspace.array("extended", np.float32, self._extended)
        functions.extend(self._pointer, row, address_of(extended))
        matrix = kernel.matrix
        finish = functions.finish if matrix.dtype == np.float32 else functions.finish_wide
        for y0, y1 in self._strips:
            count = (y1 - y0) * self._per_row
            if self._is_point:
                patches = extended[y0 * self._per_row : y0 * self._per_row + count]
            else:
                patches = self._workspace.array("patches", np.float32, count)
                functions.patches(self._pointer, address_of(extended), y0, y1, address_of(patches))
            rows = patches.reshape((y1 - y0) * kernel.ofm.width, -1)
            if matrix.dtype != np.float32:
                rows = rows.astype(matrix.dtype)
            sums = matrix_product(rows, matrix)
            finish(self._pointer, address_of(sums), y0, y1, row)

    def _prepare_weights(self) -> None:
        """Take over the weights that the kernel has decoded."""
        kernel, struct = self._kernel, self._struct
        scales = kernel.scales
        factor, shift = scales.scale, scales.shift
        if kernel.scale is not None:
            factor, shift = np.full_like(factor, kernel.scale.factor), np.full_like(shift, kernel.scale.shift)
        self._arrays = tuple(np.ascontiguousarray(each) for each in (scales.bias, factor, shift))
        struct.bias, struct.factor, struct.shift = map(address_of, self._arrays)
        largest = int(np.abs(kernel.matrix).sum(axis=0).max()) << (8 * kernel.ifm.dtype.itemsize)
        largest += int(np.abs(scales.bias).max())
        real = _in_float64(kernel, scales.bias, factor, shift, largest)
        self._arrays += real
        for name, array in zip_longest(_REAL, real):
            setattr(struct, f"real_{name}", None if array is None else address_of(array))
        self._weights = None
        if kernel.depthwise and kernel.ifm.dtype.itemsize == 1 and largest < _EXACT_INT32:
            self._weights = np.ascontiguousarray(kernel.matrix, np.int16)
        self._version = kernel.version


def _in_float64(
    kernel: Convolution, bias: Int64, factor: Int64, shift: Int64, largest: int
) -> tuple[NDArray[np.float64], ...]:
    """Return the arrays of ferrule_ethos_u_real; none where float64 may not be exact.

    `largest` is above the magnitude of all accumulators.
    """
    last = kernel.activation
    if not last.clips or last.table_bytes or largest * int(factor.max()) >= 1 << 63:
        return ()
    bits = (max(abs(last.low), abs(last.high)) + abs(last.zero_point) + 2).bit_length()
    if bits + int(shift.max()) > _FLOAT64_BITS:
        return ()
    mode = kernel.mode if kernel.scale is None else kernel.scale.mode
    power = shift.astype(np.float64)
    half = np.where(shift > 0, 0.5, 0.0)
    nudge = np.where((shift > 31) & (mode is Rounding.DOUBLE), np.exp2(30 - power), 0.0)
    return bias.astype(np.float64), factor.astype(np.float64) * np.exp2(-power), half + nudge, half - nudge


class NativePooling:
    """POOL in C."""

    def __init__(self, kernel: Pooling, functions: Functions, machine: Machine, workspace: Workspace) -> None:
        self.work = kernel.work
        struct = self._struct = PoolingStruct()
        self._ifm = _Map(kernel.ifm, struct.ifm)
        self._ofm = _fill_output(struct.ofm, kernel.ofm, kernel.activation, machine)
        _fill_window(struct.window, kernel.window)
        struct.mode, struct.divides, struct.scales = kernel.mode, kernel.divides, kernel.scale is not None
        if kernel.scale is not None:
            _fill_scale(struct.scale, kernel.scale)
        self._pointer = ctypes.addressof(struct)
        self._pool, self._workspace = functions.pool, workspace
        self._sizes = 4 * kernel.ifm.elements, 4 * kernel.ofm.elements

    def execute(self, machine: Machine) -> None:
        """Do the operation; errors as for `Kernel`."""
        views = self._ifm.resolve(machine), self._ofm.resolve(machine)
        source, target = (self._workspace.address(*each) for each in zip(("in", "out"), self._sizes, strict=True))
        self._pool(self._pointer, source, target)
        del views


class NativeElementwise:
    """ELEMENTWISE in C."""

    def __init__(self, kernel: ElementwiseKernel, functions: Functions, machine: Machine, workspace: Workspace) -> None:
        self.work = kernel.work
        struct = self._struct = ElementwiseStruct()
        self._maps = [_Map(kernel.ifm, struct.ifm)]
        if kernel.ifm2 is not None:
            self._maps.append(_Map(kernel.ifm2, struct.ifm2))
        else:
            struct.ifm2.height = struct.ifm2.width = struct.ifm2.depth = 1
            struct.scalar = kernel.scalar
        self._maps.append(_fill_output(struct.ofm, kernel.ofm, kernel.activation, machine))
        for name in ("scale", "first", "second"):
            _fill_scale(getattr(struct, name), getattr(kernel, name))
        struct.mode = kernel.mode
        struct.swapped = int(kernel.swapped and kernel.mode not in UNARY)
        struct.scales = int(kernel.is_scaled)
        struct.only_shifts = int(kernel.ifm.dtype.itemsize == 4)
        self._pointer = ctypes.addressof(struct)
        self._name = kernel.mode.name
        self._function, self._workspace = functions.elementwise, workspace
        self._sizes = 4 * kernel.ofm.elements, 4 * (1 if kernel.ifm2 is None else kernel.ifm2.elements)

    def execute(self, machine: Machine) -> None:
        """Do the operation; errors as for `Kernel`."""
        views = [each.resolve(machine) for each in self._maps]
        first = self._workspace.address("in", self._sizes[0])
        second = self._workspace.address("out", self._sizes[1])
        if self._function(self._pointer, first, second):
            raise UnsupportedModeError(f"{self._name} by fewer than 0 or more than 63 bits")
        del views


def accelerated(kernel: Kernel, functions: Functions, machine: Machine, workspace: Workspace) -> Kernel:
    """Return the operation in C if C supports it, else the operation itself."""
    if isinstance(kernel, Convolution):
        supported = not kernel.window.upscale and (
            kernel.ifm.depth == kernel.ofm.depth
            if kernel.depthwise
            else kernel.ofm.width * kernel.window.taps * kernel.channels <= _MAX_ROW_ELEMENTS
        )
        maps: Sequence[FeatureMap] = (kernel.ifm, kernel.ofm)
        native: type[Any] = NativeConvolution
    elif isinstance(kernel, Pooling):
        supported = not kernel.window.upscale and (kernel.mode is not Pool.REDUCE_SUM or kernel.window.taps == 1)
        supported = supported and (kernel.mode is not Pool.REDUCE_SUM or _is_dense(kernel))
        maps, native = (kernel.ifm, kernel.ofm), NativePooling
    elif isinstance(kernel, ElementwiseKernel):
        supported = not kernel.upscale
        maps = (kernel.ifm, kernel.ofm) if kernel.ifm2 is None else (kernel.ifm, kernel.ifm2, kernel.ofm)
        native = NativeElementwise
    else:
        return kernel
    if supported and all(each.dtype in _TYPES for each in maps) and _has_entries(kernel.activation):
        accelerated_kernel: Kernel = native(kernel, functions, machine, workspace)
        return accelerated_kernel
    return kernel


def _is_dense(kernel: Pooling) -> bool:
    return kernel.window.stride_y == kernel.window.stride_x == 1


def _has_entries(activation: Activation) -> bool:
    """Return whether C has the function, and the look-up table an entry for each value in the range."""
    if activation.function in {TANH, SIGMOID}:
        return False
    if not activation.table_bytes or activation.dtype.itemsize == 2:
        return True
    first = 0 if activation.dtype == np.uint8 else -128
    return first <= min(activation.low, activation.high) and max(activation.low, activation.high) <= first + 255
