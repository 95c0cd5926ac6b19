# SPDX-License-Identifier: Apache-2.0
"""Recognises files that are something else than what a reader expects, and knows what to do with them."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ferrule._frozen import positional

TFLITE = "a model of TensorFlow Lite"
PROGRAM = "a program of torch.export (.pt2)"


class Other(NamedTuple):
    """What a file is."""

    what: str
    """With its article, after "it is"."""
    remedy: str
    """What to do; empty if nothing is known beside giving another file. FILE stands for its path, NAME for its name
    without the suffix."""

    def remedy_for(self, path: Path | None) -> str:
        """Return what to do with the file at a path; a name that a line to type would have to quote is left out."""
        if path is None or not _PLAIN.fullmatch(str(path)):
            return self.remedy
        return self.remedy.replace("FILE", str(path)).replace("NAME", path.stem)


_PLAIN = re.compile(r"[\w./+-]+")
_FETCH = "fetch the file itself: git lfs pull"
_ANNEX = "fetch the file itself: git annex get"
_DOWNLOAD = "download the file itself, by the link to its raw contents"
_MODULE = "ferrule.from_torch(module, example)"
_TORCH = (
    f"type in Python, where its class is: module.load_state_dict(torch.load('FILE')); {_MODULE}; or, of a module that "
    "was saved whole: module = torch.load('FILE', weights_only=False)"
)
_SCRIPT = (
    "type in Python: torch.onnx.export(torch.jit.load('FILE').eval(), (example,), 'NAME.onnx', dynamo=False); or from "
    f"its own module: {_MODULE}"
)
_KERAS = (
    "type: python -c \"import keras; model = keras.saving.load_model('FILE'); model(model.inputs); "  # builds it anew
    "model.export('NAME.onnx', format='onnx')\"; of weights alone, load them into their model first: "
    "model.load_weights('FILE')"
)
_SAVED_MODEL = (
    'type: python -c "import pathlib, tensorflow; '
    "pathlib.Path('NAME.tflite').write_bytes("
    "tensorflow.lite.TFLiteConverter.from_saved_model('FILE').convert())\""
)
_FOLDER = (
    "give its folder to TensorFlow's converter: tensorflow.lite.TFLiteConverter.from_saved_model(FOLDER).convert()"
)
_FROZEN = (
    "type, with the names of its tensors: python -m tf2onnx.convert --graphdef FILE --inputs INPUT:0 "
    "--outputs OUTPUT:0 --output NAME.onnx"
)
_WEIGHTS = f"it has weights without the network: load it into the module that it belongs to, and {_MODULE}"
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
        f"it is compiled for another runtime; type in Python, with the module that it was made from: {_MODULE}",
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
        lambda data: (  # storages follow the pickles of PyTorch before 1.6, of which the first is a number of its own
            data.startswith(b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
            or (data[:1] == b"\x80" and data[1:2] in {b"\2", b"\3", b"\4", b"\5"} and data.endswith(b"."))
        ),
    ),
    _Kind(
        "a model of onnxruntime's own format (.ort)", "give the .onnx file from which it was made", _magic(b"ORTM", 4)
    ),
    _Kind(
        "a SavedModel of TensorFlow",  # a message with its version and a graph that has the tag for serving
        _FOLDER,
        lambda data: data[:3] == b"\x08\x01\x12" and b"\x22\x05serve" in data[: 1 << 16],
    ),
    _Kind(
        "a frozen graph of TensorFlow (.pb)",  # a message of nodes, each of which begins with its name and operator
        _FROZEN,
        lambda data: (
            data[:1] == b"\n" and any(each in data[:1024] for each in (b"\x12\x05Const", b"\x12\x0bPlaceholder"))
        ),
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
    _Kind(TFLITE, "", _magic(b"TFL3", 4)),
)
_MEMBERS: Sequence[tuple[Callable[[str], bool], Other]] = (
    (lambda name: name == "model.weights.h5", Other("a model of Keras (.keras)", _KERAS)),
    (
        lambda name: name.endswith("serialized_exported_program.json") or "/models/model.json" in f"/{name}",
        Other(PROGRAM, "give the path of its file"),
    ),
    (lambda name: name.endswith("/constants.pkl"), Other("a program of TorchScript (.pt)", _SCRIPT)),
    (lambda name: name.endswith("/data.pkl") or name == "data.pkl", Other("a model of PyTorch (.pt)", _TORCH)),
    (lambda name: name.endswith("saved_model.pb"), Other("an archive of a SavedModel", f"{_UNPACK}; {_FOLDER}")),
    (lambda name: name.endswith(".mlmodel"), Other("a model of Core ML", "convert the model that it was made from")),
    (lambda name: name.endswith(".npy"), Other("an archive of numpy (.npz)", "")),
)
"""What an archive in zip is by the name of a member; the first row that fits decides."""
SAVED_MODEL = Other("a SavedModel of TensorFlow", _SAVED_MODEL)
"""What a folder with a saved_model.pb is."""
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
