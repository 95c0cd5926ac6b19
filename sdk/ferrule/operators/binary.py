# SPDX-License-Identifier: Apache-2.0
"""ADD, SUB, MUL, MAXIMUM and MINIMUM, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.graph import ONNX_ROUNDINGS, Array, DataType, Descriptor, LayerType, Quantization, Rounding
from ferrule.operators.activation import Activation
from ferrule.operators.broadcast import check_broadcast, infer_broadcast
from ferrule.operators.elementwise import Combination, combine, product_of, sum_of
from ferrule.operators.error_bound import rounded
from ferrule.operators.movement import check_quantisations
from ferrule.operators.onnx_elementwise import onnx_combination_of
from ferrule.operators.operator import Arrays, Operands, Operator, required_array
from ferrule.operators.sample import LayerSample
from ferrule.operators.weighted import check_activation_tensor

_ARITHMETIC_TYPES = frozenset({DataType.FLOAT32, DataType.INT8, DataType.INT16, DataType.INT32})
_ONNX_RULES = frozenset({Rounding.TFLM}) | ONNX_ROUNDINGS
_EXTREMUM_TYPES = frozenset({DataType.FLOAT32, DataType.INT8, DataType.INT16, DataType.INT32})


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryDescriptor(Descriptor):
    """Two inputs that broadcast by numpy's rules, one output; for ADD, SUB and MUL."""

    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremumDescriptor(Descriptor):
    """Two inputs that broadcast by numpy's rules, one output; for MAXIMUM and MINIMUM."""


def combination_of(layer_type: LayerType, descriptor: BinaryDescriptor, operands: Operands) -> Combination:
    """Return the arithmetic of a quantised ADD, SUB or MUL; UnsupportedError if the reference kernels refuse it."""
    if operands.rounding is not Rounding.TFLM:
        return onnx_combination_of(layer_type, descriptor.activation, operands)
    if layer_type is LayerType.MUL:
        return product_of(operands, descriptor.activation)
    return sum_of(operands, descriptor.activation, subtract=layer_type is LayerType.SUB)


def float_limits(activation: Activation) -> tuple[float, float]:
    """Return the lowest and highest float32 result; a missing limit is the largest finite magnitude."""
    largest = float(np.finfo(np.float32).max)
    low, high = activation.limits
    return -largest if low is None else low, largest if high is None else high


def _check_arithmetic(layer_type: LayerType, descriptor: BinaryDescriptor, operands: Operands) -> None:
    dtype = check_broadcast(operands, _ARITHMETIC_TYPES)
    check_arithmetic_tensors(layer_type, descriptor, operands)
    if dtype in {DataType.INT8, DataType.INT16}:
        combination_of(layer_type, descriptor, operands)


def check_arithmetic_tensors(layer_type: LayerType, descriptor: BinaryDescriptor, operands: Operands) -> None:
    """Refuse quantised or clamped int32, and the other integers without a scale."""
    dtype = operands.output.dtype
    infos = (operands.input(0), operands.input(1), operands.output)
    if dtype is DataType.INT32:
        for info in infos:
            if info.quantization is not None:
                raise UnsupportedError(f"tensor '{info.name}' is int32 with a quantisation, expected none")
        if descriptor.activation is not Activation.NONE:
            raise UnsupportedError(f"{layer_type} of int32 has the activation {descriptor.activation}, expected none")
    elif not dtype.is_float:
        for info in infos:
            check_activation_tensor(info)


def _compute_arithmetic(
    layer_type: LayerType, descriptor: BinaryDescriptor, operands: Operands, arrays: Arrays
) -> list[Array]:
    first, second = required_array(arrays, 0), required_array(arrays, 1)
    dtype = operands.output.dtype
    if dtype in {DataType.INT8, DataType.INT16}:
        return [combine(combination_of(layer_type, descriptor, operands), first, second)]
    # Integers wrap, as on the target.
    with np.errstate(all="ignore"):
        values = np.asarray(_ARITHMETIC[layer_type](first, second))
    return [np.clip(values, *float_limits(descriptor.activation)) if dtype.is_float else values]


def _check_extremum(_: ExtremumDescriptor, operands: Operands) -> None:
    check_broadcast(operands, _EXTREMUM_TYPES)
    check_quantisations(operands)


def _compute_extremum(layer_type: LayerType, _: ExtremumDescriptor, __: Operands, arrays: Arrays) -> list[Array]:
    first, second = required_array(arrays, 0), required_array(arrays, 1)
    # If either value is NaN, the result is the second, as in the reference kernels.
    return [np.where(_TAKES_FIRST[layer_type](first, second), first, second)]


_ARITHMETIC: dict[LayerType, Callable[[Array, Array], Any]] = {
    LayerType.ADD: np.add,
    LayerType.SUB: np.subtract,
    LayerType.MUL: np.multiply,
}
_TAKES_FIRST: dict[LayerType, Callable[[Array, Array], Any]] = {
    LayerType.MAXIMUM: np.greater,
    LayerType.MINIMUM: np.less,
}


def _arithmetic(layer_type: LayerType, rules: frozenset[Rounding]) -> Operator:
    return Operator(
        descriptor=BinaryDescriptor,
        type=layer_type,
        elementwise=True,
        shapes=infer_broadcast,
        check=partial(_check_arithmetic, layer_type),
        kernel=partial(_compute_arithmetic, layer_type),
        bound=rounded(),
        rules=rules,
        sample=_sample_arithmetic,
    )


def _extremum(layer_type: LayerType) -> Operator:
    return Operator(
        descriptor=ExtremumDescriptor,
        type=layer_type,
        elementwise=True,
        shapes=infer_broadcast,
        check=_check_extremum,
        kernel=partial(_compute_extremum, layer_type),
        sample=_sample_extremum,
    )


def sample_pair(sample: LayerSample, quantization: Quantization | None) -> None:
    """Draw two inputs, the second of which may broadcast to the first."""
    shape = sample.shape()
    other = shape if sample.dice.random() < 0.5 else tuple(sample.dice.choice([extent, 1]) for extent in shape)
    sample.take(shape, quantization)
    sample.take(other, quantization)


def _sample_arithmetic(sample: LayerSample) -> None:
    sample_pair(sample, None)
    integer = sample.dtype is DataType.INT32
    sample.descriptor = BinaryDescriptor(activation=Activation.NONE if integer else sample.activation())
    scales = [info.scale for info in sample.inputs if info.quantization is not None]
    sample.output = sample.quantization(sample.dtype, 1.7 * max(scales, default=1.0))


def _sample_extremum(sample: LayerSample) -> None:
    sample.output = sample.quantization(sample.dtype)
    sample_pair(sample, sample.output)
    sample.descriptor = ExtremumDescriptor()


ADD = _arithmetic(LayerType.ADD, _ONNX_RULES)
SUB = _arithmetic(LayerType.SUB, frozenset({Rounding.TFLM, Rounding.ONNX}))
MUL = _arithmetic(LayerType.MUL, _ONNX_RULES)
MAXIMUM = _extremum(LayerType.MAXIMUM)
MINIMUM = _extremum(LayerType.MINIMUM)
