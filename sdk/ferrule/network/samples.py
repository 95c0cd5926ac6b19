# SPDX-License-Identifier: Apache-2.0
"""The arrays of a run: generates the default pattern, divides inputs into samples and joins their outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ferrule.budget import Resource, afford
from ferrule.errors import InputError, place
from ferrule.graph import Array, TensorInfo
from ferrule.interface import either, option
from ferrule.network.execution import by_name

_WORKING_BYTES = 16
"""Of each element of a sample that is made: two numbers of 64 bits."""
Sample = list[Array]
"""One array per input of the model, with exactly the input's shape and dtype."""

_QUANTIZE = either("quantise them before", "see TensorInfo.quantize")


def pattern(info: TensorInfo) -> Array:
    """Return the default input, used when none is given; it is the same on every machine.

    Element i, in C order, is (37 * i mod 2^n) - 2^(n-1) for a signed integer of n bits (n = 32 for int64), 37 * i mod
    2^n for an unsigned one, true for odd i for a bool, and ((37 * i mod 256) - 128) / 128 for a float.
    """
    afford(Resource.BYTES, _WORKING_BYTES * info.elements, f"a sample of the input '{info.name}'")
    index = np.arange(info.elements, dtype=np.int64) * 37
    kind = info.dtype.numpy.kind
    values: Array
    if kind == "f":
        values = ((index % 256) - 128) / 128
    elif kind == "b":
        values = index % 2 == 1
    else:
        bits = 8 * min(info.dtype.size_bytes, 4)
        values = index % (1 << bits) - (0 if kind == "u" else 1 << (bits - 1))
    return values.astype(info.dtype.numpy).reshape(info.shape)


def pattern_sample(inputs: Sequence[TensorInfo]) -> Sample:
    """Return one sample filled with the default pattern."""
    return [pattern(info) for info in inputs]


def random_sample(inputs: Sequence[TensorInfo], seed: int) -> Sample:
    """Return one sample with random values: all values of an integer type, and floats of a normal distribution."""
    random = np.random.default_rng(seed)
    return [_random(info, random) for info in inputs]


def _random(info: TensorInfo, random: np.random.Generator) -> Array:
    dtype = info.dtype.numpy
    afford(Resource.BYTES, _WORKING_BYTES * info.elements, f"a sample of the input '{info.name}'")
    if dtype.kind == "f":
        return random.standard_normal(info.shape).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, info.shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, info.shape, dtype=dtype, endpoint=True)


def split(
    inputs: Sequence[TensorInfo],
    arrays: Sequence[ArrayLike] | Mapping[str, ArrayLike],
    *,
    real: bool = False,
    owner: str = "the model",
) -> list[Sample]:
    """Divide arrays into samples along their first axis.

    Each array has either the shape of its input, for one sample, or n times the first extent, for n samples; n is the
    same for all inputs. `arrays` is in the order of the inputs, or by name. With `real`, they are real numbers, which
    are quantised; see `TensorInfo.quantize`. `owner` is used in messages.

    Raises:
        InputError: an array is missing or unknown, its dtype or shape does not fit, or the numbers of samples differ.
    """
    named = by_name(owner, inputs, arrays)
    ordered = [_stored(info, named[info.name], real=real) for info in inputs]
    counts = {info.name: _count(info, array) for info, array in zip(inputs, ordered, strict=True)}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"'{name}' {count}" for name, count in counts.items())
        raise InputError(f"the inputs have different numbers of samples ({listed}), expected the same")
    number = next(iter(counts.values()), 1)
    parts = [
        np.ascontiguousarray(array).reshape(number, *info.shape) for info, array in zip(inputs, ordered, strict=True)
    ]
    return [[part[index, ...] for part in parts] for index in range(number)]


def beginnings(count: int, reset_each: bool | Sequence[bool]) -> tuple[bool, ...]:
    """Return, by sample, whether it begins with the initial state: all samples, or those for which a value is true.

    Raises:
        InputError: the number of values is not that of the samples.
    """
    if isinstance(reset_each, bool):
        return (reset_each,) * count
    if len(reset_each) != count:
        raise InputError(f"reset_each has {len(reset_each)} values, expected one for each of the {count} samples")
    return tuple(map(bool, reset_each))


def joined(outputs: Sequence[TensorInfo], results: Sequence[Sequence[Array]], *, real: bool = False) -> list[Array]:
    """Return the outputs of samples, joined along the first axis; those of a single sample keep their shapes.

    With `real`, they are dequantised; see `TensorInfo.dequantize`.
    """
    first = list(results[0])
    if len(results) > 1:
        first = [np.concatenate([np.atleast_1d(result[i]) for result in results], axis=0) for i in range(len(first))]
    return in_real_numbers(outputs, first) if real else first


def in_real_numbers(outputs: Sequence[TensorInfo], arrays: Sequence[Array]) -> list[Array]:
    """Return the real numbers that output arrays represent; see `TensorInfo.dequantize`."""
    return [info.dequantize(array) for info, array in zip(outputs, arrays, strict=True)]


def _stored(info: TensorInfo, given: ArrayLike, *, real: bool) -> Array:
    if real:
        with place(f"input '{info.name}'"):
            return info.quantize(given)
    array = np.asarray(given)
    if array.dtype != info.dtype.numpy:
        raise InputError(
            f"input '{info.name}' is {array.dtype}{list(array.shape)}, expected {info.dtype}{list(info.shape)}",
            hint=_hint(info, array),
        )
    return array


def _hint(info: TensorInfo, array: Array) -> str:
    """Return what makes an array of another type an input."""
    if info.quantization is None:
        return f"convert it with .astype('{info.dtype}')"
    if array.dtype.kind == "f":
        return f"for real numbers, give {option('real')}, which quantises them"
    if array.dtype == np.uint8:
        return (
            f"for pixels, scale them as in training, such as pixels.astype('float32') / 255, and give {option('real')}"
        )
    return f"convert stored values with .astype('{info.dtype}'); for real numbers, {_QUANTIZE}"


def _count(info: TensorInfo, array: Array) -> int:
    if array.shape == info.shape:
        return 1
    fits = (
        bool(info.shape)
        and array.shape[1:] == info.shape[1:]
        and array.size > 0
        and array.shape[0] % info.shape[0] == 0
    )
    if not fits:
        more = f", or a multiple of {info.shape[0]} on the first axis for several samples" if info.shape else ""
        raise InputError(
            f"input '{info.name}' is {array.dtype}{list(array.shape)}, expected {info.dtype}{list(info.shape)}{more}"
        )
    return int(array.shape[0]) // info.shape[0]
