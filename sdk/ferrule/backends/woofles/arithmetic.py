# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of Woofles: int8, equal to TensorFlow Lite Micro's reference kernels bit for bit.

It follows the definition of the commands and does not use the operators that it is compared with; only fixed-point
rescaling is shared with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ferrule.backends.woofles.command import Command, Operation, ShapeError
from ferrule.devices import Bus
from ferrule.operators.arithmetic.fixed_point import MAX_SHIFT, multiply_by_quantized_multiplier, wrap_int32

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

MAX_EXTENT = 1 << 15
"""The largest size of an axis, a kernel, a stride or a dilation; a padding is smaller."""
MAX_ELEMENTS = 1 << 26
"""The largest number of elements of a tensor."""
MAX_PATCHES = 1 << 26
"""The largest number of input elements that a convolution gathers, counted once per output pixel that uses them."""
_TENSORS: Mapping[int, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    Operation.FULLY_CONNECTED: (
        ("count", "input_channels"),
        ("output_channels", "input_channels"),
        ("count", "output_channels"),
    ),
    Operation.CONV_2D: (
        ("count", "input_height", "input_width", "input_channels"),
        ("output_channels", "kernel_height", "kernel_width", "input_channels"),
        ("count", "output_height", "output_width", "output_channels"),
    ),
}
"""The dimensions of the first operand, the second operand and the result; ADD and MUL have `count` elements in each."""
_LIMITS = (
    (("padding_top", "padding_left"), 0, MAX_EXTENT - 1),
    (("input_zero_point", "second_zero_point", "output_zero_point", "activation_min", "activation_max"), -128, 127),
    (("input_shift", "second_shift", "output_shift"), -31, MAX_SHIFT),
    (("left_shift",), 0, 20),
)
"""Members of every command, with the least and the greatest value of each."""
_STEPS = ("stride_height", "stride_width", "dilation_height", "dilation_width")


def check(command: Command) -> None:
    """Raise ShapeError, which names the member, if a size, shift or limit of a command is out of range."""
    sizes = [name for tensor in _TENSORS.get(command.operation, ()) for name in tensor if name != "count"]
    if command.operation == Operation.CONV_2D:
        sizes += _STEPS
    for names, low, high in ((("count",), 1, MAX_ELEMENTS), (sizes, 1, MAX_EXTENT), *_LIMITS):
        for name in names:
            value = getattr(command, name)
            if not low <= value <= high:
                raise ShapeError(f"{name} is {value}")
    if command.activation_min > command.activation_max:
        raise ShapeError(f"activation_min is {command.activation_min}, above activation_max {command.activation_max}")
    for size in sizes_bytes(command):
        if size > MAX_ELEMENTS:
            raise ShapeError(f"a tensor has {size} elements")
    if is_weighted(command) and macs(command) // command.output_channels > MAX_PATCHES:
        raise ShapeError(f"a convolution gathers {macs(command) // command.output_channels} elements")


def sizes_bytes(command: Command) -> tuple[int, int, int]:
    """Return the sizes of the first operand, the second operand and the result, in bytes."""
    dimensions = _TENSORS.get(command.operation, (("count",),) * 3)
    first, second, output = (math.prod(getattr(command, name) for name in names) for names in dimensions)
    return first, second, output


def is_weighted(command: Command) -> bool:
    """Return whether the command has weights, with multipliers, shifts and an optional bias per output channel."""
    return command.operation in _TENSORS


def macs(command: Command) -> int:
    """Return the number of multiplications of a command."""
    if not is_weighted(command):
        return command.count
    _, weights, output = sizes_bytes(command)
    return output * (weights // command.output_channels)


def execute(command: Command, bus: Bus) -> None:
    """Execute a command that `check` accepts, on the memory behind a bus.

    Raises:
        BusError: an operand or the result is outside the memory; nothing is written then.
        ShapeError: a shift is out of range.
    """
    first_bytes, second_bytes, _ = sizes_bytes(command)
    first = bus.view(command.input, first_bytes).view(np.int8)
    second = bus.view(command.second, second_bytes).view(np.int8)
    if is_weighted(command):
        channels = command.output_channels
        bias = _words(bus, command.bias, channels) if command.bias else None
        multipliers, shifts = _words(bus, command.multipliers, channels), _words(bus, command.shifts, channels)
        result = weighted(command, first, second, bias, multipliers, shifts)
    elif command.operation == Operation.ADD:
        result = add(command, first, second)
    else:
        result = multiply(command, first, second)
    bus.write(command.output, result.tobytes())


def _words(bus: Bus, address: int, count: int) -> Int32:
    return np.frombuffer(bus.read(address, 4 * count), "<i4").astype(np.int32)


def add(command: Command, first: Int8, second: Int8) -> Int8:
    """Return the sum of two arrays of `count` elements."""
    left = (first.astype(np.int64) - command.input_zero_point) << command.left_shift
    right = (second.astype(np.int64) - command.second_zero_point) << command.left_shift
    total = multiply_by_quantized_multiplier(left, command.input_multiplier, command.input_shift)
    total = total + multiply_by_quantized_multiplier(right, command.second_multiplier, command.second_shift)
    scaled = multiply_by_quantized_multiplier(wrap_int32(total), command.output_multiplier, command.output_shift)
    return _stored(command, scaled)


def multiply(command: Command, first: Int8, second: Int8) -> Int8:
    """Return the product of two arrays of `count` elements."""
    product = first.astype(np.int64) - command.input_zero_point
    product = product * (second.astype(np.int64) - command.second_zero_point)
    scaled = multiply_by_quantized_multiplier(product, command.output_multiplier, command.output_shift)
    return _stored(command, scaled)


def weighted(
    command: Command, data: Int8, weights: Int8, bias: Int32 | None, multipliers: Int32, shifts: Int32
) -> Int8:
    """Return the output of a fully connected layer or a convolution; all arrays are flat, as in memory.

    Raises:
        ShapeError: a shift is out of range.
    """
    if shifts.min() < -31 or shifts.max() > MAX_SHIFT:
        raise ShapeError(f"the shifts are {shifts.min()} to {shifts.max()}, expected -31 to {MAX_SHIFT}")
    matrix = weights.reshape(command.output_channels, -1).astype(np.float64)
    rows = _rows(command, data)
    # Products of int8 are below 2^15, and there are fewer than 2^37 of them, so float64 holds each sum exactly.
    sums = (rows.astype(np.float64) @ matrix.T).astype(np.int64)
    if bias is not None:
        sums += bias.astype(np.int64)
    scaled = multiply_by_quantized_multiplier(wrap_int32(sums), multipliers, shifts)
    return _stored(command, scaled).reshape(-1)


def _rows(command: Command, data: Int8) -> npt.NDArray[np.int16]:
    """Return the inputs of each output pixel as a row, less the zero point, so that padding is zero."""
    values = data.astype(np.int16) - np.int16(command.input_zero_point)
    if command.operation == Operation.FULLY_CONNECTED:
        return values.reshape(command.count, command.input_channels)
    shape = (command.count, command.input_height, command.input_width, command.input_channels)
    image = values.reshape(shape)
    taps = []
    for y in range(command.kernel_height):
        for x in range(command.kernel_width):
            rows = np.arange(command.output_height) * command.stride_height + y * command.dilation_height
            columns = np.arange(command.output_width) * command.stride_width + x * command.dilation_width
            taps.append(_pixels(image, rows - command.padding_top, columns - command.padding_left))
    patches = np.stack(taps, axis=3)
    return patches.reshape(-1, command.kernel_height * command.kernel_width * command.input_channels)


def _pixels(image: npt.NDArray[np.int16], rows: Int64, columns: Int64) -> npt.NDArray[np.int16]:
    """Return the pixels at these rows and columns; pixels outside the image are zero."""
    height, width = image.shape[1:3]
    inside_y, inside_x = (rows >= 0) & (rows < height), (columns >= 0) & (columns < width)
    picked = image[:, np.clip(rows, 0, height - 1)][:, :, np.clip(columns, 0, width - 1)]
    picked[:, ~inside_y] = 0
    picked[:, :, ~inside_x] = 0
    return picked


def _stored(command: Command, scaled: Int64) -> Int8:
    shifted = wrap_int32(scaled + command.output_zero_point)
    return np.clip(shifted, command.activation_min, command.activation_max).astype(np.int8)
