# SPDX-License-Identifier: Apache-2.0
"""A network for each operator of the signal library and type, and a small preprocessor of audio with all stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ferrule.graph import DataType, Shape, TensorInfo
from ferrule.network import Network

_Build = Callable[[Network], str | tuple[str, str]]
_GAINS = np.arange(125).astype(np.int16)
_TRANSFORMS = (DataType.INT16, DataType.INT32, DataType.FLOAT32)


def signal_networks() -> Iterator[Network]:
    """Yield one network per operator and type."""
    for type_ in _TRANSFORMS:
        yield _network("rfft", type_, (2, 15), lambda n: n.add_signal_rfft_layer("x", fft_length=16))
        yield _network("irfft", type_, (2, 18), lambda n: n.add_signal_irfft_layer("x", fft_length=16))
    for type_ in (DataType.INT16, DataType.FLOAT32):
        yield _network("overlap_add", type_, (3, 5), lambda n: n.add_signal_overlap_add_layer("x", frame_step=2))
    builds: list[tuple[str, DataType, Shape, _Build]] = [
        ("window", DataType.INT16, (2, 4), lambda n: n.add_signal_window_layer("x", _GAINS[:4], shift=3)),
        ("framer", DataType.INT16, (2, 6), lambda n: n.add_signal_framer_layer("x", frame_size=5, frame_step=3)),
        ("delay", DataType.INT16, (2, 6), lambda n: n.add_signal_delay_layer("x", delay_length=4)),
        (
            "stacker",
            DataType.INT16,
            (4,),
            lambda n: n.add_signal_stacker_layer("x", left_context=1, right_context=1, step=2),
        ),
        ("fft_auto_scale", DataType.INT16, (9,), lambda n: n.add_signal_fft_auto_scale_layer("x")),
        ("energy", DataType.INT16, (12,), lambda n: n.add_signal_energy_layer("x", start_index=0, end_index=6)),
        ("filter_bank", DataType.UINT32, (6,), lambda n: _channels(n, "x")),
        (
            "filter_bank_square_root",
            DataType.UINT64,
            (5,),
            lambda n: n.add_signal_filter_bank_square_root_layer(
                "x", n.add_constant_array("bits", np.array(3, np.int32))
            ),
        ),
        (
            "filter_bank_spectral_subtraction",
            DataType.UINT32,
            (5,),
            lambda n: subtracted(n, "x"),
        ),
        ("pcan", DataType.UINT32, (5,), lambda n: n.add_signal_pcan_layer("x", "x", _GAINS, snr_shift=6)),
        (
            "filter_bank_log",
            DataType.UINT32,
            (5,),
            lambda n: n.add_signal_filter_bank_log_layer("x", input_correction_bits=3, output_scale=64),
        ),
    ]
    for name, type_, shape, build in builds:
        yield _network(name, type_, shape, build)


def preprocessor(samples: int = 30) -> Network:
    """Return a network from a window of int16 samples to features of two channels, with a state."""
    network = Network("preprocessor")
    network.add_input(TensorInfo("x", (1, samples), DataType.INT16))
    window = network.add_signal_window_layer("x", np.full(samples, 2000, np.int16), shift=11)
    scaled, bits = network.add_signal_fft_auto_scale_layer(network.add_reshape_layer(window, (samples,)))
    spectrum = network.add_signal_rfft_layer(scaled, fft_length=32)
    energies = network.add_signal_energy_layer(spectrum, start_index=0, end_index=17)
    channels = _channels(network, energies)
    roots = network.add_signal_filter_bank_square_root_layer(channels, bits)
    rest, noise = subtracted(network, roots)
    gained = network.add_signal_pcan_layer(rest, noise, _GAINS, snr_shift=6)
    network.set_outputs([network.add_signal_filter_bank_log_layer(gained, input_correction_bits=3, output_scale=64)])
    return network


def _channels(network: Network, source: str) -> str:
    return network.add_signal_filter_bank_layer(
        source,
        weights=range(100, 106),
        unweights=range(6, 0, -1),
        frequency_starts=(0, 2, 4),
        weight_starts=(0, 2, 4),
        widths=(2, 2, 2),
    )


def subtracted(network: Network, source: str) -> tuple[str, str]:
    """Add a spectral subtraction, and return the rest and the estimated noise."""
    return network.add_signal_filter_bank_spectral_subtraction_layer(
        source,
        smoothing=409,
        one_minus_smoothing=15975,
        alternate_smoothing=983,
        alternate_one_minus_smoothing=15401,
        min_signal_remaining=819,
        smoothing_bits=10,
        spectral_subtraction_bits=14,
    )


def _bits(network: Network) -> str:
    return network.add_constant_array("bits", np.array(3, np.int32))


def _network(name: str, dtype: DataType, shape: Shape, build: _Build) -> Network:
    network = Network(f"signal_{name}_{dtype}")
    network.add_input(TensorInfo("x", shape, dtype))
    outputs = build(network)
    network.set_outputs([outputs] if isinstance(outputs, str) else outputs)
    return network
