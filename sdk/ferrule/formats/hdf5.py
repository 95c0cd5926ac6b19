# SPDX-License-Identifier: Apache-2.0
"""HDF5 files with tensors, as programs over the Arm Compute Library read and write them.

The extents of a dataset are the library's in reverse order: a tensor with four dimensions, which is NHWC in a network,
is an NCHW dataset, and any other one has the extents of the network. The elements are little endian.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrule.errors import FerruleError, InputError, MissingToolError
from ferrule.graph import Array, DataType, Shape

if TYPE_CHECKING:
    import h5py

__all__ = ["TYPES", "extents", "read_tensor", "read_tensors", "write_tensors"]

REMEDY = "pip install 'ferrule[hdf5]'"
TYPES = (DataType.FLOAT32, DataType.FLOAT16, DataType.INT8, DataType.UINT8, DataType.INT32)
"""The element types of datasets."""
_IMAGE_RANK = 4
_TO_FILE, _FROM_FILE = (0, 3, 1, 2), (0, 2, 3, 1)


def extents(shape: Shape) -> Shape:
    """Return the extents of a tensor's dataset; a scalar has one element."""
    return tuple(shape[axis] for axis in _TO_FILE) if len(shape) == _IMAGE_RANK else shape or (1,)


def write_tensors(path: Path, tensors: Mapping[str, Array]) -> None:
    """Write a file with one dataset per tensor, each given with the network's order of dimensions.

    Raises:
        FerruleError: the file cannot be written, or a tensor has a type that datasets do not have.
        MissingToolError: h5py is not installed.
    """
    for name, array in tensors.items():
        if array.dtype.name not in set(TYPES):
            raise InputError(f"tensor '{name}' is {array.dtype}, and a dataset is one of {', '.join(TYPES)}")
    with _opened(path, "w") as file:
        for name, array in tensors.items():
            stored = array.transpose(_TO_FILE) if array.ndim == _IMAGE_RANK else array.reshape(extents(array.shape))
            file.create_dataset(name, data=stored.astype(stored.dtype.newbyteorder("<")))


def read_tensors(path: Path, expected: Mapping[str, tuple[DataType, Shape]]) -> dict[str, Array]:
    """Return tensors of a file, with the network's order of dimensions; `expected` has their types and shapes there.

    Raises:
        InputError: the file is not HDF5, lacks a dataset, or has one of another type, rank or shape; nothing is
            converted.
        MissingToolError: h5py is not installed.
    """
    with _opened(path, "r") as file:
        return {name: _read(path, file, name, *each) for name, each in expected.items()}


def read_tensor(path: Path, dtype: DataType, shape: Shape) -> Array:
    """Return the tensor of a file with a single dataset; the errors are those of `read_tensors`."""
    with _opened(path, "r") as file:
        names = list(file)
        if len(names) != 1:
            raise InputError(f"{path} has {len(names)} datasets, expected one")
        return _read(path, file, names[0], dtype, shape)


def _read(path: Path, file: Any, name: str, dtype: DataType, shape: Shape) -> Array:  # noqa: ANN401 h5py has no types
    import h5py

    dataset = file.get(name)
    if not isinstance(dataset, h5py.Dataset):
        raise InputError(f"{path} has no dataset '{name}'", hint=f"it has: {', '.join(file) or 'none'}")
    wanted = dtype.numpy.newbyteorder("<")
    if dataset.dtype != wanted:
        raise InputError(f"{path}: dataset '{name}' is {_type_text(dataset.dtype)}, expected {_type_text(wanted)}")
    stored = extents(shape)
    if len(dataset.shape) != len(stored):
        raise InputError(
            f"{path}: dataset '{name}' has rank {len(dataset.shape)} {list(dataset.shape)}, "
            f"expected {len(stored)} {list(stored)}"
        )
    if dataset.shape != stored:
        raise InputError(f"{path}: dataset '{name}' has shape {list(dataset.shape)}, expected {list(stored)}")
    array: Array = np.ascontiguousarray(dataset[()], dtype.numpy)
    return np.ascontiguousarray(array.transpose(_FROM_FILE)) if len(shape) == _IMAGE_RANK else array.reshape(shape)


def _type_text(dtype: np.dtype[Any]) -> str:
    if dtype.itemsize == 1:
        return dtype.name
    return f"{dtype.name}, {'big' if dtype.byteorder == '>' else 'little'} endian"


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[h5py.File]:
    try:
        import h5py
    except ImportError as error:
        raise MissingToolError("the Python package h5py is missing, which HDF5 files need", hint=REMEDY) from error
    try:
        file = h5py.File(path, mode)
    except OSError as error:
        reason = str(error).partition("\n")[0]
        if mode == "w":
            raise FerruleError(f"{path} cannot be written: {reason}") from error
        raise InputError(f"{path} cannot be read as an HDF5 file: {reason}") from error
    with file:
        yield file
