# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets: the files of data sets."""

from __future__ import annotations

import io
import random
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
from fuzzing import Check, Target, refused
from mutation import mutate
from needs import require_module
from text_mutation import mutate_text

from ferrule.evaluation.data import AudioSettings, DataSettings, open_data
from ferrule.graph import DataType, Quantization, TensorInfo

_INPUT = TensorInfo("x", (1, 4, 6, 3), DataType.INT8, quantization=Quantization.of(1 / 255, -128))
_ROW = TensorInfo("x", (1, 3), DataType.INT8, quantization=Quantization.of(0.5))
_SOUND = TensorInfo("x", (1, 20), DataType.INT16)
_OUTPUT = TensorInfo("y", (1, 2), DataType.FLOAT32)
_TEXTS = ("a,b,c,label\n1,2,3,0\n4.5,-6,7e1,1\n", 'a,b,c,label\n"1","2",3,yes\n\n4,5,6,no\n', "file,label\n0,1\n1,0\n")


def _of_bytes(folder: Path, name: str, seeds: list[bytes], read: Callable[[Path], object]) -> Check:
    """Return the check of a reader that gets damaged files of this name."""
    file = folder / name

    def check(choice: random.Random) -> bool:
        file.write_bytes(mutate(choice.choice(seeds), seeds, choice))
        with refused():
            read(file)
            return True
        return False

    return check


def _read(path: Path, input_: TensorInfo, settings: DataSettings, labels: str | None = None) -> None:
    data = open_data(str(path), labels, [input_], [_OUTPUT], settings, 64)
    for _ in data.chunks(16):
        pass


def _array(folder: Path) -> Check:
    values = np.arange(2 * 72, dtype=np.uint8).reshape(2, 4, 6, 3)
    seeds = []
    for array in (values.astype(np.int8), np.asfortranarray(values / 7), values.astype(">f4")):
        stream = io.BytesIO()
        np.save(stream, array)
        seeds.append(stream.getvalue())
    return _of_bytes(folder, "x.npy", seeds, lambda path: _read(path, _INPUT, DataSettings()))


def _archive(folder: Path) -> Check:
    values, seeds = np.arange(2 * 72, dtype=np.int8).reshape(2, 4, 6, 3), []
    for save in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        save(stream, x=values, y=np.array([0, 1]))
        seeds.append(stream.getvalue())
    return _of_bytes(folder, "x.npz", seeds, lambda path: _read(path, _INPUT, DataSettings(), "y"))


def _table(folder: Path) -> Check:
    file = folder / "x.csv"
    (folder / "fixed.csv").write_text("a,b,c\n1,2,3\n4,5,6\n", encoding="utf-8")

    def check(choice: random.Random) -> bool:
        file.write_bytes(mutate_text(choice.choice(_TEXTS), _TEXTS, choice))
        with refused():
            if choice.random() < 0.5:
                _read(file, _ROW, DataSettings(label="label"))
            else:
                _read(folder / "fixed.csv", _ROW, DataSettings(), str(file))
            return True
        return False

    return check


def _image(folder: Path) -> Check:
    from PIL import Image

    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    seeds = []
    for form in ("PNG", "JPEG", "BMP", "PPM", "WEBP"):
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, form)
        seeds.append(stream.getvalue())
    settings = DataSettings(scale="1/255", resize="bilinear")
    (folder / "d").mkdir(exist_ok=True)
    return _of_bytes(folder, "d/x.png", seeds, lambda path: _read(path.parent, _INPUT, settings))


def _sound(folder: Path) -> Check:
    seeds = []
    for width in (1, 2, 3, 4):
        stream = io.BytesIO()
        with wave.open(stream, "wb") as file:
            file.setparams((1, width, 16_000, 0, "NONE", ""))
            file.writeframes(bytes(range(40 * width)))
        seeds.append(stream.getvalue())
    audio = AudioSettings(features="raw", bits="any", longer="pieces", shorter="pad")
    (folder / "d").mkdir(exist_ok=True)
    return _of_bytes(folder, "d/x.wav", seeds, lambda path: _read(path.parent, _SOUND, DataSettings(audio=audio)))


TARGETS = (
    Target(name="data-npy", share=0.01, prepare=_array),
    Target(name="data-npz", share=0.02, prepare=_archive),
    Target(name="data-csv", share=0.02, prepare=_table),
    Target(name="data-images", share=0.02, prepare=_image, needs=lambda: require_module("PIL", "pip install pillow")),
    Target(name="data-wav", share=0.01, prepare=_sound),
)
