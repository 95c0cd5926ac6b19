# SPDX-License-Identifier: Apache-2.0
"""Methods that add the signal library's layers, which compute features from audio samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrule.errors import place
from ferrule.graph import Array, DataType, Descriptor
from ferrule.network.builder import Constant, Given, LayerBuilder, adding
from ferrule.operators.operator import Operands, Operator
from ferrule.operators.signal.filter_bank import (
    SignalFilterBankDescriptor,
    SignalFilterBankLogDescriptor,
    SignalFilterBankSpectralSubtractionDescriptor,
    SignalFilterBankSquareRootDescriptor,
    SignalPcanDescriptor,
)
from ferrule.operators.signal.frames import (
    SignalDelayDescriptor,
    SignalFramerDescriptor,
    SignalOverlapAddDescriptor,
    SignalStackerDescriptor,
    SignalWindowDescriptor,
)
from ferrule.operators.signal.spectrum import (
    SIGNAL_IRFFT,
    SIGNAL_RFFT,
    SignalEnergyDescriptor,
    SignalFftAutoScaleDescriptor,
)
from ferrule.operators.table import OPERATORS, type_of


class SignalLayers(LayerBuilder):
    """Methods that add layers of the signal library.

    A layer that keeps a state gets the state, too, with the name of the layer and of its role; its value after a reset
    is 0. See `ActivationLayers` for the names and the errors.
    """

    def add_signal_window_layer(self, source: str, weights: str | Array, *, shift: int, name: str | None = None) -> str:
        """Add SIGNAL_WINDOW of int16 samples [..., N]; weights [N] are an array or a tensor's name."""
        given = weights if isinstance(weights, str) else Constant(role="weights", data=weights)
        descriptor = SignalWindowDescriptor(shift=shift)
        return self._append(descriptor, [source, given], name=name)[0]

    def add_signal_framer_layer(
        self, source: str, *, frame_size: int, frame_step: int, prefill: bool = False, name: str | None = None
    ) -> tuple[str, str]:
        """Add SIGNAL_FRAMER of int16 samples [..., N] and return the frames and a bool: whether all are whole."""
        descriptor = SignalFramerDescriptor(frame_size=frame_size, frame_step=frame_step, prefill=prefill)
        return self._pair(descriptor, source, DataType.BOOL, name)

    def add_signal_delay_layer(self, source: str, *, delay_length: int, name: str | None = None) -> str:
        """Add SIGNAL_DELAY of int16 samples [..., N]."""
        return self._one(SignalDelayDescriptor(delay_length=delay_length), source, name)

    def add_signal_overlap_add_layer(self, source: str, *, frame_step: int, name: str | None = None) -> str:
        """Add SIGNAL_OVERLAP_ADD of int16 or float32 frames [..., frames, N]."""
        descriptor = SignalOverlapAddDescriptor(frame_step=frame_step)
        return self._one(descriptor, source, name)

    def add_signal_stacker_layer(
        self, source: str, *, left_context: int, right_context: int, step: int = 1, name: str | None = None
    ) -> tuple[str, str]:
        """Add SIGNAL_STACKER of an int16 frame and return the frames and a bool: whether there are enough."""
        descriptor = SignalStackerDescriptor(
            stacker_left_context=left_context, stacker_right_context=right_context, stacker_step=step
        )
        return self._pair(descriptor, source, DataType.BOOL, name)

    def _add_transform(self, row: Operator, source: str, *, fft_length: int, name: str | None = None) -> str:
        descriptor: Any = row.descriptor
        return self._one(descriptor(fft_length=fft_length), source, name)

    add_signal_rfft_layer = adding(
        SIGNAL_RFFT,
        _add_transform,
        "Add SIGNAL_RFFT of int16, int32 or float32 samples [..., N]; the output is [..., fft_length + 2].",
    )
    add_signal_irfft_layer = adding(
        SIGNAL_IRFFT,
        _add_transform,
        "Add SIGNAL_IRFFT of an int16, int32 or float32 spectrum [..., fft_length + 2].",
    )

    def add_signal_fft_auto_scale_layer(self, source: str, *, name: str | None = None) -> tuple[str, str]:
        """Add SIGNAL_FFT_AUTO_SCALE of int16 samples [N] and return the scaled samples and the bits of the shift."""
        descriptor = SignalFftAutoScaleDescriptor()
        return self._pair(descriptor, source, DataType.INT32, name)

    def add_signal_energy_layer(self, source: str, *, start_index: int, end_index: int, name: str | None = None) -> str:
        """Add SIGNAL_ENERGY of an int16 spectrum [2 * N]; the output is uint32 [N]."""
        descriptor = SignalEnergyDescriptor(start_index=start_index, end_index=end_index)
        return self._one(descriptor, source, name, DataType.UINT32)

    def add_signal_filter_bank_layer(
        self,
        source: str,
        *,
        weights: Sequence[int],
        unweights: Sequence[int],
        frequency_starts: Sequence[int],
        weight_starts: Sequence[int],
        widths: Sequence[int],
        name: str | None = None,
    ) -> str:
        """Add SIGNAL_FILTER_BANK of uint32 energies [N]; the output is uint64, with one channel less than bands."""
        descriptor = SignalFilterBankDescriptor(
            weights=tuple(weights),
            unweights=tuple(unweights),
            frequency_starts=tuple(frequency_starts),
            weight_starts=tuple(weight_starts),
            widths=tuple(widths),
        )
        return self._one(descriptor, source, name, DataType.UINT64)

    def add_signal_filter_bank_square_root_layer(self, source: str, bits: str, *, name: str | None = None) -> str:
        """Add SIGNAL_FILTER_BANK_SQUARE_ROOT of uint64 channels [N], shifted by int32 `bits` [], to uint32."""
        descriptor = SignalFilterBankSquareRootDescriptor()
        return self._append(descriptor, [source, bits], name=name, dtype=DataType.UINT32)[0]

    def add_signal_filter_bank_spectral_subtraction_layer(
        self,
        source: str,
        *,
        smoothing: int,
        one_minus_smoothing: int,
        alternate_smoothing: int,
        alternate_one_minus_smoothing: int,
        min_signal_remaining: int,
        smoothing_bits: int,
        spectral_subtraction_bits: int,
        clamping: bool = False,
        name: str | None = None,
    ) -> tuple[str, str]:
        """Add SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION of uint32 channels [N]; return the rest and the noise."""
        descriptor = SignalFilterBankSpectralSubtractionDescriptor(
            smoothing=smoothing,
            one_minus_smoothing=one_minus_smoothing,
            alternate_smoothing=alternate_smoothing,
            alternate_one_minus_smoothing=alternate_one_minus_smoothing,
            min_signal_remaining=min_signal_remaining,
            smoothing_bits=smoothing_bits,
            spectral_subtraction_bits=spectral_subtraction_bits,
            clamping=clamping,
        )
        return self._pair(descriptor, source, DataType.UINT32, name)

    def add_signal_pcan_layer(
        self, source: str, noise: str, gains: Array, *, snr_shift: int, name: str | None = None
    ) -> str:
        """Add SIGNAL_PCAN of uint32 channels [N], their noise [N] and a table of int16 gains."""
        table, descriptor = Constant(role="gains", data=gains), SignalPcanDescriptor(snr_shift=snr_shift)
        return self._append(descriptor, [source, noise, table], name=name)[0]

    def add_signal_filter_bank_log_layer(
        self, source: str, *, input_correction_bits: int, output_scale: int, name: str | None = None
    ) -> str:
        """Add SIGNAL_FILTER_BANK_LOG of uint32 channels [N]; the output is int16."""
        descriptor = SignalFilterBankLogDescriptor(
            input_correction_bits=input_correction_bits, output_scale=output_scale
        )
        return self._one(descriptor, source, name, DataType.INT16)

    def _one(self, descriptor: Descriptor, source: str, name: str | None, dtype: DataType | None = None) -> str:
        return self._append(descriptor, self._given(descriptor, source), name=name, dtype=dtype)[0]

    def _pair(self, descriptor: Descriptor, source: str, second: DataType, name: str | None) -> tuple[str, str]:
        dtypes = (self.info(source).dtype, second)
        inputs = self._given(descriptor, source)
        outputs = self._append(descriptor, inputs, name=name, dtype=dtypes, outputs=len(dtypes))
        return outputs[0], outputs[1]

    def _given(self, descriptor: Descriptor, source: str) -> list[Given]:
        """Return the input and the states that a layer keeps."""
        type_ = type_of(descriptor)
        with place(str(type_)):
            return [source, *OPERATORS[type_].states(descriptor, Operands((self.info(source),)))]
