# SPDX-License-Identifier: Apache-2.0
"""Workloads of elementwise layers of any type: functions of one and two tensors, comparisons, SELECT_V2 and CAST."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ferrule.backends.gpu_acc.parameters import (
    CODES,
    CastParameters,
    ElementwiseParameters,
    SelectParameters,
    UnaryParameters,
    float_bits,
)
from ferrule.backends.gpu_acc.workloads.launch import KernelWorkload, Launch, Loading
from ferrule.graph import Array, LayerType, Shape
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.broadcast import MAX_AXES
from ferrule.operators.elementwise.binary import BinaryDescriptor, float_limits
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor
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
_UNLIMITED = (-math.inf, math.inf)


def unary(loading: Loading) -> KernelWorkload:
    """Return the workload of a function of one float32 tensor."""
    layer, elements = loading.info.layer, loading.info.operands.output.elements
    low, high = (OPERATORS[layer.type].clamp or Activation.NONE).limits
    parameters = UnaryParameters(
        elements=elements,
        operation=CODES[layer.type],
        slope=float_bits(layer.descriptor.alpha) if isinstance(layer.descriptor, LeakyReluDescriptor) else 0,
        low=float_bits(-math.inf if low is None else low),
        high=float_bits(math.inf if high is None else high),
    )
    return KernelWorkload(loading, Launch(kernel="unary_f32", parameters=parameters, items=(elements,)))


def binary(loading: Loading) -> KernelWorkload:
    """Return the workload of a function of two float32 or int32 tensors."""
    layer, operands = loading.info.layer, loading.info.operands
    is_float = operands.output.dtype.is_float
    activation = layer.descriptor.activation if isinstance(layer.descriptor, BinaryDescriptor) else None
    low, high = _UNLIMITED if activation is None else float_limits(activation)
    return _launch_binary(
        loading,
        "binary_f32" if is_float else "binary_s32",
        replace(
            broadcast_parameters(operands), operation=CODES[layer.type], low=float_bits(low), high=float_bits(high)
        ),
    )


def comparison(loading: Loading) -> KernelWorkload:
    """Return the workload of a comparison of float32, int32 or int64."""
    operands = loading.info.operands
    source = operands.input(0).dtype
    parameters = replace(broadcast_parameters(operands), operation=_RELATIONS[loading.info.layer.type])
    return _launch_binary(loading, f"compare_{'f' if source.is_float else 's'}{8 * source.size_bytes}", parameters)


def pairs(loading: Loading) -> KernelWorkload:
    """Return the workload of a function of two 8-bit tensors; the numpy kernel computes the results of all pairs."""
    layer, operands = loading.info.layer, loading.info.operands
    first, second = (operands.input(index) for index in range(2))
    every = np.arange(256, dtype=np.uint8)
    square = (256, 256)
    infos = Operands(
        inputs=(replace(first, shape=square), replace(second, shape=square)),
        outputs=(replace(operands.output, shape=square),),
    )
    given = [
        np.ascontiguousarray(np.broadcast_to(column, square)).view(info.dtype.numpy)
        for column, info in ((every[:, None], first), (every, second))
    ]
    (results,) = OPERATORS[layer.type].kernel(layer.descriptor, infos, given)
    return _launch_binary(loading, "pairs_8", broadcast_parameters(operands), results)


def select(loading: Loading) -> KernelWorkload:
    """Return the workload of a SELECT_V2 layer."""
    operands = loading.info.operands
    output = operands.output
    strides = [_strides(operands.input(index).shape) for index in range(3)]
    parameters = SelectParameters(
        elements=output.elements,
        extents=_extents(output.shape),
        condition_strides=strides[0],
        first_strides=strides[1],
        second_strides=strides[2],
    )
    kernel = f"select_{8 * output.dtype.size_bytes}"
    return KernelWorkload(
        loading, Launch(kernel=kernel, parameters=parameters, inputs=(0, 1, 2), items=(output.elements,))
    )


def cast(loading: Loading) -> KernelWorkload:
    """Return the workload of a CAST layer."""
    operands = loading.info.operands
    elements = operands.output.elements
    parameters = CastParameters(
        elements=elements, input_type=CODES[operands.input(0).dtype], output_type=CODES[operands.output.dtype]
    )
    return KernelWorkload(loading, Launch(kernel="cast", parameters=parameters, items=(elements,)))


def broadcast_parameters(operands: Operands) -> ElementwiseParameters:
    """Return the parameters of two inputs that broadcast to the output's shape."""
    first, second, output = operands.input(0), operands.input(1), operands.output
    return ElementwiseParameters(
        elements=output.elements,
        same_shape=int(first.shape == second.shape),
        extents=_extents(output.shape),
        first_strides=_strides(first.shape),
        second_strides=_strides(second.shape),
    )


def _launch_binary(
    loading: Loading, kernel: str, parameters: ElementwiseParameters, *constants: Array
) -> KernelWorkload:
    launch = Launch(
        kernel=kernel, parameters=parameters, constants=constants, inputs=(0, 1), items=(parameters.elements,)
    )
    return KernelWorkload(loading, launch)


def _extents(shape: Shape) -> tuple[int, ...]:
    return (1,) * (MAX_AXES - len(shape)) + shape


def _strides(shape: Shape) -> tuple[int, ...]:
    """Return the step in elements of each of six axes; 0 on axes of extent 1."""
    steps: list[int] = []
    step = 1
    for extent in reversed(shape):
        steps.append(0 if extent == 1 else step)
        step *= extent
    return (0,) * (MAX_AXES - len(shape)) + tuple(reversed(steps))
