# SPDX-License-Identifier: Apache-2.0
"""The scaling of results: products with a factor, shifted to the right with rounding.

Two modes are established. NATURAL rounds halves up. DOUBLE rounds twice, which algebraically is gemmlowp's doubling
high product and rounding division: where the shift is above 31, the sign of the value times 2**30 is added before.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.commands import Long, Short
from ferrule.backends.ethos_u.errors import UnsupportedModeError
from ferrule.backends.ethos_u.stream import Registers

Int64 = NDArray[np.int64]


class Rounding(IntEnum):
    """The rounding of a shift to the right."""

    DOUBLE = 0
    TRUNCATE = 1
    NATURAL = 2


def rounding(registers: Registers, code: Short) -> Rounding:
    """Return the rounding in a precision register.

    Raises:
        UnsupportedModeError: it is TRUNCATE, whose result is not established, or none.
    """
    mode = registers[code] >> 14
    if mode not in {Rounding.DOUBLE, Rounding.NATURAL}:
        name = "TRUNCATE" if mode == Rounding.TRUNCATE else str(mode)
        raise UnsupportedModeError(f"the rounding {name} is not supported")
    return Rounding(mode)


def shift_right(values: Int64, shift: Int64 | int, mode: Rounding, headroom: int = 0) -> Int64:
    """Return values / 2**shift, rounded; a shift of 0 to 63 may differ from element to element.

    DOUBLE rounds twice where the shift is above 31 - headroom.
    """
    shifts = np.asarray(shift, np.int64)
    half = np.where(shifts > 0, np.int64(1) << np.maximum(shifts - 1, 0), np.int64(0))
    if mode is Rounding.NATURAL:
        return np.asarray((values + half) >> shifts)
    nudge = np.where(shifts > 31 - headroom, np.int64(1) << (30 - headroom), np.int64(0))
    return np.asarray((values + half + np.where(values >= 0, nudge, -nudge)) >> shifts)


@frozen
class Scale:
    """A factor and a shift, as a register states them."""

    factor: int
    """32 bits, unsigned."""
    shift: int
    """0 to 63."""
    mode: Rounding
    headroom: int = 0

    def apply(self, values: Int64) -> Int64:
        """Return the scaled values."""
        return shift_right(values * np.int64(self.factor), self.shift, self.mode, self.headroom)


IDENTITY = Scale(factor=1, shift=0, mode=Rounding.NATURAL)


def output_scale(registers: Registers) -> Scale | None:
    """Return the scale of all channels of the OFM, or None if each has its own.

    Raises:
        UnsupportedModeError: the rounding is not supported.
    """
    if not registers[Short.OFM_PRECISION] & 0x100:
        return None
    return stated_scale(registers)


def stated_scale(registers: Registers) -> Scale:
    """Return what OFM_SCALE states, used by operations that ignore the flag; 1 if it is not set."""
    factor, parameter = registers.payload(Long.OFM_SCALE, 1)
    return Scale(factor=factor, shift=parameter & 63, mode=rounding(registers, Short.OFM_PRECISION))
