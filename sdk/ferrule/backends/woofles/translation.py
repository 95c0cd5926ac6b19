# SPDX-License-Identifier: Apache-2.0
"""Translation of a layer to a command of Woofles and the constants of the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.woofles import arithmetic
from ferrule.backends.woofles.command import Command, Operation, ShapeError
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Graph, Layer, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import activation_range
from ferrule.operators.elementwise.binary import BinaryDescriptor, combination_of
from ferrule.operators.elementwise.stored_binary import Product, Sum
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.conv2d import Conv2dDescriptor, groups_of
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted.products import bias_info, factors, has_zero_point

Constants = Sequence[Array | None]


@frozen(eq=False)
class Work:
    """A layer as a command without addresses, and its constants."""

    command: Command
    weights: Array | None = None
    """int8 weights; None for ADD and MUL, whose second operand is a computed tensor."""
    bias: Array | None = None
    """int32 per output channel; None if there is none."""
    multipliers: Array | None = None
    """int32 per output channel; None for ADD and MUL."""
    shifts: Array | None = None
    """int32 per output channel; None for ADD and MUL."""


def translate(layer: Layer, operands: Operands, constants: Constants) -> Work:
    """Return the command and constants of a layer; `constants` has the data of each constant input, None for others.

    Raises:
        UnsupportedError: Woofles cannot run the layer; the message names the tensor, type or parameter.
    """
    translation = _TRANSLATIONS.get(layer.type)
    if translation is None:
        known = ", ".join(_TRANSLATIONS)
        raise UnsupportedError(f"Woofles has no {layer.type}: it has {known}")
    for info in (operands.source, operands.input(1), operands.output):
        if info.dtype is not DataType.INT8:
            raise UnsupportedError(f"tensor '{info.name}' is {info.dtype}, Woofles takes int8")
    OPERATORS[layer.type].accept(layer.descriptor, operands)
    if constants[0] is not None:
        raise UnsupportedError(f"tensor '{operands.source.name}' is a constant, Woofles takes what is computed")
    work = translation(layer, operands, constants)
    try:
        arithmetic.check(work.command)
    except ShapeError as error:
        raise UnsupportedError(f"layer '{layer.name}' is out of Woofles's reach: {error}") from error
    return work


def translate_in(graph: Graph, layer: Layer) -> Work:
    """Return the command and constants of a layer of a graph; UnsupportedError as `translate` raises it."""
    operands = Operands.of(graph, layer)
    constants = [None if name is None else graph.tensor(name).data for name in layer.inputs]
    return translate(layer, operands, constants)


def _elementwise(layer: Layer, operands: Operands, constants: Constants) -> Work:
    assert isinstance(layer.descriptor, BinaryDescriptor)
    first, second, output = *operands.pair, operands.output
    if not first.shape == second.shape == output.shape:
        raise UnsupportedError(
            f"tensor '{first.name}' is {list(first.shape)} and tensor '{second.name}' is {list(second.shape)}, "
            "Woofles does not broadcast"
        )
    if constants[1] is not None:
        raise UnsupportedError(f"tensor '{second.name}' is a constant, Woofles takes what is computed")
    combination = combination_of(layer.type, layer.descriptor, operands)
    command = replace(
        _command(layer, layer.descriptor.activation, operands),
        count=output.elements,
        second_zero_point=second.zero_point,
        **_scaling(combination),
    )
    return Work(command=command)


def _command(layer: Layer, activation: Activation, operands: Operands) -> Command:
    """Return a command with what each has: the zero points of the first operand and the result, and the range."""
    low, high = activation_range(activation, operands.output)
    return Command(
        operation=Operation[layer.type.name],
        input_zero_point=operands.source.zero_point,
        output_zero_point=operands.output.zero_point,
        activation_min=low,
        activation_max=high,
    )


def _scaling(combination: object) -> Mapping[str, int]:
    match combination:
        case Sum(first=first, second=second, result=result):
            return {
                "left_shift": first.left_shift,
                "input_multiplier": first.multiplier,
                "input_shift": first.shift,
                "second_multiplier": second.multiplier,
                "second_shift": second.shift,
                "output_multiplier": result.multiplier,
                "output_shift": result.shift,
            }
        case Product(result=result):
            return {"output_multiplier": result.multiplier, "output_shift": result.shift}
        case _:
            raise AssertionError(f"no such combination: {combination}")


def _fully_connected(layer: Layer, operands: Operands, constants: Constants) -> Work:
    assert isinstance(layer.descriptor, FullyConnectedDescriptor)
    channels, depth = operands.input(1).shape
    command = replace(
        _command(layer, layer.descriptor.activation, operands),
        count=operands.source.elements // depth,
        input_channels=depth,
        output_channels=channels,
    )
    return _with_weights(operands, constants, command)


def _convolution(layer: Layer, operands: Operands, constants: Constants) -> Work:
    descriptor = layer.descriptor
    assert isinstance(descriptor, Conv2dDescriptor)
    image, weights, output = *operands.pair, operands.output
    if groups_of(image, weights) > 1:
        raise UnsupportedError(f"layer '{layer.name}' has {groups_of(image, weights)} groups, Woofles takes one")
    images, input_height, input_width, input_channels = image.shape
    _, output_height, output_width, output_channels = output.shape
    _, kernel_height, kernel_width, _ = weights.shape
    command = replace(
        _command(layer, descriptor.activation, operands),
        count=images,
        input_height=input_height,
        input_width=input_width,
        input_channels=input_channels,
        output_height=output_height,
        output_width=output_width,
        output_channels=output_channels,
        kernel_height=kernel_height,
        kernel_width=kernel_width,
        stride_height=descriptor.stride_h,
        stride_width=descriptor.stride_w,
        dilation_height=descriptor.dilation_h,
        dilation_width=descriptor.dilation_w,
        padding_top=descriptor.padding.top,
        padding_left=descriptor.padding.left,
    )
    return _with_weights(operands, constants, command)


def _with_weights(operands: Operands, constants: Constants, command: Command) -> Work:
    scales = factors(operands, 0)
    weights = constants[1]
    if has_zero_point(operands.input(1)):
        raise UnsupportedError(
            f"weights '{operands.input(1).name}' have a zero point that is not 0, Woofles takes symmetric weights"
        )
    if weights is None:
        raise UnsupportedError(f"tensor '{operands.input(1).name}' is computed at run time, Woofles takes a constant")
    return Work(
        command=command,
        weights=np.ascontiguousarray(weights),
        bias=_bias(operands, constants),
        multipliers=np.array([factor.multiplier for factor in scales], np.int32),
        shifts=np.array([factor.shift for factor in scales], np.int32),
    )


def _bias(operands: Operands, constants: Constants) -> Array | None:
    info = bias_info(operands)
    if info is None:
        return None
    data = constants[2]
    if data is None:
        raise UnsupportedError(f"tensor '{info.name}' is computed at run time, Woofles takes a constant")
    return np.ascontiguousarray(data, np.int32)


_TRANSLATIONS: Mapping[LayerType, Callable[[Layer, Operands, Constants], Work]] = {
    LayerType.ADD: _elementwise,
    LayerType.MUL: _elementwise,
    LayerType.FULLY_CONNECTED: _fully_connected,
    LayerType.CONV_2D: _convolution,
}
