# SPDX-License-Identifier: Apache-2.0
"""Converts between real numbers and the elements that a tensor stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ferrule.errors import InputError

if TYPE_CHECKING:
    from ferrule.graph.tensor import TensorInfo

_Floating = TypeVar("_Floating", bound=np.floating[Any])
_Array = NDArray[Any]

_WIDEST_BYTES = 4
"""Elements up to this size are sums of a float64 and a zero point, exactly."""


def overflowing_floats() -> np.errstate:
    """Return the context in which floats become infinite or subnormal without warnings; NaN is still a fault."""
    return np.errstate(over="ignore", under="ignore")


def ieee_floats() -> np.errstate:
    """Return the context in which floats become infinite, NaN or subnormal without warnings; not by zero divisors."""
    return np.errstate(over="ignore", under="ignore", invalid="ignore")


def round_half_away(values: NDArray[_Floating]) -> NDArray[_Floating]:
    """Return the nearest whole numbers in the same type, with halves rounded away from zero, like C's round()."""
    whole = np.trunc(values)
    away = whole + np.copysign(1, values).astype(values.dtype)
    return np.asarray(np.where(np.abs(values - whole) >= 0.5, away, whole), values.dtype)


def in_steps(real: _Array, scale: _Array | float, zero_point: _Array | int, dtype: np.dtype[Any]) -> _Array:
    """Return float32 numbers as integers of at most 32 bits: the float32 quotient with the scale, halves rounded away
    from zero, plus the zero point, saturated; NaN becomes the zero point.
    """
    with ieee_floats():
        quotient = np.asarray(real, np.float32) / np.asarray(scale, np.float32)
        steps = round_half_away(np.asarray(quotient, np.float32))
    # the sum is exact in float64, and the clamp brings it into range
    return saturated(np.nan_to_num(steps.astype(np.float64)) + zero_point, dtype)


def saturated(values: _Array, dtype: DTypeLike) -> _Array:
    """Return numbers in an integer type, those beyond its limits as the limit."""
    limits = np.iinfo(np.dtype(dtype))
    return np.asarray(np.clip(values, limits.min, limits.max), dtype)


def quantize(info: TensorInfo, real: ArrayLike) -> _Array:
    """Return real numbers as the tensor stores them; see `TensorInfo.quantize`."""
    given = np.asarray(real)
    if given.dtype.kind not in "fiub":
        raise InputError(f"tensor '{info.name}' got {given.dtype}, expected real numbers")
    if info.quantization is None:
        return _real_to_float(info, given) if info.dtype.is_float else _real_to_whole(info, given)
    if info.dtype.size_bytes > _WIDEST_BYTES:
        raise InputError(f"tensor '{info.name}' is {info.dtype}, expected at most 32 bits to quantise real numbers")
    _require_floats(info, given)
    if np.isnan(given).any():
        raise InputError(f"tensor '{info.name}' got NaN, which has no quantised value")
    scales, zero_points = _by_element(info, given)
    with overflowing_floats():
        values = given.astype(np.float32)
    return in_steps(values, scales, zero_points, info.dtype.numpy)


def dequantize(info: TensorInfo, stored: ArrayLike) -> _Array:
    """Return the real numbers that stored elements represent; see `TensorInfo.dequantize`."""
    given = np.asarray(stored)
    if given.dtype != info.dtype.numpy:
        raise InputError(f"tensor '{info.name}' got {given.dtype}, expected its elements, {info.dtype}")
    if info.quantization is None:
        return given.astype(np.float32) if info.dtype.is_float else given.copy()
    scales, zero_points = _by_element(info, given)
    with overflowing_floats():
        return np.asarray(((given.astype(np.float64) - zero_points) * scales).astype(np.float32))


def _by_element(info: TensorInfo, array: _Array) -> tuple[_Array, _Array]:
    """Return scales and zero points that broadcast with the array."""
    quantization = info.quantization
    assert quantization is not None
    extents: list[int] = []
    if quantization.per_channel:
        axis, count = quantization.axis, len(quantization.scales)
        if array.ndim != len(info.shape) or array.shape[axis] != count:
            raise InputError(
                f"tensor '{info.name}' got shape {list(array.shape)}, expected {list(info.shape)}, "
                f"since it has {count} scales on axis {axis}"
            )
        extents = [1] * array.ndim
        extents[axis] = count
    return (
        np.array(quantization.scales).reshape(extents),
        np.array(quantization.zero_points, np.float64).reshape(extents),
    )


def _require_floats(info: TensorInfo, given: _Array) -> None:
    if given.dtype.kind != "f":
        raise InputError(
            f"tensor '{info.name}' got {given.dtype}, expected real numbers in floating point",
            hint="scale the values as in training, such as pixels.astype('float32') / 255; values that are stored ones "
            "already need no conversion",
        )


def _real_to_float(info: TensorInfo, given: _Array) -> _Array:
    _require_floats(info, given)
    with overflowing_floats():
        values = given.astype(info.dtype.numpy)
    if not np.array_equal(np.isinf(values), np.isinf(given)):
        raise InputError(f"tensor '{info.name}' got a number beyond the range of {info.dtype}")
    return values


def _real_to_whole(info: TensorInfo, given: _Array) -> _Array:
    """Return whole numbers in the tensor's type; a bool's are 0 and 1."""
    dtype = info.dtype.numpy
    low, high = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    # each limit is a power of two, or one less, so float(high) + 1 is the first float that is too large
    wrong = (given < low) | (given > high if given.dtype.kind != "f" else given >= float(high) + 1)
    wrong |= given != np.trunc(given)
    if wrong.any():
        raise InputError(
            f"tensor '{info.name}' got {given[wrong].flat[0]}, expected whole numbers from {low} to {high}, since it "
            f"is {info.dtype} without quantisation"
        )
    return given.astype(dtype)
