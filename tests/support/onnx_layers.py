# SPDX-License-Identifier: Apache-2.0
"""Networks of one layer by ONNX's rule, with scales that make near ties, and the rule written out for one element."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np
from layer_case import layer_network, tensor

from ferrule._frozen import frozen, positional
from ferrule.graph import FLOAT_ROUNDINGS, Array, DataType, Descriptor, LayerType, Quantization, Rounding
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.functions import ElementwiseUnaryDescriptor
from ferrule.operators.elementwise.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.elementwise.quantize import QuantizeDescriptor
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.spatial.resize import ResizeDescriptor

EVERY = np.arange(-128, 128, dtype=np.int8)
_ALPHA = float(np.float32(0.1))


@frozen(eq=False)
class OnnxLayer:
    """A network of one layer, its inputs, and the outputs that the rule demands."""

    network: Network
    inputs: Sequence[Array]
    wanted: Array


def scale(dice: random.Random) -> float:
    """Draw a scale: a power of two, its neighbour, or any."""
    power = np.float32(2.0 ** dice.randint(-8, 0))
    return dice.choice(
        [float(power), float(np.nextafter(power, np.float32(1))), float(np.float32(10 ** dice.uniform(-3, 0)))]
    )


def quantization(dice: random.Random) -> Quantization:
    """Draw the quantisation of an int8 tensor."""
    return Quantization.of(scale(dice), dice.choice([-128, 127, 0, dice.randint(-128, 127)]))


def to_even(value: float) -> float:
    """Return a number rounded to an integer, halves to even; infinities stay, and NaN is the lowest number."""
    if math.isnan(value):
        return -math.inf
    return value if math.isinf(value) else float(round(value))


def real(stored: int, own: Quantization) -> np.float32:
    """Return the float32 value of a stored integer (DequantizeLinear)."""
    return np.float32(stored - own.zero_point) * np.float32(own.scale)


def saturated(steps: float) -> int:
    """Return a whole number as int8."""
    return int(min(max(steps, -128), 127))


def quantized(value: np.float32, own: Quantization) -> int:
    """Return the stored integer of a float32 number (QuantizeLinear)."""
    with np.errstate(all="ignore"):
        steps = to_even(float(value / np.float32(own.scale)))
    return saturated(steps + own.zero_point)


@positional
class Function:
    """A function of one tensor: its layer, and its float64 form."""

    type: LayerType
    descriptor: Descriptor
    exact: Callable[[float], float]


def _domain(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return a function that is NaN where `function` has no value."""

    def apply(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return -math.inf if x == 0 else math.nan

    return apply


def _plain(type_: LayerType, exact: Callable[[float], float]) -> Function:
    return Function(type_, ElementwiseUnaryDescriptor(), exact)


FUNCTIONS = (
    Function(LayerType.LOGISTIC, LogisticDescriptor(), lambda x: 1 / (1 + math.exp(-x))),
    Function(LayerType.TANH, TanhDescriptor(), math.tanh),
    Function(LayerType.HARD_SWISH, HardSwishDescriptor(), lambda x: x * min(max(x + 3, 0), 6) / 6),
    Function(LayerType.RELU, ReluDescriptor(), lambda x: max(x, 0.0)),
    Function(LayerType.RELU6, ReluDescriptor(), lambda x: min(max(x, 0.0), 6.0)),
    Function(LayerType.RELU_N1_TO_1, ReluDescriptor(), lambda x: min(max(x, -1.0), 1.0)),
    Function(LayerType.LEAKY_RELU, LeakyReluDescriptor(alpha=_ALPHA), lambda x: x if x >= 0 else x * _ALPHA),
    _plain(LayerType.ABS, abs),
    _plain(LayerType.CEIL, math.ceil),
    _plain(LayerType.COS, math.cos),
    _plain(LayerType.ELU, lambda x: x if x >= 0 else math.expm1(x)),
    _plain(LayerType.EXP, math.exp),
    _plain(LayerType.FLOOR, math.floor),
    _plain(LayerType.LOG, _domain(math.log)),
    _plain(LayerType.NEG, lambda x: -x),
    _plain(LayerType.ROUND, lambda x: float(round(x))),
    _plain(LayerType.SIGN, lambda x: float((x > 0) - (x < 0))),
    _plain(LayerType.SIN, math.sin),
    _plain(LayerType.SQRT, _domain(math.sqrt)),
    Function(LayerType.QUANTIZE, QuantizeDescriptor(), lambda x: x),
)
"""The functions that are tables, by ONNX's rule."""


def function_case(function: Function, dice: random.Random) -> OnnxLayer:
    """Return a function of every int8 value."""
    own, output = quantization(dice), quantization(dice)
    if function.type is LayerType.EXP:
        own = Quantization.of(min(own.scale, 0.25), own.zero_point)
    values = EVERY.reshape(1, 256)
    source = tensor("x", values.shape, DataType.INT8, own.scale, own.zero_point)
    network = layer_network(function.type, function.descriptor, [source], output, rounding=Rounding.ONNX)
    wanted = [quantized(np.float32(function.exact(float(real(int(x), own)))), output) for x in EVERY]
    return OnnxLayer(network=network, inputs=[values], wanted=np.array([wanted], np.int8))


def quantize_case(dice: random.Random) -> OnnxLayer:
    """Return QUANTIZE of float32: ties, numbers next to them, infinities and NaN."""
    output = quantization(dice)
    steps = np.arange(-300, 300, dtype=np.float32) / 2 * np.float32(output.scale)
    near = [steps, np.nextafter(steps, np.float32(np.inf)), np.nextafter(steps, np.float32(-np.inf))]
    values = np.concatenate([*near, np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, -0.0, 1e-45], np.float32)])[None]
    source = tensor("x", values.shape, DataType.FLOAT32)
    network = layer_network(
        LayerType.QUANTIZE, QuantizeDescriptor(), [source], output, output_dtype=DataType.INT8, rounding=Rounding.ONNX
    )
    wanted = [[quantized(x, output) for x in values[0]]]
    return OnnxLayer(network=network, inputs=[values], wanted=np.array(wanted, np.int8))


def _image(dice: random.Random) -> Array:
    shape = (1, dice.randint(3, 7), dice.randint(3, 7), dice.randint(1, 5))
    return np.random.default_rng(dice.getrandbits(32)).integers(-128, 127, shape, dtype=np.int8, endpoint=True)


def _output(dice: random.Random, own: Quantization) -> Quantization:
    """Draw the quantisation of a mean: often that of the input, so that there are ties."""
    factor = dice.choice([1.0, 1.0, 0.5, 2.0, dice.uniform(0.5, 2)])
    return Quantization.of(float(np.float32(own.scale * factor)), dice.choice([own.zero_point, 3, -128]))


def average_case(rule: Rounding, dice: random.Random) -> OnnxLayer:
    """Return AVERAGE_POOL_2D; for uint8, the model's zero point is 128 more, and in float32 it comes last."""
    image, own = _image(dice), quantization(dice)
    output, descriptor = _output(dice, own), _pool(dice)
    source = tensor("x", image.shape, DataType.INT8, own.scale, own.zero_point)
    network = layer_network(LayerType.AVERAGE_POOL_2D, descriptor, [source], output, rounding=rule)
    offset = 128 if rule is Rounding.ONNX_UINT8 else 0
    late = output.zero_point if rule in FLOAT_ROUNDINGS else -offset
    wanted = np.empty(network.outputs[0].shape, np.int8)
    for _, i, j, c in np.ndindex(*wanted.shape):
        rows = range(i * descriptor.stride_h - descriptor.padding.top, image.shape[1])[: descriptor.pool_h]
        columns = range(j * descriptor.stride_w - descriptor.padding.left, image.shape[2])[: descriptor.pool_w]
        values = [[real(int(image[0, y, x, c]), own) for x in columns if x >= 0] for y in rows if y >= 0]
        if rule is Rounding.ONNX_COLUMNS:
            total = _total([_total(column) for column in zip(*values, strict=True)])
        else:
            total = _total([value for row in values for value in row])
        count = sum(map(len, values))
        steps = total / np.float32(count) / np.float32(output.scale) + np.float32(output.zero_point - late)
        wanted[0, i, j, c] = saturated(to_even(float(steps)) + late)
    return OnnxLayer(network=network, inputs=[image], wanted=wanted)


def _total(values: Sequence[np.float32]) -> np.float32:
    total = np.float32(0)
    for value in values:
        total = total + value
    return total


def _pool(dice: random.Random) -> Pool2dDescriptor:
    top, left = dice.choice([0, 1]), dice.choice([0, 1])
    return Pool2dDescriptor(
        pool_h=dice.randint(top + 1, 3),
        pool_w=dice.randint(left + 1, 3),
        stride_h=dice.randint(1, 2),
        stride_w=dice.randint(1, 2),
        padding=Padding(top=top, bottom=top, left=left, right=left),
    )


def mean_case(dice: random.Random) -> OnnxLayer:
    """Return MEAN over the height and the width."""
    image, own = _image(dice), quantization(dice)
    output = _output(dice, own)
    source = tensor("x", image.shape, DataType.INT8, own.scale, own.zero_point)
    descriptor = ReduceDescriptor(axes=(1, 2), keep_dims=True)
    network = layer_network(LayerType.MEAN, descriptor, [source], output, rounding=Rounding.ONNX)
    sums = (image.astype(np.int64) - own.zero_point).sum((1, 2))[0]
    factor = np.float32(own.scale) / (np.float32(output.scale) * np.float32(image.shape[1] * image.shape[2]))
    wanted = [saturated(to_even(float(np.float32(total) * factor)) + output.zero_point) for total in sums]
    return OnnxLayer(network=network, inputs=[image], wanted=np.array(wanted, np.int8).reshape(1, 1, 1, -1))


def mean_in_float_case(dice: random.Random) -> OnnxLayer:
    """Return MEAN over the height and the width in float32: four sums, in pairs, and the values that are left over."""
    image, own = _image(dice), quantization(dice)
    output = _output(dice, own)
    source = tensor("x", image.shape, DataType.INT8, own.scale, own.zero_point)
    descriptor = ReduceDescriptor(axes=(1, 2), keep_dims=True)
    network = layer_network(LayerType.MEAN, descriptor, [source], output, rounding=Rounding.ONNX_FLOAT)
    wanted = []
    for column in image.reshape(-1, image.shape[-1]).T.tolist():
        values = [real(value, own) for value in column]
        whole = len(values) // 4 * 4
        lanes = [np.float32(0)] * 4
        for index, value in enumerate(values[:whole]):
            lanes[index % 4] = lanes[index % 4] + value
        total = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
        for value in values[whole:]:
            total = total + value
        wanted.append(quantized(total / np.float32(len(values)), output))
    return OnnxLayer(network=network, inputs=[image], wanted=np.array(wanted, np.int8).reshape(1, 1, 1, -1))


def softmax_case(rule: Rounding, dice: random.Random) -> OnnxLayer:
    """Return SOFTMAX of a few rows."""
    depth = dice.choice([1, 2, 10, 300])
    data = np.random.default_rng(dice.getrandbits(32)).integers(-128, 127, (3, depth), dtype=np.int8, endpoint=True)
    own = Quantization.of(dice.choice([scale(dice), math.log(3) / 2]), 7)  # ln 3: many shares are ties
    step = dice.choice([1 / 256, 1 / 118, float(np.float32(1 / 255)), float(np.float32(dice.uniform(0.001, 0.02)))])
    output = Quantization.of(step, dice.choice([-128, 0, 5]))
    source = tensor("x", data.shape, DataType.INT8, own.scale, own.zero_point)
    network = layer_network(LayerType.SOFTMAX, SoftmaxDescriptor(), [source], output, rounding=rule)
    largest = float(np.finfo(np.float32).max / np.float32(depth))
    bonus = max(0.0, float(np.float32(math.log(largest))) - 5) / own.scale
    whole = float(np.floor(np.float32(1) / np.float32(step)))
    wanted = np.empty(data.shape, np.int8)
    for row, results in zip(data.tolist(), wanted, strict=True):
        shares = [np.float32(math.exp((x - max(row) + bonus) * own.scale)) for x in row]
        total = np.float32(0)
        for share in shares:
            total = total + share
        if rule is Rounding.ONNX_FLOAT:
            results[:] = [quantized(share / total, output) for share in shares]
        else:
            steps = [to_even(float(share) * whole / float(total)) for share in shares]
            results[:] = [saturated(each + output.zero_point) for each in steps]
    return OnnxLayer(network=network, inputs=[data], wanted=wanted)


def resize_case(dice: random.Random) -> OnnxLayer:
    """Return RESIZE_BILINEAR, often to the double size, where many results are ties."""
    image, own = _image(dice), quantization(dice)
    output = _output(dice, own)
    extents = image.shape[1:3]
    sizes = dice.choice([(2 * extents[0], 2 * extents[1]), (dice.randint(1, 9), dice.randint(1, 9))])
    aligned, centred = dice.choice([(False, False), (True, False), (False, True)])
    descriptor = ResizeDescriptor(height=sizes[0], width=sizes[1], align_corners=aligned, half_pixel_centers=centred)
    source = tensor("x", image.shape, DataType.INT8, own.scale, own.zero_point)
    network = layer_network(LayerType.RESIZE_BILINEAR, descriptor, [source], output, rounding=Rounding.ONNX)
    wanted = np.empty(network.outputs[0].shape, np.int8)
    for _, i, j, c in np.ndindex(*wanted.shape):
        rows = _taps(i, extents[0], sizes[0], descriptor)
        columns = _taps(j, extents[1], sizes[1], descriptor)
        total = np.float32(0)
        for (y, down), (x, across) in product(rows, columns):
            total = total + across * down * real(int(image[0, y, x, c]), own)
        wanted[0, i, j, c] = quantized(total, output)
    return OnnxLayer(network=network, inputs=[image], wanted=wanted)


def _taps(index: int, extent: int, count: int, descriptor: ResizeDescriptor) -> tuple[tuple[int, np.float32], ...]:
    """Return the two pixels that a pixel of the output interpolates, with their weights."""
    half, scale_ = np.float32(0.5), np.float32(count) / np.float32(extent)
    if descriptor.align_corners:
        place = np.float32(0) if count == 1 else np.float32(index * (extent - 1)) / np.float32(count - 1)
    else:
        place = (np.float32(index) + half) / scale_ - half if descriptor.half_pixel_centers else index / scale_
    place = min(max(np.float32(place), np.float32(0)), np.float32(extent - 1))
    first = int(place)
    second = min(first + 1, extent - 1)
    if first == second:
        return (first, half), (second, half)
    return (first, np.float32(second) - place), (second, place - np.float32(first))


PAIRS = tuple(
    (type_, rule)
    for type_ in (LayerType.ADD, LayerType.SUB, LayerType.MUL)
    for rule in (Rounding.ONNX, Rounding.ONNX_UINT8, Rounding.ONNX_FLOAT)
    if type_ is not LayerType.SUB or rule is Rounding.ONNX
)
"""The layers of two inputs, with their rules."""


def pairs_network(
    type_: LayerType, rule: Rounding, dice: random.Random, activation: Activation = Activation.NONE
) -> Network:
    """Return the network of a layer with all pairs of int8 values as its inputs `every_pair`."""
    first, second = quantization(dice), quantization(dice)
    factor = first.scale * second.scale * 64 if type_ is LayerType.MUL else max(first.scale, second.scale)
    step = float(np.float32(factor * dice.choice([0.25, 0.5, 1.0, 2.0, dice.uniform(0.2, 3)])))
    output = Quantization.of(step, quantization(dice).zero_point)
    infos = [
        tensor(name, shape, DataType.INT8, own.scale, own.zero_point)
        for name, shape, own in (("a", (256, 1), first), ("b", (1, 256), second))
    ]
    return layer_network(type_, BinaryDescriptor(activation=activation), infos, output, rounding=rule)


def every_pair() -> list[Array]:
    """Return the inputs of `pairs_network`."""
    return [EVERY.reshape(256, 1), EVERY.reshape(1, 256)]


_SOME = np.array([*range(-128, 127, 5), 127], np.int8)


def real_pair_case(type_: LayerType, dice: random.Random) -> OnnxLayer:
    """Return DIV or PRELU of all pairs of some int8 values."""
    first, second, output = quantization(dice), quantization(dice), quantization(dice)
    prelu = type_ is LayerType.PRELU
    inputs = [np.repeat(_SOME, _SOME.size).reshape(-1, _SOME.size) if prelu else _SOME.reshape(-1, 1), _SOME]
    infos = [
        tensor(name, data.shape, DataType.INT8, own.scale, own.zero_point)
        for name, data, own in zip("ab", inputs, (first, second), strict=True)
    ]
    activation = Activation.NONE if prelu else dice.choice([Activation.NONE, Activation.RELU6])
    descriptor = PreluDescriptor() if prelu else BinaryDescriptor(activation=activation)
    network = layer_network(type_, descriptor, infos, output, rounding=Rounding.ONNX)
    exact = _rectified if prelu else partial(_quotient, activation)
    values = _SOME.tolist()
    wanted = [[quantized(exact(real(x, first), real(y, second)), output) for y in values] for x in values]
    return OnnxLayer(network=network, inputs=inputs, wanted=np.array(wanted, np.int8))


def _quotient(activation: Activation, x: np.float32, y: np.float32) -> np.float32:
    low, high = activation.limits
    with np.errstate(all="ignore"):
        return np.float32(np.clip(x / y, low, high)) if low is not None else np.float32(x / y)


def _rectified(x: np.float32, y: np.float32) -> np.float32:
    return x if x >= 0 else x * y


CASES: Mapping[str, Callable[[random.Random], OnnxLayer]] = {
    **{each.type.value: partial(function_case, each) for each in FUNCTIONS},
    "QUANTIZE of float32": quantize_case,
    "AVERAGE_POOL_2D": partial(average_case, Rounding.ONNX),
    "AVERAGE_POOL_2D of uint8": partial(average_case, Rounding.ONNX_UINT8),
    "AVERAGE_POOL_2D in float32": partial(average_case, Rounding.ONNX_FLOAT),
    "AVERAGE_POOL_2D in float32, columns first": partial(average_case, Rounding.ONNX_COLUMNS),
    "MEAN": mean_case,
    "MEAN in float32": mean_in_float_case,
    "SOFTMAX": partial(softmax_case, Rounding.ONNX),
    "SOFTMAX in float32": partial(softmax_case, Rounding.ONNX_FLOAT),
    "DIV": partial(real_pair_case, LayerType.DIV),
    "PRELU": partial(real_pair_case, LayerType.PRELU),
    "RESIZE_BILINEAR": resize_case,
}
"""Draws a layer, by name."""
