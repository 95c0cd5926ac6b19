# SPDX-License-Identifier: Apache-2.0
"""FULLY_CONNECTED."""

from __future__ import annotations

from functools import partial

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Descriptor, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.blas import matrix_product
from ferrule.operators.arithmetic.error_bound import sums
from ferrule.operators.operator import Operands, Operator, Shapes
from ferrule.operators.sample import LayerSample
from ferrule.operators.weighted.products import (
    WEIGHTED_RULES,
    Packed,
    Plan,
    bias_info,
    check_weighted,
    check_weights,
    products_of,
    row_terms,
    weighted_kernel,
)

_BIAS_TOLERANCE = 0.02
"""Limit on the difference of the bias and product scales, relative to the output's scale (as in TensorFlow Lite)."""


@frozen
class FullyConnectedDescriptor(Descriptor):
    """Inputs: data whose elements are a multiple of D, weights [O, D], optional bias [O]. One output."""

    keep_num_dims: bool = False
    """Keep all dimensions of the input except the last in the output; if False, the output is [batch, O]."""
    activation: Activation = Activation.NONE


def _infer(descriptor: FullyConnectedDescriptor, operands: Operands) -> Shapes:
    data, weights = operands.pair
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
    check_weighted(descriptor, operands, channel_axis=0, narrow_bias=True)
    data, weights, bias = operands.source, operands.input(1), bias_info(operands)
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


def _pack(weights: Array, _: Operands) -> Packed:
    return weights.T, weights.T


def _sums(_: FullyConnectedDescriptor, operands: Operands, data: Array, plan: Plan) -> Array:
    rows = data.reshape(-1, operands.input(1).shape[1])
    return matrix_product(rows.astype(plan.weights.dtype), plan.weights)


def _sample(sample: LayerSample) -> Descriptor:
    depth, keep = sample.dice.randint(1, 33), sample.dice.random() < 0.4
    sample.take((2, 3, depth) if keep else (sample.dice.randint(1, 3), depth))
    sample.weigh((sample.dice.randint(1, 17), depth), 0)
    return FullyConnectedDescriptor(keep_num_dims=keep, activation=sample.activation())


FULLY_CONNECTED = Operator(
    descriptor=FullyConnectedDescriptor,
    type=LayerType.FULLY_CONNECTED,
    channel_axis=0,
    shapes=_infer,
    check=_check,
    check_values=partial(check_weights, channel_axis=0, offset_from_run_time=True),
    kernel=weighted_kernel(_pack, _sums, channel_axis=0, by_row=False),
    bound=sums(row_terms),
    rules=WEIGHTED_RULES,
    macs=products_of(row_terms),
    sample=_sample,
)
