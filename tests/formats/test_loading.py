# SPDX-License-Identifier: Apache-2.0
"""The choice of the reader for a file, and the message if none fits."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_networks
from click.testing import CliRunner

import ferrule
from ferrule import formats
from ferrule.cli.main import cli
from ferrule.errors import ModelError

MODEL = formats.to_tflite(small_networks.dense())
HINT = "known formats: TensorFlow Lite (.tflite), ONNX (.onnx), PyTorch (.pt2)"


RENAME = "give it a name that ends in .tflite"


def refused(source: Path | bytes, *parts: str, hint: str | None = HINT) -> None:
    """Assert that loading fails in one line that contains all parts, with the known formats in the hint or another."""
    with pytest.raises(ModelError) as caught:
        formats.load(source)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message
    assert caught.value.hint == hint


def test_the_package_hands_it_out() -> None:
    assert ferrule.load is formats.load


@pytest.mark.parametrize("name", ["model.tflite", "MODEL.TFLITE", "a.b.tflite"])
def test_a_file_is_read_by_its_suffix(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(MODEL)
    for source in (path, str(path)):
        assert formats.load(source).name == path.stem


def test_bytes_are_read_by_their_magic() -> None:
    assert formats.load(MODEL).name == "model"
    assert formats.load(MODEL, name="other").name == "other"


@pytest.mark.parametrize(("name", "found"), [("model.h5", "the suffix '.h5'"), ("model", "no suffix")])
def test_another_suffix(tmp_path: Path, name: str, found: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"abcd" * 4)
    refused(path, f"{name}: the file has {found}, expected '.tflite', '.onnx' or '.pt2'")
    path.write_bytes(MODEL)
    expected = "expected a model in a file '.tflite', '.onnx' or '.pt2'"
    refused(path, f"{name}: it is a model of TensorFlow Lite, {expected}", hint=RENAME)


@pytest.mark.parametrize("size", [1, 7])
def test_files_that_end_before_their_magic(tmp_path: Path, size: int) -> None:
    path = tmp_path / "short.tflite"
    path.write_bytes(MODEL[:size])
    refused(path, f"short.tflite: the file has {size} bytes, expected at least 8")
    refused(MODEL[:size], f"model: the file has {size} bytes, expected at least 8")


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.tflite"
    path.touch()
    refused(path, "empty.tflite: the file is empty, expected a model of TensorFlow Lite", hint=None)


def test_another_magic(tmp_path: Path) -> None:
    path = tmp_path / "other.tflite"
    path.write_bytes(b"abcd" * 4)
    words = "bytes 4 to 7 are 61 62 63 64, expected 54 46 4c 33 ('TFL3') of TensorFlow Lite"
    refused(path, f"other.tflite: {words}")
    refused(path.read_bytes(), f"model: {words}")
    path.write_bytes(b"PK\x03\x04" * 4)
    refused(
        path,
        "other.tflite: it is an archive in zip, expected a model of TensorFlow Lite",
        hint="unpack it first: unzip",
    )


def test_what_is_no_file(tmp_path: Path) -> None:
    refused(tmp_path / "missing.tflite", f"there is no file '{tmp_path}/missing.tflite'", hint=None)
    refused(tmp_path, f"'{tmp_path}' is a folder, expected a file")


def test_a_folder_of_tensorflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands take it for a model, too."""
    monkeypatch.chdir(tmp_path)
    Path("net").mkdir()
    Path("net/saved_model.pb").write_bytes(b"\x08\x01")
    line = (
        'python -c "import pathlib, tensorflow; '
        "pathlib.Path('net.tflite').write_bytes(tensorflow.lite.TFLiteConverter.from_saved_model('net').convert())\""
    )
    refused(Path("net"), "'net' is a SavedModel of TensorFlow", hint=f"type: {line}")
    for command in ("inspect", "quantize", "convert"):
        words = {"quantize": ["--data", "x.npy"], "convert": ["net.tflite"]}.get(command, [])
        done = CliRunner().invoke(cli, [command, "net", *words])
        assert isinstance(done.exception, ModelError)
        assert line in str(done.exception.hint)


def test_the_line_to_type_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that a shell or Python would read otherwise is not in it."""
    monkeypatch.chdir(tmp_path)
    for name, line in (
        ("my.net.h5", "load_model('my.net.h5'); model(model.inputs); model.export('my.net.onnx', format='onnx')"),
        ("it's.h5", "load_model('FILE'); model(model.inputs); model.export('NAME.onnx', format='onnx')"),
        ("$(x).h5", "load_model('FILE'); model(model.inputs); model.export('NAME.onnx', format='onnx')"),
    ):
        Path(name).write_bytes(b"\x89HDF\r\n\x1a\n")
        with pytest.raises(ModelError) as caught:
            formats.load(name)
        assert line in str(caught.value.hint)


def test_every_format_has_its_own_suffix() -> None:
    suffixes = [format_.suffix for format_ in formats.FORMATS]
    assert len(set(suffixes)) == len(suffixes)
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in suffixes)
