# SPDX-License-Identifier: Apache-2.0
"""Recognises files that are something else than what a reader expects, and knows what to do with them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferrule._frozen import positional


class Other(NamedTuple):
    """What a file is."""

    what: str
    """With its article, after "it is"."""
    remedy: str
    """What to do; empty if nothing is known beside giving another file."""


_FETCH = "fetch the file itself: git lfs pull"
_ANNEX = "fetch the file itself: git annex get"
_DOWNLOAD = "download the file itself, by the link to its raw contents"
_TORCH = 'export the model to ONNX with PyTorch: torch.onnx.export(model, inputs, "model.onnx", dynamo=True)'
_KERAS = (
    'export the model to ONNX with Keras: keras.models.load_model(FILE).export("model.onnx", format="onnx"), or '
    "convert it with tf.lite.TFLiteConverter.from_keras_model"
)
_SAVED_MODEL = "convert its folder with tf.lite.TFLiteConverter.from_saved_model(FOLDER)"
_WEIGHTS = f"it has weights without the network: load it into the model that it belongs to, and {_TORCH}"
_UNPACK = "unpack it first"
_HTML = ("<!doctype html", "<html", "<head")


@positional
class _Kind:
    what: str
    remedy: str
    fits: bytes | Callable[[bytes], bool]
    """The bytes with which its contents begin, or the function that recognises its contents."""


def _magic(magic: bytes, offset: int) -> Callable[[bytes], bool]:
    return lambda data: data[offset : offset + len(magic)] == magic


def _beginning(data: bytes) -> str:
    return data[:256].decode("utf-8", "replace").lstrip("\ufeff \t\r\n").lower()


def _is_c(text: bytes) -> bool:
    """Return whether a text begins as what xxd -i writes, perhaps after comments and includes."""
    return b"unsigned char " in text and b"[] " in text.replace(b"[]=", b"[] =") and b"{" in text and b"0x" in text


_KINDS: Sequence[_Kind] = (
    _Kind("a pointer of Git LFS", _FETCH, b"version https://git-lfs.github.com/spec/"),
    _Kind("a pointer of Git LFS", _FETCH, b"version https://hawser.github.com/spec/"),
    _Kind("a pointer of git-annex", _ANNEX, lambda data: len(data) < 1 << 15 and b"/annex/objects/" in data[:4096]),
    _Kind("a page in HTML", _DOWNLOAD, lambda data: _beginning(data).startswith(_HTML)),
    _Kind("an answer in XML", _DOWNLOAD, lambda data: _beginning(data).startswith("<?xml")),
    _Kind("compressed by gzip", f"{_UNPACK}: gunzip", b"\x1f\x8b"),
    _Kind("compressed by bzip2", f"{_UNPACK}: bunzip2", b"BZh"),
    _Kind("compressed by xz", f"{_UNPACK}: unxz", b"\xfd7zXZ\0"),
    _Kind("compressed by Zstandard", f"{_UNPACK}: unzstd", b"\x28\xb5\x2f\xfd"),
    _Kind("an archive of 7-Zip", f"{_UNPACK}: 7z x", b"7z\xbc\xaf\x27\x1c"),
    _Kind("an archive of RAR", f"{_UNPACK}: unrar x", b"Rar!\x1a\x07"),
    _Kind("an archive of tar", f"{_UNPACK}: tar -xf", _magic(b"ustar", 257)),
    _Kind("a model of Keras or weights in HDF5 (.h5)", _KERAS, b"\x89HDF\r\n\x1a\n"),
    _Kind(
        "a program of ExecuTorch (.pte)",
        f"it is compiled for another runtime: {_TORCH}",
        lambda data: data[4:6] == b"ET" and data[6:8].isdigit(),
    ),
    _Kind(
        "tensors in safetensors",  # a length and a header in JSON
        _WEIGHTS,
        lambda data: data[8:9] == b"{" and 2 <= int.from_bytes(data[:8], "little") <= 100_000_000,
    ),
    _Kind(
        "a pickle of Python, as older PyTorch writes (.pt)",
        _TORCH,
        lambda data: data[:1] == b"\x80" and data[1:2] in {b"\2", b"\3", b"\4", b"\5"} and data.endswith(b"."),
    ),
    _Kind(
        "a model of onnxruntime's own format (.ort)", "give the .onnx file from which it was made", _magic(b"ORTM", 4)
    ),
    _Kind(
        "a SavedModel of TensorFlow",  # a message with its version and a graph that has the tag for serving
        _SAVED_MODEL,
        lambda data: data[:3] == b"\x08\x01\x12" and b"\x22\x05serve" in data[: 1 << 16],
    ),
    _Kind("tensors in GGUF", "it has weights of a language model, which no microcontroller holds", b"GGUF"),
    _Kind(
        "an array in C",
        "give the file from which it was made: xxd -r -p turns its numbers back",
        lambda data: _is_c(data[:4096]),
    ),
    _Kind("an array of numpy (.npy)", "", b"\x93NUMPY"),
    _Kind("a program in ELF", "", b"\x7fELF"),
    _Kind("a document in PDF", _DOWNLOAD, b"%PDF-"),
    _Kind("an image in PNG", "", b"\x89PNG\r\n\x1a\n"),
    _Kind("an image in JPEG", "", b"\xff\xd8\xff"),
    _Kind("a recording in WAV", "", lambda data: data[:4] == b"RIFF" and data[8:12] == b"WAVE"),
    _Kind("a model of TensorFlow Lite", "", _magic(b"TFL3", 4)),
)
_MEMBERS: Sequence[tuple[Callable[[str], bool], Other]] = (
    (lambda name: name == "model.weights.h5", Other("a model of Keras (.keras)", _KERAS)),
    (lambda name: name.endswith("/data.pkl") or name == "data.pkl", Other("a model of PyTorch (.pt)", _TORCH)),
    (
        lambda name: name.endswith("serialized_exported_program.json") or "/models/model.json" in f"/{name}",
        Other(
            "a program of torch.export (.pt2)",
            'export it to ONNX: torch.onnx.export(torch.export.load(FILE), f="model.onnx")',
        ),
    ),
    (lambda name: name.endswith("saved_model.pb"), Other("an archive of a SavedModel", f"{_UNPACK}; {_SAVED_MODEL}")),
    (lambda name: name.endswith(".mlmodel"), Other("a model of Core ML", "convert the model that it was made from")),
    (lambda name: name.endswith(".npy"), Other("an archive of numpy (.npz)", "")),
)
"""What an archive in zip is by the name of a member; the first row that fits decides."""
_ZIP = b"PK\x03\x04"
_MEMBERS_READ = 1000


def recognised(data: bytes) -> Other | None:
    """Return what a file is by the way that its contents begin, or None if it is nothing that is known.

    ONNX has no sign of its own, and text that is no page, such as JSON or CSV, is not told apart either.
    """
    if data.startswith(_ZIP):
        return _archive(data)
    for kind in _KINDS:
        if data.startswith(kind.fits) if isinstance(kind.fits, bytes) else kind.fits(data):
            return Other(kind.what, kind.remedy)
    return None


def _archive(data: bytes) -> Other:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()[:_MEMBERS_READ]
    except (zipfile.BadZipFile, ValueError, OSError, RuntimeError):  # it is damaged or cut off
        names = []
    for fits, other in _MEMBERS:
        if any(map(fits, names)):
            return other
    return Other("an archive in zip", f"{_UNPACK}: unzip")
