# SPDX-License-Identifier: Apache-2.0
"""Requantisation by one multiplication, proved equal to the layer's rule for every sum that a channel can have.

The kernels compute `((256 * sum + bias) * multiplier >> 32) >> PROVED_SHIFT`, clamped to int8. This value and that of
the rule never fall as the sum rises. They are therefore equal for every sum that a channel can have if they reach
each stored value at the same sum. The multiplier and the bias are chosen so that they do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.graph import Array, Rounding
from ferrule.operators.fixed_point import rescale
from ferrule.operators.weighted import Factor

PROVED_SHIFT = 9
"""The value of FERRULE_PROVED_SHIFT."""
_STEPS = np.arange(-127, 128, dtype=np.int64)
"""The stored values above the lowest one; each has a least sum that reaches it."""
_TRIES = 64
"""How far the multiplier may lie from the nearest one."""
_MORE_TRIES = 600
"""The same where nearly every channel has a pair: for outputs without values below the zero point, and for rules that
round all values alike."""
_AT_ONCE = 256
"""The most multipliers that are examined together, over all channels."""


NOT_PROVED = "a channel has no proved constants"
"""A kernel's reason not to run a layer if it needs them."""


def proved_words(
    low: Array,
    high: Array,
    factors: Sequence[Factor],
    zero_point: int,
    rounding: Rounding = Rounding.TFLM,
    *,
    sum_shift: int = 8,
) -> Array | None:
    """Return the multiplier and the bias of each channel, int32 [channels, 2]; None if a channel has no such pair.

    Sums are multiplied by 2**sum_shift, by default as above. `low` and `high` are the ends of each channel's sums,
    which include the folded bias; the returned bias does not. The output must be clamped to int8 only.
    """
    reference = _Reference(factors, zero_point, rounding)
    if not len(factors):
        return np.zeros((0, 2), np.int32)
    least = reference.least_sums()
    if least is None:
        return None
    nearest = np.rint(reference.scales * 2.0 ** (32 + PROVED_SHIFT - sum_shift)).astype(np.int64)
    pairs, slack = _pairs(least, low, high, nearest[:, None], sum_shift)
    words, slack = pairs[:, 0], slack[:, 0]
    left = np.argsort(slack, kind="stable")[: np.count_nonzero(slack < 0)]
    tries = _TRIES if rounding is Rounding.TFLM and zero_point != -128 else _MORE_TRIES
    count = 1  # a channel without a pair is probably among those that lack most
    while left.size:
        some, left = left[:count], left[count:]
        found = _nearest_pairs(least[some], low[some], high[some], nearest[some], sum_shift, tries)
        if found is None:
            return None
        words[some] = found
        count *= 4
    return words.astype(np.int32)


def _nearest_pairs(least: Array, low: Array, high: Array, nearest: Array, sum_shift: int, tries: int) -> Array | None:
    """Return the pair of each channel whose multiplier is nearest but not equal to `nearest`; None if one has none."""
    words = np.zeros((len(nearest), 2), np.int64)
    left = np.arange(len(nearest))
    order = np.array(sorted(range(-tries, tries + 1), key=abs)[1:])
    count = 1
    while order.size:
        steps, order = order[:count], order[count:]
        pairs, slack = _pairs(least[left], low[left], high[left], nearest[left, None] + steps, sum_shift)
        has_one = (slack >= 0).any(axis=1)
        words[left[has_one]] = pairs[has_one, (slack >= 0).argmax(axis=1)[has_one]]
        left = left[~has_one]
        if not left.size:
            return words
        count = max(1, min(4 * count, _AT_ONCE // left.size))
    return None


class _Reference:
    """The stored values by the rule, for sums of shape [channels, any number]."""

    def __init__(self, factors: Sequence[Factor], zero_point: int, rounding: Rounding) -> None:
        self._multipliers = np.array([factor.multiplier for factor in factors], np.int64)[:, None]
        self._shifts = np.array([factor.shift for factor in factors], np.int64)[:, None]
        self._zero_point = zero_point
        self._rounding = rounding
        self.scales: Array = (self._multipliers * np.exp2(self._shifts - 31.0)).reshape(-1)

    def __call__(self, sums: Array) -> Array:
        scaled = rescale(sums, self._multipliers, self._shifts, self._rounding) + self._zero_point
        return np.asarray(scaled.clip(-128, 127), np.int64)

    def least_sums(self) -> Array | None:
        """Return the least sum of each channel that reaches each of `_STEPS`; None if one could not be found."""
        if (self._multipliers == 0).any():
            return None
        sums = np.ceil((_STEPS - self._zero_point - 0.5) / self.scales[:, None])
        if np.abs(sums).max() >= 1 << 30:
            return None
        least = sums.astype(np.int64)
        for _ in range(3):
            least = least + (self(least) < _STEPS)
        for _ in range(3):
            least = least - (self(least - 1) >= _STEPS)
        return least if ((self(least) >= _STEPS) & (self(least - 1) < _STEPS)).all() else None


def _pairs(least: Array, low: Array, high: Array, multipliers: Array, sum_shift: int) -> tuple[Array, Array]:
    """Return each of the multipliers [channels, any number] with a bias, and its slack, negative without a proof.

    With the bias, the result is that of the rule from `low` to `high`: each step is reached at its least sum, and
    is not reached at the sum below; of both, the sums from `low` to `high` count. All the biases up to the slack do.
    """
    none = np.iinfo(np.int64).max // 4
    least, low, high = least[:, None], low[:, None, None], high[:, None, None]
    needed = -((-(_STEPS << (32 + PROVED_SHIFT))) // np.maximum(multipliers, 1)[..., None])
    reached = needed - (np.maximum(least, low) << sum_shift)
    exceeded = needed - 1 - (np.minimum(least - 1, high) << sum_shift)
    lowest = np.where(least <= high, reached, -none).max(axis=-1)
    highest = np.where(least > low, exceeded, none).min(axis=-1)
    middle = lowest + (highest - lowest) // 2
    bias = np.where(lowest == -none, highest, np.where(highest == none, lowest, middle))
    fits = (multipliers > 0) & (multipliers < 1 << 31)
    for end in (low, high):
        fits &= np.abs((end[..., 0] << sum_shift) + bias) < 1 << 31
    return np.stack([multipliers, bias], axis=-1), np.where(fits, highest - lowest, -none)
