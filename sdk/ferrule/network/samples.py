# SPDX-License-Identifier: Apache-2.0
"""The inputs of a run: the default pattern, and the division of arrays into samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ferrule.errors import InputError
from ferrule.graph import Array, TensorInfo
from ferrule.network.execution import by_name

Sample = list[Array]
"""One array per input of the model, of exactly its shape and dtype."""


def pattern(info: TensorInfo) -> Array:
    """Return the input that is used when none is given; it is the same on every machine.

    Element i, counted in C order, is (37 * i mod 2^n) - 2^(n-1) for an n-bit signed integer, 37 * i mod 2^n for an
    unsigned one, i odd for a bool, and ((37 * i mod 256) - 128) / 128 for a float32.
    """
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
    """Return one sample of the default pattern."""
    return [pattern(info) for info in inputs]


def split(inputs: Sequence[TensorInfo], arrays: Sequence[Array] | Mapping[str, Array]) -> list[Sample]:
    """Divide arrays into samples along their first axis.

    An array has the shape of its input; or n times its first extent there, for n samples, the same n for all inputs.
    `arrays` are in the order of the inputs, or by their names.

    Raises:
        InputError: an input is missing, unknown, or its array has another dtype or shape.
    """
    ordered = [np.asarray(array) for array in by_name("the model", inputs, arrays).values()]
    counts = {info.name: _count(info, array) for info, array in zip(inputs, ordered, strict=True)}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"'{name}' {count}" for name, count in counts.items())
        raise InputError(f"the inputs have different numbers of samples ({listed}), expected the same")
    number = next(iter(counts.values()), 1)
    parts = [
        np.ascontiguousarray(array).reshape(number, *info.shape) for info, array in zip(inputs, ordered, strict=True)
    ]
    return [[part[index] for part in parts] for index in range(number)]


def _count(info: TensorInfo, array: Array) -> int:
    wanted = f"{info.dtype}{list(info.shape)}"
    if array.dtype != info.dtype.numpy:
        raise InputError(f"input '{info.name}' is {array.dtype}{list(array.shape)}, expected {wanted}")
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
        raise InputError(f"input '{info.name}' is {array.dtype}{list(array.shape)}, expected {wanted}{more}")
    return int(array.shape[0]) // info.shape[0]
