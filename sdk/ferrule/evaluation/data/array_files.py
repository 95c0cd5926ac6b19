# SPDX-License-Identifier: Apache-2.0
"""Reads .npy and .npz files, memory-mapped where they are not compressed, and never with pickle."""

from __future__ import annotations

import math
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from ferrule._typing import override
from ferrule.archives import open_archive, unpacked
from ferrule.budget import hold
from ferrule.errors import InputError
from ferrule.evaluation.data.conversion import Conversion, samples_in
from ferrule.evaluation.data.file_errors import input_errors
from ferrule.evaluation.data.rows import Rows, RowSource
from ferrule.graph import Array, Shape
from ferrule.reading import open_file
from ferrule.recognition import recognised

_HEAD_BYTES = 1 << 16
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LOCAL_MAGIC = b"PK\x03\x04"
_WRITE_ARRAYS = "write it with numpy.savez"
_PICKLED = "is an array of Python objects, which needs pickle, and pickled files can run code"


def map_array(path: Path) -> Array:
    """Return the array of a .npy file, read-only and mapped.

    Raises:
        InputError: the file cannot be read, is no plain .npy file, has objects, or is shorter or longer than its
            header states.
    """
    with _refusing(path, "write it with numpy.save"), open_file(path) as file:
        _refuse_other(path, file, "numpy.save", own=b"\x93NUMPY")
        size = os.fstat(file.fileno()).st_size
        return _mapped(file, size, str(path))


class Arrays(Mapping[str, Array]):
    """The arrays of a .npz file by name, of which each is read when it is asked for; the others cost nothing.

    The errors are those of `map_array`, and each names the array. What is compressed is held until the work ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[str, Array] = {}
        self._members: dict[str, zipfile.ZipInfo] = {}
        with _refusing(path, _WRITE_ARRAYS), open_file(path) as file:
            _refuse_other(path, file, "numpy.savez", own=b"PK")
            for member in open_archive(file, str(path)).infolist():
                name = member.filename.removesuffix(".npy")
                if name in self._members:
                    raise InputError(f"{path}: array '{name}' is in the file twice")
                self._members[name] = member
            if not self._members:
                raise InputError(f"{path} has no arrays", hint=_WRITE_ARRAYS)

    @override
    def __getitem__(self, name: str) -> Array:
        if name not in self._read:
            self._read[name] = self._array(self._members[name], f"{self._path}: array '{name}'")
        return self._read[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    @override
    def __len__(self) -> int:
        return len(self._members)

    def _array(self, member: zipfile.ZipInfo, where: str) -> Array:
        with _refusing(where, _WRITE_ARRAYS), open_file(self._path) as file:
            if member.flag_bits & 1:
                raise InputError(f"{where} is encrypted")
            if member.compress_type != zipfile.ZIP_STORED:
                with open_archive(file, where).open(member) as stream:
                    return _decompressed(stream, where)
            file.seek(member.header_offset)
            magic, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            if magic != _LOCAL_MAGIC:
                raise InputError(f"{where}: the archive is damaged")
            file.seek(name_bytes + extra_bytes, 1)
            return _mapped(file, member.file_size, where)


def array_source(form: str, arrays: Sequence[tuple[str, Array]], conversions: Sequence[Conversion]) -> RowSource:
    """Return the samples of arrays, each with the place that errors name, one for each conversion.

    Raises:
        InputError: a type or shape does not fit its input, or the arrays have different numbers of samples.
    """
    pairs = list(zip(conversions, arrays, strict=True))
    rules = [each.rule(array.dtype, where) for each, (where, array) in pairs]
    counts = [samples_in(array.shape, each.info, where) for each, (where, array) in pairs]
    if len(set(counts)) > 1:
        listed = ", ".join(f"{where} has {count}" for (where, _), count in zip(arrays, counts, strict=True))
        raise InputError(f"the arrays have different numbers of samples: {listed}")

    def place(where: str, first: int, last: int) -> str:
        return f"{where}, sample {first}" if first == last else f"{where}, of samples {first} to {last}"

    return RowSource(
        form,
        [
            Rows(
                # any axes after the first: each sample is brought to the shape of its input when it is read
                values=array.reshape(counts[0], -1, *array.shape[1:]),
                conversion=each,
                rule=rule,
                steps=each.steps(rule),
                where=partial(place, where),
            )
            for (each, (where, array)), rule in zip(pairs, rules, strict=True)
        ],
    )


def _mapped(file: IO[bytes], size: int, where: str) -> Array:
    """Map the array that begins at the file's position, in `size` bytes."""
    start = file.tell()
    shape, fortran, dtype = _header(file, where)
    offset = file.tell()
    _check_size(shape, dtype, size - (offset - start), where)
    if offset + math.prod(shape) * dtype.itemsize > os.fstat(file.fileno()).st_size:
        raise InputError(f"{where} is cut off")
    order: Literal["F", "C"] = "F" if fortran else "C"
    array: Array = np.memmap(file, dtype=dtype, mode="r", offset=offset, shape=shape, order=order)
    return array


def _decompressed(stream: IO[bytes], where: str) -> Array:
    shape, fortran, dtype = _header(stream, where)
    data = unpacked(stream, math.prod(shape) * dtype.itemsize, where)
    hold(len(data), where)
    _check_size(shape, dtype, len(data), where)
    array = np.frombuffer(data, dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _header(file: IO[bytes], where: str) -> tuple[Shape, bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise InputError(f"{where} has version {version[0]}.{version[1]} of the format, expected 1.0 or 2.0")
    shape, fortran, dtype = readers[version](file)
    if dtype.hasobject:
        raise InputError(f"{where} {_PICKLED}", hint="write it as numbers: array.astype(numpy.float32)")
    if dtype.names is not None or dtype.subdtype is not None:
        raise InputError(f"{where} is an array of records, expected numbers")
    if any(extent <= 0 for extent in shape):
        raise InputError(f"{where} has the shape {list(shape)}: it has no values")
    return shape, fortran, dtype


def _check_size(shape: Shape, dtype: np.dtype[Any], present: int, where: str) -> None:
    stated = math.prod(shape) * dtype.itemsize
    if stated != present:
        amount = "only " if present < stated else ""
        raise InputError(f"{where} has {amount}{present} bytes of values, and its header states {stated}")


def _refuse_other(path: Path, file: IO[bytes], writer: str, *, own: bytes) -> None:
    """Raise InputError if a file does not begin with the bytes of its own format and is recognised as another."""
    head = file.read(_HEAD_BYTES)
    other = None if head.startswith(own) else recognised(head)
    file.seek(0)
    if other is not None:
        raise InputError(f"{path}: it is {other.what}, expected arrays", hint=other.remedy or f"write it with {writer}")


@contextmanager
def _refusing(where: str | Path, hint: str) -> Iterator[None]:
    kinds = (
        ValueError, SyntaxError, TypeError, KeyError, EOFError, OverflowError, MemoryError, RuntimeError,
        tokenize.TokenError, struct.error, zlib.error, zipfile.BadZipFile,
    )  # fmt: skip
    with input_errors(where, "is damaged, or no such file", *kinds, hint=hint), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that Python 2 wrote
        yield
