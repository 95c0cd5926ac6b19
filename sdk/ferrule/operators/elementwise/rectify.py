# SPDX-License-Identifier: Apache-2.0
"""RELU, RELU6, RELU_N1_TO_1, LEAKY_RELU and PRELU."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, TensorInfo
from ferrule.graph.real_values import ieee_floats, overflowing_floats
from ferrule.graph.tensor import read_only
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.broadcast import broadcasts_to
from ferrule.operators.arithmetic.error_bound import rounded
from ferrule.operators.arithmetic.fixed_point import (
    MAX_SHIFT,
    Factor,
    Int64Array,
    activation_range,
    quantize_multiplier,
    wrap_int32,
)
from ferrule.operators.arithmetic.onnx_real import computed_as_real, tabulated
from ferrule.operators.elementwise.stored_binary import combine
from ferrule.operators.movement.checks import check_activations, check_axes, check_quantisations, check_types
from ferrule.operators.operator import (
    EVERY_INT8,
    Arrays,
    Operands,
    Operator,
    Shapes,
    look_up,
    of_one,
    required_arrays,
)
from ferrule.operators.sample import LayerSample, sample_unary

_TYPES = frozenset({DataType.FLOAT32, DataType.INT8, DataType.INT16})
_N1_TO_1_TYPES = frozenset({DataType.FLOAT32, DataType.INT8})
_MAX_PRELU_AXES = 4


@frozen
class ReluDescriptor(Descriptor):
    """One input, one output; for RELU, RELU6 and RELU_N1_TO_1."""


@frozen
class LeakyReluDescriptor(Descriptor):
    """One input, one output."""

    alpha: float
    """Factor for negative values, exactly representable in float32."""


@frozen
class PreluDescriptor(Descriptor):
    """Inputs: data, and factors for its negative values that broadcast to its shape. One output."""


@frozen
class Slope(Factor):
    """A factor with a sign, which is 1 or -1."""

    sign: int = 1

    @override
    def apply(self, values: Int64Array) -> Int64Array:
        """Return 32-bit values times the factor."""
        return self.sign * Factor.apply(self, values)


@frozen
class Rectifier:
    """A function of stored values: one slope from the zero point upwards, another below it, and a clamp.

    PRELU also multiplies the values below the zero point by stored factors.
    """

    input_zero_point: int
    alpha_zero_point: int
    output_zero_point: int
    positive: Slope
    negative: Slope
    low: int
    high: int

    def apply(self, first: Int64Array, second: Int64Array | int = 1) -> Int64Array:
        """Return the stored results for stored data and, of PRELU, factors of broadcastable shapes."""
        value = first - self.input_zero_point
        product = value * (second - self.alpha_zero_point)
        scaled = np.where(value >= 0, self.positive.apply(value), self.negative.apply(product))
        return np.clip(wrap_int32(scaled + self.output_zero_point), self.low, self.high)


def rectifier_of(layer_type: LayerType, descriptor: Descriptor, operands: Operands) -> Rectifier:
    """Return the arithmetic of a layer on quantised values; UnsupportedError if its scales are too far apart.

    Factors are computed in float64, as in TensorFlow Lite Micro. For RELU_N1_TO_1, of which only LiteRT has a kernel,
    they are computed in float32.
    """
    source, output = operands.ends
    if isinstance(descriptor, LeakyReluDescriptor):
        return _rectifier(operands, source.scale * descriptor.alpha / output.scale)
    ratio = source.scale / output.scale
    if layer_type is LayerType.RELU_N1_TO_1:
        with overflowing_floats():
            ratio = float(np.float32(source.scale) / np.float32(output.scale))
    return _rectifier(operands, ratio, ratio, clamp=Activation[layer_type])


def prelu_of(operands: Operands) -> Rectifier:
    """Return the arithmetic of a quantised PRELU; UnsupportedError if its scales are too far apart."""
    source, alpha = operands.pair
    return _rectifier(operands, source.scale * alpha.scale / operands.output.scale, alpha_zero_point=alpha.zero_point)


def _rectifier(
    operands: Operands,
    negative: float,
    positive: float | None = None,
    *,
    alpha_zero_point: int = 0,
    clamp: Activation = Activation.NONE,
) -> Rectifier:
    source, output = operands.ends
    low, high = activation_range(clamp, output)
    return Rectifier(
        input_zero_point=source.zero_point,
        alpha_zero_point=alpha_zero_point,
        output_zero_point=output.zero_point,
        positive=_slope(source.scale / output.scale if positive is None else positive, output),
        negative=_slope(negative, output),
        low=low,
        high=high,
    )


@lru_cache(maxsize=64)
def int8_table(rectifier: Rectifier) -> Array:
    """Return the results for all int8 inputs, starting at -128."""
    return read_only(rectifier.apply(EVERY_INT8.astype(np.int64)).astype(np.int8))


def infer_prelu(_: PreluDescriptor, operands: Operands) -> Shapes:
    """Return the data's shape; the factors must broadcast to it."""
    source, alpha = operands.pair
    if not broadcasts_to(alpha.shape, source.shape):
        raise ModelError(
            f"tensor '{alpha.name}' of shape {list(alpha.shape)} does not broadcast to '{source.name}' of shape "
            f"{list(source.shape)}"
        )
    return (source.shape,)


def _check(layer_type: LayerType, descriptor: Descriptor, operands: Operands) -> None:
    check_types(operands, _N1_TO_1_TYPES if layer_type is LayerType.RELU_N1_TO_1 else _TYPES)
    if operands.output.dtype.is_float:
        return
    check_activations(*operands.ends)
    if layer_type is LayerType.RELU6:
        check_quantisations(operands)  # the reference kernel clamps and does not rescale
    rectifier_of(layer_type, descriptor, operands)


def check_prelu(_: PreluDescriptor, operands: Operands) -> None:
    """Refuse types, ranks and quantisations that TensorFlow Lite Micro's kernel does not support."""
    source, alpha, output = *operands.pair, operands.output
    check_types(Operands((source,), (output,)), _TYPES)
    wanted = DataType.INT8 if source.dtype is DataType.INT16 else source.dtype
    if alpha.dtype is not wanted:
        raise UnsupportedError(
            f"tensor '{alpha.name}' is {alpha.dtype}, expected {wanted} because the data '{source.name}' is "
            f"{source.dtype}"
        )
    check_axes(source, _MAX_PRELU_AXES)
    if source.dtype.is_float:
        return
    check_activations(source, alpha, output)
    prelu_of(operands)


def _compute(layer_type: LayerType, descriptor: Descriptor, operands: Operands, data: Array) -> Array:
    if data.dtype == np.int8:
        return look_up(int8_table(rectifier_of(layer_type, descriptor, operands)), data)
    if data.dtype == np.int16:
        rectifier = rectifier_of(layer_type, descriptor, operands)
        return rectifier.apply(data.astype(np.int64)).astype(np.int16)
    if isinstance(descriptor, LeakyReluDescriptor):
        with ieee_floats():
            return np.where(data > 0, data, data * np.float32(descriptor.alpha))
    return np.clip(data, *Activation[layer_type].limits)


def compute_prelu(_: PreluDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    """Return the data with its negative values multiplied by the factors."""
    data, alpha = required_arrays(arrays, range(2))
    if not operands.output.dtype.is_float:
        return [combine(prelu_of(operands), data, alpha)]
    with ieee_floats():
        return [np.where(data >= 0, data, data * alpha)]


def _slope(real: float, info: TensorInfo) -> Slope:
    multiplier, shift = quantize_multiplier(abs(real))
    if shift > MAX_SHIFT:
        raise UnsupportedError(
            f"the input's scale over that of '{info.name}', times the slope, is {real:g}, expected below 2**{MAX_SHIFT}"
        )
    return Slope(multiplier=multiplier, shift=shift, sign=-1 if real < 0 else 1)


def _operator(
    layer_type: LayerType, descriptor: type[Descriptor], sample: Callable[[LayerSample], Descriptor]
) -> Operator:
    return tabulated(
        Operator(
            descriptor=descriptor,
            type=layer_type,
            elementwise=True,
            clamp=None if descriptor is LeakyReluDescriptor else Activation[layer_type],
            check=partial(_check, layer_type),
            kernel=of_one(partial(_compute, layer_type)),
            bound=rounded() if descriptor is LeakyReluDescriptor else None,
            sample=sample_unary(sample),
        )
    )


def _sample_prelu(sample: LayerSample) -> Descriptor:
    shape = sample.image()
    sample.take(shape)
    dtype = DataType.INT8 if sample.dtype is DataType.INT16 else sample.dtype
    sample.hold("alpha", sample.array((1, 1, shape[3]), dtype, 0, 100), sample.quantization(dtype))
    sample.output = sample.quantization(sample.dtype)
    return PreluDescriptor()


RELU = _operator(LayerType.RELU, ReluDescriptor, lambda _: ReluDescriptor())
RELU6 = _operator(LayerType.RELU6, ReluDescriptor, lambda _: ReluDescriptor())
RELU_N1_TO_1 = _operator(LayerType.RELU_N1_TO_1, ReluDescriptor, lambda _: ReluDescriptor())
LEAKY_RELU = _operator(
    LayerType.LEAKY_RELU,
    LeakyReluDescriptor,
    lambda sample: LeakyReluDescriptor(alpha=sample.dice.choice([0.25, -0.5, 2.0])),
)
PRELU = computed_as_real(
    Operator(
        descriptor=PreluDescriptor,
        type=LayerType.PRELU,
        shapes=infer_prelu,
        check=check_prelu,
        kernel=compute_prelu,
        bound=rounded(),
        sample=_sample_prelu,
    )
)
