# SPDX-License-Identifier: Apache-2.0
"""Networks of one layer by ONNX's rule, with scales that make near ties, and the rule written out for one element."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from layer_case import layer_network, tensor

from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization, Rounding
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.binary import BinaryDescriptor
from ferrule.operators.elementwise_unary import ElementwiseUnaryDescriptor
from ferrule.operators.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.quantize import QuantizeDescriptor
from ferrule.operators.rectify import LeakyReluDescriptor, ReluDescriptor

EVERY = np.arange(-128, 128, dtype=np.int8)
_ALPHA = float(np.float32(0.1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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


@dataclass(frozen=True, slots=True)
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


PAIRS = tuple(
    (type_, rule)
    for type_ in (LayerType.ADD, LayerType.SUB, LayerType.MUL)
    for rule in (Rounding.ONNX, Rounding.ONNX_UINT8)
    if (type_, rule) != (LayerType.SUB, Rounding.ONNX_UINT8)
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


CASES: Mapping[str, Callable[[random.Random], OnnxLayer]] = {
    **{each.type.value: lambda dice, each=each: function_case(each, dice) for each in FUNCTIONS},  # type: ignore[misc]
    "QUANTIZE of float32": quantize_case,
}
"""Draws a layer, by name."""
