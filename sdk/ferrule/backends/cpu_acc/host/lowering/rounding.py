# SPDX-License-Identifier: Apache-2.0
"""Requantisation in float32 that is proved to have the integer rule's results.

The float32 rule is clamp(round(value)), with value = (sum + shift) * scale + offset by one fused multiply-add, less a
drop where it is below the zero point. The drop is there because TFLM's integer rule (`fixed_point`)
rounds halves away from zero; it is 0 for the rule of one rounding. Neither rule decreases when the sum increases. They
are therefore equal for all sums if they are equal on both sides of each sum at which the integer rule's result changes,
of zero, and at the ends of the range of sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array, Rounding
from ferrule.operators.arithmetic.fixed_point import Factor, factor_arrays, rescale

_OFFSET_UNIT = 2.0**-21
_NUDGES = tuple(sorted(product(range(-5, 6), range(-1, 2)), key=lambda pair: (abs(pair[0]) + 3 * abs(pair[1]), pair)))
"""Changes of the offset, in the unit above, and of the scale, in units of the last place, in the order of trial."""
_GRAIN = 2.0**39
"""Offsets are multiples of 1 / _GRAIN, and scales of 1 / _GRAIN, so that float64 holds value exactly."""
_EXACT_SUM = 1 << 24
"""Smaller integers are exact as float32."""
_FIRST_TRIALS = 4
"""If so many trials prove no channel, the search ends."""
_NEAR = 3
"""How far the rule's steps are at most from those of exact arithmetic; steps that are farther take longer to find."""


@frozen(eq=False, kw_only=False)
class FloatRule:
    """The numbers of the float32 rule, one per channel."""

    shift: Array
    """int64, to be added to the bias."""
    rows: Array
    """Scale, offset and drop as float32 [3, channels]."""
    proved: Array
    """bool: whether the rule is equal to the integer rule; the other numbers have no meaning if it is not."""


def float_rule(
    channel_factors: Sequence[Factor],
    reach: Array,
    zero_point: int,
    low: int,
    high: int,
    rounding: Rounding = Rounding.TFLM,
) -> FloatRule:
    """Return the float32 rule of each channel that has one.

    `reach` is the largest magnitude of each channel's sum, int64; the results are clamped to `low` and `high`.
    """
    count = len(channel_factors)
    multipliers, shifts = (each[:, None] for each in factor_arrays(channel_factors))
    most = np.maximum(reach.astype(np.int64), 1)[:, None]
    real = multipliers * np.exp2(shifts.astype(np.float64) - 31)
    whole = most * np.exp2(np.maximum(shifts, 0)) < 2.0**31
    able = ((most < _EXACT_SUM) & whole & (real < 1))[:, 0]
    found = FloatRule(np.zeros(count, np.int64), np.zeros((3, count), np.float32), np.zeros(count, np.bool_))
    ends = [np.clip(rescale(end, multipliers, shifts, rounding) + zero_point, low, high) for end in (-most, most)]
    constant = ((ends[0] == ends[1]) & whole)[:, 0]
    found.rows[1, constant], found.proved[constant] = ends[0][constant, 0], True
    able &= ~constant
    if able.any():
        chosen = np.flatnonzero(able)
        search = _Search(multipliers[chosen], shifts[chosen], most[chosen], zero_point, low, high, rounding)
        found.shift[chosen], found.rows[:, chosen], found.proved[chosen] = search.run()
    return found


@frozen(eq=False, kw_only=False)
class _Search:
    """The channels for which a rule is searched; the arrays are [channels, 1]."""

    multipliers: Array
    shifts: Array
    most: Array
    zero_point: int
    low: int
    high: int
    rounding: Rounding

    def rule(self, sums: Array) -> Array:
        """Return the integer rule's result before the clamp."""
        return rescale(sums, self.multipliers, self.shifts, self.rounding) + self.zero_point

    def run(self) -> tuple[Array, Array, Array]:
        """Return shift, rows and whether they are proved."""
        most, count = self.most, len(self.most)
        real = self.multipliers * np.exp2(self.shifts.astype(np.float64) - 31)
        shift = np.rint(np.clip(self.zero_point / np.maximum(real, 2.0**-40), -_EXACT_SUM, _EXACT_SUM)).astype(np.int64)
        shift = np.where(most + np.abs(shift) < _EXACT_SUM, shift, 0)
        steps = np.arange(self.low + 1, self.high + 1, dtype=np.int64)[None, :]
        first = self._first_sums(real, steps)
        away = (self.shifts < 0) & (self.low < self.zero_point) & (self.rounding is Rounding.TFLM)
        drop = np.where(away, np.exp2(self.shifts.astype(np.float64)), 0.0)
        around = (-most, most, np.full_like(most, -1), np.zeros_like(most), first, first - 1)
        sums = np.clip(np.concatenate(around, axis=1), -most, most)
        shifted, wanted = sums + shift, np.clip(self.rule(sums), self.low, self.high)
        middle = _middle(first, steps, real, drop, most) - shift * real
        rows, proved = np.zeros((3, count), np.float32), np.zeros(count, np.bool_)
        left = np.arange(count)
        for trial, (scale, offset) in enumerate(
            _candidates(real, np.where(np.isfinite(middle), middle, self.zero_point))
        ):
            if trial == _FIRST_TRIALS and not proved.any():
                break
            tried = np.concatenate((scale, offset, drop), axis=1, dtype=np.float32)[left]
            good = self.equal(shifted[left], tried, wanted[left])
            rows[:, left[good]], proved[left[good]] = tried[good].T, True
            left = left[~good]
            if not left.size:
                break
        return shift[:, 0], rows, proved

    def equal(self, sums: Array, rows: Array, wanted: Array) -> Array:
        """Return, by channel, whether the float32 rule with `rows` has the wanted results; `sums` include the shift."""
        scale, offset, drop = (rows[:, [index]] for index in range(3))
        wide = sums * scale.astype(np.float64) + offset.astype(np.float64)  # exact
        value = wide.astype(np.float32)
        value = np.where(value < self.zero_point, value - drop, value)
        same: Array = (np.clip(np.rint(value), self.low, self.high) == wanted).all(axis=1)
        return same

    def _first_sums(self, real: Array, steps: Array) -> Array:
        """Return the least sum with which the rule reaches each step, [channels, steps]; most + 1 if none does."""
        most = self.most
        guess = (steps - 0.5 - self.zero_point) / np.maximum(real, 2.0**-40)
        near = np.clip(np.ceil(guess), -most - _NEAR, most + _NEAR).astype(np.int64)
        low = np.clip(near - _NEAR, -most, most + 1)
        high = np.clip(near + _NEAR, -most, most + 1)
        narrow = ((self.rule(low - 1) < steps) | (low == -most)) & ((self.rule(high) >= steps) | (high == most + 1))
        low, high = np.where(narrow, low, -most), np.where(narrow, high, most + 1)
        while (low < high).any():
            middle = (low + high) >> 1
            reached = self.rule(middle) >= steps
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
        return high


def _middle(first: Array, steps: Array, real: Array, drop: Array, most: Array) -> Array:
    """Return the middle of the offsets with which exact arithmetic has the rule's steps, or nearly has them."""

    def needed(sums: Array) -> Array:
        offsets: Array = steps - 0.5 - sums * real + np.where(sums < 0, drop, 0.0)
        return offsets

    inside = (first > -most) & (first <= most)
    least = np.where(inside, needed(first), -np.inf).max(axis=1, initial=-np.inf)
    largest = np.where(inside, needed(first - 1), np.inf).min(axis=1, initial=np.inf)
    known = np.isfinite(least) & np.isfinite(largest)
    return ((np.where(known, least, 0) + np.where(known, largest, 0)) / 2)[:, None]


def _candidates(real: Array, middle: Array) -> Iterator[tuple[Array, Array]]:
    scale = real.astype(np.float32)
    for more_offset, more_scale in _NUDGES:
        nudged = scale + np.float32(more_scale) * np.spacing(scale)
        pair = (nudged.astype(np.float64), middle + more_offset * _OFFSET_UNIT)
        grained = [(np.rint(each * _GRAIN) / _GRAIN).astype(np.float32) for each in pair]
        yield grained[0], grained[1]
