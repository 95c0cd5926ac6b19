# SPDX-License-Identifier: Apache-2.0
"""From scaled values to stored ones: zero point, range, look-up table, tanh and sigmoid.

The look-up tables are in the internal memory. A table for 8-bit results has 256 bytes; one for 32-bit results has 256
words, for values of -128 to 127; one for 16-bit results has 512 pairs of a base and a slope, 16 bits each, between
which the NPU interpolates. The sigmoid's table is that of TensorFlow Lite's int16 kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.arithmetic import Int64
from ferrule.backends.ethos_u.commands import Short
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.errors import UnsupportedModeError
from ferrule.backends.ethos_u.feature_map import element_type, zero_point
from ferrule.backends.ethos_u.machine import INTERNAL, LUT_BYTES, Bytes, Machine, Range
from ferrule.backends.ethos_u.stream import Registers, sign_extend
from ferrule.operators.arithmetic.sigmoid_table import SIGMOID_TABLE

CLAMP, TANH, SIGMOID, FIRST_TABLE = 0, 3, 4, 16
_FORCE_INT8 = 3
_FORCED = {2: "FORCE_UINT8", 5: "FORCE_INT16"}
_SIGMOID: Int64 = SIGMOID_TABLE.astype(np.int64)
_TABLE_BYTES = {1: 256, 2: 2048, 4: 1024}


@frozen
class Activation:
    """The last steps of an operation, as its registers state them."""

    function: int
    """CLAMP, TANH, SIGMOID, or FIRST_TABLE + slot of a look-up table."""
    dtype: np.dtype[Any]
    zero_point: int
    """Added to the scaled value; 0 where the NPU ignores the register."""
    low: int
    high: int
    clips: bool
    """Whether `low` and `high` apply before a table or, without one, to the result."""
    table: Range | None
    """The look-up table in the internal memory; None if there is none."""

    def apply(self, values: Int64, machine: Machine) -> NDArray[Any]:
        """Return scaled values as elements of the OFM.

        Raises:
            NpuBusError: a look-up table exceeds the internal memory.
            UnsupportedModeError: a value is outside of the look-up table.
        """
        if self.zero_point:
            values = values + self.zero_point
        if self.function in {TANH, SIGMOID}:
            values = tanh(values) if self.function == TANH else sigmoid(values)
        if self.clips:
            values = values.clip(self.low, self.high)
        if self.table is not None:
            values = self._look_up(values, machine.view(self.table, "look-up table"))
        if self.dtype.itemsize == 4:
            limits = np.iinfo(self.dtype)
            values = values.clip(int(limits.min), int(limits.max))
        return values.astype(self.dtype)

    def _look_up(self, values: Int64, table: Bytes) -> Int64:
        if self.dtype.itemsize == 2:
            _check_range(values, -32768, 32767)
            pairs = table.view("<i2").astype(np.int64)
            index, fraction = (values + 32768) >> 7, (values + 32768) & 127
            return np.asarray(pairs[2 * index] + ((pairs[2 * index + 1] * fraction + 64) >> 7))
        first = 0 if self.dtype == np.uint8 else -128
        _check_range(values, first, first + 255)
        entries = table.view(self.dtype if self.dtype.itemsize == 1 else "<i4")
        return np.asarray(entries[values - first].astype(np.int64))


def _check_range(values: Int64, low: int, high: int) -> None:
    lowest, highest = int(values.min()), int(values.max())
    if lowest < low or highest > high:
        wrong = lowest if lowest < low else highest
        raise UnsupportedModeError(f"the value {wrong} is outside of the look-up table, which has {low} to {high}")


def activation(registers: Registers, configuration: Configuration) -> Activation:
    """Return the activation that the registers state.

    Raises:
        UnsupportedModeError: Vela emits no such function or range.
    """
    word = registers[Short.ACTIVATION]
    function, forced = word & 0x1F, word >> 12 & 7
    dtype, _ = element_type(registers, "OFM")
    if function not in {CLAMP, TANH, SIGMOID} and not FIRST_TABLE <= function < FIRST_TABLE + 8:
        raise UnsupportedModeError(f"there is no activation function {function}")
    if forced not in {0, _FORCE_INT8}:
        raise UnsupportedModeError(f"the clip range {_FORCED.get(forced, forced)} is not supported")
    if forced and dtype.itemsize == 1 and dtype.kind == "u":
        raise UnsupportedModeError("the clip range FORCE_INT8 of an OFM of type uint8 is not supported")
    if function in {TANH, SIGMOID} and dtype != np.int16:
        raise UnsupportedModeError(f"tanh and sigmoid with an OFM of type {dtype} are not supported")
    if function >= FIRST_TABLE and dtype.itemsize == 4 and not forced:
        raise UnsupportedModeError("a look-up table with an OFM of 32 bits without the clip range FORCE_INT8")
    low, high = registers[Short.ACTIVATION_MIN], registers[Short.ACTIVATION_MAX]
    if dtype.kind == "i" or forced:
        low, high = sign_extend(low, 16), sign_extend(high, 16)
    # the zero point is not applied to a result of 32 bits without a table
    applied = dtype.itemsize < 4 or function >= FIRST_TABLE
    slot = configuration.shram_bytes - LUT_BYTES + 256 * (function - FIRST_TABLE)
    signed = dtype if not forced else np.dtype(np.int8)
    return Activation(
        function=function,
        dtype=dtype,
        zero_point=zero_point(registers, "OFM", signed) if applied else 0,
        low=low,
        high=high,
        clips=dtype.itemsize <= 2 or forced != 0 or function != CLAMP,
        table=Range(INTERNAL, slot, _TABLE_BYTES[dtype.itemsize]) if function >= FIRST_TABLE else None,
    )


def _interpolated(values: Int64, bits: int) -> tuple[Int64, NDArray[np.bool_]]:
    """Return the sigmoid's table, interpolated at |values| / 2**bits, times 2**bits, and where it has ended."""
    magnitude = np.abs(values)
    whole, fraction = magnitude >> bits, magnitude & ((1 << bits) - 1)
    index = np.minimum(whole, 254)
    return (_SIGMOID[index] << bits) + fraction * (_SIGMOID[index + 1] - _SIGMOID[index]), whole >= 255


def sigmoid(values: Int64) -> Int64:
    """Return the sigmoid of values in units of 1 / (3 * 4096), in units of 1 / 32768."""
    result, ended = _interpolated(values, 9)
    result = np.where(ended, 0x7FFF << 10, result)
    return np.asarray(np.where(values >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1) >> 10)


def tanh(values: Int64) -> Int64:
    """Return the hyperbolic tangent of values in units of 1 / (3 * 4096), in units of 1 / 32768."""
    result, ended = _interpolated(values, 8)
    result = np.where(ended, 0xFFFF << 8, result)
    return np.asarray(np.where(values >= 0, result - (1 << 23) + (1 << 7), (1 << 23) - result + (1 << 7) - 1) >> 8)
