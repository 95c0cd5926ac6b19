# SPDX-License-Identifier: Apache-2.0
"""Folders of recordings (.wav) as inputs of a model: their samples, or features by TFLM's signal library."""

from __future__ import annotations

import os
import struct
import wave
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import numpy as np

from ferrule.budget import Resource, afford
from ferrule.errors import InputError
from ferrule.evaluation.data.audio_features import (
    int8_features,
    preprocessor,
    real_features,
    stride_samples,
    window_samples,
)
from ferrule.evaluation.data.conversion import Conversion, batch_shape
from ferrule.evaluation.data.file_errors import input_errors
from ferrule.evaluation.data.folders import Listing
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.reading import open_file
from ferrule.running.data_settings import AudioSettings, DataSettings

_HELD_PER_BYTE = 4
"""Bytes of memory for one of a recording: its values are padded, and may become float32."""
_INT8_SCALE = 26 / 256
_RAW = "raw"


class SoundSource:
    """Samples of recordings, which are read and analysed when they are asked for."""

    form = "wav"

    def __init__(self, listing: Listing, info: TensorInfo, settings: DataSettings) -> None:
        """Take the files of a folder, of which the headers are read.

        Raises:
            InputError: a file is no recording or does not fit the settings, or the input does not.
            FerruleError: the settings are wrong.
        """
        self._listing, self._settings = listing, settings.audio
        self._conversion = Conversion.of(info, settings)
        self._output = self._chosen_output()
        self._network = preprocessor(settings.audio) if settings.audio.features == "micro" else None
        self._rows = self._rows_per_sample()
        self._pieces = [self._pieces_of(path) for path in listing.files]
        self._starts = np.concatenate([[0], np.cumsum(self._pieces)]).tolist()

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def files(self) -> Array:
        """The file of each sample, int64: its place in the listing."""
        return np.repeat(np.arange(len(self._pieces), dtype=np.int64), self._pieces)

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done to each sample."""
        audio = self._settings
        steps = [*self._listing.steps, f"recordings of {audio.sample_rate_hz} Hz"]
        if audio.bits == "any":
            steps.append("the upper 16 bits of each value")
        if audio.channel is not None:
            steps.append(f"channel {audio.channel} of those with several")
        fits = {
            "pad": "zeros after the end of short ones",
            "first": "the beginning of long ones",
            "pieces": "the whole pieces of long ones",
        }
        steps += [fits[each] for each in (audio.shorter, audio.longer) if each in fits]
        if self._network is not None:
            steps.append(
                f"TFLM's audio preprocessor: {audio.channels} channels, {audio.window_ms} ms every {audio.stride_ms} ms"
            )
        steps += {
            "int8": ["int8 as in micro_speech"],
            "float": ["divided by 25.6"],
            "samples": [],
            "real": ["divided by 32768"],
        }[self._output]
        return (*steps, *(self._conversion.steps("real") if self._output in {"float", "real"} else ()))

    def name(self, index: int) -> str:
        """Return the file's path in the folder, with the number of the piece if there can be several."""
        file = bisect_right(self._starts, index) - 1
        suffix = f"#{index - self._starts[file]}" if self._settings.longer == "pieces" else ""
        return f"{self._listing.names[file]}{suffix}"

    def read(self, indices: Sequence[int]) -> list[Array]:
        """Return samples; see `Source`. MissingToolError: this machine has no compiler for CpuAcc's kernels."""
        info = self._conversion.info
        places = [(bisect_right(self._starts, index) - 1, index) for index in indices]
        parts = []
        runs = [(file, [index for _, index in run]) for file, run in groupby(places, lambda place: place[0])]
        for values, (file, run) in zip(self._values([file for file, _ in runs]), runs, strict=True):
            firsts = [(index - self._starts[file]) * self._rows for index in run]
            parts += [values[first : first + self._rows] for first in firsts]
        stacked = np.stack(parts).reshape(batch_shape(info, len(indices)))
        if self._output in {"int8", "samples"}:
            return [np.ascontiguousarray(stacked, info.dtype.numpy)]
        return [self._conversion.stored(stacked, "real", "the recordings")]

    def _chosen_output(self) -> str:
        """Return how values become the input: `int8` or `float` features, `samples`, or `real` samples."""
        info, audio, conversion = self._conversion.info, self._settings, self._conversion
        if audio.features == _RAW:
            plain = info.dtype is DataType.INT16 and info.quantization is None and not conversion.normalisation
            return "samples" if plain else "real"
        quantization = info.quantization
        stored = (
            info.dtype is DataType.INT8
            and quantization is not None
            and quantization.zero_points == (-128,)
            and abs(quantization.scale / _INT8_SCALE - 1) < 0.01
            and not conversion.normalisation
        )
        if audio.output == "int8" and not stored:
            raise InputError(
                f"the input '{info.name}' ({info}) does not take micro_speech's int8 features, which have scale "
                f"{_INT8_SCALE:.4g} within 1 % and zero point -128, without scale, offset, mean and std in [data]",
                hint='set output = "float" in [data.audio]: features are then quantised for the input',
            )
        return audio.output or ("int8" if stored else "float")

    def _rows_per_sample(self) -> int:
        """Return how many rows of `_values` a sample has: frames of features, or values of sound."""
        info = self._conversion.info
        if not info.shape or info.shape[0] != 1:
            raise InputError(f"the input '{info.name}' has the shape {list(info.shape)}, and recordings need [1, ...]")
        if self._network is None:
            return info.elements
        channels = self._settings.channels
        if info.elements % channels:
            raise InputError(
                f"the input '{info.name}' has {info.elements} elements, and frames have {channels} channels each",
                hint='set channels in [data.audio], or features = "raw" for a model that takes the sound itself',
            )
        return info.elements // channels

    def _needed(self) -> int:
        """Return the values of sound of one sample."""
        if self._network is None:
            return self._rows
        return window_samples(self._settings) + (self._rows - 1) * stride_samples(self._settings)

    def _pieces_of(self, path: Path) -> int:
        """Return how many samples a recording has; InputError if it does not fit."""
        audio, needed = self._settings, self._needed()
        with _opened(path) as (file, size_bytes):
            _check(path, file, audio, size_bytes)
            length = file.getnframes()
        rows = length
        if self._network is not None:
            rows = max((length - window_samples(audio)) // stride_samples(audio) + 1, 0)
        if rows < self._rows:
            if audio.shorter == "refuse":
                raise InputError(
                    f"{path} has {length} values, and a sample needs {needed}",
                    hint='set shorter = "pad" in [data.audio] to add zeros after the end',
                )
            return 1
        if rows > self._rows and audio.longer == "refuse":
            raise InputError(
                f"{path} has {length} values, and a sample needs {needed}",
                hint='set longer = "first" in [data.audio] to take the beginning, or "pieces" for several samples',
            )
        return rows // self._rows if audio.longer == "pieces" else 1

    def _values(self, files: Sequence[int]) -> Iterator[Array]:
        """Yield the rows of recordings: frames of features [rows, channels], or values of sound [rows]."""
        sounds = (_padded(read_sound(self._listing.files[file], self._settings), self._needed()) for file in files)
        if self._network is None:
            for sound in sounds:
                yield sound if self._output == "samples" else sound.astype(np.float32) / np.float32(32768)
            return
        from ferrule.evaluation.host import HostRuns

        with HostRuns(self._network) as host:
            for file, sound in zip(files, sounds, strict=True):
                size, step = window_samples(self._settings), stride_samples(self._settings)
                rows = self._pieces[file] * self._rows
                windows = np.lib.stride_tricks.sliding_window_view(sound, size)[::step][:rows]
                afford(Resource.BYTES, 2 * windows.nbytes, f"{self._listing.names[file]}, divided into windows,")
                (features,) = host.run([np.ascontiguousarray(windows)], [True, *[False] * (rows - 1)])
                shaped = features.reshape(rows, self._settings.channels)
                yield int8_features(shaped) if self._output == "int8" else real_features(shaped)


def read_sound(path: Path, settings: AudioSettings) -> Array:
    """Return the values of a recording, int16: of its only channel, or the one that the settings name.

    Raises:
        InputError: it cannot be read, is cut off or no PCM, or has another rate, width or number of channels.
    """
    with _opened(path) as (file, size_bytes):
        _check(path, file, settings, size_bytes)
        count, width, channels = file.getnframes(), file.getsampwidth(), file.getnchannels()
        data = file.readframes(count)
    if len(data) != count * width * channels:
        stated = count * width * channels
        raise InputError(f"{path} is cut off: it has {len(data)} bytes of sound, and its header states {stated}")
    values = np.frombuffer(data, np.uint8).reshape(count, channels, width)[:, settings.channel or 0]
    if width == 1:
        return ((values[:, 0].astype(np.int16) - 128) * 256).astype(np.int16)
    upper: Array = np.ascontiguousarray(values[:, -2:]).view("<i2").reshape(-1)
    return upper.astype(np.int16, copy=False)


def _check(path: Path, file: wave.Wave_read, settings: AudioSettings, size_bytes: int) -> None:
    bits, rate, channels = 8 * file.getsampwidth(), file.getframerate(), file.getnchannels()
    if bits != 16 and (settings.bits != "any" or bits > 32):
        raise InputError(
            f"{path} has {bits} bits per value, expected 16",
            hint='set bits = "any" in [data.audio] to take the upper 16 bits of 8, 24 or 32',
        )
    if rate != settings.sample_rate_hz:
        raise InputError(
            f"{path} has a rate of {rate} Hz, expected {settings.sample_rate_hz}",
            hint="set sample_rate_hz in [data.audio] if the model was trained for this rate; Ferrule does not resample",
        )
    wanted = settings.channel
    if wanted is None and channels != 1:
        raise InputError(f"{path} has {channels} channels, expected 1", hint="set channel in [data.audio] to take one")
    if wanted is not None and channels > 1 and wanted >= channels:
        raise InputError(f"{path} has the channels 0 to {channels - 1}, and [data.audio] channel is {wanted}")
    stated = file.getnframes() * file.getsampwidth() * channels
    if stated > size_bytes:
        raise InputError(f"{path} is cut off: it has {size_bytes} bytes, and its header states {stated} bytes of sound")
    afford(Resource.BYTES, _HELD_PER_BYTE * stated, str(path))


def _padded(sound: Array, size: int) -> Array:
    return sound if len(sound) >= size else np.concatenate([sound, np.zeros(size - len(sound), sound.dtype)])


@contextmanager
def _opened(path: Path) -> Iterator[tuple[wave.Wave_read, int]]:
    kinds = (wave.Error, EOFError, ValueError, struct.error, OverflowError, ZeroDivisionError, RuntimeError)
    with (
        input_errors(path, "is no recording in PCM", *kinds, hint="expected a .wav file of whole numbers"),
        open_file(path) as stream,
        wave.open(stream) as file,
    ):
        yield file, os.fstat(stream.fileno()).st_size
