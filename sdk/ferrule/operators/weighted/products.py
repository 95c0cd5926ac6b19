# SPDX-License-Identifier: Apache-2.0
"""Code shared by CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED: sums of data times weights, plus a bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, Rounding, TensorInfo
from ferrule.graph.real_values import ieee_floats
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import (
    MAX_SHIFT,
    MAX_WIDE_SHIFT,
    Factor,
    activation_range,
    factor_arrays,
    product_scale,
    rescale,
)
from ferrule.operators.arithmetic.packed import PackedConstants
from ferrule.operators.arithmetic.rescaler import Rescaler, Scaling
from ferrule.operators.movement.checks import check_activations, expect_type
from ferrule.operators.operator import Arrays, Kernel, Operands, optional_array, required_array

WEIGHTED_RULES = frozenset({Rounding.TFLM, Rounding.SINGLE, Rounding.ONNX})
"""The rules that kernels compute which sum products."""
_WEIGHTS: dict[DataType, DataType] = {
    DataType.FLOAT32: DataType.FLOAT32,
    DataType.INT8: DataType.INT8,
    DataType.INT16: DataType.INT8,
}
_BIAS: dict[DataType, DataType] = {
    DataType.FLOAT32: DataType.FLOAT32,
    DataType.INT8: DataType.INT32,
    DataType.INT16: DataType.INT64,
}
"""The type of the bias, by type of the data; some operators also allow an int32 bias with int16 data."""
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_EXACT_FLOAT32 = 2.0**24
_EXACT_FLOAT64 = 2.0**53
"""Below these, sums of integers are exact in the two types whatever the order in which BLAS adds."""
_LARGEST: dict[DataType, float] = {DataType.INT8: 2.0**7, DataType.INT16: 2.0**15}
"""The largest magnitude of a stored value; the zero point is a part of the bias instead, see `folded_bias`."""
_LARGEST_DIFFERENCE = {DataType.INT8: 255, DataType.INT16: 1 << 15}
"""The largest magnitude of a stored value minus its zero point."""
_SUM_LIMITS = np.array([[-(2**31)], [2**31 - 1]], np.int64)
_WEIGHTS_AT, _BIAS_AT = 1, 2
"""Positions among the inputs."""
Finish = Callable[[Array], Array]
"""The last stage of a weighted operator: converts rows of sums of products, which it may change, to stored values."""


def bias_info(operands: Operands) -> TensorInfo | None:
    """Return the tensor info of the bias; None if there is no bias."""
    return operands.inputs[2] if len(operands.inputs) > 2 else None


def is_wide(operands: Operands) -> bool:
    """Whether accumulators have 64 bits and are rounded once, as with int16 data unless the bias is int32."""
    bias = bias_info(operands)
    return operands.output.dtype is DataType.INT16 and (bias is None or bias.dtype is not DataType.INT32)


def check_weighted(
    descriptor: Any,  # noqa: ANN401 each operator has its own
    operands: Operands,
    *,
    channel_axis: int,
    narrow_bias: bool = False,
) -> None:
    """Check the types and quantisations of data (input 0), weights (input 1), bias (input 2) and output.

    `narrow_bias` allows an int32 bias with int16 data.

    Raises:
        UnsupportedError: a tensor has a type, scale or zero point that the reference kernels do not support.
    """
    data, weights, bias, output = operands.source, operands.input(1), bias_info(operands), operands.output
    expect_type(data, *_WEIGHTS)
    _expect_dtype(weights, _WEIGHTS[data.dtype], data)
    _expect_dtype(output, data.dtype, data)
    if bias is not None:
        if not (narrow_bias and data.dtype is DataType.INT16 and bias.dtype is DataType.INT32):
            _expect_dtype(bias, _BIAS[data.dtype], data)
        channels = weights.shape[channel_axis]
        if bias.elements != channels:
            raise UnsupportedError(f"bias '{bias.name}' has {bias.elements} elements, expected {channels}")
    if data.dtype.is_float:
        return
    check_activations(data, output)
    _check_weights_quantization(weights, data, channel_axis)
    activation_range(descriptor.activation, output)
    factors(operands, channel_axis)


def check_weights(
    _: Descriptor, operands: Operands, values: Arrays, *, channel_axis: int, offset_from_run_time: bool = False
) -> None:
    """Check weights and bias: those that are constants by their values, those from run time for any value.

    Weights from run time are accepted, with a zero point only if `offset_from_run_time`. A bias of integers from run
    time is not: with some values, the accumulator of the reference kernels overflows.

    Raises:
        UnsupportedError: weights are not finite, the bias must be a constant, or a sum of products may overflow.
    """
    info, weights = operands.input(_WEIGHTS_AT), values[_WEIGHTS_AT]
    if info.dtype.is_float:
        if weights is not None:
            _check_finite(info, weights)
        return
    if weights is None and has_zero_point(info) and not offset_from_run_time:
        raise UnsupportedError(
            f"weights '{info.name}' have a zero point that is not 0 and are computed at run time, expected a constant"
        )
    bias_of, bias = bias_info(operands), optional_array(values, _BIAS_AT)
    if bias_of is not None and bias is None:
        raise UnsupportedError(
            f"bias '{bias_of.name}' is {bias_of.dtype} and computed at run time, expected a constant: "
            "with some values, a sum would overflow",
            hint="add the computed values by a layer of its own, such as ADD",
        )
    largest = _LARGEST_DIFFERENCE[operands.source.dtype]
    channels = info.shape[channel_axis]
    offsets = np.zeros(channels, np.int64) if bias is None else np.abs(bias.reshape(-1).astype(np.int64))
    magnitudes = np.full(channels, info.elements // channels * _largest_weight(info), np.int64)
    bits = 47 if is_wide(operands) else 31
    if weights is not None and int((magnitudes * largest + offsets).max()) >= 1 << bits:
        axes = tuple(axis for axis in range(weights.ndim) if axis != channel_axis)
        magnitudes = np.abs(centred(weights, info).astype(np.int64)).sum(axis=axes)
    reach = magnitudes * largest + offsets
    if operands.source.dtype is DataType.INT8 and int(reach.max()) >= 1 << bits:
        reach[has_one_result(operands, channel_axis)] = 0
    check_reach(operands, int(reach.max()), bits)


def has_one_result(operands: Operands, channel_axis: int) -> Array:
    """Return per channel of int8 data whether all sums of 32 bits have one result, as dead channels have."""
    found = factors(operands, channel_axis)
    multipliers, shifts = factor_arrays(found)
    low, high = rescale(np.repeat(_SUM_LIMITS, len(found), axis=1), multipliers, shifts, operands.rounding)
    same: Array = (low == high) & (shifts <= 0)  # a shift to the left wraps
    return same


def check_rows(operands: Operands, matrix: Array, bias: Array | None, *, largest: int, bits: int) -> None:
    """Refuse weights [channels, products] if a sum may overflow; `largest` is the greatest magnitude of the data."""
    magnitudes = np.abs(matrix.astype(np.int64)).sum(axis=1) * largest
    check_reach(operands, int((magnitudes + (0 if bias is None else np.abs(bias.astype(np.int64)))).max()), bits)


def check_reach(operands: Operands, reach: int, bits: int) -> None:
    """Refuse sums whose magnitude may reach 2**bits, since the reference kernels' result would then be undefined."""
    if reach >= 1 << bits:
        raise UnsupportedError(
            f"a sum of products of '{operands.output.name}' may reach {reach}, expected less than 2**{bits}"
        )


def _largest_weight(info: TensorInfo) -> int:
    """Return the largest magnitude of a stored weight minus its zero point."""
    limits = np.iinfo(info.dtype.numpy)
    zero_point = info.zero_point if has_zero_point(info) else 0
    return int(max(limits.max - zero_point, zero_point - limits.min))


def _check_finite(info: TensorInfo, weights: Array) -> None:
    """Refuse infinities and NaN in constant weights: whether these reach padded pixels is up to each kernel."""
    wrong = np.flatnonzero(~np.isfinite(weights))
    if wrong.size:
        raise UnsupportedError(
            f"weights '{info.name}' have {wrong.size} infinities or NaN, the first at element {wrong[0]}; "
            "expected finite numbers"
        )


def required_constants(operands: Operands, values: Arrays, positions: Sequence[int]) -> list[Array]:
    """Return the constants at these positions; UnsupportedError if one is computed at run time."""
    found = []
    for position in positions:
        data = values[position]
        if data is None:
            name = operands.input(position).name
            raise UnsupportedError(f"tensor '{name}' is computed at run time, expected a constant")
        found.append(data)
    return found


def _expect_dtype(info: TensorInfo, wanted: DataType, data: TensorInfo) -> None:
    if info.dtype is not wanted:
        raise UnsupportedError(
            f"tensor '{info.name}' is {info.dtype}, expected {wanted} because the data '{data.name}' is {data.dtype}"
        )


def _check_weights_quantization(weights: TensorInfo, data: TensorInfo, channel_axis: int) -> None:
    quantization = weights.quantization
    if quantization is None:
        raise UnsupportedError(f"weights '{weights.name}' are {weights.dtype} without quantisation, expected scales")
    if has_zero_point(weights) and (data.dtype is not DataType.INT8 or quantization.per_channel):
        raise UnsupportedError(
            f"weights '{weights.name}' have a zero point that is not 0, expected symmetric weights, "
            "or int8 data and one scale"
        )
    if quantization.per_channel and quantization.axis != channel_axis:
        raise UnsupportedError(
            f"weights '{weights.name}' have scales per index of axis {quantization.axis}, expected axis {channel_axis}"
        )


def has_zero_point(weights: TensorInfo) -> bool:
    """Whether weights have a zero point that is not 0, as those of uint8 models have."""
    return weights.quantization is not None and any(weights.quantization.zero_points)


def centred(weights: Array, info: TensorInfo) -> Array:
    """Return stored weights minus their zero point: as they are if it is 0, otherwise as int16."""
    if not has_zero_point(info):
        return weights
    return weights.astype(np.int16) - np.int16(info.zero_point)


@lru_cache(maxsize=64)  # lowering asks for each candidate and for each phase of a transposed convolution
def factors(operands: Operands, channel_axis: int) -> tuple[Factor, ...]:
    """Return the output multiplier of each channel, for the layer's rule."""
    data, weights, output = *operands.pair, operands.output
    channels = weights.shape[channel_axis]
    quantization = weights.quantization
    if quantization is None:
        raise UnsupportedError(f"weights '{weights.name}' have no quantisation, expected scales")
    largest = MAX_WIDE_SHIFT if is_wide(operands) else MAX_SHIFT
    scales = quantization.scales if quantization.per_channel else quantization.scales[:1]
    name = "input scale times weight scale over the scale"
    found = tuple(
        Factor.of(product_scale(data.scale, scale, output, operands.rounding), output, largest, name=name)
        for scale in scales
    )
    return found if quantization.per_channel else found * channels


def folded_bias(weight_sums: Array, bias: Array | None, zero_point: int) -> Array:
    """Return the bias plus the contribution of the data's zero point, as int64 per channel."""
    offset = -zero_point * weight_sums.astype(np.int64)
    return offset if bias is None else offset + bias.astype(np.int64).reshape(-1)


def clamp_float(values: Array, activation: Activation) -> Array:
    """Clamp float values in place to the limits of an activation or, if it has none, of float32, and return them."""
    lower, upper = activation.limits
    np.maximum(values, -_LARGEST_FLOAT32 if lower is None else lower, out=values)
    np.minimum(values, _LARGEST_FLOAT32 if upper is None else upper, out=values)
    return values


def finish_of(
    operands: Operands, activation: Activation, matrix: Array, bias: Array | None, *, channel_axis: int, repeat: int
) -> tuple[Finish, np.dtype[np.float32] | np.dtype[np.float64]]:
    """Return the last step of the sums, and the smallest float type in which they are exact; float32 sums are float64.

    The sums are those of stored (not offset) data. `matrix` is the weights as [products, channels], `channel_axis` that
    of the weights' tensor, and `repeat` the number of pixels in a row.
    """
    data, output = operands.ends
    if data.dtype.is_float:
        row = None if bias is None else np.tile(bias.astype(np.float64).reshape(-1), repeat)

        def finish(sums: Array) -> Array:
            if row is not None:
                sums += row
            return clamp_float(sums, activation).astype(np.float32)

        return finish, np.dtype(np.float64)
    multipliers, shifts = factor_arrays(factors(operands, channel_axis))
    low, high = activation_range(activation, output)
    scaling = Scaling(
        multipliers=multipliers,
        shifts=shifts,
        bias=folded_bias(matrix.sum(axis=0, dtype=np.int64), bias, data.zero_point),
        zero_point=output.zero_point,
        low=low,
        high=high,
        dtype=output.dtype.numpy,
        wide=is_wide(operands),
        rounding=operands.rounding,
    )
    bound = np.abs(matrix.astype(np.int64)).sum(axis=0) * _LARGEST[data.dtype]
    most = float(bound.max())
    if most >= _EXACT_FLOAT64:
        raise UnsupportedError(f"a sum of products may reach {most:g}, expected less than 2**53")
    dtype = np.dtype(np.float32) if most < _EXACT_FLOAT32 else np.dtype(np.float64)
    return Rescaler(scaling, bound, repeat).apply, dtype


Packed = tuple[Array, Array]
"""Weights as [products, channels], and as the kernel reads them."""


@frozen(eq=False)
class Plan:
    """What the kernel of a weighted operator makes once of constant weights."""

    weights: Array
    """As the operator packs them, in the float type in which sums of products are exact."""
    fill: int
    """The value of pixels around the image."""
    finish: Finish


def weighted_kernel(
    pack: Callable[[Array, Operands], Packed],
    sums: Callable[[Any, Operands, Array, Plan], Array],
    *,
    channel_axis: int,
    by_row: bool = True,
) -> Kernel:
    """Return the kernel of a weighted operator.

    `pack` gets the weights minus their zero point, and `sums` the descriptor, the data and what was packed; it returns
    the sums of products as [rows, width * channels] of an image, or as [rows, channels] unless `by_row`.
    """
    plans: PackedConstants[Plan] = PackedConstants()

    def kernel(descriptor: Any, operands: Operands, arrays: Arrays) -> list[Array]:  # noqa: ANN401 as for `Kernel`
        weights, bias = required_array(arrays, 1), optional_array(arrays, 2)
        info, output = operands.ends

        def make() -> Plan:
            matrix, packed = pack(centred(weights, operands.input(1)), operands)
            repeat = output.shape[2] if by_row else 1
            finish, dtype = finish_of(
                operands, descriptor.activation, matrix, bias, channel_axis=channel_axis, repeat=repeat
            )
            fill = 0 if info.dtype.is_float else info.zero_point
            return Plan(weights=np.ascontiguousarray(packed, dtype), fill=fill, finish=finish)

        plan = plans.get(weights, (bias, descriptor, operands.rounding, *operands.inputs, output), make)
        with ieee_floats():
            found = sums(descriptor, operands, required_array(arrays, 0), plan)
            return [plan.finish(found).reshape(output.shape)]

    return kernel


def row_terms(_: Descriptor, operands: Operands) -> int:
    """Return the most products that an output element adds up, for weights whose first axis has the channels."""
    weights = operands.input(1)
    return weights.elements // weights.shape[0]


def products_of(terms: Callable[[Any, Operands], int]) -> Callable[[Any, Operands], int]:
    """Return the multiply-accumulates of an operator that adds up so many products for each element of the output."""
    return lambda descriptor, operands: terms(descriptor, operands) * operands.output.elements
