# SPDX-License-Identifier: Apache-2.0
"""Requantisation by one multiplication, proved equal to the layer's rule for every sum that a channel can have.

The kernels compute `((256 * sum + bias) * multiplier >> 32) >> PROVED_SHIFT`, clamped to int8. This value and that of
the rule never fall as the sum rises. They are therefore equal for every sum that a channel can have if they reach
each stored value at the same sum. The multiplier and the bias are chosen so that they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ferrule.graph import Array, Rounding
from ferrule.operators.arithmetic.fixed_point import Factor, factor_arrays, rescale

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
_SEARCHES = 256
"""Searches whose results are kept: the candidates for a layer ask for the same constants."""

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
    words, found = _found(low, high, factors, zero_point, rounding, sum_shift, every=True)
    return words if found.all() else None


def proved_channels(
    low: Array, high: Array, factors: Sequence[Factor], zero_point: int, rounding: Rounding, *, sum_shift: int = 8
) -> tuple[Array, Array]:
    """Return the pairs of `proved_words`, and whether each channel has one."""
    return _found(low, high, factors, zero_point, rounding, sum_shift, every=False)


def _found(
    low: Array,
    high: Array,
    factors: Sequence[Factor],
    zero_point: int,
    rounding: Rounding,
    sum_shift: int,
    *,
    every: bool,
) -> tuple[Array, Array]:
    """Return copies of what `_search` keeps."""
    ends = np.asarray((low, high), np.int64)
    words, proved = _search(ends.tobytes(), tuple(factors), zero_point, rounding, sum_shift, every=every)
    return words.copy(), proved.copy()


@lru_cache(maxsize=_SEARCHES)
def _search(
    ends: bytes, factors: Sequence[Factor], zero_point: int, rounding: Rounding, sum_shift: int, *, every: bool
) -> tuple[Array, Array]:
    """Return the pairs, and which channels have one; with `every`, the search ends if it is known that one has none.

    `ends` are the bytes of the least and the largest sums, int64.
    """
    low, high = np.frombuffer(ends, np.int64).reshape(2, -1)
    words = np.zeros((len(factors), 2), np.int64)
    proved = np.zeros(len(factors), bool)
    if not len(factors):
        return words.astype(np.int32), proved
    scales, least, possible = _least_sums(factors, zero_point, rounding)
    if every and not possible.all():
        return words.astype(np.int32), proved
    nearest = np.rint(scales * 2.0 ** (32 + PROVED_SHIFT - sum_shift)).astype(np.int64)
    pairs, slack = _pairs(least, low, high, nearest[:, None], sum_shift)
    words, slack = pairs[:, 0], slack[:, 0]
    proved = possible & (slack >= 0)
    left = np.flatnonzero(possible & ~proved)
    left = left[np.argsort(slack[left], kind="stable")]
    if rounding is not Rounding.TFLM and left.size:
        first, last = _possible(least[left], low[left], high[left], nearest[left], sum_shift)
        if every and (first > last).any():
            return words.astype(np.int32), proved
        left = left[first <= last]
    tries = _TRIES if rounding is Rounding.TFLM and zero_point != -128 else _MORE_TRIES
    count = 1  # a channel without a pair is probably among those that lack most
    while left.size:
        some, left = left[:count], left[count:]
        words[some], proved[some] = _nearest_pairs(least[some], low[some], high[some], nearest[some], sum_shift, tries)
        if every and not proved[some].all():
            break
        count *= 4
    return words.astype(np.int32), proved


def _nearest_pairs(
    least: Array, low: Array, high: Array, nearest: Array, sum_shift: int, tries: int
) -> tuple[Array, Array]:
    """Return the pair of each channel whose multiplier is nearest to but not `nearest`, and whether it has one."""
    words, found = np.zeros((len(nearest), 2), np.int64), np.zeros(len(nearest), bool)
    left = np.arange(len(nearest))
    order = np.array(sorted(range(-tries, tries + 1), key=abs)[1:])
    count = 1
    while order.size and left.size:
        steps, order = order[:count], order[count:]
        pairs, slack = _pairs(least[left], low[left], high[left], nearest[left, None] + steps, sum_shift)
        has_one = (slack >= 0).any(axis=1)
        words[left[has_one]] = pairs[has_one, (slack >= 0).argmax(axis=1)[has_one]]
        found[left[has_one]] = True
        left = left[~has_one]
        count = max(1, min(4 * count, _AT_ONCE // max(left.size, 1)))
    return words, found


def _least_sums(factors: Sequence[Factor], zero_point: int, rounding: Rounding) -> tuple[Array, Array, Array]:
    """Return scale and least sum of each channel that reaches each of `_STEPS`, and for which channels all were found.

    The sums are those with which the rule reaches a stored value.
    """
    multipliers, shifts = (each[:, None] for each in factor_arrays(factors))
    scale = multipliers * np.exp2(shifts - 31.0)

    def stored(sums: Array) -> Array:
        return np.asarray((rescale(sums, multipliers, shifts, rounding) + zero_point).clip(-128, 127), np.int64)

    sums = np.ceil((_STEPS - zero_point - 0.5) / np.where(scale == 0, 2.0**-31, scale))
    small = (np.abs(sums).max(axis=1) < 1 << 30) & (scale != 0)[:, 0]
    least = np.where(small[:, None], sums, 0).astype(np.int64)
    for _ in range(3):
        least = least + (stored(least) < _STEPS)
    for _ in range(3):
        least = least - (stored(least - 1) >= _STEPS)
    return scale[:, 0], least, small & ((stored(least) >= _STEPS) & (stored(least - 1) < _STEPS)).all(axis=1)


def _possible(least: Array, low: Array, high: Array, nearest: Array, sum_shift: int) -> tuple[Array, Array]:
    """Return the first and the last multiplier that each channel may have, at most `_MORE_TRIES` from the nearest one.

    A channel whose first one is the larger has none. Two steps, one reached at its least sum and one not reached at
    the sum below its least one, give a limit of the distance between steps, in sums.
    """
    ends = np.zeros((2, len(least)), np.int64)
    for channel, sums in enumerate(least):
        reached, exceeded = sums <= high[channel], sums > low[channel]
        reach = np.maximum(sums, low[channel])[reached][:, None]
        below = np.minimum(sums - 1, high[channel])[exceeded][None, :]
        steps = _STEPS[reached][:, None] - _STEPS[exceeded][None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = (reach - below) / steps
        most = float(np.min(limits, where=steps > 0, initial=np.inf))
        least_distance = float(np.max(limits, where=steps < 0, initial=0.0))
        unit = 2.0 ** (32 + PROVED_SHIFT - sum_shift)
        first = max(int(unit / most), int(nearest[channel]) - _MORE_TRIES)
        last = int(nearest[channel]) + _MORE_TRIES
        if least_distance > 0:
            last = min(int(np.ceil(unit / least_distance)), last)
        ends[:, channel] = first, last
    return ends[0], ends[1]


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
