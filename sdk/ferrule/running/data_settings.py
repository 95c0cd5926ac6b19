# SPDX-License-Identifier: Apache-2.0
"""The `[data]` table of ferrule.toml: how the samples of a data set become the inputs of a model."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Positive = Annotated[int, msgspec.Meta(ge=1)]
_PerChannel = Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]


class AudioSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[data.audio]: how recordings become inputs. The defaults are those of TFLM's micro_speech."""

    features: Literal["micro", "raw"] = "micro"
    """`micro` computes the features of TFLM's audio preprocessor; `raw` takes the samples themselves."""
    sample_rate_hz: Annotated[int, msgspec.Meta(ge=1000, le=192_000)] = 16_000
    """The rate that every recording must have."""
    channel: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None
    """The channel to take of recordings that have several; without it, they are refused."""
    bits: Literal["16", "any"] = "16"
    """`any` also takes recordings of 8, 24 and 32 bits: the upper 16 bits of each sample, 8 bits moved up."""
    shorter: Literal["refuse", "pad"] = "refuse"
    """What becomes of a recording that is too short: an error, or zeros after its end."""
    longer: Literal["refuse", "first", "pieces"] = "refuse"
    """What becomes of one that is too long: an error, its beginning, or one sample for each whole piece of it."""
    window_ms: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 30
    stride_ms: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 20
    window_bits: Annotated[int, msgspec.Meta(ge=1, le=14)] = 12
    """Bits of the fraction of the window's weights."""
    channels: Annotated[int, msgspec.Meta(ge=1, le=256)] = 40
    """Channels of the filter bank."""
    lower_hz: Annotated[float, msgspec.Meta(ge=0)] = 125.0
    upper_hz: Annotated[float, msgspec.Meta(gt=0)] = 7500.0
    even_smoothing: _Share = 0.025
    """How fast the estimate of the noise follows, in channels of even and odd numbers."""
    odd_smoothing: _Share = 0.06
    min_signal_remaining: _Share = 0.05
    """The least part of a channel that the subtraction of the noise leaves."""
    smoothing_bits: Annotated[int, msgspec.Meta(ge=0, le=14)] = 10
    pcan: bool = True
    """Whether the gain of each channel is adapted to its noise (PCAN)."""
    pcan_strength: _Share = 0.95
    pcan_offset: Annotated[float, msgspec.Meta(gt=0)] = 80.0
    pcan_gain_bits: Annotated[int, msgspec.Meta(ge=0, le=30)] = 21
    log_bits: Annotated[int, msgspec.Meta(ge=0, le=15)] = 6
    """The logarithm of each channel is multiplied by 2 to this power."""
    output: Literal["int8", "float"] | None = None
    """How features leave the preprocessor: micro_speech's int8 values, or divided by 25.6 as real values; default: int8
    for an int8 input with their scale, float for others."""


class DataSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[data]: how samples become inputs; docs/data.md describes each setting with an example."""

    classes: tuple[str, ...] | Annotated[str, msgspec.Meta(min_length=1)] | None = None
    """The names of the labels in the order of the model's output: a list, or a file, relative to this one."""
    integers: Literal["stored", "real", "shift"] | None = None
    """What integers mean: stored values of the model's type, real values, or uint8 values of an int8 input, moved by
    -128. Without it, arrays of the model's type have stored values, others are refused, and CSV has real values."""
    scale: float | str | None = None
    """real = value * scale + offset; a number, or a quotient such as "1/255"."""
    offset: float | None = None
    mean: _PerChannel | None = None
    """After that, real = (real - mean) / std, with one value or one per channel."""
    std: _PerChannel | None = None
    resize: Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"] | None = None
    """Pillow's filter for images of another size than the model's input; without it, they are refused."""
    fit: Literal["stretch", "crop"] = "stretch"
    """Whether `resize` changes an image's proportions, or cuts out its centre."""
    shorter_side: _Positive | None = None
    """With fit = "crop": the shorter side's size, in pixels, before the centre is cut out; default: the input's."""
    colour: Literal["rgb", "bgr", "grey"] | None = None
    """The order of an image's channels; default: rgb for three channels, grey for one."""
    layout: Literal["nhwc", "nchw"] | None = None
    """The order of the input's dimensions; default: nhwc if its last extent is 1 or 3, else nchw."""
    label: str | None = None
    """CSV: the column of the labels."""
    features: tuple[str, ...] = ()
    """CSV: the columns of the values, in order; default: all but those of the labels and of the sequence."""
    audio: AudioSettings = AudioSettings()
