# SPDX-License-Identifier: Apache-2.0
"""The signal library's Fourier transforms of real signals, the scaling before them and the energy of a spectrum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.graph.real_values import ieee_floats
from ferrule.operators.arithmetic.error_bound import accumulated, in_float64, known_inputs, of_floats
from ferrule.operators.movement.checks import expect_types, typed
from ferrule.operators.operator import Arrays, Bound, Evaluation, Operands, Operator, Shapes, of_one, required_array
from ferrule.operators.sample import LayerSample
from ferrule.operators.signal.fixed_fft import FixedFft, radices
from ferrule.operators.signal.frames import expect_axes, expect_range, vector

TRANSFORMED = (DataType.INT16, DataType.INT32, DataType.FLOAT32)
"""The element types of transforms."""
_LONGEST = 2**15

_ROUNDINGS = 8
"""The most roundings of a step of a transform on the way to one of its results: factors, products and sums."""


@frozen
class SignalRfftDescriptor(Descriptor):
    """One input, samples [..., N], and one output, [..., fft_length + 2]: real and imaginary parts in turn.

    Zeros follow the samples up to the length of the transform.
    """

    fft_length: int


@frozen
class SignalIrfftDescriptor(Descriptor):
    """One input, a spectrum [..., fft_length + 2], and one output, samples [..., fft_length]."""

    fft_length: int


def _check_length(length: int) -> None:
    if not 4 <= length <= _LONGEST or length % 2 or not radices(length // 2):
        raise UnsupportedError(
            f"its fft_length is {length}, expected an even number from 4 to {_LONGEST} whose primes are 2, 3 and 5"
        )


def _infer_rfft(descriptor: SignalRfftDescriptor, operands: Operands) -> Shapes:
    data = operands.source
    expect_axes(data, 1)
    _check_length(descriptor.fft_length)
    if data.shape[-1] > descriptor.fft_length:
        raise ModelError(
            f"its fft_length is {descriptor.fft_length}, expected at least "
            f"the {data.shape[-1]} samples of '{data.name}'"
        )
    return ((*data.shape[:-1], descriptor.fft_length + 2),)


def _infer_irfft(descriptor: SignalIrfftDescriptor, operands: Operands) -> Shapes:
    data = operands.source
    expect_axes(data, 1)
    _check_length(descriptor.fft_length)
    if data.shape[-1] != descriptor.fft_length + 2:
        raise ModelError(
            f"its fft_length is {descriptor.fft_length}, expected {data.shape[-1] - 2}, "
            f"the last extent of '{data.name}' less 2"
        )
    return ((*data.shape[:-1], descriptor.fft_length),)


def _check_transform(_: SignalRfftDescriptor | SignalIrfftDescriptor, operands: Operands) -> None:
    dtype = operands.source.dtype
    if dtype not in TRANSFORMED:
        raise UnsupportedError(f"tensor '{operands.source.name}' is {dtype}, expected {', '.join(TRANSFORMED)}")
    expect_types(operands, [dtype], [dtype])


def _rfft(descriptor: SignalRfftDescriptor, _: Operands, data: Array) -> Array:
    length = descriptor.fft_length
    if data.dtype == np.float32:
        with ieee_floats():
            spectrum = np.fft.rfft(data.astype(np.float64), length)
            pairs = np.stack([spectrum.real, spectrum.imag], axis=-1).astype(np.float32)
        return pairs.reshape(*data.shape[:-1], length + 2)
    padded = np.zeros((*data.shape[:-1], length), data.dtype)
    padded[..., : data.shape[-1]] = data
    return FixedFft(length // 2, data.dtype).forward(padded)


def _irfft(descriptor: SignalIrfftDescriptor, _: Operands, data: Array) -> Array:
    length = descriptor.fft_length
    if data.dtype == np.float32:
        with ieee_floats():
            wide = data.astype(np.float64)
            return np.fft.irfft(wide[..., ::2] + 1j * wide[..., 1::2], length).astype(np.float32)
    return FixedFft(length // 2, data.dtype).backward(data)


def _transform_bound(scale: Callable[[int], float]) -> Bound:
    """Return the bound of a transform, each element of which is a sum of its whole row, with factors up to `scale`."""

    def bound(evaluation: Evaluation) -> list[Array]:
        length = evaluation.descriptor.fft_length
        factor = scale(length)
        with ieee_floats():
            data, error, output = in_float64(evaluation)
            moved = factor * error.sum(axis=-1, keepdims=True)
            magnitude = factor * np.abs(data).sum(axis=-1, keepdims=True) + moved
        magnitude = np.where(magnitude * length < np.finfo(np.float32).max, magnitude, np.inf)
        rounded = accumulated(evaluation, magnitude, _ROUNDINGS * (len(radices(length // 2)) + 2))
        return [np.broadcast_to(moved + rounded, output.shape)]

    return of_floats(bound)


_LENGTHS = (4, 6, 8, 10, 16, 24, 30, 64, 90)


def _sample_rfft(sample: LayerSample) -> Descriptor:
    length = sample.dice.choice(_LENGTHS)
    sample.take((*sample.shape(2)[:-1], sample.dice.randint(1, length)))
    return SignalRfftDescriptor(fft_length=length)


def _sample_irfft(sample: LayerSample) -> Descriptor:
    length = sample.dice.choice(_LENGTHS)
    sample.take((*sample.shape(2)[:-1], length + 2))
    return SignalIrfftDescriptor(fft_length=length)


SIGNAL_RFFT = Operator(
    descriptor=SignalRfftDescriptor,
    type=LayerType.SIGNAL_RFFT,
    shapes=_infer_rfft,
    check=_check_transform,
    kernel=of_one(_rfft),
    bound=_transform_bound(lambda _: 1.0),
    sample=_sample_rfft,
)

SIGNAL_IRFFT = Operator(
    descriptor=SignalIrfftDescriptor,
    type=LayerType.SIGNAL_IRFFT,
    shapes=_infer_irfft,
    check=_check_transform,
    kernel=of_one(_irfft),
    bound=_transform_bound(lambda length: 2.0 / length),
    sample=_sample_irfft,
)


@frozen
class SignalFftAutoScaleDescriptor(Descriptor):
    """One input, samples [N]; outputs: the samples shifted to the left as far as all fit, and the number of bits []."""


def _infer_scale(_: SignalFftAutoScaleDescriptor, operands: Operands) -> Shapes:
    data = vector(operands)
    return data.shape, ()


def _scale(_: SignalFftAutoScaleDescriptor, __: Operands, arrays: Arrays) -> list[Array]:
    data = required_array(arrays, 0)
    magnitude = _magnitude(data)
    bits = max(15 - magnitude.bit_length(), 0) if magnitude > 0 else 0
    return [(data.astype(np.int64) << bits).astype(np.int16), np.array(bits, np.int32)]


def _magnitude(data: Array) -> int:
    """Return the largest magnitude as TensorFlow Lite Micro finds it.

    The magnitude of -2**15 wraps to -2**15, so that the search begins again with the signed value behind the last one.
    """
    wide = data.astype(np.int64)
    (lowest,) = np.nonzero(wide == -(2**15))
    if not lowest.size:
        return int(np.abs(wide).max())
    rest = wide[lowest[-1] + 1 :]
    return int(max(rest[0], np.abs(rest[1:]).max(initial=-(2**15)))) if rest.size else -(2**15)


def _sample_scale(sample: LayerSample) -> Descriptor:
    sample.take((sample.dice.randint(1, 40),))
    sample.further = [(DataType.INT32, None)]
    return SignalFftAutoScaleDescriptor()


SIGNAL_FFT_AUTO_SCALE = Operator(
    descriptor=SignalFftAutoScaleDescriptor,
    type=LayerType.SIGNAL_FFT_AUTO_SCALE,
    shapes=_infer_scale,
    check=typed([DataType.INT16], [DataType.INT16, DataType.INT32]),
    kernel=_scale,
    bound=known_inputs,
    sample=_sample_scale,
)


@frozen
class SignalEnergyDescriptor(Descriptor):
    """One input, a spectrum [2 * N]; one output, energies [N]. Those outside of the range are 0."""

    start_index: int
    end_index: int
    """Excluded."""


def _infer_energy(descriptor: SignalEnergyDescriptor, operands: Operands) -> Shapes:
    data = vector(operands)
    if data.elements % 2:
        raise ModelError(f"tensor '{data.name}' has {data.elements} elements, expected an even number")
    expect_range("end_index", descriptor.end_index, 0, data.elements // 2)
    expect_range("start_index", descriptor.start_index, 0, descriptor.end_index)
    return ((data.elements // 2,),)


def _energy(descriptor: SignalEnergyDescriptor, _: Operands, data: Array) -> Array:
    energies = (data.astype(np.int64) ** 2).reshape(-1, 2).sum(axis=1)
    energies[: descriptor.start_index] = 0
    energies[descriptor.end_index :] = 0
    return np.asarray(energies, np.uint32)


def _sample_energy(sample: LayerSample) -> Descriptor:
    count = sample.dice.randint(1, 20)
    start, end = sorted(sample.dice.randint(0, count) for _ in range(2))
    sample.take((2 * count,))
    sample.output_type = DataType.UINT32
    return SignalEnergyDescriptor(start_index=start, end_index=end)


SIGNAL_ENERGY = Operator(
    descriptor=SignalEnergyDescriptor,
    type=LayerType.SIGNAL_ENERGY,
    shapes=_infer_energy,
    check=typed([DataType.INT16], [DataType.UINT32]),
    kernel=of_one(_energy),
    bound=known_inputs,
    sample=_sample_energy,
)
