# SPDX-License-Identifier: Apache-2.0
"""CONV and DEPTHWISE.

The accumulator of an element is its channel's bias and the sum of (IFM - zero point) * weight; padding contributes
nothing. It is scaled by its channel's scale, or by OFM_SCALE where the registers say so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.ethos_u.arithmetic import Int64, output_scale, rounding, shift_right
from ferrule.backends.ethos_u.commands import Kind, Long, Short
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.errors import StreamError, UnsupportedModeError
from ferrule.backends.ethos_u.kernel import Computing, Integers, input_map, window
from ferrule.backends.ethos_u.machine import Machine, Range
from ferrule.backends.ethos_u.stream import Operation, Registers
from ferrule.backends.ethos_u.weights import SCALE_BYTES, Scales, WeightCache, WeightOrder, scales
from ferrule.operators.arithmetic.blas import matrix_product

WEIGHTS = WeightCache()
"""The decoded weights of all NPUs of the process."""
MAX_WEIGHTS = 1 << 24
"""The most weights of an operation that is executed."""
_STRIP_BYTES = 1 << 22
_EXACT_FLOAT32 = 1 << 24
"""Below it, float32 has every integer."""
_CORES = (
    (Long.WEIGHT_BASE, Long.WEIGHT_LENGTH, Long.SCALE_BASE),
    (Long.WEIGHT1_BASE, Long.WEIGHT1_LENGTH, Long.SCALE1_BASE),
)


@frozen
class CoreWeights:
    """Where the weights and the scales of one core are; core k computes the channels k, k + cores, and so on."""

    number: int
    order: WeightOrder | None
    """None if the stream gives the core no weights."""
    weights: Range
    scales: Range
    channels: int

    def ranges(self) -> tuple[Range, ...]:
        """Return the bytes of the weights and the scales."""
        return tuple(each for each in (self.weights, self.scales) if each.size_bytes)


class Convolution(Computing):
    """CONV or DEPTHWISE, prepared from its registers."""

    def __init__(self, operation: Operation, configuration: Configuration) -> None:
        super().__init__(operation, configuration)
        registers = operation.registers
        self.depthwise = operation.kind is Kind.DEPTHWISE
        self.window = window(registers)
        self.ifm = input_map(registers, self.window, registers[Short.IFM_DEPTH_M1] + 1)
        if self.ifm.dtype.itemsize > 2:
            raise UnsupportedModeError(f"an IFM of type {self.ifm.dtype} is not supported")
        limits = np.iinfo(self.ifm.dtype)
        if not limits.min <= self.ifm.zero_point <= limits.max:  # the sums could exceed the types that hold them
            raise UnsupportedModeError(f"an IFM of type {self.ifm.dtype} with the zero point {self.ifm.zero_point}")
        if self.depthwise and self.ifm.depth not in {1, self.ofm.depth}:
            raise StreamError(f"IFM has {self.ifm.depth} channels and OFM {self.ofm.depth}, expected equal numbers")
        self.mode = rounding(registers, Short.OFM_PRECISION)
        self._scale = output_scale(registers)
        self.channels = 1 if self.depthwise else self.ifm.depth
        row = self.window.taps * self.channels
        if self.ofm.depth * row > MAX_WEIGHTS:
            raise UnsupportedModeError(f"the operation has more than {MAX_WEIGHTS} weights")
        self.cores = self._cores(registers, configuration)
        met = self.ofm.height * self.ofm.width * row
        macs = met * self.ofm.depth
        self.work = self.work_of(
            (4 * macs if self.depthwise else macs // 8 + 6 * met)
            + 5 * self.ofm.depth * row
            + 15 * self.ifm.elements
            + 5000 * self.window.taps,
            macs=macs,
            weights=[each for core in self.cores for each in core.ranges()],
        )
        self._seen: list[tuple[bytes, bytes]] = []
        self.matrix: NDArray[Any] = np.zeros(0)
        self.scales = Scales(*np.zeros((3, 0), np.int64))

    def _cores(self, registers: Registers, configuration: Configuration) -> list[CoreWeights]:
        cores = []
        block = registers[Short.OFM_BLK_DEPTH_M1] + 1
        for core, (base, length, scale) in enumerate(_CORES[: configuration.cores]):
            channels = -(-(self.ofm.depth - core) // configuration.cores)
            if channels < 1 or (core and not registers.is_set(length)):
                continue
            depth = (block + configuration.cores - 1 - core) // configuration.cores
            size_bytes, _ = registers.payload(length)
            order = None
            if size_bytes:
                if depth < 1:
                    raise StreamError(f"the OFM block has {block} channels, which gives core {core} none")
                order = WeightOrder(
                    ofm_depth=channels,
                    ifm_depth=self.ifm.depth,
                    kernel_height=self.window.taps_y,
                    kernel_width=self.window.taps_x,
                    ofm_block_depth=depth,
                    ofm_ublock_depth=configuration.ofm_ublock_depth,
                    ifm_ublock_depth=configuration.ifm_ublock_depth,
                    ifm_bits=8 * self.ifm.dtype.itemsize,
                    part_kernel=bool(registers[Short.KERNEL_STRIDE] & 4),
                    depthwise=self.depthwise,
                    dilation_height=self.window.dilation_y,
                    dilation_width=self.window.dilation_x,
                )
            cores.append(
                CoreWeights(
                    number=core,
                    order=order,
                    weights=Range(registers[Short.WEIGHT_REGION] & 7, registers.address(base), size_bytes),
                    scales=Range(registers[Short.SCALE_REGION] & 7, registers.address(scale), SCALE_BYTES * channels),
                    channels=channels,
                )
            )
        return cores

    @override
    def execute(self, machine: Machine) -> None:
        self.load_weights(machine)
        stored = self.ifm.read(machine).astype(np.int32)
        extended = self.window.extend(stored - self.ifm.zero_point)
        out = np.empty((self.ofm.height, self.ofm.width, self.ofm.depth), self.ofm.dtype)
        for y0, y1, x0, x1 in self._strips():
            accumulated = (self._depthwise if self.depthwise else self._dense)(extended, y0, y1, x0, x1)
            out[y0:y1, x0:x1] = self.activation.apply(self._scaled(accumulated), machine)
        self.ofm.write(machine, out)

    def load_weights(self, machine: Machine) -> bool:
        """Decode weights and scales, and return True, unless their bytes are those of the last time."""
        found = [
            (machine.view(core.weights, "weights").tobytes(), machine.view(core.scales, "scales").tobytes())
            for core in self.cores
        ]
        if found == self._seen:
            return False
        depth, taps = self.ofm.depth, self.window.taps
        matrix = np.zeros((depth, self.window.taps_y, self.window.taps_x, self.channels), np.int16)
        found_scales = Scales(*np.zeros((3, depth), np.int64))
        for core, (weights, scale) in zip(self.cores, found, strict=True):
            own = slice(core.number, None, machine.configuration.cores)
            for every, part in zip(found_scales, scales(scale, core.channels), strict=True):
                every[own] = part
            if core.order is not None:
                matrix[own] = WEIGHTS.weights(weights, core.order)
        if self._scale is not None:
            found_scales.scale[:], found_scales.shift[:] = self._scale.factor, self._scale.shift
        self.scales = found_scales
        self.matrix = self._converted(matrix.reshape(depth, taps * self.channels))
        self._seen = found
        return True

    def _converted(self, matrix: NDArray[np.int16]) -> NDArray[Any]:
        """Return weights in the type in which sums of products are exact, transposed for the product."""
        if self.depthwise:
            return np.ascontiguousarray(matrix.T.astype(np.int64))
        largest = 1 << (8 * self.ifm.dtype.itemsize)  # of |IFM - zero point|
        total = int(np.abs(matrix).sum(axis=1, dtype=np.int64).max())
        exact = np.float32 if total * largest < _EXACT_FLOAT32 else np.float64
        return np.ascontiguousarray(matrix.T.astype(exact))

    def _strips(self) -> list[tuple[int, int, int, int]]:
        """Return rectangles of the OFM whose intermediate arrays are small."""
        per_pixel = 8 * max(self.ofm.depth, 1 if self.depthwise else self.window.taps * self.channels)
        pixels = max(1, _STRIP_BYTES // per_pixel)
        rows, columns = max(1, pixels // self.ofm.width), min(pixels, self.ofm.width)
        return [
            (y, min(y + rows, self.ofm.height), x, min(x + columns, self.ofm.width))
            for y in range(0, self.ofm.height, rows)
            for x in range(0, self.ofm.width, columns)
        ]

    def _dense(self, extended: Integers, y0: int, y1: int, x0: int, x1: int) -> Int64:
        view = self.window
        first = extended[y0 * view.stride_y :, x0 * view.stride_x :]
        down, right, inner = first.strides
        patches = np.lib.stride_tricks.as_strided(
            first,
            (y1 - y0, x1 - x0, view.taps_y, view.taps_x, self.channels),
            (down * view.stride_y, right * view.stride_x, down * view.dilation_y, right * view.dilation_x, inner),
            writeable=False,
        )
        rows = patches.astype(self.matrix.dtype).reshape((y1 - y0) * (x1 - x0), -1)
        return matrix_product(rows, self.matrix).astype(np.int64).reshape(y1 - y0, x1 - x0, -1)

    def _depthwise(self, extended: Integers, y0: int, y1: int, x0: int, x1: int) -> Int64:
        met = self.window.met(extended, self.ofm)
        products = (each[y0:y1, x0:x1] * row for each, row in zip(met, self.matrix, strict=True))
        return np.asarray(sum(products))

    def _scaled(self, accumulated: Int64) -> Int64:
        accumulated += self.scales.bias
        return shift_right(accumulated * self.scales.scale, self.scales.shift, self.mode)
