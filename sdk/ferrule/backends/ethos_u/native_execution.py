# SPDX-License-Identifier: Apache-2.0
"""Operations in C, for those that the C supports; the others are executed by numpy, with the same results."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule.backends.ethos_u.activation import SIGMOID, TANH, Activation
from ferrule.backends.ethos_u.arithmetic import Rounding
from ferrule.backends.ethos_u.commands import Pool
from ferrule.backends.ethos_u.convolution import Convolution
from ferrule.backends.ethos_u.elementwise import ElementwiseKernel
from ferrule.backends.ethos_u.errors import UnsupportedModeError
from ferrule.backends.ethos_u.feature_map import FeatureMap
from ferrule.backends.ethos_u.kernel import Computing, Execute, Kernel
from ferrule.backends.ethos_u.machine import Machine
from ferrule.backends.ethos_u.native_structs import Functions, structs
from ferrule.backends.ethos_u.pooling import Pooling
from ferrule.backends.shared.host_memory import address
from ferrule.operators.arithmetic.blas import matrix_product

_TYPES = {np.dtype(np.uint8): 0, np.dtype(np.int8): 1, np.dtype(np.int16): 2, np.dtype(np.int32): 3}
_STRIP_ELEMENTS = 1 << 18
"""Rows of patches that fit into a cache of the second level."""
_MAX_ROW_ELEMENTS = 1 << 22
_EXACT_INT32 = 1 << 31
"""Below it, sums fit into the int32 in which C adds up a DEPTHWISE."""
_FLOAT64_BITS = 52


class Workspace:
    """Arrays that the operations of one NPU use one after the other."""

    def __init__(self) -> None:
        self._slots: dict[str, tuple[NDArray[np.uint8], int]] = {}

    def address(self, slot: str, size_bytes: int) -> int:
        """Return the address of at least `size_bytes` bytes, valid until the next call with this slot."""
        array, place = self._slots.get(slot, (None, 0))
        if array is None or array.nbytes < size_bytes:
            array = np.empty(size_bytes, np.uint8)
            place = address(array)
            self._slots[slot] = array, place
        return place

    def array(self, slot: str, count: int) -> NDArray[np.float32]:
        """Return an array of a slot, valid until the next call with this slot."""
        self.address(slot, 4 * count)
        return self._slots[slot][0][: 4 * count].view(np.float32)


class _Native:
    """An operation in C: a struct repeats what is prepared, and gets the addresses anew for each execution."""

    def __init__(self, kernel: Computing, tag: str, functions: Functions, workspace: Workspace) -> None:
        struct = self._struct = structs()[tag]()
        self._functions, self._workspace = functions, workspace
        self._pointer = ctypes.addressof(struct)
        _fill(struct, kernel)
        names = ("ifm", "ofm") if kernel.ifm2 is None else ("ifm", "ifm2", "ofm")
        self._maps: list[tuple[FeatureMap, Any]] = [(getattr(kernel, n), getattr(struct, n)) for n in names]
        for source, target in self._maps:
            target.type, target.tile_count = _TYPES[source.dtype], len(source.tiles)
            for tile, tile_struct in zip(source.tiles, target.tile, strict=False):  # the struct has room for four
                _fill(tile_struct, tile)
        self._activation = kernel.activation
        struct.activation.type = struct.ofm.type

    def _resolve(self, machine: Machine) -> list[NDArray[np.uint8]]:
        """Set the addresses, and return the arrays to which they belong."""
        found = []
        for source, target in self._maps:
            views = source.views(machine)
            for tile, tile_struct, view in zip(source.tiles, target.tile, views, strict=False):
                tile_struct.first = address(view) + tile.base - tile.bytes.start
            found += views
        if self._activation.table is not None:
            table = machine.view(self._activation.table, "look-up table")
            self._struct.activation.entries = address(table)
        return found


def _fill(struct: ctypes.Structure, source: object) -> None:
    """Set the members that `source` has as attributes, and those of the structs inside likewise."""
    for name, *_ in struct._fields_:
        value = getattr(source, name, None)
        if isinstance(value, int):
            setattr(struct, name, value)
        elif value is not None:
            _fill(getattr(struct, name), value)


class NativeConvolution(_Native):
    """CONV or DEPTHWISE: the C gathers, scales and stores; products of matrices are those of BLAS."""

    def __init__(self, kernel: Convolution, functions: Functions, workspace: Workspace) -> None:
        super().__init__(kernel, "ferrule_ethos_u_convolution", functions, workspace)
        self._kernel = kernel
        view, ofm = kernel.window, kernel.ofm
        self._row_bytes = 4 * max(ofm.width * ofm.depth, kernel.ifm.width * kernel.ifm.depth)
        self._extended = math.prod(view.extended) * kernel.ifm.depth
        self._is_point = view.taps == 1 and view.stride_y == view.stride_x == 1 and not view.is_padded
        self._per_row = ofm.width * view.taps * kernel.channels
        strip = max(1, _STRIP_ELEMENTS // max(self._per_row, ofm.width * ofm.depth))
        self._strips = [(y, min(y + strip, ofm.height)) for y in range(0, ofm.height, strip)]
        self._arrays: tuple[NDArray[Any], ...] = ()
        self._weights: NDArray[np.int16] | None = None

    def execute(self, machine: Machine) -> None:
        """Do the operation; errors as for `Kernel`."""
        kernel, functions = self._kernel, self._functions
        if kernel.load_weights(machine):
            self._prepare_weights()
        if kernel.depthwise and self._weights is None:
            kernel.execute(machine)  # the sums may exceed 32 bits
            return
        views = self._resolve(machine)
        row = self._workspace.address("row", self._row_bytes)
        if self._weights is not None:
            extended = self._workspace.address("extended", 2 * self._extended)
            functions["ferrule_ethos_u_extend_short"](self._pointer, row, extended)
            sums = self._workspace.address("sums", 4 * kernel.ofm.width * kernel.ofm.depth)
            functions["ferrule_ethos_u_depthwise"](self._pointer, extended, address(self._weights), sums, row)
        else:
            self._dense(row)
        del views

    def _dense(self, row: int) -> None:
        kernel, functions = self._kernel, self._functions
        extended = self._workspace.array("extended", self._extended)
        functions["ferrule_ethos_u_extend"](self._pointer, row, address(extended))
        matrix = kernel.matrix
        finish = functions["ferrule_ethos_u_finish" if matrix.dtype == np.float32 else "ferrule_ethos_u_finish_wide"]
        for y0, y1 in self._strips:
            count = (y1 - y0) * self._per_row
            if self._is_point:
                patches = extended[y0 * self._per_row : y0 * self._per_row + count]
            else:
                patches = self._workspace.array("patches", count)
                functions["ferrule_ethos_u_patches"](self._pointer, address(extended), y0, y1, address(patches))
            rows = patches.reshape((y1 - y0) * kernel.ofm.width, -1)
            if matrix.dtype != np.float32:
                rows = rows.astype(matrix.dtype)
            sums = matrix_product(rows, matrix)
            finish(self._pointer, address(sums), y0, y1, row)

    def _prepare_weights(self) -> None:
        """Take over the weights that the kernel has decoded."""
        kernel = self._kernel
        scales = kernel.scales
        largest = int(np.abs(kernel.matrix).sum(axis=0).max()) << (8 * kernel.ifm.dtype.itemsize)
        largest += int(np.abs(scales.bias).max())
        real = _in_float64(kernel, largest)
        struct, self._arrays = self._struct, (*scales, *real)
        struct.bias, struct.factor, struct.shift = map(address, scales)
        struct.real = type(struct.real)(*map(address, real))
        self._weights = None
        if kernel.depthwise and kernel.ifm.dtype.itemsize == 1 and largest < _EXACT_INT32:
            self._weights = np.ascontiguousarray(kernel.matrix, np.int16)


def _in_float64(kernel: Convolution, largest: int) -> tuple[NDArray[np.float64], ...]:
    """Return the arrays of ferrule_ethos_u_real; none where float64 may not be exact.

    `largest` is above the magnitude of all accumulators.
    """
    last = kernel.activation
    bias, factor, shift = kernel.scales
    if not last.clips or last.table is not None or largest * int(factor.max()) >= 1 << 63:
        return ()
    bits = (max(abs(last.low), abs(last.high)) + abs(last.zero_point) + 2).bit_length()
    if bits + int(shift.max()) > _FLOAT64_BITS:
        return ()
    power = shift.astype(np.float64)
    half = np.where(shift > 0, 0.5, 0.0)
    nudge = np.where((shift > 31) & (kernel.mode is Rounding.DOUBLE), np.exp2(30 - power), 0.0)
    return bias.astype(np.float64), factor.astype(np.float64) * np.exp2(-power), half + nudge, half - nudge


class _NativeWhole(_Native):
    """POOL or ELEMENTWISE, each of which is one function in C with memory for two feature maps."""

    def __init__(self, kernel: Pooling | ElementwiseKernel, functions: Functions, workspace: Workspace) -> None:
        pools = isinstance(kernel, Pooling)
        name = f"ferrule_ethos_u_{'pooling' if pools else 'elementwise'}"
        super().__init__(kernel, name, functions, workspace)
        self._function = functions[name]
        self._name = kernel.mode.name
        elements = kernel.ifm.elements, kernel.ofm.elements
        if not pools:
            elements = kernel.ofm.elements, 1 if kernel.ifm2 is None else kernel.ifm2.elements
            if kernel.ifm2 is None:
                self._struct.ifm2.height = self._struct.ifm2.width = self._struct.ifm2.depth = 1
        self._sizes = [4 * each for each in elements]

    def execute(self, machine: Machine) -> None:
        """Do the operation; errors as for `Kernel`."""
        views = self._resolve(machine)
        first, second = (self._workspace.address(*each) for each in zip(("in", "out"), self._sizes, strict=True))
        if self._function(self._pointer, first, second):
            raise UnsupportedModeError(f"{self._name} by fewer than 0 or more than 63 bits")
        del views


def accelerated(kernel: Kernel, functions: Functions, workspace: Workspace) -> Execute:
    """Return the operation in C if C supports it, else in numpy."""
    if not isinstance(kernel, Computing) or kernel.window.upscale or not _has_entries(kernel.activation):
        return kernel.execute
    if any(each.dtype not in _TYPES for each in (*kernel.inputs, kernel.ofm)):
        return kernel.execute
    window = kernel.window
    if isinstance(kernel, Convolution):
        row = kernel.ofm.width * window.taps * kernel.channels
        if kernel.ifm.depth == kernel.ofm.depth if kernel.depthwise else row <= _MAX_ROW_ELEMENTS:
            return NativeConvolution(kernel, functions, workspace).execute
    elif isinstance(kernel, ElementwiseKernel) or (
        isinstance(kernel, Pooling)
        and (kernel.mode is not Pool.REDUCE_SUM or window.taps == window.stride_y == window.stride_x == 1)
    ):
        return _NativeWhole(kernel, functions, workspace).execute
    return kernel.execute


def _has_entries(activation: Activation) -> bool:
    """Return whether C has the function, and the look-up table an entry for each value in the range."""
    if activation.function in {TANH, SIGMOID}:
        return False
    if activation.table is None or activation.dtype.itemsize == 2:
        return True
    first = 0 if activation.dtype == np.uint8 else -128
    return first <= min(activation.low, activation.high) and max(activation.low, activation.high) <= first + 255
