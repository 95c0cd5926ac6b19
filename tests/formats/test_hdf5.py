# SPDX-License-Identifier: Apache-2.0
"""HDF5 files keep tensors with the extents of the Arm Compute Library, and nothing is converted."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from needs import require_module

from ferrule import DataType, FerruleError
from ferrule.errors import InputError, MissingToolError
from ferrule.formats import hdf5


@pytest.fixture(autouse=True, scope="module")
def h5py() -> ModuleType:
    require_module("h5py", hdf5.REMEDY)
    return importlib.import_module("h5py")


@pytest.mark.parametrize("dtype", hdf5.TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 2), (1, 3, 2), (1, 4, 3, 2), (1, 1, 2, 3, 2)])
def test_a_tensor_survives(tmp_path: Path, dtype: DataType, shape: tuple[int, ...]) -> None:
    array = (np.arange(np.prod(shape, dtype=int)) - 3).reshape(shape).astype(dtype.numpy)
    hdf5.write_tensors(tmp_path / "x.h5", {"x": array})
    found = hdf5.read_tensor(tmp_path / "x.h5", dtype, shape)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert np.array_equal(found, array)


def test_an_image_is_stored_as_planes_in_little_endian(tmp_path: Path, h5py: ModuleType) -> None:
    array = np.arange(24, dtype=">f4").reshape(1, 4, 3, 2).astype(np.float32)
    hdf5.write_tensors(tmp_path / "x.h5", {"x": array})
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["x"].shape == (1, 2, 4, 3)
        assert file["x"].id.get_type().get_order() == h5py.h5t.ORDER_LE
        assert np.array_equal(file["x"][0, 1], array[0, :, :, 1])


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (np.zeros((2, 4, 3), "<f4"), r"rank 3 \[2, 4, 3\], expected 4 \[1, 2, 4, 3\]"),
        (np.zeros((1, 4, 3, 2), "<f4"), r"shape \[1, 4, 3, 2\], expected \[1, 2, 4, 3\]"),
        (np.zeros((1, 2, 4, 3), "<f8"), "is float64, little endian, expected float32, little endian"),
        (np.zeros((1, 2, 4, 3), ">f4"), "is float32, big endian, expected float32, little endian"),
        (np.zeros((1, 2, 4, 3), "i1"), "is int8, expected float32"),
    ],
)
def test_another_dataset_is_refused(tmp_path: Path, h5py: ModuleType, stored: np.ndarray, message: str) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = stored
    with pytest.raises(InputError, match=message):
        hdf5.read_tensor(tmp_path / "x.h5", DataType.FLOAT32, (1, 4, 3, 2))


def test_a_missing_dataset_and_another_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    hdf5.write_tensors(path, {"a": np.zeros(2, np.int8), "b": np.zeros(2, np.int8)})
    with pytest.raises(InputError, match="has no dataset 'c'"):
        hdf5.read_tensors(path, {"c": (DataType.INT8, (2,))})
    with pytest.raises(InputError, match="has 2 datasets, expected one"):
        hdf5.read_tensor(path, DataType.INT8, (2,))
    path.write_text("text")
    with pytest.raises(InputError, match="cannot be read as an HDF5 file"):
        hdf5.read_tensor(path, DataType.INT8, (2,))
    with pytest.raises(FerruleError, match="cannot be written"):
        hdf5.write_tensors(tmp_path / "no" / "x.h5", {"a": np.zeros(2, np.int8)})
    with pytest.raises(InputError, match="'a' is int64"):
        hdf5.write_tensors(tmp_path / "y.h5", {"a": np.zeros(2, np.int64)})


def test_without_h5py_there_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingToolError, match="h5py is missing"):
        hdf5.write_tensors(tmp_path / "x.h5", {})
