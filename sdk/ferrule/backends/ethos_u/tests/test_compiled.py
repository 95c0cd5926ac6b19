# SPDX-License-Identifier: Apache-2.0
"""The reader of Vela's raw files: what Vela writes, damage to each field, and pickles, which never run."""

from __future__ import annotations

import copy
import io
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ethos_u_files import npz_bytes, npz_fields, payload

from ferrule.backends.ethos_u.compiled import CompiledStream, StreamTensor, read_npz
from ferrule.backends.ethos_u.errors import UnsupportedModeError
from ferrule.budget import limits
from ferrule.errors import BudgetError, FerruleError, UnsupportedError
from ferrule.graph import DataType


def read(**changes: object) -> CompiledStream:
    return read_npz(npz_bytes(**changes))


def refusal(**changes: object) -> str:
    with pytest.raises(FerruleError) as raised:
        read(**changes)
    return str(raised.value)


def test_a_file_as_vela_writes_it() -> None:
    stream = read()
    assert stream.configuration.name == "ethos-u55-128"
    assert stream.payload == payload()
    assert stream.read_only == npz_fields()["weight_data"]
    assert (stream.scratch_bytes, stream.fast_scratch_bytes) == (64, 0)
    assert stream.inputs == (
        StreamTensor(name="input0", shape=(1, 1, 1, 2, 4, 3), dtype=DataType.INT8, region=1, offset=16),
    )
    assert stream.outputs[0].size_bytes == 20
    assert stream.states == ()


def test_zeros_at_the_end_of_blobs_are_kept() -> None:
    assert read(weight_data=b"\1\0\0\0").read_only == b"\1\0\0\0"
    assert read(weight_data=bytes(16)).read_only == bytes(16)


def test_a_second_scratch_and_states() -> None:
    fast = {"scratch_fast_region": 2, "scratch_fast_size": 128}
    rows = {"shape": [[1, 1, 1, 1, 1, 8]] * 3, "elem_size": [2, 2, 2], "region": [2, 2, 2], "offset": [0, 64, 0]}
    stream = read(**fast, **{f"variable_{name}": values for name, values in rows.items()})
    assert stream.fast_scratch_bytes == 128
    # a state is listed once for each use
    assert [(each.name, each.offset) for each in stream.states] == [("state0", 0), ("state1", 64)]


def test_the_older_code_generator_repeats_the_scratch_and_writes_arrays_of_bytes() -> None:
    fields = npz_fields()
    stream = read(
        cmd_data=np.frombuffer(payload(), np.uint8),
        weight_data=np.frombuffer(fields["weight_data"], np.uint8),
        scratch_fast_region=1,
        scratch_fast_size=64,
    )
    assert stream == read()


def test_streams_are_values() -> None:
    stream = read()
    assert pickle.loads(pickle.dumps(stream)) == stream == copy.deepcopy(stream)  # noqa: S301
    assert stream.digest == read().digest != read(weight_data=b"other").digest
    assert stream.digest != read(cmd_data=payload() + b"\0\0\0\0").digest
    assert hash(stream) == hash(read())


class _Hostile:
    """An object whose pickle creates a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.file,)


def _objects(file: Path) -> np.ndarray[Any, Any]:
    array = np.empty(1, object)
    array[0] = _Hostile(file)
    return array


@pytest.mark.parametrize("field", ["input_quantization", "output_quantization", "variable_quantization"])
def test_a_pickle_in_a_quantisation_does_not_run(tmp_path: Path, field: str) -> None:
    data = npz_bytes(**{field: _objects(tmp_path / "ran")})
    np.load(io.BytesIO(data), allow_pickle=True)[field]
    assert (tmp_path / "ran").exists()  # so the pickle does harm where it is opened
    (tmp_path / "ran").unlink()
    assert read_npz(data) == read()
    assert not (tmp_path / "ran").exists()


IGNORED = {"input_quantization", "output_quantization", "variable_quantization"}


@pytest.mark.parametrize("field", sorted(set(npz_fields()) - IGNORED | {"unknown"}))
def test_objects_in_other_fields_are_refused(tmp_path: Path, field: str) -> None:
    assert f"'{field}' is one of Python objects" in refusal(**{field: _objects(tmp_path / "ran")})
    assert not (tmp_path / "ran").exists()


def test_no_unpickler_is_loaded_by_reading(tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    file.write_bytes(npz_bytes(input_quantization=_objects(tmp_path / "ran")))
    program = (
        "import sys, pickle, numpy, _pickle\n"
        "from ferrule.backends.ethos_u.compiled import read_npz\n"
        "def refuse(event, arguments):\n"
        "    if event.startswith('pickle'): raise SystemExit(event)\n"
        "sys.addaudithook(refuse)\n"
        f"read_npz({str(file)!r})\n"
        "try: numpy.load(sys.argv[1], allow_pickle=True)['input_quantization']\n"
        "except SystemExit as caught: print(caught)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout == "pickle.find_class\n"


@pytest.mark.parametrize("name", ["cmd_data", "weight_data", "scratch_size", "input_shape", "output_offset"])
def test_a_missing_field_is_named(name: str) -> None:
    fields = npz_fields()
    del fields[name]
    stream = io.BytesIO()
    np.savez(stream, **fields)
    with pytest.raises(FerruleError, match=f"there is no array '{name}'"):
        read_npz(stream.getvalue())


def test_impossible_numbers_are_refused() -> None:
    assert "weight_region is 1, expected 0" in refusal(weight_region=1)
    assert "scratch_region is 3, expected 1" in refusal(scratch_region=3)
    assert "scratch_fast_region is 3, expected 2" in refusal(scratch_fast_region=3, scratch_fast_size=8)
    assert "'scratch_size' is no single number" in refusal(scratch_size=-1)
    assert "'scratch_size' is no single number" in refusal(scratch_size=[1, 2])
    assert "the scratch has 1099511627776 bytes" in refusal(scratch_size=1 << 40)
    assert "tensor input0 is at 48 in region 1 and has 24 bytes" in refusal(input_offset=[48])
    assert "tensor input0 is at 16 in region 2 and has 24 bytes" in refusal(input_region=[2])
    assert "which cannot be" in refusal(input_offset=[-8])
    assert "3 bytes per element" in refusal(input_elem_size=[3])
    assert "which cannot be" in refusal(output_shape=[[1, 1, 1, 1, 1, 0]])
    assert "do not match" in refusal(input_offset=[0, 0])
    assert "do not match" in refusal(input_shape=7)
    assert "expected bytes" in refusal(cmd_data=np.zeros(8, np.int32))
    assert "unexpected type <f8" in refusal(scratch_size=64.0)
    assert "unexpected type" in refusal(input_shape=np.asfortranarray(np.ones((2, 6), np.int64)))


def test_streams_for_other_npus_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedModeError, match="COP2"):
        read(cmd_data=b"COP2" + payload()[4:])
    with pytest.raises(UnsupportedError, match="CONFIG 0x20003008"):
        read(cmd_data=payload(0x2000_3008))
    assert "the .npz file: word 0: the payload begins with 0x21464c45" in refusal(cmd_data=b"ELF!" + payload()[4:])
    assert "the stream is truncated" in refusal(cmd_data=payload()[:-4])


def _member(name: str, data: bytes, *, times: int = 1) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for index in range(times):
            if index:
                archive.NameToInfo.clear()  # so that zipfile does not warn of the second one
            archive.writestr(name, data)
    return stream.getvalue()


def _npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no .npz file"),
        (b"PK\3\4 and no more", "no .npz file"),
        (_member("cmd_data.npy", b"not numpy's"), "no header as numpy writes it"),
        (_member("a.npy", _npy("{'descr': '|S4', 'fortran_order': False, 'shape': (), }", bytes(3))), "has 3 bytes"),
        (_member("a.npy", _npy("{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999,), }")), "has 0 bytes"),
        (_member("a.npy", _npy("{'descr': '<c16', 'fortran_order': False, 'shape': (), }")), "no header as numpy"),
        (_member("a.npy", _npy("{'descr': [('x', '<i8')], 'fortran_order': False, 'shape': (), }")), "no header as"),
        (_member("a.npy", _npy("(" * 30000)), "no header as numpy"),
        (_member("a" * 30000, b""), "the name of an array has 30000 characters"),
        (_member("a.npy", _npy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", bytes(8)), times=2), "twice"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    file = tmp_path / "x.npz"
    file.write_bytes(data)
    with pytest.raises(FerruleError, match=reason) as raised:
        read_npz(file)
    assert str(raised.value).startswith(f"{file}: ")
    assert raised.value.hint


def test_what_a_bomb_unpacks_to_is_limited() -> None:
    bomb = _member("a.npy", bytes(1 << 20))
    assert len(bomb) < 2000
    with limits(bytes=1 << 20), pytest.raises(BudgetError, match=r"the array 'a'.* takes 1,0.* is 1,048,576"):
        read_npz(bomb)


def test_a_path_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match="there is no file"):
        read_npz(tmp_path / "missing.npz")
    with pytest.raises(FerruleError, match="there is no file"):
        read_npz(tmp_path)
    (tmp_path / "x").write_bytes(bytes(11))
    with limits(bytes=10), pytest.raises(BudgetError, match="takes 11 bytes"):
        read_npz(tmp_path / "x")
