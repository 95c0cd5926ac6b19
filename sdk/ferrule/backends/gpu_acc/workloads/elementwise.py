# SPDX-License-Identifier: Apache-2.0
"""Launches for elementwise layers: arithmetic, functions of one and two tensors, comparisons, tables and CAST."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace

import numpy as np

from ferrule.backends.gpu_acc.parameters import CODES, float_bits, parameters
from ferrule.backends.gpu_acc.workloads.launch import Launch, Loading
from ferrule.graph import Array, DataType, LayerType, Shape
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.broadcast import MAX_AXES
from ferrule.operators.elementwise.binary import BinaryDescriptor, float_limits
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor
from ferrule.operators.elementwise.stored_binary import product_of, sum_of
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS

_LESS, _EQUAL, _GREATER, _UNORDERED = 1, 2, 4, 8
_RELATIONS: Mapping[LayerType, int] = {
    LayerType.EQUAL: _EQUAL,
    LayerType.GREATER: _GREATER,
    LayerType.GREATER_EQUAL: _GREATER | _EQUAL,
    LayerType.LESS: _LESS,
    LayerType.LESS_EQUAL: _LESS | _EQUAL,
    LayerType.NOT_EQUAL: _LESS | _GREATER | _UNORDERED,
}
COMPARISONS = tuple(_RELATIONS)


def unary(loading: Loading) -> Launch:
    """Return the launch for a function of one float32 tensor."""
    layer = loading.layer
    low, high = (OPERATORS[layer.type].clamp or Activation.NONE).limits
    packed = parameters(
        "elementwise_parameters",
        items=loading.operands.output.elements,
        operation=CODES[layer.type],
        factor=float_bits(layer.descriptor.alpha) if isinstance(layer.descriptor, LeakyReluDescriptor) else 0,
        low=float_bits(-math.inf if low is None else low),
        high=float_bits(math.inf if high is None else high),
    )
    return Launch(kernel="unary_f32", parameters=packed)


def binary(loading: Loading) -> Launch:
    """Return the launch for a function of two float32 or int32 tensors."""
    layer = loading.layer
    activation = layer.descriptor.activation if isinstance(layer.descriptor, BinaryDescriptor) else None
    low, high = (-math.inf, math.inf) if activation is None else float_limits(activation)
    return _broadcast(
        loading,
        "binary_f32" if loading.operands.output.dtype.is_float else "binary_s32",
        operation=CODES[layer.type],
        low=float_bits(low),
        high=float_bits(high),
    )


def comparison(loading: Loading) -> Launch:
    """Return the launch for a comparison of float32, int32 or int64."""
    source = loading.operands.source.dtype
    kernel = f"compare_{'f' if source.is_float else 's'}{8 * source.size_bytes}"
    return _broadcast(loading, kernel, operation=_RELATIONS[loading.layer.type])


def select(loading: Loading) -> Launch:
    """Return the launch for a SELECT_V2 layer."""
    return _broadcast(loading, f"select_{8 * loading.operands.output.dtype.size_bytes}")


def extremum(loading: Loading) -> Launch:
    """Return the launch for an int8 MAXIMUM or MINIMUM layer."""
    return _broadcast(loading, f"{loading.layer.type.lower()}_s8")


def arithmetic(loading: Loading) -> Launch:
    """Return the launch for an int8 ADD, SUB or MUL layer."""
    layer, operands = loading.layer, loading.operands
    descriptor = layer.descriptor
    assert isinstance(descriptor, BinaryDescriptor)
    if layer.type is LayerType.MUL:
        product = product_of(operands, descriptor.activation)
        offsets = {"first_offset": product.first_offset, "second_offset": product.second_offset}
        return _broadcast(loading, "product_s8", **offsets, **asdict(product.result))
    total = sum_of(operands, descriptor.activation, subtract=layer.type is LayerType.SUB)
    return _broadcast(
        loading,
        "sum_s8",
        first_offset=total.first.offset,
        second_offset=total.second.offset,
        left_shift=total.first.left_shift,
        first_multiplier=total.first.multiplier,
        first_shift=total.first.shift,
        second_multiplier=total.second.multiplier,
        second_shift=total.second.shift,
        subtract=int(total.subtract),
        **asdict(total.result),
    )


def pairs(loading: Loading) -> Launch:
    """Return the launch for a function of two 8-bit tensors; the numpy kernel computes the results of all pairs."""
    every = np.arange(256, dtype=np.uint8)
    return _broadcast(loading, "pairs_8", _results(loading, *np.meshgrid(every, every, indexing="ij")))


def table(loading: Loading) -> Launch:
    """Return the launch for a function of one 8-bit value; the numpy kernel computes its table."""
    output = loading.operands.output
    return Launch(
        kernel="table_s8_f32" if output.dtype is DataType.FLOAT32 else "table_s8",
        parameters=parameters("elementwise_parameters", items=output.elements),
        constants=(_results(loading, np.arange(-128, 128).astype(np.uint8)),),
    )


def _results(loading: Loading, *stored: Array) -> Array:
    """Return the numpy kernel's results for inputs with these bytes."""
    shape = stored[0].shape
    infos = Operands(
        tuple(replace(loading.operands.input(index), shape=shape) for index in range(len(stored))),
        (replace(loading.operands.output, shape=shape),),
    )
    given = [each.view(infos.input(index).dtype.numpy) for index, each in enumerate(stored)]
    (results,) = OPERATORS[loading.layer.type].kernel(loading.layer.descriptor, infos, given)
    return results


def quantize(loading: Loading) -> Launch:
    """Return the launch for a QUANTIZE layer of float32."""
    output = loading.operands.output
    packed = parameters(
        "elementwise_parameters",
        items=output.elements,
        factor=float_bits(output.scale),
        zero_point=output.zero_point,
    )
    return Launch(kernel="quantize_f32_s8", parameters=packed)


def cast(loading: Loading) -> Launch:
    """Return the launch for a CAST layer."""
    source, output = loading.operands.source.dtype, loading.operands.output
    packed = parameters(
        "elementwise_parameters",
        items=output.elements,
        input_type=CODES[source],
        output_type=CODES[output.dtype],
    )
    return Launch(kernel="cast", parameters=packed)


def _broadcast(loading: Loading, kernel: str, *constants: Array, **members: int) -> Launch:
    """Return the launch for inputs that broadcast to the output's shape, which becomes parameters beside `members`."""
    output, count = loading.operands.output, len(loading.layer.inputs)
    shapes = [loading.operands.input(index).shape for index in range(count)]
    return Launch(
        kernel=kernel,
        parameters=parameters(
            "elementwise_parameters",
            items=output.elements,
            same_shape=int(len(set(shapes)) == 1),
            extents=(1,) * (MAX_AXES - len(output.shape)) + output.shape,
            first_strides=_strides(shapes[0]),
            second_strides=_strides(shapes[1]),
            third_strides=_strides(shapes[-1]),
            **members,
        ),
        constants=constants,
        inputs=tuple(range(count)),
    )


def _strides(shape: Shape) -> tuple[int, ...]:
    """Return the step in elements of each of six axes; 0 on axes of extent 1."""
    steps = [0 if extent == 1 else math.prod(shape[axis + 1 :]) for axis, extent in enumerate(shape)]
    return (0,) * (MAX_AXES - len(shape)) + tuple(steps)
