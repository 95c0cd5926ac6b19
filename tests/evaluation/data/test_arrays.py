# SPDX-License-Identifier: Apache-2.0
"""Data sets in .npy and .npz files: every way to write the same samples gives the same chunks and digest."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from compare import assert_arrays_equal
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ferrule.errors import BudgetError, FerruleError, InputError
from ferrule.evaluation.data import DataSet, DataSettings, open_data
from ferrule.evaluation.data.dataset import drawn, drawn_sequences
from ferrule.graph import Array, DataType, Quantization, TensorInfo

INPUT = TensorInfo("x", (1, 4, 3, 1), DataType.INT8, quantization=Quantization.of(1 / 255, -128))
OTHER = TensorInfo("y", (1, 2), DataType.FLOAT32)
OUTPUT = TensorInfo("out", (1, 3), DataType.INT8, quantization=Quantization.of(1 / 256, -128))
SAMPLES = np.random.default_rng(7).integers(-128, 128, (10, 4, 3, 1)).astype(np.int8)
LABELS = np.arange(10) % 3


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def opened(
    path: str | list[str],
    labels: str | None = None,
    *,
    inputs: tuple[TensorInfo, ...] = (INPUT,),
    limit: int | None = None,
    sequence: str | None = None,
    seed: int = 0,
    **settings: object,
) -> DataSet:
    table = DataSettings(**settings)  # type: ignore[arg-type]
    return open_data(path, labels, inputs, [OUTPUT], table, limit, sequence=sequence, seed=seed)


def whole(data: DataSet, size: int = 4) -> list[Array]:
    chunks = list(data.chunks(size))
    return [np.concatenate(parts) for parts in zip(*(chunk.inputs for chunk in chunks), strict=True)]


def test_all_ways_to_store_samples_are_the_same_data_set() -> None:
    np.save("c.npy", SAMPLES)
    np.save("fortran.npy", np.asfortranarray(SAMPLES))
    np.save("squeezed.npy", SAMPLES[..., 0])
    np.save("padded.npy", SAMPLES[:, None])
    np.savez("plain.npz", x=SAMPLES, y=LABELS)
    np.savez_compressed("small.npz", x=np.asfortranarray(SAMPLES), y=LABELS)
    np.save("labels.npy", LABELS)
    names = [("c.npy", "labels.npy"), ("fortran.npy", "labels.npy"), ("squeezed.npy", "labels.npy")]
    names += [("padded.npy", "labels.npy"), ("plain.npz", "y"), ("small.npz", "y"), ("x=c.npy", "labels.npy")]
    digests = set()
    for size, (path, labels) in enumerate(names, start=1):
        data = opened(path, labels)
        assert data.part.digest == ""
        assert_array_equal(whole(data, size)[0], SAMPLES)
        assert [chunk.labels.tolist() for chunk in data.chunks(100) if chunk.labels is not None] == [LABELS.tolist()]
        digests.add(data.part.digest)
    assert len(digests) == 1
    assert len(digests.pop()) == 64


def test_the_digest_covers_samples_and_labels() -> None:
    changed = SAMPLES.copy()
    changed[9, 3, 2, 0] ^= 1
    np.save("a.npy", SAMPLES)
    np.save("b.npy", changed)
    np.save("l.npy", LABELS)
    np.save("m.npy", LABELS[::-1])
    digests = set()
    for path, labels in [("a.npy", None), ("a.npy", "l.npy"), ("a.npy", "m.npy"), ("b.npy", "l.npy")]:
        data = opened(path, labels)
        whole(data)
        digests.add(data.part.digest)
    assert len(digests) == 4


def test_a_mapped_file_is_not_read_before_it_is_asked_for() -> None:
    path = Path("large.npy")
    header = io.BytesIO()
    count = 1 << 33
    np.lib.format.write_array_header_1_0(header, {"descr": "|i1", "fortran_order": False, "shape": (count, 4, 3, 1)})
    path.write_bytes(header.getvalue())
    with path.open("r+b") as file:
        file.truncate(len(header.getvalue()) + 12 * count)  # sparse
    data = opened("large.npy")
    assert len(data) == count
    assert not data.take([count - 1]).inputs[0].any()


def test_real_values_are_normalised_and_quantised() -> None:
    real = np.random.default_rng(1).random((5, 4, 3, 1))
    np.save("r.npy", real)
    assert_array_equal(whole(opened("r.npy"))[0], INPUT.quantize(real))
    scaled = opened("r.npy", scale="1/2", offset=0.25)
    assert_array_equal(whole(scaled)[0], INPUT.quantize(real.astype(np.float32) * np.float32(0.5) + np.float32(0.25)))
    assert scaled.part.preparation == ("value * 0.5 + 0.25", "quantise to int8")
    centred = opened("r.npy", mean=(0.5,), std=(2.0,))
    assert_array_equal(whole(centred)[0], INPUT.quantize((real.astype(np.float32) - np.float32(0.5)) / np.float32(2)))


def test_integers_are_never_reinterpreted_silently() -> None:
    pixels = SAMPLES.view(np.uint8)
    np.save("u.npy", pixels)
    with pytest.raises(InputError, match=r"u.npy is uint8, and the input 'x' is int8: what .* not stated") as caught:
        opened("u.npy")
    assert 'integers = "shift"' in str(caught.value.hint)
    shifted = (pixels.astype(np.int16) - 128).astype(np.int8)
    assert_array_equal(whole(opened("u.npy", integers="shift"))[0], shifted)
    real = opened("u.npy", integers="real", scale="1/255")
    assert_array_equal(whole(real)[0], shifted)
    np.save("s.npy", SAMPLES)
    with pytest.raises(InputError, match=r"stored values of the input 'x', to which .* scale"):
        opened("s.npy", scale=2)
    with pytest.raises(InputError, match='"shift" is for uint8 values of an int8 input'):
        opened("s.npy", integers="shift")
    np.save("f.npy", np.zeros((2, 2), np.uint8))
    with pytest.raises(InputError, match="is uint8, and the input 'y' is float32"):
        opened("f.npy", inputs=(OTHER,))


def test_several_inputs_come_by_name() -> None:
    reals = np.random.default_rng(2).random((10, 2)).astype(np.float32)
    np.savez("both.npz", y=reals, x=SAMPLES, labels=LABELS)
    np.save("x.npy", SAMPLES)
    np.save("y.npy", reals)
    both = (INPUT, OTHER)
    first, second = opened("both.npz", "labels", inputs=both), opened(["y=y.npy", "x=x.npy"], inputs=both)
    assert_arrays_equal(whole(first), whole(second))
    assert_array_equal(whole(first)[1], reals)
    for paths, text in [
        (["x=x.npy"], "no values for the input 'y'"),
        (["x=x.npy", "x=x.npy"], "'x' is given twice"),
        (["x=x.npy", "z=y.npy"], "there is no input 'z'"),
        ("x.npy", "the model has 2 inputs"),
    ]:
        with pytest.raises(FerruleError, match=text):
            opened(paths, inputs=both)
    np.savez("short.npz", x=SAMPLES[:3], y=reals)
    with pytest.raises(InputError, match=r"different numbers of samples: .*'x' has 3.*'y' has 10"):
        opened("short.npz", inputs=both)
    np.savez("wrong.npz", x=SAMPLES, why=reals)
    with pytest.raises(InputError, match=r"there is no array 'y' in wrong.npz") as caught:
        opened("wrong.npz", inputs=both)
    assert "why" in str(caught.value.hint)


def test_a_first_extent_of_several_is_kept() -> None:
    info = TensorInfo("x", (2, 3), DataType.INT8, quantization=Quantization.of(1))
    np.save("rows.npy", np.arange(24, dtype=np.int8).reshape(8, 3))
    np.save("samples.npy", np.arange(24, dtype=np.int8).reshape(4, 2, 3))
    for path in ("rows.npy", "samples.npy"):
        data = opened(path, inputs=(info,))
        assert len(data) == 4
        assert_array_equal(whole(data, 3)[0], np.arange(24).reshape(8, 3))
        assert_array_equal(data.take([2, 0]).inputs[0].ravel(), [*range(12, 18), *range(6)])


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 3))
def test_a_draw_is_ascending_and_grows(count: int, limit: int, seed: int) -> None:
    found = drawn(count, limit, seed)
    assert found == sorted(set(found))
    assert len(found) == min(count, limit)
    assert set(found) <= set(drawn(count, limit + 1, seed)) <= set(range(count))


def test_a_limit_draws_samples_and_says_so() -> None:
    np.save("x.npy", SAMPLES)
    data = opened("x.npy", limit=4, seed=3)
    chosen = drawn(10, 4, 3)
    assert data.part.preparation == ("4 of 10 samples, drawn with seed 3",)
    assert [name for chunk in data.chunks(3) for name in chunk.names] == [str(index) for index in chosen]
    assert_array_equal(whole(data)[0], SAMPLES[chosen])
    assert opened("x.npy", limit=10).part.preparation == ()
    with pytest.raises(FerruleError, match="the limit is 0"):
        opened("x.npy", limit=0)


def test_sequences_stay_whole() -> None:
    np.save("x.npy", SAMPLES)
    np.save("s.npy", np.array([4, 4, 4, 1, 1, 1, 9, 9, 9, 9]))
    data = opened("x.npy", sequence="s.npy", limit=7)
    (chunk,) = data.chunks(100)
    assert chunk.sequences is not None
    numbers, counts = np.unique(chunk.sequences, return_counts=True)
    assert len(numbers) == 2
    assert all({4: 3, 1: 3, 9: 4}[number] == count for number, count in zip(numbers, counts, strict=True))
    with pytest.raises(InputError, match="a limit of 2 samples is less than the sequence"):
        drawn_sequences(np.array([4, 4, 4]), 2, 0)
    np.save("s.npy", np.array([4, 4, 1, 4, 1, 1, 9, 9, 9, 9]))
    with pytest.raises(InputError, match="sequence 4 goes on at sample 3"):
        opened("x.npy", sequence="s.npy")
    np.save("s.npy", np.zeros(9, np.int64))
    with pytest.raises(InputError, match="has 9 sequence numbers, and there are 10 samples"):
        opened("x.npy", sequence="s.npy")
    np.save("s.npy", np.zeros(10))
    with pytest.raises(InputError, match="expected whole numbers"):
        opened("x.npy", sequence="s.npy")


def _npy(descr: object, shape: object, data: bytes = b"") -> bytes:
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "is damaged"),
        (b"\x93NUMPY\x09\x00", "version 9.0"),
        (_npy("|O", (1,), b"cos\nsystem\n(S'id'\ntR."), "objects, which needs pickle"),
        (_npy("<f4", (10**7, 4, 3, 1)), "has only 0 bytes of values"),
        (_npy("<f4", (1, 4, 3, 1), bytes(49)), "has 49 bytes of values, and its header states 48"),
        (_npy("<f4", (0, 4, 3, 1)), "has no values"),
        (_npy("<f4", (-1, 4, 3, 1)), "has no values"),
        (_npy("<f4", "(1,)"), "is damaged"),
        (_npy([("a", "<f4"), ("b", "<f4")], (1,), bytes(8)), "records"),
        (_npy("<U3", (1, 4, 3, 1), bytes(144)), "has values of type <U3, expected numbers"),
        (_npy("<M8[s]", (1, 4, 3, 1), bytes(96)), "expected numbers"),
        (_npy("<f4", (1, 5, 3, 1), bytes(60)), r"has the shape \[1, 5, 3, 1\], .* \[samples, 4, 3, 1\]"),
        (b"\x93NUMPY\x01\x00" + struct.pack("<H", 60000) + b"(" * 60000, "is damaged"),
    ],
    ids=[
        "empty",
        "version",
        "pickle",
        "short",
        "long",
        "none",
        "negative",
        "shape",
        "records",
        "texts",
        "times",
        "extents",
        "header",
    ],
)
def test_a_hostile_array_is_refused(data: bytes, text: str) -> None:
    Path("bad.npy").write_bytes(data)
    with pytest.raises(InputError, match=text) as caught:
        opened("bad.npy")
    assert "bad.npy" in str(caught.value)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile("bad.npz", "w", method) as archive:
            archive.writestr("x.npy", data)
        with pytest.raises(InputError, match=text):
            opened("bad.npz")


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    with zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", _npy("|i1", (1 << 36, 4, 3, 1)) + bytes(1000))
    with pytest.raises(BudgetError, match="array 'x' takes 824,633,720,832 bytes") as caught:
        opened("bomb.npz")
    assert caught.value.hint == 'if the input is right, raise the limit: with ferrule.limits(bytes="768GiB"): ...'


def test_a_value_that_is_no_number_is_named() -> None:
    real = np.zeros((10, 4, 3, 1))
    real[7, 1, 2, 0] = np.nan
    np.save("nan.npy", real)
    data = opened("nan.npy")
    data.take([6])
    with pytest.raises(InputError, match=r"nan.npy, of samples 4 to 7: row 3 .*NaN"):
        whole(data, 4)


def test_channels_are_normalised_where_the_layout_has_them() -> None:
    info = TensorInfo("x", (1, 2, 3, 4), DataType.FLOAT32)
    real = np.random.default_rng(4).random((5, 2, 3, 4)).astype(np.float32)
    np.save("r.npy", real)
    planes = opened("r.npy", inputs=(info,), layout="nchw", mean=(0.25, 0.5))
    assert_array_equal(whole(planes)[0], real - np.float32([0.25, 0.5]).reshape(1, 2, 1, 1))
    with pytest.raises(InputError, match="mean has 2 values, and the input has 4 channels"):
        whole(opened("r.npy", inputs=(info,), mean=(0.25, 0.5)))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"scale": 0}, "scale is 0, expected a finite number other than 0"),
        ({"scale": "1/0"}, "scale is '1/0'"),
        ({"scale": "one"}, "scale is 'one'"),
        ({"offset": float("inf")}, "offset is inf, expected a finite number"),
        ({"scale": 1e300}, r"scale is 1e\+300"),
        ({"std": (1.0, 0.0)}, "std has 0.0"),
        ({"mean": (1.0, 2.0)}, "mean has 2 values, and the input has 1 channels"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], text: str) -> None:
    np.save("r.npy", np.zeros((2, 4, 3, 1)))
    with pytest.raises(FerruleError, match=text):
        whole(opened("r.npy", **settings))


def test_what_is_no_data_set_is_refused() -> None:
    for path, text in [
        ("none.npy", "none.npy cannot be read: No such file"),
        ("none", "no such file or folder"),
        ("model.tflite", "no such file"),
        (["a.npy", "b.npy"], "there is no input 'a.npy'"),
    ]:
        with pytest.raises(FerruleError, match=text):
            opened(path)
    Path("x.dat").touch()
    with pytest.raises(InputError, match="is of no known form"):
        opened("x.dat")
    Path("folder.npy").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        opened("folder.npy")


def test_of_very_many_arrays_the_first_are_listed() -> None:
    with zipfile.ZipFile("many.npz", "w") as archive:
        for index in range(12_000):
            archive.writestr(f"{'n' * 200 if index == 0 else 'a'}{index:05}.npy", b"")
    with pytest.raises(InputError, match=r"there is no array 'x' in many.npz, for the model's input") as caught:
        opened("many.npz")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("known: a00001, a00002, ")
    assert caught.value.hint.endswith(", a00040 and 11,960 more")


def test_a_long_name_is_cut() -> None:
    np.savez("long.npz", **{"n" * 200: SAMPLES, "o": SAMPLES})
    with pytest.raises(InputError, match="there is no array 'x'") as caught:
        opened("long.npz")
    assert caught.value.hint == f"known: {'n' * 100}..., o"
