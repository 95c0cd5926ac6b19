# SPDX-License-Identifier: Apache-2.0
"""ADD, SUB and MUL, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import ONNX_ROUNDINGS, Array, DataType, Descriptor, LayerType, Quantization, Rounding
from ferrule.operators.activation import Activation, fused_activation
from ferrule.operators.arithmetic.broadcast import check_broadcast, infer_broadcast
from ferrule.operators.arithmetic.error_bound import rounded
from ferrule.operators.elementwise.onnx_elementwise import onnx_combination_of
from ferrule.operators.elementwise.stored_binary import Combination, combine, product_of, sum_of
from ferrule.operators.movement.checks import Check, check_activations
from ferrule.operators.operator import Arrays, Kernel, Operands, Operator, required_array
from ferrule.operators.sample import LayerSample

ARITHMETIC_TYPES = frozenset({DataType.FLOAT32, DataType.INT8, DataType.INT16, DataType.INT32})
_ONNX_RULES = frozenset({Rounding.TFLM}) | ONNX_ROUNDINGS


Combine = Callable[[Any, Operands], Combination]
"""(descriptor, operands) -> the arithmetic; UnsupportedError if the scales are too far apart."""


@frozen
class BinaryDescriptor(Descriptor):
    """Two inputs that broadcast by numpy's rules, one output; for ADD, SUB and MUL."""

    activation: Activation = Activation.NONE


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


def arithmetic_check(layer_type: LayerType, types: frozenset[DataType], combination: Combine | None = None) -> Check:
    """Return the check of an operator with two inputs that broadcast.

    `combination` is the arithmetic of quantised values, of which int32 is none; without it, quantisations do not
    matter.
    """

    def check(descriptor: Any, operands: Operands) -> None:  # noqa: ANN401 each operator has its own
        dtype = check_broadcast(operands, types)
        infos = (*operands.pair, operands.output)
        if combination is None or dtype.is_float:
            return
        if dtype is DataType.INT32:
            for info in infos:
                if info.quantization is not None:
                    raise UnsupportedError(f"tensor '{info.name}' is int32 with a quantisation, expected none")
            activation = fused_activation(descriptor)
            if activation not in {None, Activation.NONE}:
                raise UnsupportedError(f"{layer_type} of int32 has the activation {activation}, expected none")
            return
        check_activations(*infos)
        combination(descriptor, operands)

    return check


def arithmetic_kernel(function: Callable[[Array, Array], Any], combination: Combine | None = None) -> Kernel:
    """Return the kernel of such an operator: `function` computes what is not quantised, and integers wrap.

    Float results are clamped if the operator has an activation.
    """

    def kernel(descriptor: Any, operands: Operands, arrays: Arrays) -> list[Array]:  # noqa: ANN401 as for `check`
        first, second, dtype = required_array(arrays, 0), required_array(arrays, 1), operands.output.dtype
        if combination is not None and dtype in {DataType.INT8, DataType.INT16}:
            return [combine(combination(descriptor, operands), first, second)]
        with np.errstate(all="ignore"):
            values = np.asarray(function(first, second))
        activation = fused_activation(descriptor)
        return [values if activation is None or not dtype.is_float else np.clip(values, *float_limits(activation))]

    return kernel


def _arithmetic(
    layer_type: LayerType, function: Callable[[Array, Array], Any], rules: frozenset[Rounding] = _ONNX_RULES
) -> Operator:
    combination = partial(combination_of, layer_type)
    return Operator(
        descriptor=BinaryDescriptor,
        type=layer_type,
        elementwise=True,
        shapes=infer_broadcast,
        check=arithmetic_check(layer_type, ARITHMETIC_TYPES, combination),
        kernel=arithmetic_kernel(function, combination),
        bound=rounded(),
        rules=rules,
        sample=partial(sample_arithmetic, 1.7),
    )


def sample_pair(sample: LayerSample, quantization: Quantization | None) -> None:
    """Draw two inputs, the second of which may broadcast to the first."""
    shape = sample.shape()
    other = shape if sample.dice.random() < 0.5 else tuple(sample.dice.choice([extent, 1]) for extent in shape)
    sample.take(shape, quantization)
    sample.take(other, quantization)


def sample_arithmetic(factor: float | None, sample: LayerSample) -> Descriptor:
    """Draw a layer whose output has the larger scale times a factor, or any scale."""
    sample_pair(sample, None)
    integer = sample.dtype is DataType.INT32
    descriptor = BinaryDescriptor(activation=Activation.NONE if integer else sample.activation())
    scales = [info.scale for info in sample.inputs if info.quantization is not None]
    sample.output = sample.quantization(sample.dtype, factor and factor * max(scales, default=1.0))
    return descriptor


ADD = _arithmetic(LayerType.ADD, np.add)
SUB = _arithmetic(LayerType.SUB, np.subtract, frozenset({Rounding.TFLM, Rounding.ONNX}))
MUL = _arithmetic(LayerType.MUL, np.multiply)
