# SPDX-License-Identifier: Apache-2.0
"""Folders of recordings: features are those of TFLM's audio preprocessor, and no recording is changed silently."""

from __future__ import annotations

import struct
import wave
from pathlib import Path

import numpy as np
import pytest
from needs import lacking_variable, require_variable
from numpy.testing import assert_array_equal
from oracle import tflm_sequence
from public_models import collection, located

from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.data import AudioSettings, DataSet, DataSettings, open_data
from ferrule.evaluation.data.audio_features import int8_features, preprocessor, real_features
from ferrule.evaluation.data.sounds import read_sound
from ferrule.graph import Array, DataType, Quantization, TensorInfo

OUTPUT = TensorInfo("out", (1, 2), DataType.FLOAT32)
SPEECH = TensorInfo("x", (1, 80), DataType.INT8, quantization=Quantization.of(0.1017, -128))
"""Two frames of 40 channels, as micro_speech has 49."""
WINDOW, STRIDE = 480, 320


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sound(count: int) -> Array:
    """Return a sound that falls silent after 960 values; it is made of whole numbers only."""
    index = np.arange(count, dtype=np.int64)
    values = (index * index * 37 // 50 % 6001 - 3000).astype(np.int16)
    values[960:] //= 8
    return values


def record(
    path: str,
    values: Array | bytes,
    *,
    rate: int = 16_000,
    width: int = 2,
    channels: int = 1,
    stated: int | None = None,
) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with wave.open(path, "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(values if isinstance(values, bytes) else values.astype("<i2").tobytes())


def opened(
    input_: TensorInfo, labels: str | None = None, *, sequence: str | None = None, limit: int | None = None,
    **audio: object,
) -> DataSet:  # fmt: skip
    settings = DataSettings(audio=AudioSettings(**audio))  # type: ignore[arg-type]
    return open_data("d", labels, [input_], [OUTPUT], settings, limit, sequence=sequence)


def frames(values: Array) -> Array:
    """Return the features of a sound, computed one window after another by the numpy kernels."""
    network = preprocessor(AudioSettings())
    state = network.initial_state()
    starts = range(0, len(values) - WINDOW + 1, STRIDE)
    return np.stack([network.run([values[start : start + WINDOW][None]], state=state)[0] for start in starts])


FRAMES_OF_TFLM = np.fromstring(
    """
     100   79   93   76   90   49   40  -18   34   15   58    8   76   25   76   41   82   77  106   91
     116   95  118   92  114   85   98   78  101   88  110   91  114   90  111   91  108   89  113   88
      81   57   58   42   90   63   72   42   80   48   49   13   55   -8   57   65   90   -8   62  -50
      56   44   67    4   80   74  112   93  116   88   93   53   77   67   93   73  101   81  106   83
      -8 -128 -128 -128 -128 -128 -128 -128 -128 -128 -128 -128 -128 -128 -128 -128  -43 -128  -23 -128
    -128 -128 -128 -128 -128 -128 -128 -128 -128 -128  -14  -12   68   32   56 -128   15 -128   24 -128
    """,
    np.int8,
    sep=" ",
).reshape(3, 40)
"""Frames 1 to 3 of `sound`, as the interpreter of the package tflite-micro computed them from the file
audio_preprocessor_int8.tflite of TFLM's micro_speech (SHA-256 278949d1...), with the state of frame 0."""


def test_features_are_those_of_micro_speech() -> None:
    found = int8_features(frames(sound(WINDOW + 3 * STRIDE)))
    assert_array_equal(found[1:], FRAMES_OF_TFLM)


def test_the_network_is_tflm_s_preprocessor() -> None:
    """Compare the features with those of TFLM's own file, for noise of all loudnesses."""
    models = [model for model in collection() if model.path.endswith("audio_preprocessor_int8.tflite")]
    paths = list(located(models, require_variable("FERRULE_PUBLIC_MODELS")).values())
    if not paths:
        lacking_variable("FERRULE_PUBLIC_MODELS", "audio_preprocessor_int8.tflite")
    noise = (
        np.random.default_rng(0).integers(-(2**15), 2**15, WINDOW + 40 * STRIDE) >> np.arange(13_280) % 13_000 // 1000
    )
    values = noise.astype(np.int16)
    windows = [[values[start : start + WINDOW][None]] for start in range(0, 41 * STRIDE, STRIDE)]
    expected = [outputs[0] for outputs in tflm_sequence(paths[0].read_bytes(), windows)]
    assert_array_equal(int8_features(frames(values)), expected)


def test_recordings_become_features() -> None:
    values = sound(WINDOW + STRIDE)
    record("d/no/a.wav", values)
    record("d/yes/b.wav", -values)
    data = opened(SPEECH)
    (chunk,) = data.chunks(10)
    assert_array_equal(chunk.inputs[0][0], int8_features(frames(values)).ravel())
    assert_array_equal(chunk.inputs[0][1], int8_features(frames(-values)).ravel())
    assert chunk.labels is not None
    assert (chunk.labels.tolist(), chunk.names, data.part.form) == ([0, 1], ("no/a.wav", "yes/b.wav"), "wav")
    assert data.part.preparation[-1] == "int8 as in micro_speech"
    assert_array_equal(data.take([1, 0]).inputs[0], chunk.inputs[0][::-1])
    real = TensorInfo("x", (1, 2, 40, 1), DataType.FLOAT32)
    assert_array_equal(opened(real).take([0]).inputs[0].reshape(2, 40), real_features(frames(values)))
    with pytest.raises(InputError, match="does not take micro_speech's int8 features") as caught:
        opened(real, output="int8")
    assert 'output = "float"' in str(caught.value.hint)


def test_recordings_are_pieces_of_sequences() -> None:
    long, short = sound(WINDOW + 4 * STRIDE), sound(WINDOW + STRIDE)
    record("d/no/a.wav", long)
    record("d/yes/b.wav", short)
    data = opened(SPEECH, longer="pieces", sequence="files")
    (chunk,) = data.chunks(10)
    assert chunk.names == ("no/a.wav#0", "no/a.wav#1", "yes/b.wav#0")
    assert chunk.sequences is not None
    assert chunk.labels is not None
    assert (chunk.sequences.tolist(), chunk.labels.tolist()) == ([0, 0, 1], [0, 0, 1])
    assert_array_equal(chunk.inputs[0][:2].reshape(4, 40), int8_features(frames(long))[:4])
    assert_array_equal(data.take([1]).inputs[0], chunk.inputs[0][1:2])
    Path("labels.csv").write_text("file,label\nyes/b.wav,5\nno/a.wav,7\n", encoding="utf-8")
    (chunk,) = opened(SPEECH, "labels.csv", longer="pieces").chunks(10)
    assert chunk.labels is not None
    assert (chunk.labels.tolist(), chunk.sequences) == ([7, 7, 5], None)
    assert_array_equal(opened(SPEECH, longer="first").take([0]).inputs[0][0], chunk.inputs[0][0])


def test_a_model_may_take_the_sound_itself() -> None:
    values = sound(100)
    record("d/a.wav", values)
    plain = TensorInfo("x", (1, 100), DataType.INT16)
    assert_array_equal(opened(plain, features="raw").take([0]).inputs[0][0], values)
    real = TensorInfo("x", (1, 100, 1), DataType.FLOAT32)
    assert_array_equal(opened(real, features="raw").take([0]).inputs[0].ravel(), values.astype(np.float32) / 32768)
    longer = TensorInfo("x", (1, 150), DataType.INT16)
    padded = opened(longer, features="raw", shorter="pad").take([0]).inputs[0][0]
    assert_array_equal(padded, [*values, *[0] * 50])
    with pytest.raises(InputError, match=r"a.wav has 100 values, and a sample needs 150") as caught:
        opened(longer, features="raw")
    assert 'shorter = "pad"' in str(caught.value.hint)
    half = TensorInfo("x", (1, 50), DataType.INT16)
    with pytest.raises(InputError, match=r"a.wav has 100 values, and a sample needs 50"):
        opened(half, features="raw")
    (chunk,) = opened(half, features="raw", longer="pieces").chunks(9)
    assert_array_equal(chunk.inputs[0].ravel(), values)


def test_other_widths_and_channels_need_a_rule() -> None:
    plain = TensorInfo("x", (1, 2), DataType.INT16)
    for width, data, expected in [
        (1, bytes([0, 255]), [-32768, 32512]),
        (3, b"\x11\x22\x33\xff\x00\x80", [0x3322, -32768]),
        (4, b"\x11\x22\x33\x44\xff\xff\xff\xff", [0x4433, -1]),
    ]:
        record("d/a.wav", data, width=width)
        with pytest.raises(InputError, match=f"a.wav has {8 * width} bits per value, expected 16"):
            opened(plain, features="raw")
        assert opened(plain, features="raw", bits="any").take([0]).inputs[0][0].tolist() == expected
    record("d/a.wav", np.array([1, 10, 2, 20]), channels=2)
    with pytest.raises(InputError, match=r"a.wav has 2 channels, expected 1"):
        opened(plain, features="raw")
    assert opened(plain, features="raw", channel=1).take([0]).inputs[0][0].tolist() == [10, 20]
    with pytest.raises(InputError, match=r"has the channels 0 to 1, and .data.audio. channel is 2"):
        opened(plain, features="raw", channel=2)
    record("d/a.wav", np.array([1, 2]), rate=8000)
    with pytest.raises(InputError, match=r"a.wav has a rate of 8000 Hz, expected 16000"):
        opened(plain, features="raw")


def _riff(chunks: bytes, size: int = 1000) -> bytes:
    return b"RIFF" + struct.pack("<I", size) + b"WAVE" + chunks


def _format(code: int, channels: int = 1, bits: int = 16) -> bytes:
    return b"fmt " + struct.pack("<IHHIIHH", 16, code, channels, 16_000, 32_000, 2, bits)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "is no recording in PCM: it ends too early"),
        (b"RIFX" + bytes(40), "is no recording in PCM"),
        (_riff(b""), "is no recording in PCM"),
        (_riff(_format(3) + b"data" + struct.pack("<I", 4) + bytes(4)), "unknown format: 3"),
        (_riff(_format(1, channels=0) + b"data" + struct.pack("<I", 4) + bytes(4)), "is no recording in PCM"),
        (_riff(_format(1, bits=0) + b"data" + struct.pack("<I", 4) + bytes(4)), "is no recording in PCM"),
        (_riff(_format(1) + b"data" + struct.pack("<I", 2**32 - 2), 2**32 - 1), "is cut off: it has"),
        (_riff(_format(1) + b"data" + struct.pack("<I", 200) + bytes(180)), "is cut off: it has 180 bytes of sound"),
        (_riff(_format(1) + b"data" + struct.pack("<I", 20_000)), "is cut off: it has 44 bytes, .* states 20000"),
        (_riff(_format(1, channels=65535) + b"data" + struct.pack("<I", 200) + bytes(200)), "has 65535 channels"),
    ],
    ids=["empty", "other", "chunks", "floats", "channels", "bits", "huge", "cut", "header", "many"],
)
def test_a_hostile_recording_is_named(data: bytes, text: str) -> None:
    Path("d").mkdir()
    Path("d/a.wav").write_bytes(data)
    plain = TensorInfo("x", (1, 2), DataType.INT16)
    with pytest.raises(InputError, match=text) as caught:
        opened(plain, features="raw", longer="first").take([0])
    assert "a.wav" in str(caught.value)


@pytest.mark.parametrize(
    ("audio", "text"),
    [
        ({"lower_hz": 8000.0}, "lower_hz 8000 and upper_hz 7500"),
        ({"upper_hz": 8000.0}, "expected lower < upper < 8000"),
        ({"channels": 41}, "has 80 elements, and frames have 41 channels"),
        ({"window_ms": 1000, "sample_rate_hz": 192_000}, "a window of 192000 samples is too long"),
        ({"smoothing_bits": 2}, "smoothing_bits 2 is too small"),
    ],
)
def test_settings_that_fit_no_preprocessor_are_named(audio: dict[str, object], text: str) -> None:
    record("d/a.wav", sound(WINDOW + STRIDE))
    with pytest.raises(FerruleError, match=text):
        opened(SPEECH, **audio)


def test_a_recording_is_read_as_it_is() -> None:
    values = np.array([-32768, 0, 32767], np.int16)
    record("d/a.wav", values)
    assert_array_equal(read_sound(Path("d/a.wav"), AudioSettings()), values)
