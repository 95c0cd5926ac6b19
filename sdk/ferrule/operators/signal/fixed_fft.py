# SPDX-License-Identifier: Apache-2.0
"""The Fourier transform of real signals in fixed point, bit for bit as kissfft computes it with mixed radices.

Each stage divides by its radix, so that a transform of N numbers divides by N. Products are rounded, and sums wrap.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ferrule._frozen import positional
from ferrule.graph import Array
from ferrule.operators.arithmetic.fixed_point import Int64Array


def radices(length: int) -> tuple[int, ...]:
    """Return the radices of a complex transform, outermost stage first; empty if it has other primes than 2, 3 and 5.

    They are the fours, then at most one 2, the threes and the fives.
    """
    found, rest = [], length
    for radix in (4, 2, 3, 5):
        while rest % radix == 0:
            found.append(radix)
            rest //= radix
    return tuple(found) if rest == 1 else ()


def twiddles(length: int, dtype: np.dtype[Any], *, inverse: bool) -> Array:
    """Return the factors of a complex transform as [length, 2], real parts first, rounded to the element type."""
    return _turns([(-2 * math.pi * index) / length for index in range(length)], dtype, inverse)


def real_twiddles(length: int, dtype: np.dtype[Any], *, inverse: bool) -> Array:
    """Return the factors that separate the two halves of a real signal, which a transform of `length` numbers packs."""
    return _turns([-math.pi * ((index + 1) / length + 0.5) for index in range(length // 2)], dtype, inverse)


def _turns(phases: list[float], dtype: np.dtype[Any], inverse: bool) -> Array:
    signed = [-phase if inverse else phase for phase in phases]
    parts = np.array([[math.cos(phase), math.sin(phase)] for phase in signed]).reshape(-1, 2)
    if dtype.kind == "f":
        return parts.astype(dtype)
    return np.floor(0.5 + np.iinfo(dtype).max * parts).astype(dtype)


_CONJUGATE = np.array([1, -1])
_TURN = np.array([-1, 1])
"""Complex numbers with their parts exchanged, times this, are those times i."""


@positional
class FixedFft:
    """Transforms of signals of int16 or int32 with twice `length` samples; each works on the last axis.

    Complex numbers are int64 arrays [..., 2] of values of the element type, real parts first.
    """

    length: int
    dtype: np.dtype[Any]

    def forward(self, signal: Array) -> Array:
        """Return the spectrum [..., 2 * (length + 1)] of samples [..., 2 * length], real before imaginary parts."""
        points = self._transform(signal.astype(np.int64).reshape(*signal.shape[:-1], self.length, 2), inverse=False)
        spectrum = np.zeros((*signal.shape[:-1], self.length + 1, 2), np.int64)
        first = self._divided(points[..., 0, :], 2)
        spectrum[..., 0, 0] = self._wrapped(first[..., 0] + first[..., 1])
        spectrum[..., -1, 0] = self._wrapped(first[..., 0] - first[..., 1])
        low, high = self._mirrored(points)
        even, odd = self._wrapped(low + high), self._wrapped(low - high)
        turned = self._product(odd, real_twiddles(self.length, self.dtype, inverse=False))
        at = np.arange(1, self.length // 2 + 1)
        spectrum[..., at, :] = self._half(even + turned)
        spectrum[..., self.length - at, :] = self._half((even - turned) * _CONJUGATE)
        return spectrum.reshape(*signal.shape[:-1], -1).astype(self.dtype)

    def backward(self, spectrum: Array) -> Array:
        """Return the samples [..., 2 * length] of a spectrum [..., 2 * (length + 1)]."""
        given = spectrum.astype(np.int64).reshape(*spectrum.shape[:-1], self.length + 1, 2)
        points = np.zeros((*spectrum.shape[:-1], self.length, 2), np.int64)
        first, last = given[..., 0, 0], given[..., -1, 0]
        points[..., 0, :] = self._divided(self._wrapped(np.stack([first + last, first - last], axis=-1)), 2)
        low, high = self._mirrored(given)
        even = self._wrapped(low + high)
        odd = self._product(self._wrapped(low - high), real_twiddles(self.length, self.dtype, inverse=True))
        at = np.arange(1, self.length // 2 + 1)
        points[..., at, :] = self._wrapped(even + odd)
        points[..., self.length - at, :] = self._wrapped(self._wrapped(even - odd) * _CONJUGATE)
        signal = self._transform(points, inverse=True)
        return signal.reshape(*spectrum.shape[:-1], -1).astype(self.dtype)

    def _transform(self, points: Int64Array, *, inverse: bool) -> Int64Array:
        stages = radices(self.length)
        outer = points.shape[:-2]
        data = points[..., np.arange(self.length).reshape(stages[::-1]).transpose().ravel(), :]
        factors, inner = twiddles(self.length, self.dtype, inverse=inverse).astype(np.int64), 1
        for radix in reversed(stages):
            blocks = self.length // (radix * inner)
            data = self._divided(data.reshape(*outer, blocks, radix, inner, 2), radix)
            steps = np.arange(inner) * blocks
            arms = [data[..., 0, :, :]]
            arms += [self._product(data[..., arm, :, :], factors[arm * steps]) for arm in range(1, radix)]
            special = factors[blocks * inner], factors[(2 * blocks * inner) % self.length]
            data = np.stack(self._butterfly(arms, special, inverse), axis=-3).reshape(*outer, -1, 2)
            inner *= radix
        return data

    def _butterfly(
        self, arms: list[Int64Array], special: tuple[Int64Array, Int64Array], inverse: bool
    ) -> list[Int64Array]:
        wrapped = self._wrapped
        if len(arms) == 2:
            return [wrapped(arms[0] + arms[1]), wrapped(arms[0] - arms[1])]
        if len(arms) == 3:
            both, difference = wrapped(arms[1] + arms[2]), wrapped(arms[1] - arms[2])
            rest = wrapped(arms[0] - (both >> 1))
            turned = self._scaled(difference, special[0][1])[..., ::-1] * _TURN
            return [wrapped(arms[0] + both), wrapped(rest + turned), wrapped(rest - turned)]
        if len(arms) == 4:
            rest, total = wrapped(arms[0] - arms[2]), wrapped(arms[0] + arms[2])
            both, difference = wrapped(arms[1] + arms[3]), wrapped(arms[1] - arms[3])
            turned = difference[..., ::-1] * (_TURN if inverse else _CONJUGATE)
            return [wrapped(total + both), wrapped(rest + turned), wrapped(total - both), wrapped(rest - turned)]
        return self._butterfly_5(arms, special)

    def _butterfly_5(self, arms: list[Int64Array], special: tuple[Int64Array, Int64Array]) -> list[Int64Array]:
        wrapped, scaled, (a, b) = self._wrapped, self._scaled, special
        outer, inner = wrapped(arms[1] + arms[4]), wrapped(arms[2] + arms[3])
        apart, near = wrapped(arms[1] - arms[4]), wrapped(arms[2] - arms[3])
        wide = wrapped(arms[0] + scaled(outer, a[0]) + scaled(inner, b[0]))
        narrow = wrapped(arms[0] + scaled(outer, b[0]) + scaled(inner, a[0]))
        far = wrapped((scaled(apart, a[1]) + scaled(near, b[1]))[..., ::-1] * _CONJUGATE)
        close = wrapped((scaled(apart, b[1]) - scaled(near, a[1]))[..., ::-1] * _CONJUGATE)
        return [
            wrapped(arms[0] + outer + inner),
            wrapped(wide - far),
            wrapped(narrow - close),
            wrapped(narrow + close),
            wrapped(wide + far),
        ]

    def _mirrored(self, points: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return halves of the numbers 1 to length / 2, and of the conjugates of those as far from the end."""
        at = np.arange(1, self.length // 2 + 1)
        mirrored = self._wrapped(points[..., self.length - at, :] * _CONJUGATE)
        return self._divided(points[..., at, :], 2), self._divided(mirrored, 2)

    def _wrapped(self, values: Int64Array) -> Int64Array:
        return values.astype(self.dtype).astype(np.int64)

    def _scaled(self, values: Int64Array, factor: Int64Array | np.int64) -> Int64Array:
        fraction = 8 * self.dtype.itemsize - 1
        return self._wrapped((values * factor + (1 << (fraction - 1))) >> fraction)

    def _product(self, values: Int64Array, factors: Array) -> Int64Array:
        """Return complex products, of which each part is rounded once."""
        real, imaginary = factors[..., 0].astype(np.int64), factors[..., 1].astype(np.int64)
        first, second = values[..., 0], values[..., 1]
        parts = np.stack([first * real - second * imaginary, first * imaginary + second * real], axis=-1)
        return self._scaled(parts, np.int64(1))

    def _divided(self, values: Int64Array, by: int) -> Int64Array:
        return self._scaled(values, np.int64(np.iinfo(self.dtype).max // by))

    def _half(self, sums: Int64Array) -> Int64Array:
        wide = self._wrapped(sums) if self.dtype.itemsize == 4 else sums  # C adds int16 as int
        return self._wrapped(wide >> 1)
