# SPDX-License-Identifier: Apache-2.0
"""Folders of images as inputs of a model. Pillow decodes and resizes them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ferrule._frozen import frozen
from ferrule.budget import Resource, afford
from ferrule.errors import FerruleError, InputError, MissingToolError
from ferrule.evaluation.data.conversion import Conversion
from ferrule.evaluation.data.folders import Listing
from ferrule.graph import Array, TensorInfo
from ferrule.reading import open_file
from ferrule.running.data_settings import DataSettings

if TYPE_CHECKING:
    from PIL import Image

REMEDY = "pip install 'ferrule[data]'"
FORMATS = ("PNG", "JPEG", "BMP", "PPM", "WEBP")
"""The decoders that are tried; Pillow has others, some of which run programs."""
_PIXEL_BYTES = 20
"""What a pixel takes while an image is decoded, made one of another mode and resized."""
_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
"""Those with at most 8 bits per channel."""


@frozen
class Frame:
    """The place of an image in the input of a model."""

    height: int
    width: int
    colour: str
    """"rgb", "bgr" or "grey"."""
    channel_axis: int | None
    """In an array of samples; None if the input has no axis for it."""

    @classmethod
    def of(cls, info: TensorInfo, settings: DataSettings) -> Frame:
        """Return that of an input; InputError if its shape is no image's."""
        shape = info.shape
        problem = f"the input '{info.name}' has the shape {list(shape)}"
        if len(shape) not in {3, 4} or shape[0] != 1:
            raise InputError(f"{problem}, and images need [1, height, width, channels] or [1, channels, height, width]")
        if len(shape) == 3:
            axis, channels, (height, width) = None, 1, shape[1:]
        else:
            layout = settings.layout or ("nhwc" if shape[3] in {1, 3} else "nchw")
            axis = 3 if layout == "nhwc" else 1
            channels = shape[axis]
            height, width = [shape[index] for index in (1, 2, 3) if index != axis]
        if channels not in {1, 3}:
            raise InputError(f"{problem}: an image has 1 or 3 channels, and this one {channels}")
        colour = settings.colour or ("rgb" if channels == 3 else "grey")
        if (colour == "grey") != (channels == 1):
            raise InputError(f"{problem} with {channels} channels, and [data] colour is '{colour}'")
        return cls(height=height, width=width, colour=colour, channel_axis=axis)


class ImageSource:
    """Samples of image files, which are decoded when they are read."""

    form = "images"

    def __init__(self, listing: Listing, info: TensorInfo, settings: DataSettings) -> None:
        """Take the files of a folder.

        Raises:
            InputError: the input is no image, or the settings do not state what pixels mean.
            MissingToolError: Pillow is not installed.
        """
        self._listing, self._settings = listing, settings
        self._frame = Frame.of(info, settings)
        try:
            import PIL
        except ImportError as error:
            raise MissingToolError("the Python package Pillow is missing, which images need", hint=REMEDY) from error
        self._version = PIL.__version__
        conversion = Conversion.of(info, settings)
        if conversion.integers is None:
            if not conversion.normalisation:
                raise FerruleError(
                    f"[data] does not state how pixels, 0 to 255, become values of the input '{info.name}' ({info})",
                    hint=_pixel_hint(info),
                )
            conversion = replace(conversion, integers="real")
        axis = self._frame.channel_axis
        self._conversion = replace(conversion, axis=-1 if axis is None else axis)
        self._rule = self._conversion.rule(np.dtype(np.uint8), f"a pixel of {listing.names[0]}")

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done to each sample."""
        frame, settings = self._frame, self._settings
        size = f"{frame.width}x{frame.height}"
        steps = [*self._listing.steps, f"decode to {frame.colour}, Pillow {self._version}"]
        if settings.resize is not None and settings.fit == "stretch":
            steps.append(f"resize to {size}, {settings.resize}")
        elif settings.resize is not None:
            side = "" if settings.shorter_side is None else f" with a shorter side of {settings.shorter_side}"
            steps.append(f"resize in proportion{side or f' to cover {size}'}, {settings.resize}")
        if settings.fit == "crop":
            steps.append(f"cut out the centre, {size}")
        if frame.channel_axis == 1:
            steps.append("channels first")
        return (*steps, *self._conversion.steps(self._rule))

    def __len__(self) -> int:
        return len(self._listing.files)

    def name(self, index: int) -> str:
        """Return the file's path in the folder."""
        return self._listing.names[index]

    def read(self, indices: Sequence[int]) -> list[Array]:
        """Return samples; see `Source`."""
        frame, info = self._frame, self._conversion.info
        pixels = np.stack([read_pixels(self._listing.files[index], frame, self._settings) for index in indices])
        if frame.channel_axis == 1:
            pixels = pixels.transpose(0, 3, 1, 2)
        pixels = pixels.reshape(len(indices), *info.shape[1:])
        where = self._listing.names[indices[0]] if len(indices) == 1 else "the images"
        return [self._conversion.stored(pixels, self._rule, where)]


def read_pixels(path: Path, frame: Frame, settings: DataSettings) -> Array:
    """Return an image, uint8 [height, width, channels], decoded and brought to the size of the frame.

    Raises:
        BudgetError: the image has more pixels than the present budget allows.
        InputError: the file cannot be read or is damaged, the image has more than 8 bits per channel, is a film, or
            has another size and the settings do not state how to change it.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_file(path) as file, Image.open(file, formats=FORMATS) as image:
                _check(path, image)
                decoded = _fitted(path, image.convert("L" if frame.colour == "grey" else "RGB"), frame, settings)
    except FerruleError:
        raise
    except Image.DecompressionBombError as error:
        raise InputError(f"{path}: Pillow refuses the image: {error}") from error
    except UnidentifiedImageError as error:
        raise InputError(f"{path}: is no image of a known format", hint=f"known: {', '.join(FORMATS)}") from error
    except Exception as error:
        raise InputError(f"{path}: the image is damaged: {str(error).partition(chr(10))[0]}") from error
    pixels: Array = np.asarray(decoded, np.uint8).reshape(frame.height, frame.width, -1)
    return pixels[:, :, ::-1] if frame.colour == "bgr" else pixels


def _check(path: Path, image: Image.Image) -> None:
    width, height = image.size
    afford(Resource.BYTES, _PIXEL_BYTES * width * height, f"{path}: the image of {width}x{height} pixels")
    if getattr(image, "n_frames", 1) > 1:
        raise InputError(f"{path}: is a film of {getattr(image, 'n_frames', 1)} images, expected one")
    if image.mode not in _MODES:
        raise InputError(
            f"{path}: has pixels of Pillow's mode '{image.mode}', expected at most 8 bits per channel",
            hint="convert the data to .npy for other kinds of pixels",
        )


def _fitted(path: Path, image: Image.Image, frame: Frame, settings: DataSettings) -> Image.Image:
    from PIL import Image

    wanted = (frame.width, frame.height)
    if settings.resize is not None:
        size = wanted if settings.fit == "stretch" else _covering(image.size, wanted, settings.shorter_side)
        what = f"{path}: the image, in proportion {size[0]}x{size[1]} pixels,"
        afford(Resource.BYTES, _PIXEL_BYTES * size[0] * size[1], what)
        if size != image.size:
            image = image.resize(size, Image.Resampling[settings.resize.upper()])
    if image.size == wanted:
        return image
    width, height = image.size
    if settings.fit == "crop" and width >= wanted[0] and height >= wanted[1]:
        left, top = (width - wanted[0]) // 2, (height - wanted[1]) // 2
        return image.crop((left, top, left + wanted[0], top + wanted[1]))
    raise InputError(
        f"{path}: the image has {width}x{height} pixels, and the model's input {wanted[0]}x{wanted[1]}",
        hint='state how to resize it, in [data]: resize = "bilinear", and fit = "crop" to keep its proportions',
    )


def _covering(size: tuple[int, int], wanted: tuple[int, int], shorter_side: int | None) -> tuple[int, int]:
    """Return an image's size in proportion: with this shorter side, or the smallest that covers the wanted one."""
    width, height = size
    if shorter_side is not None:
        shorter = min(size)
        return round(width * shorter_side / shorter), round(height * shorter_side / shorter)
    scale = max(wanted[0] / width, wanted[1] / height)
    return max(round(width * scale), wanted[0]), max(round(height * scale), wanted[1])


def _pixel_hint(info: TensorInfo) -> str:
    """Return settings that suit the real range of an input."""
    if info.quantization is None:
        return 'such as scale = "1/255" for 0 to 1, scale = "1/127.5" and offset = -1 for -1 to 1, or integers = "real"'
    (low, high), step = info.limits, 2 * info.scale
    known = {
        (0.0, 1.0): 'scale = "1/255"',
        (-1.0, 1.0): 'scale = "1/127.5" and offset = -1',
        (0.0, 255.0): 'integers = "real"',
    }
    fits = [text for (a, b), text in known.items() if abs(low - a) <= step and abs(high - b) <= step]
    return f"its real values are {low:.4g} to {high:.4g}" + (f": try {fits[0]}" if fits else "")
