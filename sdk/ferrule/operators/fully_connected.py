# SPDX-License-Identifier: Apache-2.0
"""FULLY_CONNECTED."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Descriptor, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.blas import matrix_product
from ferrule.operators.error_bound import sums
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes
from ferrule.operators.packed import PackedConstants
from ferrule.operators.sample import LayerSample
from ferrule.operators.weighted import (
    WEIGHTED_RULES,
    Finish,
    bias_info,
    centred,
    check_weighted,
    check_weights,
    finish_of,
    optional_array,
    products,
    required_array,
)

_BIAS_TOLERANCE = 0.02
"""Limit on the difference of the bias and product scales, relative to the output's scale (as in TensorFlow Lite)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FullyConnectedDescriptor(Descriptor):
    """Inputs: data whose elements are a multiple of D, weights [O, D], optional bias [O]. One output."""

    keep_num_dims: bool = False
    """Keep all dimensions of the input except the last in the output; if False, the output is [batch, O]."""
    activation: Activation = Activation.NONE


def _infer(descriptor: FullyConnectedDescriptor, operands: Operands) -> Shapes:
    data, weights = operands.input(0), operands.input(1)
    if len(weights.shape) != 2:
        raise UnsupportedError(f"weights '{weights.name}' have shape {list(weights.shape)}, expected [outputs, inputs]")
    channels, depth = weights.shape
    if descriptor.keep_num_dims:
        if not data.shape or data.shape[-1] != depth:
            raise UnsupportedError(
                f"tensor '{data.name}' has shape {list(data.shape)}, expected {depth} last (keep_num_dims)"
            )
        return ((*data.shape[:-1], channels),)
    if data.elements % depth:
        raise UnsupportedError(f"tensor '{data.name}' has {data.elements} elements, expected a multiple of {depth}")
    return ((data.elements // depth, channels),)


def _check(descriptor: FullyConnectedDescriptor, operands: Operands) -> None:
    check_weighted(operands, descriptor.activation, channel_axis=0, narrow_bias=True)
    data, weights, bias = operands.input(0), operands.input(1), bias_info(operands)
    if data.dtype.is_float or weights.quantization is None:
        return
    if bias is None or weights.quantization.per_channel:
        return
    bias_scale = 0.0 if bias.quantization is None else bias.scale
    difference = abs(data.scale * weights.scale - bias_scale)
    if difference / operands.output.scale > _BIAS_TOLERANCE:
        raise UnsupportedError(
            f"bias '{bias.name}' has scale {bias_scale:g}, expected {data.scale * weights.scale:g}: "
            "the input's scale times the weights'"
        )


def _check_values(_: FullyConnectedDescriptor, operands: Operands, values: Arrays) -> None:
    check_weights(operands, values, channel_axis=0, offset_from_run_time=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    matrix: Array
    """Weights as [inputs, outputs]."""
    finish: Finish


_PLANS: PackedConstants[_Plan] = PackedConstants()


def _kernel(descriptor: FullyConnectedDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    data, weights, bias = required_array(arrays, 0), required_array(arrays, 1), optional_array(arrays, 2)
    others = (bias, descriptor, operands.rounding, *operands.inputs, operands.output)
    plan = _PLANS.get(weights, others, lambda: _make_plan(descriptor, operands, weights, bias))
    sums = matrix_product(data.reshape(-1, weights.shape[1]).astype(plan.matrix.dtype), plan.matrix)
    return [plan.finish.apply(sums).reshape(operands.output.shape)]


def _make_plan(descriptor: FullyConnectedDescriptor, operands: Operands, weights: Array, bias: Array | None) -> _Plan:
    matrix = centred(weights, operands.input(1)).T
    finish, dtype = finish_of(operands, descriptor.activation, matrix, bias, channel_axis=0, repeat=1)
    return _Plan(matrix=np.ascontiguousarray(matrix, dtype), finish=finish)


def _terms(_: FullyConnectedDescriptor, operands: Operands) -> int:
    """Return the products that an output element adds up."""
    return operands.input(1).shape[1]


def _macs(descriptor: FullyConnectedDescriptor, operands: Operands) -> int:
    return products(_terms(descriptor, operands), operands.output)


def _sample(sample: LayerSample) -> None:
    depth, keep = sample.dice.randint(1, 33), sample.dice.random() < 0.4
    sample.take((2, 3, depth) if keep else (sample.dice.randint(1, 3), depth))
    sample.weigh((sample.dice.randint(1, 17), depth), 0)
    sample.descriptor = FullyConnectedDescriptor(keep_num_dims=keep, activation=sample.activation())


FULLY_CONNECTED = Operator(
    descriptor=FullyConnectedDescriptor,
    type=LayerType.FULLY_CONNECTED,
    channel_axis=0,
    shapes=_infer,
    check=_check,
    check_values=_check_values,
    kernel=_kernel,
    bound=sums(_terms),
    rules=WEIGHTED_RULES,
    macs=_macs,
    sample=_sample,
)
