# SPDX-License-Identifier: Apache-2.0
"""SVDF: a layer of filters, each of which has a factor over the features of a frame and one over the past frames."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization
from ferrule.graph.real_values import ieee_floats, saturated
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.blas import matrix_product
from ferrule.operators.arithmetic.error_bound import sums
from ferrule.operators.arithmetic.fixed_point import (
    Factor,
    activation_range,
    wrap_int32,
)
from ferrule.operators.movement.checks import check_activations, check_alike, expect_type
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, required_arrays
from ferrule.operators.sample import LayerSample
from ferrule.operators.weighted.products import check_rows, clamp_float, required_constants

_LARGEST_DATA = 256
"""A bound on the magnitude of a stored value minus its zero point, plus that of the zero point."""
_BIAS_TOLERANCE = 1e-5
"""Limit on the difference of the bias and product scales (as in TensorFlow Lite Micro)."""
STATE = 4
"""The position of the state among the inputs; its new value is output 1."""


@frozen
class SvdfDescriptor(Descriptor):
    """Inputs: data [B, D], feature weights [F, D], time weights [F, M], optional bias [F / rank], state [B, F * M].

    Outputs: [B, F / rank], and the new state.
    """

    rank: int
    """Filters whose results are added up for a unit of the output."""
    activation: Activation = Activation.NONE


def _infer(descriptor: SvdfDescriptor, operands: Operands) -> Shapes:
    data, feature, time, state = operands.required((0, 1, 2, STATE))
    for info in (data, feature, time):
        if len(info.shape) != 2:
            raise UnsupportedError(f"tensor '{info.name}' has shape {list(info.shape)}, expected 2 axes")
    (batches, depth), (filters, memory) = data.shape, time.shape
    if descriptor.rank < 1 or filters % descriptor.rank:
        raise ModelError(f"its rank is {descriptor.rank}, expected a divisor of its {filters} filters")
    if feature.shape != (filters, depth):
        raise ModelError(f"weights '{feature.name}' have shape {list(feature.shape)}, expected {[filters, depth]}")
    if state.shape != (batches, filters * memory):
        raise ModelError(f"state '{state.name}' has shape {list(state.shape)}, expected {[batches, filters * memory]}")
    units, bias = filters // descriptor.rank, operands.inputs[3]
    if bias is not None and bias.elements != units:
        raise ModelError(f"bias '{bias.name}' has {bias.elements} elements, expected {units}")
    return (batches, units), state.shape


def _check(descriptor: SvdfDescriptor, operands: Operands) -> None:
    data, feature, time, state = operands.required((0, 1, 2, STATE))
    bias, output = operands.inputs[3], operands.output
    expect_type(data, DataType.FLOAT32, DataType.INT8)
    wide = data.dtype is DataType.INT8 and time.dtype is DataType.INT16
    expect_type(feature, data.dtype)
    expect_type(time, DataType.INT16 if wide else data.dtype)
    expect_type(state, time.dtype)
    expect_type(output, data.dtype)
    if bias is not None:
        expect_type(bias, data.dtype if data.dtype.is_float else DataType.INT32)
    check_alike(operands.outputs[1], state)
    if data.dtype.is_float:
        return
    check_activations(data, state, output, feature, time)
    for info in (feature, time):
        if info.zero_point != 0:
            raise UnsupportedError(f"weights '{info.name}' have zero point {info.zero_point}, expected 0")
    if activation_range(descriptor.activation, output) != (-128, 127):
        raise UnsupportedError(
            f"the activation {descriptor.activation} limits the values of '{output.name}', "
            "expected one that its quantisation implies: the reference kernel ignores it"
        )
    if bias is not None:
        scale = 0.0 if bias.quantization is None else bias.scale
        wanted = state.scale * time.scale
        if abs(scale - wanted) >= _BIAS_TOLERANCE:
            raise UnsupportedError(f"bias '{bias.name}' has scale {scale:g}, expected {wanted:g}")
    svdf_factors(operands)


def _check_values(_: SvdfDescriptor, operands: Operands, values: Arrays) -> None:
    """Refuse weights and biases from run time, and weights with which a sum may overflow."""
    present = [position for position in (1, 2, 3) if operands.inputs[position] is not None]
    feature = required_constants(operands, values, present)[0]
    if not operands.source.dtype.is_float:
        check_rows(operands, feature, None, largest=_LARGEST_DATA, bits=31)


def svdf_factors(operands: Operands) -> tuple[Factor, Factor]:
    """Return the factors that scale the sums over features to the state, and those over time to the output."""
    data, feature, time, state = operands.required((0, 1, 2, STATE))
    return (
        Factor.of(data.scale * feature.scale / state.scale, state),
        Factor.of(state.scale * time.scale / operands.output.scale, operands.output),
    )


def _kernel(descriptor: SvdfDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    data, _, time, old = required_arrays(arrays, (0, 1, 2, STATE))
    new = np.empty((data.shape[0], *time.shape), old.dtype)
    new[..., :-1] = old.reshape(new.shape)[..., 1:]
    compute = _float if data.dtype == np.float32 else _integer
    return [compute(descriptor, operands, arrays, new), new.reshape(old.shape)]


def _float(descriptor: SvdfDescriptor, operands: Operands, arrays: Arrays, new: Array) -> Array:
    data, feature, time = required_arrays(arrays, range(3))
    with ieee_floats():
        new[..., -1] = matrix_product(data.astype(np.float64), feature.astype(np.float64).T)
        units = _by_unit(new.astype(np.float64) * time, operands, arrays)
        return clamp_float(units, descriptor.activation).astype(np.float32)


def _integer(_: SvdfDescriptor, operands: Operands, arrays: Arrays, new: Array) -> Array:
    data, feature, time = required_arrays(arrays, range(3))
    to_state, to_output = svdf_factors(operands)
    state, output, limits = operands.input(STATE), operands.output, np.iinfo(new.dtype)
    centred = data.astype(np.int64) - operands.source.zero_point
    scaled = to_state.apply(wrap_int32(matrix_product(centred, feature.astype(np.int64).T)))
    new[..., -1] = (np.clip(scaled, limits.min, limits.max) + state.zero_point).astype(new.dtype)  # may wrap
    units = _by_unit((new.astype(np.int64) - state.zero_point) * time, operands, arrays)
    return saturated(wrap_int32(to_output.apply(wrap_int32(units)) + output.zero_point), np.int8)


def _by_unit(products: Array, operands: Operands, arrays: Arrays) -> Array:
    """Return the sums of the products of all frames and of a unit's filters, plus the bias."""
    units: Array = products.sum(axis=2).reshape(*operands.output.shape, -1).sum(axis=2)
    if arrays[3] is not None:
        units += arrays[3]
    return units


def _terms(_: SvdfDescriptor, operands: Operands) -> int:
    """Return the roundings on the way to an output element: those of a feature, and those of the sum over time."""
    features, (filters, memory) = operands.input(1).shape[1], operands.input(2).shape
    return features + filters * memory // operands.output.shape[-1]


def _macs(_: SvdfDescriptor, operands: Operands) -> int:
    data, state = operands.source, operands.input(STATE)
    return data.elements * operands.input(1).shape[0] + state.elements


def _sample(sample: LayerSample) -> Descriptor:
    dice = sample.dice
    batches, depth, units = dice.choice([1, 1, 2]), dice.randint(1, 20), dice.randint(1, 6)
    memory, rank = dice.randint(1, 9), dice.choice([1, 1, 2, 3])
    filters, narrow = units * rank, sample.dtype
    wide = DataType.INT16 if sample.dtype is DataType.INT8 and dice.random() < 0.6 else sample.dtype
    scales = [dice.choice([0.004, 0.01, 0.02]) for _ in range(3)]
    quantized = [Quantization.of(scale) if narrow.is_quantizable else None for scale in scales]
    data = sample.take((batches, depth))
    sample.hold("feature", sample.array((filters, depth), narrow), quantized[0])
    sample.hold("time", sample.array((filters, memory), wide), quantized[1])
    summed = None if narrow.is_float else Quantization.of(float(np.float32(scales[1]) * np.float32(scales[2])))
    sample.hold("bias", sample.array((units,), narrow if narrow.is_float else DataType.INT32, -3000, 3000), summed)
    state = sample.quantization(wide, scales[2]) if wide is not DataType.INT16 else quantized[2]
    sample.add("state", (batches, filters * memory), wide, state)
    sample.output = None if data.quantization is None else sample.quantization(narrow, 20 * scales[1])
    sample.further = [(wide, state)]
    return SvdfDescriptor(rank=rank, activation=sample.activation() if narrow.is_float else Activation.NONE)


SVDF = Operator(
    descriptor=SvdfDescriptor,
    type=LayerType.SVDF,
    shapes=_infer,
    check=_check,
    check_values=_check_values,
    kernel=_kernel,
    bound=sums(_terms),
    macs=_macs,
    sample=_sample,
)
