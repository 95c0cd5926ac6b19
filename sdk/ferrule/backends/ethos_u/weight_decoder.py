# SPDX-License-Identifier: Apache-2.0
"""The decoder of compressed weights in Python, for machines without a C compiler and as the reference of the one in C.

The bits of a stream are read from the lowest one of each byte on. A stream has slices of 1 to 32,768 weights: a header,
sometimes a palette, and chunks that alternate between weights and the runs of zeros between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ferrule.errors import FerruleError

END_OF_SLICES = 7
"""In place of the divisor of zero runs: the rest of the byte is filler, and what follows begins with a palette."""
NO_ZERO_RUNS = 6
UNCOMPRESSED = 7
"""In place of the divisor of weights: the weights are indices of the palette, or values, of a fixed width."""
MAX_DIVISOR = 5
MAX_MAGNITUDE = 255
CHUNK = 12
"""Symbols in a chunk; some kinds of chunks have 8."""
SHORT_CHUNK = 8
LEAD = 8
"""Weights are read until they are so many ahead of the runs of zeros."""


class WeightError(FerruleError):
    """A compressed weight stream is damaged or ends too soon, or there are too many weights."""


class _Bits:
    """A stream's bits."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        self.end = 8 * len(data)

    def read(self, count: int) -> int:
        """Return the next bits, the first of which is the lowest."""
        if self.at + count > self.end:
            raise WeightError(f"the weight stream ends inside of a slice, after {len(self._data)} bytes")
        first = self.at >> 3
        value = int.from_bytes(self._data[first : first + ((count + 14) >> 3)], "little") >> (self.at & 7)
        self.at += count
        return value & ((1 << count) - 1)


@dataclass(slots=True)
class _Palette:
    direct_offset: int
    bits: int
    entries: list[int]


@dataclass(slots=True)
class _Symbols:
    """Numbers whose remainders follow a chunk after their quotients."""

    divisor: int
    """Bits of a remainder."""
    needed: int
    begun: int = 0
    """Numbers of which at least the quotient is read."""
    carry: int = 0
    """The part of a quotient that the last chunk began."""
    waiting: list[int] = field(default_factory=list)
    """The quotients of the last chunk."""
    values: list[int] = field(default_factory=list)

    def begin(self, digits: Sequence[int], most: int) -> None:
        """Take the digits of a chunk, of which a quotient is the sum up to the first that is below `most`."""
        self.waiting = []
        for digit in digits:
            self.carry += digit
            if digit < most:
                self.waiting.append(self.carry)
                self.carry = 0
        self.begun += len(self.waiting)

    def finish(self, bits: _Bits) -> None:
        """Read the remainders of the last chunk."""
        for quotient in self.waiting[: self.needed - len(self.values)]:
            self.values.append((quotient << self.divisor) + bits.read(self.divisor))
        self.waiting = []


def decode_slowly(data: bytes, limit: int) -> npt.NDArray[np.int16]:
    """Return the first weights of a stream in the stream's order, at most `limit`; WeightError if it is damaged.

    They are signed, of 9 bits, and their zero point is subtracted already.
    """
    bits = _Bits(data)
    result: list[npt.NDArray[np.int16]] = []
    left = limit
    palette: _Palette | None = None
    while left > 0 and bits.at + 3 <= bits.end:
        zero_divisor = bits.read(3)
        if zero_divisor == END_OF_SLICES:
            bits.at = (bits.at + 7) & ~7
            palette = None
            continue
        count, divisor = bits.read(15) + 1, bits.read(3)
        is_short, is_new = bits.read(1), bits.read(1)
        if is_new:
            palette = _read_palette(bits)
        elif palette is None:
            raise WeightError("the weight stream begins without a palette")
        if divisor == MAX_DIVISOR + 1:
            raise WeightError(f"the weight stream has the divisor {divisor} of weights, which is reserved")
        assert palette is not None
        weights = _Symbols(divisor, count)
        if divisor == UNCOMPRESSED:
            weights.divisor = (len(palette.entries) - 1).bit_length() if palette.entries else palette.bits
        runs = None if zero_divisor == NO_ZERO_RUNS else _Symbols(zero_divisor, count + is_new)
        _read_slice(bits, weights, runs, is_compressed=divisor != UNCOMPRESSED, is_short=bool(is_short))
        result.append(_expanded(_looked_up(weights.values, palette), runs, bool(is_new), left))
        left -= len(result[-1])
    return np.concatenate(result) if result else np.zeros(0, np.int16)


def _read_palette(bits: _Bits) -> _Palette:
    direct_offset, size, width = bits.read(5), bits.read(5), bits.read(3) + 2
    return _Palette(direct_offset, width, [bits.read(width) for _ in range(size + 1 if size else 0)])


def _read_slice(bits: _Bits, weights: _Symbols, runs: _Symbols | None, *, is_compressed: bool, is_short: bool) -> None:
    """Read chunks until all symbols are there.

    A chunk of zero runs is unary: each quotient is as many ones as its value, and a zero. One of weights has a bit for
    each digit and then, for each that is set, another that says whether the digit is 1 or 2. With `is_short`, a digit
    is a quotient; otherwise a quotient goes on behind a 2.
    """
    while True:
        ahead = weights.begun - runs.begun if runs else 0
        reads_weights = weights.begun < weights.needed and ahead < LEAD
        reads_runs = runs is not None and runs.begun < runs.needed and ahead >= 0
        digits, ones = [0] * (SHORT_CHUNK if weights.divisor > 5 else CHUNK), []
        if reads_weights and is_compressed:
            digits = _digits(bits, CHUNK)
        if runs and reads_runs:
            ones = _digits(bits, CHUNK if runs.divisor < 3 else SHORT_CHUNK)
        if reads_weights and is_compressed:
            second = iter(_digits(bits, sum(digits)))
            digits = [digit and 1 + next(second) for digit in digits]
        weights.finish(bits)
        if reads_weights:
            weights.begin(digits, 3 if is_short else 2)
        if runs:
            runs.finish(bits)
            runs.begin(ones, 1)
        if not reads_weights and not reads_runs:
            return


def _digits(bits: _Bits, count: int) -> list[int]:
    """Return the next bits one by one."""
    value = bits.read(count)
    return [value >> index & 1 for index in range(count)]


def _looked_up(codes: list[int], palette: _Palette) -> list[int]:
    """Return the values of codes: an entry of the palette, or a direct value; the lowest bit is the sign."""
    size = len(palette.entries)
    found = []
    for code in codes:
        value = palette.entries[code] if code < size else code - size + palette.direct_offset
        if value >> 1 > MAX_MAGNITUDE:
            raise WeightError(f"a weight has the magnitude {value >> 1}, above {MAX_MAGNITUDE}")
        found.append(-(value >> 1) if value & 1 else value >> 1)
    return found


def _expanded(values: list[int], runs: _Symbols | None, leads: bool, limit: int) -> npt.NDArray[np.int16]:
    """Return the weights with the zeros before and between them, at most `limit`."""
    if runs is None:
        return np.array(values[:limit], np.int16)
    # lengths are cut to the limit, since their sum could be beyond any memory
    zeros = np.minimum(np.array(runs.values, np.float64), limit).astype(np.int64)
    first = int(zeros[0]) if leads else 0
    behind = zeros[1:] if leads else zeros
    ends = first + np.cumsum(behind + 1)
    starts = ends - behind - 1
    result = np.zeros(min(limit, int(ends[-1])), np.int16)
    used = starts < len(result)
    result[starts[used]] = np.array(values, np.int16)[used]
    return result
