# SPDX-License-Identifier: Apache-2.0
"""Launches for layers of rows: SOFTMAX, L2_NORMALIZATION and LOG_SOFTMAX; and for reductions."""

from __future__ import annotations

import numpy as np

from ferrule.backends.gpu_acc.parameters import CODES, float_bits, parameters
from ferrule.backends.gpu_acc.workloads.launch import Launch, Loading
from ferrule.graph import Array, LayerType
from ferrule.operators.arithmetic.fixed_point import multiply_by_quantized_multiplier, rounding_divide_by_pot
from ferrule.operators.reductions.arg_select import ArgSelectDescriptor
from ferrule.operators.reductions.log_softmax import Scaling, radius
from ferrule.operators.reductions.reduce import ReduceDescriptor, divisor, reduced_count, rescaling
from ferrule.operators.reductions.softmax import SoftmaxDescriptor, exponentials

_LARGEST = frozenset({LayerType.ARG_MAX, LayerType.REDUCE_ANY, LayerType.REDUCE_MAX})


def normalize_float(loading: Loading) -> Launch:
    """Return the launch for a layer of float32."""
    descriptor = loading.layer.descriptor
    beta = descriptor.beta if isinstance(descriptor, SoftmaxDescriptor) else 1.0
    return _by_row(loading, "normalize_f32", operation=CODES[loading.layer.type], scale=float_bits(beta))


def l2_normalization(loading: Loading) -> Launch:
    """Return the launch for an int8 L2_NORMALIZATION layer."""
    return _by_row(loading, "l2_normalization_s8", zero_point=loading.operands.source.zero_point)


def softmax(loading: Loading) -> Launch:
    """Return the launch for an int8 SOFTMAX layer."""
    descriptor = loading.layer.descriptor
    assert isinstance(descriptor, SoftmaxDescriptor)
    known = exponentials(descriptor.beta, loading.operands.source.scale)
    return _by_row(loading, "softmax_s8", np.pad(known, (0, 256 - known.size)))


def log_softmax(loading: Loading) -> Launch:
    """Return the launch for an int8 LOG_SOFTMAX layer."""
    scale = loading.operands.source.scale
    scaling, known = Scaling.of(scale), exponentials(1.0, scale)
    differences = np.zeros((256, 2), np.int32)
    differences[: known.size, 0] = rounding_divide_by_pot(known, 12)
    differences[:, 1] = multiply_by_quantized_multiplier(-np.arange(256), scaling.multiplier, scaling.shift)
    return _by_row(
        loading,
        "log_softmax_s8",
        differences,
        multiplier=scaling.reverse_multiplier,
        shift=scaling.reverse_shift,
        least=-radius(scaling) - 1,
    )


def _by_row(loading: Loading, kernel: str, *constants: Array, **members: int) -> Launch:
    source = loading.operands.source
    length = source.shape[-1]
    packed = parameters("row_parameters", items=source.elements // length, length=length, **members)
    return Launch(kernel=kernel, parameters=packed, constants=constants)


def reduction(loading: Loading) -> Launch:
    """Return the launch for REDUCE_MAX, REDUCE_MIN, REDUCE_ANY or REDUCE_ALL; false is less than true."""
    return _reduce(loading, "reduce")


def place(loading: Loading) -> Launch:
    """Return the launch for ARG_MAX or ARG_MIN."""
    return _reduce(loading, "place")


def total(loading: Loading) -> Launch:
    """Return the launch for MEAN or SUM."""
    layer, operands = loading.layer, loading.operands
    descriptor, source = layer.descriptor, operands.source
    assert isinstance(descriptor, ReduceDescriptor)
    if source.dtype.is_float:
        return _reduce(loading, "total", divisor=divisor(layer.type, descriptor, source))
    multiplier, shift = rescaling(layer.type, descriptor, operands)
    offset = -source.zero_point * reduced_count(descriptor, source)
    zero_point = operands.output.zero_point
    return _reduce(loading, "total", multiplier=multiplier, shift=shift, offset=offset, zero_point=zero_point)


def _reduce(loading: Loading, kernel: str, **members: int) -> Launch:
    source, output, descriptor = loading.operands.source, loading.operands.output, loading.layer.descriptor
    assert isinstance(descriptor, ArgSelectDescriptor | ReduceDescriptor)
    axes = (descriptor.axis,) if isinstance(descriptor, ArgSelectDescriptor) else descriptor.axes
    kept = [axis for axis in range(len(source.shape)) if axis not in axes]
    numbers = np.arange(source.elements, dtype=np.int32).reshape(source.shape)
    rows = numbers.transpose(*kept, *axes).reshape(output.elements, -1)
    return Launch(
        kernel=f"{kernel}_{'f32' if source.dtype.is_float else 's8'}",
        parameters=parameters(
            "reduce_parameters",
            items=output.elements,
            count=rows.shape[1],
            largest=int(loading.layer.type in _LARGEST),
            **members,
        ),
        constants=(rows[:, 0], rows[0] - rows[0, 0]),
    )
