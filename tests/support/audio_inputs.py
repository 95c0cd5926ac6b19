# SPDX-License-Identifier: Apache-2.0
"""Sequences of inputs that models for sound get: computed from a WAV file, or from a synthetic sound like speech."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ferrule.errors import MissingToolError
from ferrule.graph import Array

if TYPE_CHECKING:
    from tflite import Tensor

RATE_HZ = 16000
_BLOCK, _HOP = 512, 128
"""Samples of a block of DTLN, and between the beginnings of two blocks."""
_FRAME = RATE_HZ // 100
"""Samples between two frames of features of TensorFlow Lite Micro's audio front end."""
_PITCH_HZ = (90, 240)
_FORMANTS_HZ = ((300, 850), (900, 2300), (2400, 3100))
_HARMONICS = 30


def write_inputs(model: bytes, kind: str, path: Path, steps: int, sound: Path | None) -> None:
    """Store `input0` of each step, computed from the sound as `kind` states and quantised as the model's input.

    - `features`: as many new frames of TensorFlow Lite Micro's audio front end as the input has;
    - `spectra`: the magnitudes of the spectrum of a block;
    - `blocks`: a block's samples, between -1 and 1;
    - `windows`: the samples of 16 bits from which the audio front end computes a frame, every 20 ms.

    A sound that is too short is repeated.

    Raises:
        MissingToolError: `features` needs a Python package that is not installed.
    """
    import tflite

    graph = tflite.Model.GetRootAs(model, 0).Subgraphs(0)
    tensor = graph.Tensors(graph.Inputs(0))
    shape = tuple(tensor.ShapeAsNumpy())
    elements = int(np.prod(shape))
    match kind:
        case "features":
            frames = elements // 40
            values = _features(samples_of(sound, (steps * frames + 3) * _FRAME))[: steps * frames]
        case "spectra":
            values = np.abs(np.fft.rfft(_blocks(sound, steps)))
        case "windows":
            values = _windows(samples_of(sound, elements + 2 * _FRAME * (steps - 1)), elements, 2 * _FRAME)
        case _:
            values = _blocks(sound, steps)
    np.savez(path, allow_pickle=False, input0=_quantized(values.reshape(steps, *shape), tensor))


def samples_of(sound: Path | None, count: int) -> Array:
    """Return `count` samples of 16 bits: of a mono WAV file with 16 kHz, repeated, or of a synthetic sound."""
    if sound is None:
        return synthetic(count)
    with wave.open(str(sound)) as file:
        if (file.getnchannels(), file.getsampwidth(), file.getframerate()) != (1, 2, RATE_HZ):
            raise ValueError(f"{sound}: expected one channel, 16 bits and {RATE_HZ} Hz")
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    return np.resize(samples, count)


def synthetic(count: int, seed: int = 1) -> Array:
    """Return a sound that resembles speech: voiced syllables with changing pitch and formants, noise, and pauses."""
    random = np.random.default_rng(seed)
    pieces: list[Array] = []
    length = 0
    while length < count:
        piece = _syllable(random, int(random.integers(RATE_HZ // 12, RATE_HZ // 3)))
        pieces += [piece, np.zeros(int(random.integers(0, RATE_HZ // 8)) if random.random() < 0.4 else 0)]
        length += len(piece) + len(pieces[-1])
    sound = np.concatenate(pieces)[:count] + random.normal(0, 0.002, count)
    return (np.clip(sound, -1, 1) * 32767).astype(np.int16)


def _syllable(random: np.random.Generator, count: int) -> Array:
    time = np.arange(count) / RATE_HZ
    envelope = np.sin(np.pi * np.arange(count) / count) * random.uniform(0.1, 0.8)
    if random.random() < 0.25:
        noise: Array = np.diff(random.normal(0, 0.3, count + 1)) * envelope
        return noise
    first, last = random.uniform(*_PITCH_HZ, 2)
    pitch = np.linspace(first, last, count)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE_HZ
    voice = np.zeros(count)
    ends = [random.uniform(*formant, 2) for formant in _FORMANTS_HZ]
    for harmonic in range(1, _HARMONICS + 1):
        gain = sum(np.exp(-(((harmonic * pitch - np.interp(time, time[[0, -1]], end)) / 120) ** 2)) for end in ends)
        voice += (gain + 0.02) / harmonic**0.5 * np.sin(harmonic * phase)
    result: Array = voice / np.abs(voice).max() * envelope
    return result


def _blocks(sound: Path | None, steps: int) -> Array:
    return _windows(samples_of(sound, _BLOCK + _HOP * (steps - 1)) / 32768, _BLOCK, _HOP)


def _windows(samples: Array, size: int, hop: int) -> Array:
    windows: Array = np.lib.stride_tricks.sliding_window_view(samples, size)[::hop]
    return windows


def _features(samples: Array) -> Array:
    """Return the frames of TensorFlow Lite Micro's audio front end, one for 10 ms, each with 40 channels."""
    try:
        from pymicro_features import MicroFrontend  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise MissingToolError(
            "the Python package pymicro-features is missing", hint="pip install pymicro-features"
        ) from None
    frontend = MicroFrontend()
    pieces = (samples[start : start + _FRAME].tobytes() for start in range(0, len(samples), _FRAME))
    frames = (frontend.process_samples(piece).features for piece in pieces)
    return np.array([frame for frame in frames if frame], np.float32)


def _quantized(values: Array, tensor: Tensor) -> Array:
    """Return values as a tensor of the file has them: float32, int16, or int8 with its scale and zero point."""
    import tflite

    if tensor.Type() != tflite.TensorType.INT8:
        return values.astype(np.float32 if tensor.Type() == tflite.TensorType.FLOAT32 else np.int16)
    quantization = tensor.Quantization()
    scaled = np.round(values / np.float32(quantization.Scale(0))) + quantization.ZeroPoint(0)
    limits = np.iinfo(np.int8)
    result: Array = np.clip(scaled, limits.min, limits.max).astype(np.int8)
    return result
