# SPDX-License-Identifier: Apache-2.0
"""Rows of functions of one tensor that compute each element by itself; the order of the axes stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call
from ferrule.formats.onnx.elementwise import broadcast
from ferrule.formats.onnx.node import MICROSOFT
from ferrule.formats.onnx.parse import TYPES, type_name
from ferrule.formats.onnx.rows import Row
from ferrule.graph import DataType, Descriptor, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.binary import BinaryDescriptor, ExtremumDescriptor
from ferrule.operators.cast import CastDescriptor
from ferrule.operators.comparison import ComparisonDescriptor
from ferrule.operators.elementwise_unary import ElementwiseUnaryDescriptor
from ferrule.operators.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.operators.select import SelectV2Descriptor
from ferrule.operators.table import OPERATORS

_PLAIN = BinaryDescriptor()
_FUNCTION = ElementwiseUnaryDescriptor()


def unary(type_: LayerType, descriptor: Descriptor = _FUNCTION) -> Row:
    """Return the row of an operator with one input."""

    def emit(call: Call) -> None:
        source, layout = call.place(0)
        call.finish(type_, descriptor, source, layout=layout)

    return Row(emit=emit)


def composed(build: Callable[[Call, str], tuple[LayerType, Descriptor, str, str]]) -> Row:
    """Return the row of an operator that becomes several layers; `build` adds all but the last, and returns that."""

    def emit(call: Call) -> None:
        source, layout = call.place(0)
        type_, descriptor, left, right = build(call, source)
        call.finish(type_, descriptor, left, right, layout=layout)

    return Row(emit=emit)


def _elu_of(call: Call, source: str, alpha: float, inner: float, gain: float) -> tuple[str, str]:
    """Return the two addends of gain * (max(x, 0) + min(0, alpha * (exp(x / inner) - 1)))."""
    positive = call.add(LayerType.RELU, ReluDescriptor(), source)
    if gain != 1:
        positive = _times(call, positive, gain)
    negative = call.add(LayerType.MINIMUM, ExtremumDescriptor(), source, call.number(0, source))
    if inner != 1:
        negative = _times(call, negative, 1 / inner)
    negative = call.add(LayerType.ELU, _FUNCTION, negative)
    return positive, _times(call, negative, alpha * gain)


def _elu(call: Call) -> None:
    alpha = call.node.number("alpha", 1.0)
    source, layout = call.place(0)
    if alpha == 1:
        call.finish(LayerType.ELU, _FUNCTION, source, layout=layout)
        return
    call.finish(LayerType.ADD, _PLAIN, *_elu_of(call, source, alpha, 1, 1), layout=layout)


def _selu(call: Call, source: str) -> tuple[LayerType, Descriptor, str, str]:
    alpha, gamma = call.node.number("alpha", 1.6732631921768188), call.node.number("gamma", 1.0507010221481323)
    return LayerType.ADD, _PLAIN, *_elu_of(call, source, alpha, 1, gamma)


def _celu(call: Call, source: str) -> tuple[LayerType, Descriptor, str, str]:
    alpha = call.node.number("alpha", 1.0)
    if alpha == 0:
        raise ModelError("its attribute 'alpha' is 0")
    return LayerType.ADD, _PLAIN, *_elu_of(call, source, alpha, alpha, 1)


def _softplus_of(call: Call, source: str) -> tuple[str, str]:
    """Return the two addends of log(1 + exp(x)), max(x, 0) and log(1 + exp(-|x|)), which do not overflow."""
    size = call.add(LayerType.ABS, _FUNCTION, source)
    power = call.add(LayerType.EXP, _FUNCTION, call.add(LayerType.NEG, _FUNCTION, size))
    total = call.add(LayerType.LOG, _FUNCTION, _plus(call, power, 1))
    return call.add(LayerType.RELU, ReluDescriptor(), source), total


def _mish(call: Call, source: str) -> tuple[LayerType, Descriptor, str, str]:
    softplus = call.add(LayerType.ADD, _PLAIN, *_softplus_of(call, source))
    return LayerType.MUL, _PLAIN, source, call.add(LayerType.TANH, TanhDescriptor(), softplus)


def _softsign(call: Call, source: str) -> tuple[LayerType, Descriptor, str, str]:
    size = call.add(LayerType.ABS, _FUNCTION, source)
    return LayerType.DIV, _PLAIN, source, _plus(call, size, 1)


def _swish(call: Call, source: str) -> tuple[LayerType, Descriptor, str, str]:
    default = 1.702 if call.node.domain else 1.0
    alpha, inner = call.node.number("alpha", default), source
    if alpha != 1:
        inner = _times(call, source, alpha)
    return LayerType.MUL, _PLAIN, source, call.add(LayerType.LOGISTIC, LogisticDescriptor(), inner)


def _times(call: Call, source: str, factor: float) -> str:
    return call.add(LayerType.MUL, _PLAIN, source, call.number(factor, source))


def _plus(call: Call, source: str, addend: float) -> str:
    return call.add(LayerType.ADD, _PLAIN, source, call.number(addend, source))


_ERFC = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Coefficients of Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26."""


def _erfc_of(call: Call, size: str, scale: float, gain: float) -> str:
    """Return gain * erfc(scale * x) for x of 0 or more, with an error of 1.5e-7 * gain."""
    divisor = _plus(call, _times(call, size, 0.3275911 * scale), 1)
    inner = call.add(LayerType.DIV, _PLAIN, call.number(1, divisor), divisor)
    result = _times(call, inner, _ERFC[-1] * gain)
    for coefficient in _ERFC[-2::-1]:
        result = call.add(LayerType.MUL, _PLAIN, _plus(call, result, coefficient * gain), inner)
    exponent = _times(call, call.add(LayerType.SQUARE, _FUNCTION, size), -scale * scale)
    return call.add(LayerType.MUL, _PLAIN, result, call.add(LayerType.EXP, _FUNCTION, exponent))


def _erf(call: Call) -> None:
    """Add 1 - erfc(|x|) with the sign of x."""
    source, layout = call.place(0)
    rest = _erfc_of(call, call.add(LayerType.ABS, _FUNCTION, source), 1, 1)
    size = call.add(LayerType.SUB, _PLAIN, call.number(1, rest), rest)
    negative = call.add(LayerType.LESS, ComparisonDescriptor(), source, call.number(0, source), dtype=DataType.BOOL)
    below, dtype = call.add(LayerType.NEG, _FUNCTION, size), call.info(source).dtype
    call.finish(LayerType.SELECT_V2, SelectV2Descriptor(), negative, below, size, layout=layout, dtype=dtype)


def _gelu(call: Call, source: str) -> tuple[LayerType, Descriptor, str, str]:
    """Add max(x, 0) - |x| / 2 * erfc(|x| / sqrt(2)), or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    if call.node.choice("approximate", "none", ("none", "tanh")) == "none":
        size = call.add(LayerType.ABS, _FUNCTION, source)
        rest = call.add(LayerType.MUL, _PLAIN, size, _erfc_of(call, size, math.sqrt(0.5), 0.5))
        return LayerType.SUB, _PLAIN, call.add(LayerType.RELU, ReluDescriptor(), source), rest
    square = call.add(LayerType.SQUARE, _FUNCTION, source)
    inner = call.add(LayerType.MUL, _PLAIN, _plus(call, _times(call, square, 0.044715), 1), source)
    outer = _plus(call, call.add(LayerType.TANH, TanhDescriptor(), _times(call, inner, math.sqrt(2 / math.pi))), 1)
    return LayerType.MUL, _PLAIN, _times(call, source, 0.5), outer


def _hard_sigmoid(call: Call, source: str) -> tuple[LayerType, Descriptor, str, str]:
    alpha, beta = call.node.number("alpha", 0.2), call.node.number("beta", 0.5)
    if abs(alpha * 6 - 1) < 1e-6 and beta == 0.5:
        rectified = BinaryDescriptor(activation=Activation.RELU6)
        shifted = call.add(LayerType.ADD, rectified, source, call.number(3, source))
        return LayerType.MUL, _PLAIN, shifted, call.number(1 / 6, shifted)
    scaled = call.add(LayerType.MUL, _PLAIN, source, call.number(alpha, source))
    rectified = BinaryDescriptor(activation=Activation.RELU)
    shifted = call.add(LayerType.ADD, rectified, scaled, call.number(beta, scaled))
    return LayerType.MINIMUM, ExtremumDescriptor(), shifted, call.number(1, shifted)


def _reciprocal(call: Call, source: str) -> tuple[LayerType, Descriptor, str, str]:
    return LayerType.DIV, _PLAIN, call.number(1, source), source


def _sign(call: Call) -> None:
    source, layout = call.place(0)
    dtype, zero = call.info(source).dtype, call.number(0, source)
    parts = []
    for type_ in (LayerType.GREATER, LayerType.LESS):
        found = call.add(type_, ComparisonDescriptor(), source, zero, dtype=DataType.BOOL)
        parts.append(call.add(LayerType.CAST, CastDescriptor(), found, dtype=dtype))
    call.finish(LayerType.SUB, _PLAIN, *parts, layout=layout)


def _is_nan(call: Call) -> None:
    source, layout = call.place(0)
    call.finish(LayerType.NOT_EQUAL, ComparisonDescriptor(), source, source, layout=layout, dtype=DataType.BOOL)


def _thresholded_relu(call: Call) -> None:
    source, layout = call.place(0)
    limit = call.number(call.node.number("alpha", 1.0), source)
    above = call.add(LayerType.GREATER, ComparisonDescriptor(), source, limit, dtype=DataType.BOOL)
    dtype = call.info(source).dtype
    zero = call.number(0, source)
    call.finish(LayerType.SELECT_V2, SelectV2Descriptor(), above, source, zero, layout=layout, dtype=dtype)


def _leaky_relu(call: Call) -> None:
    source, layout = call.place(0)
    descriptor = LeakyReluDescriptor(alpha=call.node.number("alpha", 0.01))
    call.finish(LayerType.LEAKY_RELU, descriptor, source, layout=layout)


def _prelu(call: Call) -> None:
    tensors, layout = broadcast(call, (0, 1))
    call.finish(LayerType.PRELU, PreluDescriptor(), *tensors, layout=layout)


_RECTIFIERS = {row.clamp.limits: type_ for type_, row in OPERATORS.items() if row.clamp is not None}
"""The operators that clamp, by their limits."""


def _clip(call: Call) -> None:
    low, high = call.scalar(1, "minimum"), call.scalar(2, "maximum")
    source, layout = call.place(0)
    largest = float(np.finfo(np.float32).max)
    low = -math.inf if low is None or low <= -largest else low
    high = math.inf if high is None or high >= largest else high
    rectifier = _RECTIFIERS.get((None if low == -math.inf else low, None if high == math.inf else high))
    if rectifier is not None and call.info(source).dtype.is_float:
        call.finish(rectifier, ReluDescriptor(), source, layout=layout)
        return
    steps = [(LayerType.MAXIMUM, low)] * (low != -math.inf) + [(LayerType.MINIMUM, high)] * (high != math.inf)
    if not steps:
        call.alias(0)
        return
    for type_, limit in steps[:-1]:
        source = call.add(type_, ExtremumDescriptor(), source, call.number(limit, source))
    type_, limit = steps[-1]
    call.finish(type_, ExtremumDescriptor(), source, call.number(limit, source), layout=layout)


def _cast(call: Call) -> None:
    number = call.node.integer("to")
    dtype = TYPES.get(number)
    if dtype is None:
        raise UnsupportedError(
            f"it converts to {type_name(number)}, expected one of {', '.join(TYPES.values())}",
            hint="export the model in float32",
        )
    source, layout = call.place(0)
    if call.info(source).dtype is dtype:
        call.alias(0)
        return
    call.finish(LayerType.CAST, CastDescriptor(), source, layout=layout, dtype=dtype)


def _cast_like(call: Call) -> None:
    source, layout = call.place(0)
    dtype = call.dtype(1)
    if call.info(source).dtype is dtype:
        call.alias(0)
        return
    call.finish(LayerType.CAST, CastDescriptor(), source, layout=layout, dtype=dtype)


def _is_inf(call: Call) -> None:
    if call.node.integer("detect_negative", 1) == 0 or call.node.integer("detect_positive", 1) == 0:
        raise UnsupportedError("it detects one sign only, expected both")
    source, layout = call.place(0)
    size = call.add(LayerType.ABS, _FUNCTION, source)
    infinite = call.number(math.inf, size)
    call.finish(LayerType.EQUAL, ComparisonDescriptor(), size, infinite, layout=layout, dtype=DataType.BOOL)


def _tan(call: Call, source: str) -> tuple[LayerType, Descriptor, str, str]:
    return LayerType.DIV, _PLAIN, call.add(LayerType.SIN, _FUNCTION, source), call.add(LayerType.COS, _FUNCTION, source)


def _identity(call: Call) -> None:
    if call.node.op == "Dropout":
        call.refuse_outputs(1)
        if call.scalar(2, "training mode"):
            raise UnsupportedError("its training mode is on, expected off", hint="export the model with eval()")
    call.alias(0)


ROWS: Mapping[str, Row] = {
    "Abs": unary(LayerType.ABS),
    "Cast": Row(emit=_cast),
    "CastLike": Row(emit=_cast_like, inputs=range(2, 3)),
    "Ceil": unary(LayerType.CEIL),
    "Celu": composed(_celu),
    "Clip": Row(emit=_clip, inputs=range(1, 4)),
    "Cos": unary(LayerType.COS),
    "Dropout": Row(emit=_identity, inputs=range(1, 4), outputs=range(1, 3)),
    "Elu": Row(emit=_elu),
    "Erf": Row(emit=_erf),
    "Exp": unary(LayerType.EXP),
    "Floor": unary(LayerType.FLOOR),
    "Gelu": composed(_gelu),
    "HardSigmoid": composed(_hard_sigmoid),
    "HardSwish": unary(LayerType.HARD_SWISH, HardSwishDescriptor()),
    "Identity": Row(emit=_identity),
    "IsInf": Row(emit=_is_inf),
    "IsNaN": Row(emit=_is_nan),
    "LeakyRelu": Row(emit=_leaky_relu),
    "Log": unary(LayerType.LOG),
    "Mish": composed(_mish),
    "Neg": unary(LayerType.NEG),
    "Not": unary(LayerType.LOGICAL_NOT),
    "PRelu": Row(emit=_prelu, inputs=range(2, 3)),
    "Reciprocal": composed(_reciprocal),
    "Relu": unary(LayerType.RELU, ReluDescriptor()),
    "Round": unary(LayerType.ROUND),
    "Selu": composed(_selu),
    "Sigmoid": unary(LayerType.LOGISTIC, LogisticDescriptor()),
    "Sign": Row(emit=_sign),
    "Sin": unary(LayerType.SIN),
    "Softplus": composed(lambda call, source: (LayerType.ADD, _PLAIN, *_softplus_of(call, source))),
    "Softsign": composed(_softsign),
    "Sqrt": unary(LayerType.SQRT),
    "Swish": composed(_swish),
    "Tan": composed(_tan),
    "Tanh": unary(LayerType.TANH, TanhDescriptor()),
    "ThresholdedRelu": Row(emit=_thresholded_relu),
    f"{MICROSOFT}::QuickGelu": composed(_swish),
}
