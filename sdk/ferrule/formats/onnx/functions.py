# SPDX-License-Identifier: Apache-2.0
"""Rows of functions of one tensor that compute each element by itself; the order of the axes stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call, Value
from ferrule.formats.onnx.elementwise import added, binary
from ferrule.formats.onnx.node import MICROSOFT
from ferrule.formats.onnx.parse import TYPES, type_name
from ferrule.formats.onnx.rows import Row
from ferrule.graph import DataType, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.rectify import LeakyReluDescriptor
from ferrule.operators.table import OPERATORS


def unary(type_: LayerType) -> Row:
    """Return the row of an operator that becomes one layer without parameters."""
    return function(lambda x: x.then(type_), layer=type_)


def function(compute: Callable[..., Value], layer: LayerType | None = None, **attributes: float) -> Row:
    """Return the row of an expression of the input and of numbers, which are attributes with these defaults."""

    def emit(call: Call) -> Value:
        x = call.value()
        return compute(x, *(call.node.number(name, default) for name, default in attributes.items()))

    return Row(emit, layer=layer)


def _elu_of(x: Value, alpha: float, inner: float, gain: float) -> Value:
    """Return gain * (max(x, 0) + min(0, alpha * (exp(x / inner) - 1)))."""
    positive = x.then(LayerType.RELU)
    if gain != 1:
        positive *= gain
    negative = x.then(LayerType.MINIMUM, 0)
    if inner != 1:
        negative *= 1 / inner
    return positive + negative.then(LayerType.ELU) * (alpha * gain)


def _elu(x: Value, alpha: float) -> Value:
    return x.then(LayerType.ELU) if alpha == 1 else _elu_of(x, alpha, 1, 1)


def _celu(x: Value, alpha: float) -> Value:
    if alpha == 0:
        raise ModelError("its attribute 'alpha' is 0")
    return _elu_of(x, alpha, alpha, 1)


def _softplus(x: Value) -> Value:
    """Return log(1 + exp(x)) as the sum of max(x, 0) and log(1 + exp(-|x|)), which do not overflow."""
    rest = (abs(x).then(LayerType.NEG).then(LayerType.EXP) + 1).then(LayerType.LOG)
    return x.then(LayerType.RELU) + rest


def _swish(x: Value, alpha: float) -> Value:
    inner = x if alpha == 1 else x * alpha
    return x * inner.then(LayerType.LOGISTIC)


_ERFC = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Coefficients of Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26."""


def _erfc_of(size: Value, scale: float, gain: float) -> Value:
    """Return gain * erfc(scale * x) for x of 0 or more, with an error of 1.5e-7 * gain."""
    inner = 1 / (size * (0.3275911 * scale) + 1)
    result = inner * (_ERFC[-1] * gain)
    for coefficient in _ERFC[-2::-1]:
        result = (result + coefficient * gain) * inner
    return result * (size.then(LayerType.SQUARE) * (-scale * scale)).then(LayerType.EXP)


def _erf(x: Value) -> Value:
    """Return 1 - erfc(|x|) with the sign of x."""
    size = 1 - _erfc_of(abs(x), 1, 1)
    negative = x.then(LayerType.LESS, 0)
    return negative.select(size.then(LayerType.NEG), size)


def _gelu(call: Call) -> Value:
    is_exact = call.node.choice("approximate", "none", ("none", "tanh")) == "none"
    return _gelu_of(call.value(), is_exact=is_exact)


def _biased_gelu(call: Call) -> Value:
    """Add the function of the sum with a bias, which FastGelu may lack."""
    exact = call.node.op == "BiasGelu"
    return _gelu_of(added(call) if call.node.has_input(1) else call.value(), is_exact=exact)


def _gelu_of(x: Value, *, is_exact: bool) -> Value:
    """Return max(x, 0) - |x| / 2 * erfc(|x| / sqrt(2)), or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    if is_exact:
        size = abs(x)
        rest = size * _erfc_of(size, math.sqrt(0.5), 0.5)
        return x.then(LayerType.RELU) - rest
    inner = (x.then(LayerType.SQUARE) * 0.044715 + 1) * x
    outer = (inner * math.sqrt(2 / math.pi)).then(LayerType.TANH) + 1
    return x * 0.5 * outer


def leaky_relu(x: Value, alpha: float) -> Value:
    """Return the elements, those below 0 times `alpha`."""
    return x.then(LeakyReluDescriptor(alpha=alpha))


def hard_sigmoid(x: Value, alpha: float, beta: float) -> Value:
    """Return alpha * x + beta, limited to numbers from 0 to 1."""
    if abs(alpha * 6 - 1) < 1e-6 and beta == 0.5:
        return x.then(LayerType.ADD, BinaryDescriptor(activation=Activation.RELU6), 3) * (1 / 6)
    shifted = (x * alpha).then(LayerType.ADD, BinaryDescriptor(activation=Activation.RELU), beta)
    return shifted.then(LayerType.MINIMUM, 1)


def _sign(x: Value) -> Value:
    if x.dtype is not DataType.INT32:
        return x.then(LayerType.SIGN)
    zero = x.number(0)
    above, below = (
        x.then(type_, zero).then(LayerType.CAST, dtype=x.dtype) for type_ in (LayerType.GREATER, LayerType.LESS)
    )
    return above - below


def _thresholded_relu(x: Value, alpha: float) -> Value:
    above = x.then(LayerType.GREATER, alpha)
    return above.select(x, x.number(0))


_RECTIFIERS = {row.clamp.limits: type_ for type_, row in OPERATORS.items() if row.clamp is not None}
"""The operators that clamp, by their limits."""


def _clip(call: Call) -> Value:
    low, high = call.scalar(1, "minimum"), call.scalar(2, "maximum")
    return clipped(call.value(), low, high)


def clipped(x: Value, low: float | None, high: float | None) -> Value:
    """Return the elements within two limits, of which either may be absent."""
    largest = float(np.finfo(np.float32).max)
    low = -math.inf if low is None or low <= -largest else low
    high = math.inf if high is None or high >= largest else high
    rectifier = _RECTIFIERS.get((None if low == -math.inf else low, None if high == math.inf else high))
    if rectifier is not None and x.dtype.is_float:
        return x.then(rectifier)
    x = x if low == -math.inf else x.then(LayerType.MAXIMUM, low)
    return x if high == math.inf else x.then(LayerType.MINIMUM, high)


def _cast(call: Call) -> Value:
    number = call.node.integer("to")
    dtype = TYPES.get(number)
    if dtype is None:
        raise UnsupportedError(
            f"it converts to {type_name(number)}, expected one of {', '.join(TYPES.values())}",
            hint="export the model in float32",
        )
    return call.value().cast(dtype)


def _cast_like(call: Call) -> Value:
    dtype = call.dtype(1)
    return call.value().cast(dtype)


def _is_inf(call: Call) -> Value:
    if not (call.node.flag("detect_negative", default=True) and call.node.flag("detect_positive", default=True)):
        raise UnsupportedError("it detects one sign only, expected both")
    return abs(call.value()).then(LayerType.EQUAL, math.inf)


def _identity(call: Call) -> Value:
    if call.node.op == "Dropout":
        call.refuse_outputs()
        if call.scalar(2, "training mode"):
            raise UnsupportedError("its training mode is on, expected off", hint="export the model with eval()")
    return call.value()


_LAYERS: Mapping[str, LayerType] = {
    "Abs": LayerType.ABS,
    "Ceil": LayerType.CEIL,
    "Cos": LayerType.COS,
    "Exp": LayerType.EXP,
    "Floor": LayerType.FLOOR,
    "HardSwish": LayerType.HARD_SWISH,
    "Log": LayerType.LOG,
    "Neg": LayerType.NEG,
    "Not": LayerType.LOGICAL_NOT,
    "Relu": LayerType.RELU,
    "Round": LayerType.ROUND,
    "Sigmoid": LayerType.LOGISTIC,
    "Sin": LayerType.SIN,
    "Sqrt": LayerType.SQRT,
    "Tanh": LayerType.TANH,
}
"""The operators that become one layer without parameters."""
ROWS: Mapping[str, Row] = {
    **{op: unary(type_) for op, type_ in _LAYERS.items()},
    "Cast": Row(_cast),
    "CastLike": Row(_cast_like, 2),
    "Celu": function(_celu, alpha=1.0),
    "Clip": Row(_clip, 1, 3),
    "DequantizeLinear": replace(function(lambda x: x.then(LayerType.DEQUANTIZE)), most=3),
    "Dropout": Row(_identity, 1, 3, outputs=2),
    "Elu": function(_elu, LayerType.ELU, alpha=1.0),
    "Erf": function(_erf),
    "Gelu": Row(_gelu),
    "HardSigmoid": function(hard_sigmoid, alpha=0.2, beta=0.5),
    "Identity": Row(_identity),
    "IsInf": Row(_is_inf),
    "IsNaN": function(lambda x: x.then(LayerType.NOT_EQUAL, x)),
    "LeakyRelu": function(leaky_relu, LayerType.LEAKY_RELU, alpha=0.01),
    "Mish": function(lambda x: x * _softplus(x).then(LayerType.TANH)),
    "PRelu": binary(LayerType.PRELU),
    "QuantizeLinear": replace(unary(LayerType.QUANTIZE), most=3),
    "Reciprocal": function(lambda x: 1 / x),
    "Selu": function(
        lambda x, alpha, gamma: _elu_of(x, alpha, 1, gamma), alpha=1.6732631921768188, gamma=1.0507010221481323
    ),
    "Sign": function(_sign, LayerType.SIGN),
    "Softplus": function(_softplus),
    "Softsign": function(lambda x: x / (abs(x) + 1)),
    "Swish": function(_swish, alpha=1.0),
    "Tan": function(lambda x: x.then(LayerType.SIN) / x.then(LayerType.COS)),
    "ThresholdedRelu": function(_thresholded_relu, alpha=1.0),
    f"{MICROSOFT}::BiasGelu": Row(_biased_gelu, 2),
    f"{MICROSOFT}::FastGelu": Row(_biased_gelu, 1, 2),
    f"{MICROSOFT}::Gelu": Row(_gelu),
    f"{MICROSOFT}::QuickGelu": function(_swish, alpha=1.702),
}
