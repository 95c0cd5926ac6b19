# SPDX-License-Identifier: Apache-2.0
"""The signal library's filter bank and the operators on its channels, in fixed point as in TensorFlow Lite Micro."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError
from ferrule.graph import Array, DataType, Descriptor, Kept, LayerType
from ferrule.operators.arithmetic.error_bound import known_inputs
from ferrule.operators.arithmetic.fixed_point import wrap_int32
from ferrule.operators.movement.checks import typed
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, of_one, required_array, required_arrays
from ferrule.operators.sample import LayerSample
from ferrule.operators.signal.frames import expect_axes, expect_range, expect_shape, take_states, vector

_LARGEST = 2**31 - 1
_WORD = 2**32 - 1


@frozen
class SignalFilterBankDescriptor(Descriptor):
    """Input: energies [N]; output: channels [C].

    Each of C + 1 bands has weights and unweights for neighbouring energies. A channel is the sum of its band's weighted
    energies and of the unweighted ones of the band before; that of the first band is left out.
    """

    weights: tuple[int, ...]
    unweights: tuple[int, ...]
    frequency_starts: tuple[int, ...]
    """The first energy of each band."""
    weight_starts: tuple[int, ...]
    """The first weight of each band."""
    widths: tuple[int, ...]
    """Energies of each band."""


def _infer_filter_bank(descriptor: SignalFilterBankDescriptor, operands: Operands) -> Shapes:
    data = vector(operands)
    bands, count = len(descriptor.widths), len(descriptor.weights)
    if bands < 2:
        raise ModelError(f"it has {bands} bands, expected at least 2")
    limits = {"frequency_starts": data.elements, "weight_starts": count}
    for name in limits:
        elements = len(getattr(descriptor, name))
        if elements != bands:
            raise ModelError(f"its {name} have {elements} elements, expected {bands} as its widths have")
    if not count:
        raise ModelError("it has no weights, expected at least 1")
    for field in fields(descriptor):
        for value in getattr(descriptor, field.name):
            expect_range(f"element of {field.name}", value, -(2**15), 2**15 - 1)
    if len(descriptor.unweights) != count:
        raise ModelError(f"its unweights have {len(descriptor.unweights)} elements, expected {count} as its weights")
    for name, limit in limits.items():
        for band, (start, width) in enumerate(zip(getattr(descriptor, name), descriptor.widths, strict=True)):
            if width < 0 or start < 0 or start + width > limit:
                raise ModelError(
                    f"band {band} has width {width} and {name} {start}, expected a range within 0 to {limit}"
                )
    return ((bands - 1,),)


def _filter_bank(descriptor: SignalFilterBankDescriptor, _: Operands, data: Array) -> Array:
    energies = data.astype(np.uint64)
    weighted = np.zeros((2, len(descriptor.widths)), np.uint64)
    for row, factors in enumerate((descriptor.weights, descriptor.unweights)):
        wide = np.array(factors, np.int64).astype(np.uint64)  # products wrap at 64 bits
        for band, width in enumerate(descriptor.widths):
            first, energy = descriptor.weight_starts[band], descriptor.frequency_starts[band]
            products = wide[first : first + width] * energies[energy : energy + width]
            weighted[row, band] = products.sum(dtype=np.uint64)
    return weighted[0, 1:] + weighted[1, :-1]


def _macs(descriptor: SignalFilterBankDescriptor, _: Operands) -> int:
    return 2 * sum(descriptor.widths)


def _sample_filter_bank(sample: LayerSample) -> Descriptor:
    dice = sample.dice
    bands, size = dice.randint(2, 6), dice.randint(8, 20)
    widths = [dice.randint(0, 8) for _ in range(bands)]
    count = sum(widths) + 1
    weights = sample.array((2, count), DataType.INT16, -(2**15) if dice.random() < 0.3 else 0, 2**15 - 1).tolist()
    sample.take((size,))
    sample.output_type = DataType.UINT64
    return SignalFilterBankDescriptor(
        weights=tuple(weights[0]),
        unweights=tuple(weights[1]),
        frequency_starts=tuple(dice.randint(0, size - width) for width in widths),
        weight_starts=tuple(sum(widths[:band]) for band in range(bands)),
        widths=tuple(widths),
    )


SIGNAL_FILTER_BANK = Operator(
    descriptor=SignalFilterBankDescriptor,
    type=LayerType.SIGNAL_FILTER_BANK,
    shapes=_infer_filter_bank,
    check=typed([DataType.UINT32], [DataType.UINT64]),
    kernel=of_one(_filter_bank),
    bound=known_inputs,
    macs=_macs,
    sample=_sample_filter_bank,
)


@frozen
class SignalFilterBankSquareRootDescriptor(Descriptor):
    """Inputs: channels [C] and the bits [] by which the roots, rounded to the nearest, are shifted to the right.

    The shift counts as the nearest of 0 to 31. A root that needs more bits is the highest number of 16 or 32 bits.
    """


def _infer_root(_: SignalFilterBankSquareRootDescriptor, operands: Operands) -> Shapes:
    data = vector(operands)
    expect_shape(operands.input(1), ())
    return (data.shape,)


def _root(_: SignalFilterBankSquareRootDescriptor, __: Operands, arrays: Arrays) -> list[Array]:
    data, bits = required_array(arrays, 0), int(required_array(arrays, 1))
    roots = [_rounded_root(int(value)) >> min(max(bits, 0), 31) for value in data]
    return [np.array(roots, np.uint32)]


def _rounded_root(value: int) -> int:
    root = math.isqrt(value)
    highest = 2**16 - 1 if value <= _WORD else _WORD
    return root + 1 if value - root * root > root and root != highest else root


def _sample_root(sample: LayerSample) -> Descriptor:
    sample.take((sample.dice.randint(1, 20),))
    sample.add("scale_bits", (), DataType.INT32)
    sample.output_type = DataType.UINT32
    return SignalFilterBankSquareRootDescriptor()


SIGNAL_FILTER_BANK_SQUARE_ROOT = Operator(
    descriptor=SignalFilterBankSquareRootDescriptor,
    type=LayerType.SIGNAL_FILTER_BANK_SQUARE_ROOT,
    shapes=_infer_root,
    check=typed([DataType.UINT64, DataType.INT32], [DataType.UINT32]),
    kernel=_root,
    bound=known_inputs,
    sample=_sample_root,
)


@frozen
class SignalFilterBankSpectralSubtractionDescriptor(Descriptor):
    """Inputs: channels [C] and the estimate of the noise; outputs: the rest, and the new estimate twice.

    The estimate is the weighted mean of the old one and of the channel, shifted to the left by `smoothing_bits`.
    """

    smoothing: int
    """The weight of a channel with an even number; weights are shifted to the left by `spectral_subtraction_bits`."""
    one_minus_smoothing: int
    """The weight of its old estimate."""
    alternate_smoothing: int
    """The weight of a channel with an odd number."""
    alternate_one_minus_smoothing: int
    min_signal_remaining: int
    """The part of a channel that remains at least."""
    smoothing_bits: int
    spectral_subtraction_bits: int
    clamping: bool
    """Whether the estimate is at most the channel."""


def subtraction_states(_: SignalFilterBankSpectralSubtractionDescriptor, operands: Operands) -> tuple[Kept, ...]:
    """Return the estimate of the noise."""
    return (Kept(role="noise", shape=operands.source.shape, dtype=DataType.UINT32),)


def _infer_subtraction(descriptor: SignalFilterBankSpectralSubtractionDescriptor, operands: Operands) -> Shapes:
    data = vector(operands)
    expect_shape(operands.input(1), data.shape)
    for field in fields(descriptor):
        limit = {"smoothing_bits": 31, "spectral_subtraction_bits": 63}.get(field.name, _LARGEST)
        expect_range(field.name, int(getattr(descriptor, field.name)), 0, limit)
    return (data.shape,) * 3


def _subtraction(descriptor: SignalFilterBankSpectralSubtractionDescriptor, _: Operands, arrays: Arrays) -> list[Array]:
    data, noise = (required_array(arrays, index).astype(np.uint64) for index in range(2))
    alternate = np.arange(data.size) % 2 == 1
    smoothing = np.where(alternate, descriptor.alternate_smoothing, descriptor.smoothing).astype(np.uint64)
    rest = np.where(alternate, descriptor.alternate_one_minus_smoothing, descriptor.one_minus_smoothing)
    bits, word = np.uint64(descriptor.spectral_subtraction_bits), np.uint64(_WORD)
    scaled = (data << np.uint64(descriptor.smoothing_bits)) & word
    estimate = ((scaled * smoothing + noise * rest.astype(np.uint64)) >> bits) & word  # the sum wraps at 64 bits
    subtracted = (scaled - np.minimum(estimate, scaled)) >> np.uint64(descriptor.smoothing_bits)
    floor = ((data * np.uint64(descriptor.min_signal_remaining)) >> bits) & word
    if descriptor.clamping:
        estimate = np.minimum(estimate, scaled)
    new = estimate.astype(np.uint32)
    return [np.maximum(subtracted, floor).astype(np.uint32), new, new]


def _sample_subtraction(sample: LayerSample) -> Descriptor:
    dice, bits = sample.dice, 14
    weights = [dice.randint(0, 1 << bits) for _ in range(2)]
    sample.take((dice.randint(1, 20),))
    descriptor = SignalFilterBankSpectralSubtractionDescriptor(
        smoothing=weights[0],
        one_minus_smoothing=(1 << bits) - weights[0],
        alternate_smoothing=weights[1],
        alternate_one_minus_smoothing=(1 << bits) - weights[1],
        min_signal_remaining=dice.randint(0, 1 << bits),
        smoothing_bits=dice.choice([0, 4, 10]),
        spectral_subtraction_bits=bits,
        clamping=dice.random() < 0.5,
    )
    return take_states(sample, descriptor, subtraction_states, (DataType.UINT32, None))


SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION = Operator(
    descriptor=SignalFilterBankSpectralSubtractionDescriptor,
    type=LayerType.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION,
    states=subtraction_states,
    shapes=_infer_subtraction,
    check=typed([DataType.UINT32] * 2, [DataType.UINT32] * 3),
    kernel=_subtraction,
    bound=known_inputs,
    sample=_sample_subtraction,
)


@frozen
class SignalPcanDescriptor(Descriptor):
    """Inputs: channels [C], the estimate of their noise [C] and a table of gains; output: the amplified channels.

    The table has two gains, then four numbers for each number of bits of the noise: three coefficients of a polynomial
    and one that is not used.
    """

    snr_shift: int
    """Bits by which the product of channel and gain is shifted to the right."""


_GAINS = 125
_SNR_BITS, _OUTPUT_BITS = 12, 6


def _infer_pcan(descriptor: SignalPcanDescriptor, operands: Operands) -> Shapes:
    data, noise, gains = operands.required(range(3))
    expect_axes(data, 1, 1)
    expect_shape(noise, data.shape)
    expect_axes(gains, 1, 1)
    if gains.elements < _GAINS:
        raise ModelError(f"its gains '{gains.name}' have {gains.elements} elements, expected {_GAINS} or more")
    expect_range("snr_shift", descriptor.snr_shift, 0, 63)
    return (data.shape,)


def _pcan(descriptor: SignalPcanDescriptor, _: Operands, arrays: Arrays) -> list[Array]:
    data, noise, gains = required_arrays(arrays, range(3))
    gain = np.array([_gain(int(value), gains.tolist()) & _WORD for value in noise], np.uint64)
    word = np.uint64(_WORD)
    ratio = ((data.astype(np.uint64) * gain) >> np.uint64(descriptor.snr_shift)) & word
    low = ((ratio * ratio) & word) >> np.uint64(2 + 2 * _SNR_BITS - _OUTPUT_BITS)
    high = (ratio >> np.uint64(_SNR_BITS - _OUTPUT_BITS)) - np.uint64(1 << _OUTPUT_BITS)
    return [np.where(ratio < 2 << _SNR_BITS, low, high).astype(np.uint32)]


def _gain(noise: int, gains: list[int]) -> int:
    if noise <= 2:
        return gains[noise]
    bits = noise.bit_length()
    constant, linear, square = gains[4 * bits - 6 : 4 * bits - 3]
    fraction = (noise << 11 >> bits) & 0x3FF
    sum_ = (square * fraction >> 5) + (linear << 5)
    product = int(wrap_int32(sum_ * fraction))
    return int(np.int64((product + (1 << 14) >> 15) + constant).astype(np.int16))


def _sample_pcan(sample: LayerSample) -> Descriptor:
    info = sample.take((sample.dice.randint(1, 20),))
    sample.add("noise", info.shape, DataType.UINT32)
    sample.hold("gains", sample.array((_GAINS,), DataType.INT16, -(2**15), 2**15 - 1))
    return SignalPcanDescriptor(snr_shift=sample.dice.choice([0, 6, 12, 40]))


SIGNAL_PCAN = Operator(
    descriptor=SignalPcanDescriptor,
    type=LayerType.SIGNAL_PCAN,
    shapes=_infer_pcan,
    check=typed([DataType.UINT32, DataType.UINT32, DataType.INT16], [DataType.UINT32]),
    kernel=_pcan,
    bound=known_inputs,
    sample=_sample_pcan,
)


@frozen
class SignalFilterBankLogDescriptor(Descriptor):
    """One input [C], one output: `output_scale` * ln(channel * 2**input_correction_bits), at most 2**15 - 1."""

    input_correction_bits: int
    output_scale: int


LOG_SEGMENTS = 128
"""Segments of the table between a power of two and the next."""
LOG_TABLE = tuple(
    round((math.log2(1 + segment / LOG_SEGMENTS) - segment / LOG_SEGMENTS) * 2**16)
    for segment in range(LOG_SEGMENTS + 1)
)
"""log2(1 + x) - x in Q16."""
_LN_2 = 45426
"""ln(2) in Q16."""


def _infer_log(descriptor: SignalFilterBankLogDescriptor, operands: Operands) -> Shapes:
    data = vector(operands)
    expect_range("input_correction_bits", descriptor.input_correction_bits, 0, 31)
    expect_range("output_scale", descriptor.output_scale, 0, _LARGEST)
    return (data.shape,)


def _log(descriptor: SignalFilterBankLogDescriptor, _: Operands, data: Array) -> Array:
    bits, scale = descriptor.input_correction_bits, descriptor.output_scale
    values = ((int(value) << bits) & _WORD for value in data)
    return np.array([0 if value <= 1 else _scaled_log(value, scale) for value in values], np.int16)


def _scaled_log(value: int, scale: int) -> int:
    power = value.bit_length() - 1
    fraction = ((value - (1 << power)) << 16) >> power
    segment = fraction >> 9
    low, high = LOG_TABLE[segment : segment + 2]
    between = ((high - low) * (fraction - (segment << 9))) >> 16
    binary = (power << 16) + fraction + low + between
    natural = (_LN_2 * binary + (1 << 15)) >> 16
    return min(((scale * natural + (1 << 15)) & _WORD) >> 16, 2**15 - 1)


def _sample_log(sample: LayerSample) -> Descriptor:
    sample.take((sample.dice.randint(1, 40),))
    sample.output_type = DataType.INT16
    return SignalFilterBankLogDescriptor(
        input_correction_bits=sample.dice.choice([0, 3, 20]), output_scale=sample.dice.choice([1, 64, 600, 10000])
    )


SIGNAL_FILTER_BANK_LOG = Operator(
    descriptor=SignalFilterBankLogDescriptor,
    type=LayerType.SIGNAL_FILTER_BANK_LOG,
    shapes=_infer_log,
    check=typed([DataType.UINT32], [DataType.INT16]),
    kernel=of_one(_log),
    bound=known_inputs,
    sample=_sample_log,
)
