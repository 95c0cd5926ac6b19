# SPDX-License-Identifier: Apache-2.0
"""The inputs of a run: the default pattern, files, and their division into samples."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def load_array(path: Path) -> Array:
    """Return the array of a .npy file.

    Raises:
        InputError: the file cannot be read, or is no plain .npy.
    """
    try:
        with path.open("rb") as file:
            if zipfile.is_zipfile(file):
                raise InputError(f"{path}: is an archive, expected one array", hint="write it with numpy.save")
            file.seek(0)
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, EOFError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path}: is no .npy file: {reason}", hint="write it with numpy.save") from error
    return array


def parse_input_options(options: Sequence[str], inputs: Sequence[TensorInfo]) -> list[Array] | dict[str, Array]:
    """Return the arrays of `--input` options: "x.npy" for the only input, or "name=x.npy" for each.

    Raises:
        InputError: a file cannot be read, or a name is given twice or is missing where there are several inputs.
    """
    names = {info.name for info in inputs}
    arrays: dict[str, Array] = {}
    for option in options:
        name, separator, path = option.rpartition("=")
        if not separator or name not in names:
            if len(inputs) == 1 and (not separator or Path(option).exists()):
                name, path = inputs[0].name, option
            elif not separator:
                raise InputError(
                    f"--input {option} does not say which input it is for, expected name=file",
                    hint=f"the model's inputs: {', '.join(info.name for info in inputs)}",
                )
        if name in arrays:
            raise InputError(f"input '{name}' is given twice")
        arrays[name] = load_array(Path(path))
    return arrays
