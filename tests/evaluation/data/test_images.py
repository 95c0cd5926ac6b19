# SPDX-License-Identifier: Apache-2.0
"""Folders of images: the values that a model gets, and everything that is wrong with a folder or a file."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from needs import require_module
from numpy.testing import assert_array_equal

from ferrule.errors import FerruleError, InputError, MissingToolError
from ferrule.evaluation.data import DataSet, DataSettings, images, open_data
from ferrule.graph import Array, DataType, Quantization, TensorInfo

require_module("PIL", "pip install pillow")

from PIL import Image  # noqa: E402 the tests need it

OUTPUT = TensorInfo("out", (1, 2), DataType.FLOAT32)
_GENERATOR = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def info(*shape: int, dtype: DataType = DataType.INT8, scale: float = 1 / 255, zero: int = -128) -> TensorInfo:
    return TensorInfo("x", shape, dtype, quantization=Quantization.of(scale, zero))


def picture(path: str, *shape: int, mode: str | None = None) -> Array:
    """Write an image of random pixels and return them."""
    pixels = _GENERATOR.integers(0, 256, shape).astype(np.uint8)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(path)
    return pixels


def opened(input_: TensorInfo, labels: str | None = None, **settings: object) -> DataSet:
    return open_data("d", labels, [input_], [OUTPUT], DataSettings(**settings), None)  # type: ignore[arg-type]


def test_pixels_become_stored_values() -> None:
    first, second = picture("d/cat/1.png", 4, 6, 3), picture("d/dog/0.bmp", 4, 6, 3)
    data = opened(info(1, 4, 6, 3), scale="1/255")
    (chunk,) = data.chunks(10)
    assert_array_equal(chunk.inputs[0], np.stack([first, second]).astype(np.int16) - 128)
    assert chunk.labels is not None
    assert (chunk.labels.tolist(), chunk.names) == ([0, 1], ("cat/1.png", "dog/0.bmp"))
    assert (data.classes, data.part.labels, data.part.form) == (("cat", "dog"), "folders", "images")
    assert data.part.preparation[1:] == ("value * 0.00392156863", "quantise to int8")
    assert data.part.preparation[0].startswith("decode to rgb, Pillow ")
    assert_array_equal(opened(info(1, 4, 6, 3), integers="shift").take([1]).inputs[0], chunk.inputs[0][1:])
    unsigned = info(1, 4, 6, 3, dtype=DataType.UINT8, scale=1 / 128, zero=128)
    assert_array_equal(opened(unsigned, integers="stored").take([0]).inputs[0][0], first)


@pytest.mark.parametrize(
    ("scale", "zero", "hint"),
    [
        (1 / 255, -128, 'try scale = "1/255"'),
        (2 / 255, 0, 'try scale = "1/127.5" and offset = -1'),
        (1.0, -128, 'try integers = "real"'),
        (0.1, 0, "its real values are -12.8 to 12.7"),
    ],
)
def test_what_pixels_mean_has_to_be_stated(scale: float, zero: int, hint: str) -> None:
    picture("d/a/1.png", 4, 6, 3)
    picture("d/b/1.png", 4, 6, 3)
    with pytest.raises(FerruleError, match="does not state how pixels, 0 to 255, become values") as caught:
        opened(info(1, 4, 6, 3, scale=scale, zero=zero))
    assert hint in str(caught.value.hint)


def test_channels_and_layout_follow_the_input() -> None:
    pixels = picture("d/a.png", 4, 6, 3).astype(np.int16) - 128

    def first(input_: TensorInfo, **settings: object) -> Array:
        return opened(input_, integers="shift", **settings).take([0]).inputs[0][0]

    assert_array_equal(first(info(1, 4, 6, 3), colour="bgr"), pixels[..., ::-1])
    assert_array_equal(first(info(1, 3, 4, 6)), pixels.transpose(2, 0, 1))
    grey = np.asarray(Image.open("d/a.png").convert("L")).astype(np.int16) - 128
    assert_array_equal(first(info(1, 4, 6, 1)), grey[..., None])
    assert_array_equal(first(info(1, 4, 6)), grey)
    assert_array_equal(first(info(1, 1, 4, 6)), grey[None])
    mean, std = (10.0, 20.0, 30.0), (1.0, 2.0, 4.0)
    real = ((pixels + 128) - np.float32(mean)) / np.float32(std)
    planes = info(1, 3, 4, 6, scale=1.0, zero=0)
    found = opened(planes, mean=mean, std=std).take([0]).inputs[0]
    assert_array_equal(found, planes.quantize(real.transpose(2, 0, 1)[None]))
    for shape, settings, text in [
        ((1, 4, 6, 2), {}, "an image has 1 or 3 channels, and this one 4"),
        ((1, 72), {}, "images need .1, height"),
        ((2, 4, 6, 3), {}, "images need"),
        ((1, 4, 6, 3), {"colour": "grey"}, "with 3 channels, and .data. colour is 'grey'"),
    ]:
        with pytest.raises(InputError, match=text):
            opened(info(*shape), integers="shift", **settings)


def test_sizes_change_by_pillow_s_rules_and_only_when_asked() -> None:
    picture("d/wide.png", 20, 40, 3)
    with Image.open("d/wide.png") as image:
        stretched = np.asarray(image.resize((8, 8), Image.Resampling.BILINEAR))
        covering = np.asarray(image.resize((16, 8), Image.Resampling.BICUBIC))
        larger = np.asarray(image.resize((20, 10), Image.Resampling.NEAREST))
        centre = np.asarray(image)
    small = info(1, 8, 8, 3)

    def first(**settings: object) -> Array:
        return opened(small, integers="shift", **settings).take([0]).inputs[0][0].astype(np.int16) + 128

    assert_array_equal(first(resize="bilinear"), stretched)
    assert_array_equal(first(resize="bicubic", fit="crop"), covering[:, 4:12])
    assert_array_equal(first(resize="nearest", fit="crop", shorter_side=10), larger[1:9, 6:14])
    assert_array_equal(first(fit="crop"), centre[6:14, 16:24])
    with pytest.raises(InputError, match=r"wide.png: the image has 40x20 pixels, and the model's input 8x8") as caught:
        first()
    assert 'resize = "bilinear"' in str(caught.value.hint)
    with pytest.raises(InputError, match="has 12x6 pixels"):
        first(resize="nearest", fit="crop", shorter_side=6)
    steps = opened(small, integers="shift", resize="bicubic", fit="crop").part.preparation
    assert steps[1:3] == ("resize in proportion to cover 8x8, bicubic", "cut out the centre, 8x8")


@pytest.mark.parametrize(("mode", "suffix"), [("L", "pgm"), ("P", "png"), ("1", "png"), ("LA", "png"), ("CMYK", "jpg")])
def test_every_mode_of_8_bits_is_converted(mode: str, suffix: str) -> None:
    picture(f"d/a.{suffix}", 4, 6, 3, mode=mode)
    expected = np.asarray(Image.open(f"d/a.{suffix}").convert("RGB")).astype(np.int16) - 128
    assert_array_equal(opened(info(1, 4, 6, 3), integers="shift").take([0]).inputs[0][0], expected)


def _png_header(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(bytes(3))
    chunks = [(13, header), (len(data) - 4, data)]
    packed = (struct.pack(">I", size) + chunk + struct.pack(">I", zlib.crc32(chunk)) for size, chunk in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def _deep() -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.zeros((4, 6), np.uint16)).save(stream, "PNG")
    return stream.getvalue()


def _film() -> bytes:
    stream = io.BytesIO()
    frames = [Image.fromarray(np.full((4, 6, 3), level, np.uint8)) for level in (0, 200)]
    frames[0].save(stream, "PNG", save_all=True, append_images=frames[1:])
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "is no image of a known format"),
        (b"GIF89a" + bytes(20), "is no image of a known format"),
        (_png_header(6, 4), "the image is damaged"),
        (_png_header(60_000, 60_000), "Pillow refuses the image"),
        (_png_header(10_000, 6_000), r"image of 10000x6000 pixels takes 1,200,000,000 bytes"),
        (_deep(), "Pillow's mode 'I;16', expected at most 8 bits"),
        (_film(), "is a film of 2 images"),
    ],
    ids=["empty", "other", "cut", "bomb", "large", "deep", "film"],
)
def test_a_hostile_image_is_named(data: bytes, text: str) -> None:
    picture("d/a.png", 4, 6, 3)
    Path("d/b.png").write_bytes(data)
    data_set = opened(info(1, 4, 6, 3), integers="shift")
    data_set.take([0])
    with pytest.raises(FerruleError, match=text) as caught:
        data_set.take([0, 1])
    assert "b.png" in str(caught.value)


def test_a_truncated_image_is_named() -> None:
    picture("d/a.jpg", 40, 60, 3)
    path = Path("d/a.jpg")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 4 // 5])
    with pytest.raises(InputError, match=r"a.jpg: the image is damaged: .*truncated"):
        opened(info(1, 40, 60, 3), integers="shift").take([0])


def test_folders_are_classes_in_a_stated_order() -> None:
    for name in ("b/2.png", "b/10.png", "a/x.png", "c/y.png", ".git/z.png"):
        picture(f"d/{name}", 4, 6, 3)
    Path("d/a/notes.txt").touch()
    Path("d/a/.hidden.png").touch()
    with pytest.raises(InputError, match="d has 3 classes, and the model's output has 2 values") as caught:
        opened(info(1, 4, 6, 3), integers="shift")
    assert "classes = [" in str(caught.value.hint)
    data = opened(info(1, 4, 6, 3), integers="shift", classes=("b", "a"))
    (chunk,) = data.chunks(10)
    assert chunk.names == ("b/10.png", "b/2.png", "a/x.png")
    assert chunk.labels is not None
    assert chunk.labels.tolist() == [0, 0, 1]
    assert data.part.preparation[:2] == ("folders left out: c", "1 file of other types left out")
    with pytest.raises(InputError, match="d has no folder for the class 'e'"):
        opened(info(1, 4, 6, 3), integers="shift", classes=("b", "e"))


def test_labels_of_one_folder_come_by_file() -> None:
    for name in ("1.png", "2.png"):
        picture(f"d/{name}", 4, 6, 3)
    assert opened(info(1, 4, 6, 3), integers="shift").labels is None
    Path("labels.csv").write_text("file,class\n2.png,yes\n1.png,no\n", encoding="utf-8")
    (chunk,) = opened(info(1, 4, 6, 3), "labels.csv", integers="shift").chunks(5)
    assert chunk.labels is not None
    assert chunk.labels.tolist() == [0, 1]


def test_what_is_wrong_with_a_folder_is_named() -> None:
    small = info(1, 4, 6, 3)
    Path("d").mkdir()
    with pytest.raises(InputError, match="d has no samples"):
        opened(small, integers="shift")
    picture("d/a/1.png", 4, 6, 3)
    Path("d/b").mkdir()
    with pytest.raises(InputError, match="b has no samples of the class 'b'"):
        opened(small, integers="shift")
    Path("d/b/deep").mkdir()
    with pytest.raises(InputError, match="deep is a folder in the folder of a class"):
        opened(small, integers="shift")
    Path("d/b/deep").rmdir()
    Path("d/b/loop.png").symlink_to("loop.png")
    with pytest.raises(InputError, match=r"loop.png is no file: the link leads nowhere"):
        opened(small, integers="shift")
    Path("d/b/loop.png").unlink()
    Path("d/b/round").symlink_to("../..")
    with pytest.raises(InputError, match="round is a folder in the folder"):
        opened(small, integers="shift")
    Path("d/b/round").unlink()
    Path("d/b/1.wav").touch()
    with pytest.raises(InputError, match=r"both recordings, such as 1.wav, and images, such as 1.png"):
        opened(small, integers="shift")
    picture("d/2.png", 4, 6, 3)
    with pytest.raises(InputError, match=r"d has both folders and samples, such as '2.png'"):
        opened(small, integers="shift")
    with pytest.raises(InputError, match="the model has 2 inputs"):
        open_data("d/a", None, [small, small], [OUTPUT], DataSettings(), None)


def test_without_pillow_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    picture("d/a.png", 4, 6, 3)
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(MissingToolError, match="Pillow is missing") as caught:
        opened(info(1, 4, 6, 3), integers="shift")
    assert caught.value.hint == images.REMEDY
