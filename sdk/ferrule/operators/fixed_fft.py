# SPDX-License-Identifier: Apache-2.0
"""The Fourier transform of real signals in fixed point, bit for bit as kissfft computes it with mixed radices.

Each stage divides by its radix, so that a transform of N numbers divides by N. Products are rounded, and sums wrap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ferrule.graph import Array
from ferrule.operators.fixed_point import Int64Array


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


@dataclass(frozen=True, slots=True)
class _Points:
    """Complex numbers as int64 arrays of values of the element type."""

    real: Int64Array
    imaginary: Int64Array

    def __getitem__(self, index: Any) -> _Points:  # noqa: ANN401 whatever indexes an array
        return _Points(self.real[index], self.imaginary[index])


@dataclass(frozen=True, slots=True)
class FixedFft:
    """Transforms of signals of int16 or int32 with twice `length` samples; each works on the last axis."""

    length: int
    dtype: np.dtype[Any]

    def forward(self, signal: Array) -> Array:
        """Return the spectrum [..., 2 * (length + 1)] of samples [..., 2 * length], real before imaginary parts."""
        pairs = signal.astype(np.int64).reshape(*signal.shape[:-1], self.length, 2)
        points = self._transform(_Points(pairs[..., 0], pairs[..., 1]), inverse=False)
        spectrum = np.zeros((*signal.shape[:-1], self.length + 1, 2), np.int64)
        first = self._divided(points[..., 0], 2)
        spectrum[..., 0, 0] = self._wrapped(first.real + first.imaginary)
        spectrum[..., -1, 0] = self._wrapped(first.real - first.imaginary)
        low, high = self._mirrored(points)
        even, odd = self._plus(low, high), self._plus(low, high, -1)
        turned = self._product(odd, self._points(real_twiddles(self.length, self.dtype, inverse=False)))
        at = np.arange(1, self.length // 2 + 1)
        for place, real, imaginary in (
            (at, even.real + turned.real, even.imaginary + turned.imaginary),
            (self.length - at, even.real - turned.real, turned.imaginary - even.imaginary),
        ):
            spectrum[..., place, 0] = self._half(real)
            spectrum[..., place, 1] = self._half(imaginary)
        return spectrum.reshape(*signal.shape[:-1], -1).astype(self.dtype)

    def backward(self, spectrum: Array) -> Array:
        """Return the samples [..., 2 * length] of a spectrum [..., 2 * (length + 1)]."""
        pairs = spectrum.astype(np.int64).reshape(*spectrum.shape[:-1], self.length + 1, 2)
        given = _Points(pairs[..., 0], pairs[..., 1])
        real, imaginary = (np.zeros(given.real[..., 1:].shape, np.int64) for _ in range(2))
        first, last = given.real[..., 0], given.real[..., -1]
        packed = self._divided(_Points(self._wrapped(first + last), self._wrapped(first - last)), 2)
        real[..., 0], imaginary[..., 0] = packed.real, packed.imaginary
        low, high = self._mirrored(given)
        even, difference = self._plus(low, high), self._plus(low, high, -1)
        odd = self._product(difference, self._points(real_twiddles(self.length, self.dtype, inverse=True)))
        at = np.arange(1, self.length // 2 + 1)
        for place, sign in ((at, 1), (self.length - at, -1)):
            both = self._plus(even, odd, sign)
            real[..., place], imaginary[..., place] = both.real, self._wrapped(sign * both.imaginary)
        points = self._transform(_Points(real, imaginary), inverse=True)
        signal = np.stack([points.real, points.imaginary], axis=-1)
        return signal.reshape(*spectrum.shape[:-1], -1).astype(self.dtype)

    def _transform(self, points: _Points, *, inverse: bool) -> _Points:
        stages = radices(self.length)
        outer = points.real.shape[:-1]
        order = np.arange(self.length).reshape(stages[::-1]).transpose().ravel()
        real, imaginary = (part[..., order] for part in (points.real, points.imaginary))
        factors, inner = self._points(twiddles(self.length, self.dtype, inverse=inverse)), 1
        for radix in reversed(stages):
            blocks = self.length // (radix * inner)
            shape = (*outer, blocks, radix, inner)
            data = self._divided(_Points(real.reshape(shape), imaginary.reshape(shape)), radix)
            steps = np.arange(inner) * blocks
            turned = [data[..., 0, :]]
            turned += [self._product(data[..., arm, :], factors[arm * steps]) for arm in range(1, radix)]
            special = factors[blocks * inner], factors[(2 * blocks * inner) % self.length]
            parts = self._butterfly(turned, special, inverse)
            real = np.stack([part.real for part in parts], axis=-2).reshape(*outer, -1)
            imaginary = np.stack([part.imaginary for part in parts], axis=-2).reshape(*outer, -1)
            inner *= radix
        return _Points(real, imaginary)

    def _butterfly(self, arms: list[_Points], special: tuple[_Points, _Points], inverse: bool) -> list[_Points]:
        plus = self._plus
        if len(arms) == 2:
            return [plus(arms[0], arms[1]), plus(arms[0], arms[1], -1)]
        if len(arms) == 3:
            both, difference = plus(arms[1], arms[2]), plus(arms[1], arms[2], -1)
            rest = plus(arms[0], _Points(both.real >> 1, both.imaginary >> 1), -1)
            scale = special[0].imaginary
            turned = _Points(-self._scaled(difference.imaginary, scale), self._scaled(difference.real, scale))
            return [plus(arms[0], both), plus(rest, turned), plus(rest, turned, -1)]
        if len(arms) == 4:
            rest, total = plus(arms[0], arms[2], -1), plus(arms[0], arms[2])
            both, difference = plus(arms[1], arms[3]), plus(arms[1], arms[3], -1)
            turned = _Points(difference.imaginary, -difference.real)
            sign = -1 if inverse else 1
            return [plus(total, both), plus(rest, turned, sign), plus(total, both, -1), plus(rest, turned, -sign)]
        return self._butterfly_5(arms, special)

    def _butterfly_5(self, arms: list[_Points], special: tuple[_Points, _Points]) -> list[_Points]:
        plus, (a, b) = self._plus, special
        outer, inner = plus(arms[1], arms[4]), plus(arms[2], arms[3])
        apart, near = plus(arms[1], arms[4], -1), plus(arms[2], arms[3], -1)

        def cosines(first: _Points, second: _Points) -> _Points:
            return _Points(
                *(
                    self._wrapped(start + self._scaled(one, first.real) + self._scaled(other, second.real))
                    for start, one, other in (
                        (arms[0].real, outer.real, inner.real),
                        (arms[0].imaginary, outer.imaginary, inner.imaginary),
                    )
                )
            )

        def sines(first: _Points, second: _Points, sign: int) -> _Points:
            one, other = first.imaginary, second.imaginary
            imaginary = self._scaled(apart.imaginary, one) + sign * self._scaled(near.imaginary, other)
            real = self._scaled(apart.real, one) + sign * self._scaled(near.real, other)
            return _Points(self._wrapped(imaginary), self._wrapped(-real))

        total = plus(arms[0], _Points(outer.real + inner.real, outer.imaginary + inner.imaginary))
        wide, far = cosines(a, b), sines(a, b, 1)
        narrow, close = cosines(b, a), sines(b, a, -1)
        return [total, plus(wide, far, -1), plus(narrow, close, -1), plus(narrow, close), plus(wide, far)]

    def _mirrored(self, points: _Points) -> tuple[_Points, _Points]:
        """Return halves of the numbers 1 to length / 2, and of the conjugates of those as far from the end."""
        at = np.arange(1, self.length // 2 + 1)
        mirrored = _Points(points.real[..., self.length - at], self._wrapped(-points.imaginary[..., self.length - at]))
        return self._divided(points[..., at], 2), self._divided(mirrored, 2)

    def _points(self, factors: Array) -> _Points:
        wide = factors.astype(np.int64)
        return _Points(wide[:, 0], wide[:, 1])

    def _wrapped(self, values: Int64Array) -> Int64Array:
        return values.astype(self.dtype).astype(np.int64)

    def _rounded(self, products: Int64Array) -> Int64Array:
        fraction = 8 * self.dtype.itemsize - 1
        return self._wrapped((products + (1 << (fraction - 1))) >> fraction)

    def _scaled(self, values: Int64Array, factor: Int64Array) -> Int64Array:
        return self._rounded(values * factor)

    def _product(self, values: _Points, factors: _Points) -> _Points:
        return _Points(
            self._rounded(values.real * factors.real - values.imaginary * factors.imaginary),
            self._rounded(values.real * factors.imaginary + values.imaginary * factors.real),
        )

    def _divided(self, values: _Points, by: int) -> _Points:
        factor = np.int64(np.iinfo(self.dtype).max // by)
        return _Points(self._rounded(values.real * factor), self._rounded(values.imaginary * factor))

    def _plus(self, one: _Points, other: _Points, sign: int = 1) -> _Points:
        return _Points(
            self._wrapped(one.real + sign * other.real), self._wrapped(one.imaginary + sign * other.imaginary)
        )

    def _half(self, sums: Int64Array) -> Int64Array:
        wide = self._wrapped(sums) if self.dtype.itemsize == 4 else sums  # C adds int16 as int
        return self._wrapped(wide >> 1)
