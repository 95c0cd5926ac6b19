# SPDX-License-Identifier: Apache-2.0
"""The audio preprocessor of TensorFlow Lite Micro's example micro_speech as a network of the signal library's layers.

The tables of the window, the filter bank and the gains follow TensorFlow Lite Micro's Python code for its signal
library, in float32 where that is; logarithms and powers are computed in float64 and then rounded.
"""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np

from ferrule.errors import FerruleError, place
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.network import Network
from ferrule.operators.signal.filter_bank import SignalFilterBankDescriptor
from ferrule.running.data_settings import AudioSettings

WHERE = "[data.audio]"
_WEIGHT_BITS = 12
_ALIGNMENT = 2
_BLOCK = 4
"""Channels begin at an even frequency, and their widths are multiples of 4, as micro_speech sets them."""
_SUBTRACTION_BITS = 14
_GAIN_INTERVALS = 32
_SNR_SHIFT = 6
"""TensorFlow Lite Micro's preprocessor uses this constant whatever the settings are."""
_LEAST_FFT_BITS, _MOST_FFT_BITS = 6, 15
_LARGEST_INT16 = 2**15 - 1


def window_samples(settings: AudioSettings) -> int:
    """Return the samples of a window."""
    return settings.window_ms * settings.sample_rate_hz // 1000


def stride_samples(settings: AudioSettings) -> int:
    """Return the samples between the beginnings of two windows."""
    return max(settings.stride_ms * settings.sample_rate_hz // 1000, 1)


def preprocessor(settings: AudioSettings) -> Network:
    """Return the network from a window, int16 [1, samples], to features, int16 [channels]; its state is the noise.

    Raises:
        FerruleError: the settings fit no such network.
    """
    samples = window_samples(settings)
    fft_bits = max((samples - 1).bit_length(), _LEAST_FFT_BITS)
    if fft_bits > _MOST_FFT_BITS:
        most = 1 << _MOST_FFT_BITS
        raise FerruleError(f"{WHERE}: a window of {samples} samples is too long, expected at most {most}")
    correction = fft_bits - _WEIGHT_BITS // 2
    first, end, bank = filter_bank(settings, (1 << fft_bits) // 2 + 1)
    network = Network("audio_preprocessor")
    network.add_input(TensorInfo("window", (1, samples), DataType.INT16))
    with place(WHERE):
        weights = window(samples, settings.window_bits)
        shaped = network.add_signal_window_layer("window", weights, shift=settings.window_bits)
        scaled, bits = network.add_signal_fft_auto_scale_layer(network.add_reshape_layer(shaped, (samples,)))
        spectrum = network.add_signal_rfft_layer(scaled, fft_length=1 << fft_bits)
        energies = network.add_signal_energy_layer(spectrum, start_index=first, end_index=end)
        channels = network.add_signal_filter_bank_layer(energies, **asdict(bank))
        roots = network.add_signal_filter_bank_square_root_layer(channels, bits)
        even, odd = _smoothing(settings.even_smoothing), _smoothing(settings.odd_smoothing or settings.even_smoothing)
        rest, noise = network.add_signal_filter_bank_spectral_subtraction_layer(
            roots,
            smoothing=even,
            one_minus_smoothing=(1 << _SUBTRACTION_BITS) - even,
            alternate_smoothing=odd,
            alternate_one_minus_smoothing=(1 << _SUBTRACTION_BITS) - odd,
            min_signal_remaining=_smoothing(settings.min_signal_remaining),
            smoothing_bits=settings.smoothing_bits,
            spectral_subtraction_bits=_SUBTRACTION_BITS,
        )
        if settings.pcan:
            table = gains(settings, settings.smoothing_bits - correction)
            rest = network.add_signal_pcan_layer(rest, noise, table, snr_shift=_SNR_SHIFT)
        features = network.add_signal_filter_bank_log_layer(
            rest, input_correction_bits=correction, output_scale=1 << settings.log_bits
        )
        network.set_outputs([features])
    return network


def int8_features(features: Array) -> Array:
    """Return features as micro_speech stores them: 0 to 26 * 25.6 become -128 to 127."""
    wide = (features.astype(np.int32) * 256 + 333) // 666 - 128
    return wide.clip(-128, 127).astype(np.int8)


def real_features(features: Array) -> Array:
    """Return features as real numbers, divided by 25.6."""
    return features.astype(np.float32) / np.float32(25.6)


def window(samples: int, bits: int) -> Array:
    """Return the weights of a Hann window, int16 with `bits` bits of fraction."""
    turns = np.pi * 2 / samples * (np.arange(samples) + 0.5)
    weights: Array = np.round((0.5 - 0.5 * np.cos(turns)) * 2**bits)
    return weights.astype(np.int16)


def filter_bank(settings: AudioSettings, spectrum: int) -> tuple[int, int, SignalFilterBankDescriptor]:
    """Return the range of a spectrum of this many frequencies that is used, and the tables for it.

    The channels are at equal distances in mel.

    Raises:
        FerruleError: the limits are not in order, or the upper one is not below half the rate.
    """
    low, high, rate = settings.lower_hz, settings.upper_hz, settings.sample_rate_hz
    if not low < high < rate / 2:
        raise FerruleError(f"{WHERE}: lower_hz {low:g} and upper_hz {high:g}, expected lower < upper < {rate / 2:g}")
    step = rate / 2 / (spectrum - 1)
    lowest = _mel(low)
    bands = settings.channels + 1
    spacing = (_mel(high) - lowest) / np.float32(bands)
    centres = lowest + spacing * np.arange(1, bands + 1, dtype=np.float32)
    first = round(1 + low / step)
    starts, edges = [], first
    for centre in centres:
        starts.append(edges)
        while edges < spectrum and _mel(edges * step) <= centre:
            edges += 1
    if edges >= spectrum:
        raise FerruleError(f"{WHERE}: upper_hz {high:g} is beyond the spectrum of a window")
    return first, edges, _tables(starts, edges, centres, lowest, step)


def _tables(starts: list[int], end: int, centres: Array, lowest: np.float32, step: float) -> SignalFilterBankDescriptor:
    """Return the tables for bands that begin at these frequencies."""
    ends = [*starts[1:], end]
    # a band without a frequency is multiplied by a block of zeros at the beginning of the weights
    used = _BLOCK if any(start == stop for start, stop in zip(starts, ends, strict=True)) else 0
    places = []
    weights, unweights = [0] * used, [0] * used
    for band, (start, stop) in enumerate(zip(starts, ends, strict=True)):
        if start == stop:
            places.append((0, 0, _BLOCK))
            continue
        aligned = start // _ALIGNMENT * _ALIGNMENT
        width = -(-(stop - aligned) // _BLOCK) * _BLOCK
        places.append((aligned, len(weights), width))
        below = lowest if band == 0 else centres[band - 1]
        rising = [_share(centres[band], below, frequency * step) for frequency in range(start, stop)]
        before, after = [0] * (start - aligned), [0] * (width - (stop - aligned))
        weights += [*before, *(int(share * (1 << _WEIGHT_BITS)) for share in rising), *after]
        unweights += [*before, *(int((1 - share) * (1 << _WEIGHT_BITS)) for share in rising), *after]
    frequency_starts, weight_starts, widths = zip(*places, strict=True)
    return SignalFilterBankDescriptor(
        weights=tuple(weights),
        unweights=tuple(unweights),
        frequency_starts=frequency_starts,
        weight_starts=weight_starts,
        widths=widths,
    )


def gains(settings: AudioSettings, input_bits: int) -> Array:
    """Return PCAN's table: int16, a parabola for each power of two of the noise.

    Raises:
        FerruleError: the estimate of the noise has too few bits for the length of the window.
    """
    if input_bits < 0:
        raise FerruleError(f"{WHERE}: smoothing_bits {settings.smoothing_bits} is too small for windows of this length")
    table = [_gain(settings, input_bits, 0), _gain(settings, input_bits, 1)]
    for bits in range(2, _GAIN_INTERVALS + 1):
        begin = 1 << (bits - 1)
        end = 2 * begin - (bits == _GAIN_INTERVALS)
        constant, middle, last = (_gain(settings, input_bits, x) for x in (begin, begin + (begin >> 1), end))
        linear = 4 * (middle - constant) - (last - constant)
        table += [constant, linear, last - constant - linear, 0]
    return np.array(table[:-1]).astype(np.int16)


def _gain(settings: AudioSettings, input_bits: int, noise: int) -> int:
    level = np.float32(noise) / np.float32(1 << input_bits) + np.float32(settings.pcan_offset)
    power = np.float32(math.pow(float(level), -float(np.float32(settings.pcan_strength))))
    gain = np.float32(1 << settings.pcan_gain_bits) * power
    return _LARGEST_INT16 if gain > _LARGEST_INT16 else int(gain + np.float32(0.5))


def _mel(frequency: float) -> np.float32:
    return np.float32(1127) * np.float32(math.log1p(float(np.float32(frequency) / np.float32(700))))


def _share(centre: np.float32, below: np.float32, frequency: float) -> np.float32:
    return np.float32(centre - _mel(frequency)) / np.float32(centre - below)


def _smoothing(part: float) -> int:
    return int(part * (1 << _SUBTRACTION_BITS))
