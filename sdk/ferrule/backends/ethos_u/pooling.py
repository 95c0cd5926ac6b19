# SPDX-License-Identifier: Apache-2.0
"""POOL: the maximum, the average and the sum over channels.

MAX ignores padding and never scales. AVERAGE without padding scales the sum by OFM_SCALE; with padding on any side it
divides by the number of taps inside of the IFM, halves away from zero, and ignores OFM_SCALE. REDUCE_SUM adds all
channels of the IFM.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from ferrule._typing import override
from ferrule.backends.ethos_u.arithmetic import IDENTITY, Int64, output_scale
from ferrule.backends.ethos_u.commands import Pool, Short
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.errors import StreamError, UnsupportedModeError
from ferrule.backends.ethos_u.kernel import Computing, input_map, window
from ferrule.backends.ethos_u.machine import Machine
from ferrule.backends.ethos_u.stream import Operation

_BELOW_ALL = -(1 << 40)
"""The padding of a maximum: less than any value of 32 bits minus its zero point."""


class Pooling(Computing):
    """POOL, prepared from its registers."""

    def __init__(self, operation: Operation, configuration: Configuration) -> None:
        super().__init__(operation, configuration)
        registers = operation.registers
        self.mode = Pool(operation.parameter)
        self.window = window(registers)
        depth = registers[Short.IFM_DEPTH_M1] + 1 if self.mode is Pool.REDUCE_SUM else self.ofm.depth
        self.ifm = input_map(registers, self.window, depth)
        if self.window.dilation_y > 1 or self.window.dilation_x > 1:
            raise UnsupportedModeError("a pooling with dilation is not supported")
        if self.mode is Pool.REDUCE_SUM:
            if self.ofm.depth != 1:
                raise StreamError(f"OFM of REDUCE_SUM has {self.ofm.depth} channels, expected 1")
            if self.window.is_padded or self.window.upscale:
                raise UnsupportedModeError("REDUCE_SUM with padding or upscaling is not supported")
        self.divides = self.mode is Pool.AVERAGE and self.window.is_padded
        """Whether sums are divided by the number of valid taps."""
        self.scale = IDENTITY
        if self.mode is not Pool.MAX and not self.divides:
            self.scale = output_scale(registers) or IDENTITY
        met = self.ofm.height * self.ofm.width * self.ifm.depth * self.window.taps
        self.work = self.work_of(7 * met + 15 * self.ifm.elements + 5000 * self.window.taps)

    @override
    def execute(self, machine: Machine) -> None:
        stored = self.ifm.read(machine).astype(np.int64) - self.ifm.zero_point
        if self.mode is Pool.REDUCE_SUM:
            stored = stored.sum(axis=2, keepdims=True)
        if self.mode is Pool.MAX:
            values = reduce(np.maximum, self.window.met(self.window.extend(stored, _BELOW_ALL), self.ofm))
        else:
            values = self._sum(self.window.extend(stored))
        values = divided(values, self._valid_taps()) if self.divides else self.scale.apply(values)
        self.ofm.write(machine, self.activation.apply(values, machine))

    def _sum(self, extended: Int64) -> Int64:
        return np.asarray(sum(self.window.met(extended, self.ofm)))

    def _valid_taps(self) -> Int64:
        """Return for each pixel the number of taps inside of the IFM, at least 1."""
        inside = np.ones((self.window.height, self.window.width, 1), np.int64)
        padded = np.pad(inside, ((self.window.top, self.window.bottom), (self.window.left, self.window.right), (0, 0)))
        return np.maximum(self._sum(padded), 1)


def divided(total: Int64, count: Int64) -> Int64:
    """Return total / count, rounded, halves away from zero."""
    half = count // 2
    return np.where(total >= 0, (total + half) // count, -((half - total) // count))
