# SPDX-License-Identifier: Apache-2.0
"""Files that are something else than their names say: each reader names what they are, and what to do."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ferrule import formats
from ferrule.errors import FerruleError
from ferrule.evaluation.data.array_files import Arrays, map_array
from ferrule.evaluation.data.table import read_header
from ferrule.recognition import recognised
from ferrule.report.reading import read_documents


def _zip(*names: str) -> bytes:
    contents = io.BytesIO()
    with zipfile.ZipFile(contents, "w") as archive:
        for name in names:
            archive.writestr(name, b"contents")
    return contents.getvalue()


def _tar() -> bytes:
    contents = io.BytesIO()
    with tarfile.open(fileobj=contents, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.tflite"))
    return contents.getvalue()


CASES = {
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git LFS", "git lfs pull"),
    "git lfs of old": (b"version https://hawser.github.com/spec/v1\noid sha256:0\n", "Git LFS", "git lfs pull"),
    "git-annex": (b"/annex/objects/SHA256E-s9--00.onnx\n", "git-annex", "git annex get"),
    "html": (b"<!DOCTYPE html>\n<html><title>Sign in</title>", "HTML", "raw contents"),
    "html after a mark": (b"\xef\xbb\xbf\r\n  <HTML lang=en>", "HTML", "raw contents"),
    "xml": (b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", "XML", "raw contents"),
    "gzip": (b"\x1f\x8b\x08\0\0\0\0\0", "gzip", "gunzip"),
    "bzip2": (b"BZh91AY&SY", "bzip2", "bunzip2"),
    "xz": (b"\xfd7zXZ\0\0\4", "xz", "unxz"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04", "Zstandard", "unzstd"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4", "7-Zip", "7z x"),
    "tar": (_tar(), "tar", "tar -xf"),
    "zip": (_zip("model.tflite"), "zip", "unzip"),
    "a zip that is cut off": (_zip("model.tflite")[:50], "zip", "unzip"),
    "keras": (_zip("metadata.json", "config.json", "model.weights.h5"), ".keras", ".onnx', format='onnx')"),
    "h5": (b"\x89HDF\r\n\x1a\n\0\0", ".h5", ".onnx', format='onnx')"),
    "pt": (_zip("net/data.pkl", "net/data/0", "net/version"), ".pt", "ferrule.from_torch(module, example)"),
    "pt of old": (
        b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\0\0\x80\x3f",  # and then its storages
        "pickle",
        "ferrule.from_torch(module, example)",
    ),
    "pt2": (_zip("archive/models/model.json", "archive/version"), ".pt2", "a name that ends in .pt2"),
    "torch script": (_zip("net/data.pkl", "net/constants.pkl"), "TorchScript", "torch.jit.load("),
    "pte": (b"\x1c\0\0\0ET12\0\0", ".pte", "ferrule.from_torch(module, example)"),
    "safetensors": (b"\x08\0\0\0\0\0\0\0{\"a\":{}}", "safetensors", "ferrule.from_torch(module, example)"),
    "saved model": (b"\x08\x01\x12\x30\x0a\x10\x22\x05serve", "SavedModel", "from_saved_model"),
    "frozen graph": (b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder", ".pb", "tf2onnx.convert --graphdef"),
    "zipped saved model": (_zip("m/saved_model.pb", "m/variables/0"), "SavedModel", "from_saved_model"),
    "core ml": (_zip("Data/com.apple.CoreML/model.mlmodel"), "Core ML", "convert"),
    "ort": (b"\x1c\0\0\0ORTM\0\0", ".ort", ".onnx"),
    "gguf": (b"GGUF\3\0\0\0", "GGUF", "language model"),
    "an array in C": (b"unsigned char model[] = {\n  0x1c, 0x00 };", "an array in C", "xxd -r -p"),
    "elf": (b"\x7fELF\x01\x01", "ELF", "known formats"),
    "png": (b"\x89PNG\r\n\x1a\n\0", "PNG", "known formats"),
    "npy": (b"\x93NUMPY\1\0", "numpy", "known formats"),
}  # fmt: skip


@pytest.mark.parametrize("suffix", [".tflite", ".onnx", ".pt", ""])
@pytest.mark.parametrize("case", CASES)
def test_a_model_that_is_something_else(case: str, suffix: str, tmp_path: Path) -> None:
    contents, what, remedy = CASES[case]
    path = tmp_path / f"net{suffix}"
    path.write_bytes(contents)
    with pytest.raises(FerruleError) as raised:
        formats.load(path)
    assert str(raised.value).startswith(f"net{suffix}: it is ")
    assert what in str(raised.value)
    assert remedy in str(raised.value.hint)


@pytest.mark.parametrize("case", ["git lfs", "html", "gzip", "h5", "safetensors"])
def test_data_and_documents_that_are_something_else(case: str, tmp_path: Path) -> None:
    contents, what, remedy = CASES[case]
    path = tmp_path / "file"
    path.write_bytes(contents)
    for read in (map_array, Arrays, read_header, read_documents):
        with pytest.raises(FerruleError, match=f"it is .*{what}") as raised:
            read(path)
        assert remedy in str(raised.value.hint)


def test_models_with_each_others_suffix(tmp_path: Path) -> None:
    tflite = tmp_path / "a.onnx"
    tflite.write_bytes(b"\x1c\0\0\0TFL3" + bytes(40))
    with pytest.raises(FerruleError, match="it is a model of TensorFlow Lite, expected a model of ONNX") as raised:
        formats.load(tflite)
    assert ".tflite" in str(raised.value.hint)
    onnx = tmp_path / "a.tflite"
    onnx.write_bytes(b"\x08\x08\x12\x07pytorch\x3a\x00")
    with pytest.raises(FerruleError, match="it may be a model of ONNX, expected a model of TensorFlow Lite") as raised:
        formats.load(onnx)
    assert ".onnx" in str(raised.value.hint)


def test_an_empty_model(tmp_path: Path) -> None:
    path = tmp_path / "a.tflite"
    path.write_bytes(b"")
    with pytest.raises(FerruleError, match="the file is empty, expected a model of TensorFlow Lite"):
        formats.load(path)


def test_what_is_right_is_read(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32)
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", a=values)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    assert np.array_equal(map_array(tmp_path / "x.npy"), values)
    assert np.array_equal(Arrays(tmp_path / "x.npz")["a"], values)
    assert read_header(tmp_path / "x.csv") == ("a", "b")


@pytest.mark.parametrize("data", [b"", b"{}", b"a,b\n1,2\n", b"\x08\x08\x12\x07pytorch", b"PK", b"\x80", b"ustar"])
def test_other_contents_are_not_recognised(data: bytes) -> None:
    assert recognised(data) is None
