# SPDX-License-Identifier: Apache-2.0
"""Random networks of one operator each, in int8 or int16, for compilers of Ethos-U."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import numpy as np

from ferrule.graph import Array, DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation

INT8, INT16, INT32, INT64 = DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64
_T = TypeVar("_T")
Scheme = Literal["same", "valid"]
_FUSED = (Activation.NONE, Activation.NONE, Activation.RELU, Activation.RELU6)


@dataclass(slots=True)
class Choosing:
    """All choices come from one generator."""

    dice: np.random.Generator

    def between(self, low: int, high: int) -> int:
        """Draw a whole number, ends included."""
        return int(self.dice.integers(low, high + 1))

    def below(self, share: float) -> bool:
        """Draw whether something that happens in `share` of the cases happens."""
        return bool(self.dice.random() < share)


@dataclass(slots=True)
class Draw(Choosing):
    """A network of one operator under construction."""

    network: Network

    def one(self, values: Sequence[_T]) -> _T:
        """Draw one of several values."""
        return values[self.between(0, len(values) - 1)]

    def scale(self, low: float, high: float) -> float:
        """Draw a float32 scale, evenly in its logarithm."""
        return float(np.float32(np.exp(self.dice.uniform(np.log(low), np.log(high)))))

    def quantization(self, dtype: DataType, low: float = 0.002, high: float = 0.2) -> Quantization:
        """Draw the quantisation of an activation; int16 has finer scales and no zero point."""
        scale = self.scale(low, high)
        return Quantization.of(scale, self.between(-128, 127)) if dtype is INT8 else Quantization.of(scale / 256)

    def image(self, side: int = 10, channels: int = 40) -> Shape:
        """Draw the shape of an image."""
        return (1, self.between(1, side), self.between(1, side), self.between(1, channels))

    def take(self, shape: Shape, dtype: DataType, quantization: Quantization | None = None) -> str:
        """Add an input."""
        name = f"input_{len(self.network.inputs)}"
        found = quantization or self.quantization(dtype)
        return self.network.add_input(TensorInfo(name, shape, dtype, quantization=found))

    def hold(self, shape: Shape, dtype: DataType, quantization: Quantization) -> str:
        """Add a constant over the whole range of its type."""
        limits = np.iinfo(dtype.numpy)
        data = self.dice.integers(limits.min, limits.max + 1, shape).astype(dtype.numpy)
        return self.network.add_constant_array("constant", data, quantization)

    def weights(self, shape: Shape) -> Array:
        """Draw int8 weights, sometimes sparse, which the weight encoder stores as runs of zeros."""
        weights = np.clip(np.rint(self.dice.normal(0, self.one((5, 30, 60)), shape)), -127, 127)
        if self.below(0.3):
            weights[self.dice.random(shape) < 0.7] = 0
        return weights.astype(np.int8)

    def weight_scales(self, channels: int, axis: int) -> Quantization:
        """Draw the quantisation of weights, per channel or per tensor."""
        count = channels if self.below(0.7) else 1
        scales = tuple(self.scale(0.002, 0.03) for _ in range(count))
        return Quantization(scales=scales, zero_points=(0,) * count, axis=axis)

    def result(self, dtype: DataType, source: float, weights: Quantization, products: int) -> Quantization:
        """Draw an output's quantisation with which few results saturate."""
        spread = source * float(np.mean(weights.scales)) * products**0.5 * self.dice.uniform(0.3, 2)
        if dtype is INT16:
            return Quantization.of(float(np.float32(spread * 40)))
        return Quantization.of(float(np.float32(spread * 40)), self.between(-128, 127))

    def bias(self, channels: int, dtype: DataType) -> Array:
        """Draw a bias."""
        return self.dice.integers(-2000, 2000, channels).astype(dtype.numpy)


def _fits(size: int, window: int, dilation: int, scheme: Scheme) -> bool:
    """Return whether a window fits into an axis."""
    return scheme == "same" or (window - 1) * dilation + 1 <= size


def _conv(draw: Draw, dtype: DataType, bias: DataType, *, depthwise: bool = False) -> str:
    while True:
        height, width, channels, outputs = (draw.between(1, most) for most in (20, 20, 40, 40))
        kernel = (draw.between(1, 7), draw.between(1, 7))
        strides = (draw.between(1, 3), draw.between(1, 3))
        scheme: Scheme = draw.one(("same", "valid"))
        dilations = (draw.between(1, 2), draw.between(1, 2)) if draw.below(0.25) else (1, 1)
        if max(dilations) > 1:
            strides = (1, 1)
        if depthwise:
            strides, outputs = (strides[0], strides[0]), channels
        if all(map(_fits, (height, width), kernel, dilations, (scheme, scheme))):
            break
    source = draw.take((1, height, width, channels), dtype)
    shape = (1, *kernel, outputs) if depthwise else (outputs, *kernel, channels)
    scales = draw.weight_scales(outputs, 3 if depthwise else 0)
    products = int(np.prod(kernel)) * (1 if depthwise else channels)
    add = draw.network.add_depthwise_conv2d_layer if depthwise else draw.network.add_conv2d_layer
    return add(
        source,
        draw.weights(shape),
        draw.bias(outputs, bias),
        strides=strides,
        dilations=dilations,
        padding=scheme,
        activation=draw.one(_FUSED),
        weights_quantization=scales,
        quantization=draw.result(dtype, draw.network.info(source).scale, scales, products),
    )


def _chain(draw: Draw) -> str:
    """Three convolutions of a large image, which a compiler computes stripe by stripe through rolling buffers."""
    height, width, channels = draw.between(40, 80), draw.between(40, 80), draw.between(3, 24)
    at = draw.take((1, height, width, channels), INT8)
    for _ in range(3):
        side, depthwise = draw.one((1, 3)), draw.below(0.4)
        outputs = channels if depthwise else draw.between(8, 32)
        scales = draw.weight_scales(outputs, 3 if depthwise else 0)
        products = side * side * (1 if depthwise else channels)
        shape = (1, side, side, outputs) if depthwise else (outputs, side, side, channels)
        add = draw.network.add_depthwise_conv2d_layer if depthwise else draw.network.add_conv2d_layer
        at = add(
            at,
            draw.weights(shape),
            draw.bias(outputs, INT32),
            padding="same",
            weights_quantization=scales,
            quantization=draw.result(INT8, draw.network.info(at).scale, scales, products),
        )
        channels = outputs
    return at


def _fully_connected(draw: Draw, dtype: DataType, bias: DataType) -> str:
    channels, outputs = draw.between(1, 300), draw.between(1, 200)
    source = draw.take((1, channels), dtype)
    scales = Quantization.of(draw.scale(0.002, 0.03))
    return draw.network.add_fully_connected_layer(
        source,
        draw.weights((outputs, channels)),
        draw.bias(outputs, bias),
        activation=draw.one(_FUSED),
        weights_quantization=scales,
        quantization=draw.result(dtype, draw.network.info(source).scale, scales, channels),
    )


def _transpose_conv(draw: Draw) -> str:
    while True:
        height, width, channels, outputs = (draw.between(1, most) for most in (8, 8, 20, 20))
        side, stride, scheme = draw.between(1, 4), draw.one((1, 2)), draw.one(("same", "valid"))
        if scheme == "same" or side >= stride:
            break
    extra = 0 if scheme == "same" else max(side, stride) - stride
    source = draw.take((1, height, width, channels), INT8)
    scales = draw.weight_scales(outputs, 0)
    padding: Scheme = "same" if scheme == "same" else "valid"
    return draw.network.add_transpose_conv_layer(
        source,
        draw.weights((outputs, side, side, channels)),
        draw.bias(outputs, INT32),
        size=(height * stride + extra, width * stride + extra),
        strides=(stride, stride),
        padding=padding,
        weights_quantization=scales,
        quantization=draw.result(INT8, draw.network.info(source).scale, scales, channels * side * side),
    )


def _shapes(draw: Draw) -> tuple[Shape, Shape]:
    """Draw the shapes of two operands; half of them broadcast."""
    full = draw.image(12)
    _, height, width, channels = full
    small: list[Shape] = [(1, 1, 1, channels), (1, 1, 1, 1), (1, 1, width, channels), (1, height, width, 1)]
    if draw.below(0.4):
        return full, draw.one(small)
    return (draw.one(((1, 1, 1, channels), (1, height, 1, channels))), full) if draw.below(0.2) else (full, full)


def _binary(draw: Draw, type_: LayerType, dtype: DataType, *, one_scale: bool = False) -> str:
    left, right, output = (draw.quantization(dtype, 0.005, 0.1) for _ in range(3))
    if one_scale:
        right = Quantization.of(left.scale, right.zero_point)
    if type_ in {LayerType.MINIMUM, LayerType.MAXIMUM}:
        right = output = left
    if type_ is LayerType.MUL:
        factor = draw.dice.uniform(20, 200) * (1 if dtype is INT8 else 250)
        output = Quantization.of(float(np.float32(left.scale * right.scale * factor)), output.zero_point)
    if type_ is LayerType.SQUARED_DIFFERENCE:
        output = Quantization.of(float(np.float32(left.scale * right.scale * 100)), output.zero_point)
    first, second = _shapes(draw) if type_ is not LayerType.SQUARED_DIFFERENCE else (draw.image(),) * 2
    names = [draw.take(first, dtype, left)]
    fixed = type_ is not LayerType.SQUARED_DIFFERENCE and draw.below(0.3)
    names.append(draw.hold(second, dtype, right) if fixed else draw.take(second, dtype, right))
    if draw.below(0.3):
        names.reverse()
    network, fused = draw.network, draw.one(_FUSED)
    match type_:
        case LayerType.ADD:
            return network.add_add_layer(*names, activation=fused, quantization=output)
        case LayerType.SUB:
            return network.add_sub_layer(*names, activation=fused, quantization=output)
        case LayerType.MUL:
            return network.add_mul_layer(*names, activation=fused, quantization=output)
        case LayerType.MINIMUM:
            return network.add_minimum_layer(*names)
        case LayerType.MAXIMUM:
            return network.add_maximum_layer(*names)
        case _:
            return network.add_squared_difference_layer(*names, quantization=output)


def _pool(draw: Draw, type_: LayerType, dtype: DataType) -> str:
    while True:
        height, width, channels = draw.between(1, 24), draw.between(1, 24), draw.between(1, 40)
        window, strides = (draw.between(1, 9), draw.between(1, 9)), (draw.between(1, 3), draw.between(1, 3))
        scheme: Scheme = draw.one(("same", "valid"))
        if scheme == "same" or (window[0] <= height and window[1] <= width):
            break
    source = draw.take((1, height, width, channels), dtype)
    network = draw.network
    add = network.add_max_pool2d_layer if type_ is LayerType.MAX_POOL_2D else network.add_average_pool2d_layer
    return add(source, window, strides=strides, padding=scheme, activation=draw.one(_FUSED))


def _unary(draw: Draw, type_: LayerType, dtype: DataType) -> str:
    quantization, output = draw.quantization(dtype, 0.01, 0.1), draw.quantization(dtype, 0.01, 0.1)
    if dtype is INT16 and type_ in {LayerType.LOGISTIC, LayerType.TANH} and draw.below(0.4):
        quantization = Quantization.of(draw.one((2.0**-11, 2.0**-12)))
    if type_ is LayerType.RSQRT:
        quantization = Quantization.of(quantization.scale, -128 if dtype is INT8 else 0)
    network, source = draw.network, draw.take(draw.image(), dtype, quantization)
    match type_:
        case LayerType.LOGISTIC:
            return network.add_logistic_layer(source)
        case LayerType.TANH:
            return network.add_tanh_layer(source)
        case LayerType.SOFTMAX:
            return network.add_softmax_layer(source)
        case LayerType.LEAKY_RELU:
            return network.add_leaky_relu_layer(source, draw.dice.uniform(0.01, 0.5), quantization=output)
        case LayerType.HARD_SWISH:
            return network.add_hard_swish_layer(source, quantization=output)
        case LayerType.RELU:
            return network.add_relu_layer(source, quantization=output)
        case LayerType.RELU6:
            return network.add_relu6_layer(source)
        case LayerType.RELU_N1_TO_1:
            return network.add_relu_n1_to_1_layer(source)
        case LayerType.QUANTIZE:
            return network.add_quantize_layer(source, dtype, output)
        case _:
            return network.add_elementwise_unary_layer(type_, source, quantization=output)


def _prelu(draw: Draw) -> str:
    source = draw.take(draw.image(), INT8, draw.quantization(INT8, 0.01, 0.1))
    alpha = draw.dice.integers(-128, 128, (1, 1, draw.network.info(source).shape[3])).astype(np.int8)
    output = draw.quantization(INT8, 0.01, 0.1)
    alpha_quantization = draw.quantization(INT8, 0.002, 0.02)
    return draw.network.add_prelu_layer(source, alpha, alpha_quantization=alpha_quantization, quantization=output)


def _resize(draw: Draw, *, bilinear: bool) -> str:
    height, width, factor = draw.between(1, 10), draw.between(1, 10), draw.one((2, 4, 8))
    align = draw.below(0.5)
    half = not align and draw.below(0.5)
    size = ((height - 1) * factor + 1, (width - 1) * factor + 1) if align else (height * factor, width * factor)
    source = draw.take((1, height, width, draw.between(1, 24)), INT8)
    network = draw.network
    add = network.add_resize_bilinear_layer if bilinear else network.add_resize_nearest_neighbor_layer
    return add(source, size, align_corners=align, half_pixel_centers=half)


def _mean(draw: Draw, dtype: DataType) -> str:
    axes: Shape = draw.one(((1, 2), (1,), (2,), (3,), (1, 2, 3)))
    source = draw.take(draw.image(), dtype)
    output = draw.quantization(dtype) if draw.below(0.5) else draw.network.info(source).quantization
    return draw.network.add_mean_layer(source, axes, keep_dims=draw.below(0.5), quantization=output)


def _along(draw: Draw, type_: LayerType) -> str:
    """A reduction of one axis."""
    network, axis, shape = draw.network, draw.between(1, 3), draw.image()
    source = draw.take(shape, INT8)
    match type_:
        case LayerType.SUM:
            scale = float(np.float32(network.info(source).scale * shape[axis] ** 0.5 * 2))
            output = Quantization.of(scale, draw.between(-128, 127))
            return network.add_sum_layer(source, [axis], keep_dims=True, quantization=output)
        case LayerType.REDUCE_MAX:
            return network.add_reduce_max_layer(source, [axis], keep_dims=True)
        case LayerType.REDUCE_MIN:
            return network.add_reduce_min_layer(source, [axis], keep_dims=True)
        case _:
            return network.add_arg_max_layer(source, 3)


def _pads(draw: Draw, most: int = 3) -> tuple[int, int]:
    return draw.between(0, most), draw.between(0, most)


def _move(draw: Draw, type_: LayerType, dtype: DataType = INT8) -> str:
    """A layer that moves elements."""
    network, shape = draw.network, draw.image()
    _, height, width, channels = shape
    source = draw.take(shape, dtype)
    match type_:
        case LayerType.PAD:
            deep = _pads(draw) if draw.below(0.3) else (0, 0)
            return network.add_pad_layer(source, [(0, 0), _pads(draw), _pads(draw), deep])
        case LayerType.MIRROR_PAD:
            pads = [(0, 0), *((draw.between(0, min(3, side - 1)), 0) for side in (height, width)), (0, 0)]
            return network.add_mirror_pad_layer(source, pads, reflect=draw.below(0.5))
        case LayerType.TRANSPOSE:
            return network.add_transpose_layer(source, [0, *(draw.dice.permutation(3) + 1).tolist()])
        case LayerType.TILE:
            return network.add_tile_layer(source, [1, draw.between(1, 2), draw.between(1, 2), draw.between(1, 2)])
        case LayerType.REVERSE_V2:
            return network.add_reverse_v2_layer(source, [draw.between(1, 2)])
        case LayerType.STRIDED_SLICE | LayerType.SLICE:
            begin = [0, *(draw.between(0, side - 1) for side in shape[1:])]
            end = [1, *(draw.between(at + 1, side) for at, side in zip(begin[1:], shape[1:], strict=True))]
            if type_ is LayerType.SLICE:
                return network.add_slice_layer(source, begin, [e - b for b, e in zip(begin, end, strict=True)])
            return network.add_strided_slice_layer(source, begin, end, [1, draw.between(1, 2), draw.between(1, 2), 1])
        case LayerType.RESHAPE:
            return network.add_reshape_layer(source, (1, height, width * channels))
        case LayerType.SPLIT:
            parts = network.add_split_layer(source, 1, height)
            return network.add_add_layer(parts[0], parts[-1], quantization=draw.quantization(INT8, 0.01, 0.1))
        case LayerType.CONCATENATION:
            sides = list(shape)
            axis = draw.between(1, 3)
            sides[axis] = draw.between(1, 20)
            same = network.info(source).quantization
            return network.add_concatenation_layer([source, draw.take(tuple(sides), dtype, same)], axis)
        case _:
            same = network.info(source).quantization
            others = [draw.take(shape, dtype, same) for _ in range(draw.between(1, 2))]
            return network.add_pack_layer([source, *others], draw.between(1, 4))


def _batch_matmul(draw: Draw) -> str:
    rows, inner, columns = draw.between(1, 12), draw.between(1, 20), draw.between(1, 12)
    left, right = draw.take((1, rows, inner), INT8), draw.take((1, inner, columns), INT8)
    scale = draw.network.info(left).scale * draw.network.info(right).scale * inner**0.5 * 60
    output = Quantization.of(float(np.float32(scale)), draw.between(-100, 100))
    return draw.network.add_batch_matmul_layer(left, right, quantization=output)


def _lstm(draw: Draw, dtype: DataType) -> str:
    """A recurrent layer whose hidden and cell states stay in the arena from run to run."""
    time, inputs = draw.between(1, 4), draw.between(1, 12)
    units = draw.between(2, 12)  # one unit of int16 ends Vela 5.2.0 with a segmentation fault
    source = draw.take((1, time, inputs), dtype, Quantization.of(1 / 64 if dtype is INT8 else 1 / 4096))
    scales = [Quantization.of(draw.scale(0.004, 0.02)) for _ in range(8)]
    hidden = Quantization.of(1 / 128 if dtype is INT8 else 1 / 32768, draw.between(-20, 20) if dtype is INT8 else 0)
    return draw.network.add_lstm_layer(
        source,
        [draw.weights((units, inputs)) for _ in range(4)],
        [draw.weights((units, units)) for _ in range(4)],
        [draw.bias(units, INT32 if dtype is INT8 else INT64) for _ in range(4)],
        weights_quantizations=scales[:4],
        recurrent_quantizations=scales[4:],
        cell_quantization=Quantization.of(2.0**-11),
        quantization=hidden,
    )


def _of(function: Callable[..., str], types: Mapping[str, LayerType], dtype: DataType) -> dict[str, Callable[..., str]]:
    suffix = "" if dtype is INT8 else "16"
    return {f"{name}{suffix}": partial(function, type_=type_, dtype=dtype) for name, type_ in types.items()}


_BINARY = {"add": LayerType.ADD, "sub": LayerType.SUB, "mul": LayerType.MUL}
_EXTREMA = {"minimum": LayerType.MINIMUM, "maximum": LayerType.MAXIMUM, "square_diff": LayerType.SQUARED_DIFFERENCE}
_POOLS = {"max_pool": LayerType.MAX_POOL_2D, "average_pool": LayerType.AVERAGE_POOL_2D}
_CURVES = {
    "logistic": LayerType.LOGISTIC,
    "tanh": LayerType.TANH,
    "leaky_relu": LayerType.LEAKY_RELU,
    "softmax": LayerType.SOFTMAX,
}
_FUNCTIONS = {
    name.lower(): LayerType[name] for name in ("HARD_SWISH", "RELU", "RELU6", "RELU_N1_TO_1", "QUANTIZE", "ABS", "ELU")
} | {"rsqrt": LayerType.RSQRT}
_MOVES = ("PAD", "MIRROR_PAD", "TRANSPOSE", "TILE", "REVERSE_V2", "STRIDED_SLICE", "SLICE", "RESHAPE", "SPLIT", "PACK")
KINDS: Mapping[str, Callable[..., str]] = {
    "conv": partial(_conv, dtype=INT8, bias=INT32),
    "conv16": partial(_conv, dtype=INT16, bias=INT64),
    "conv16_bias32": partial(_conv, dtype=INT16, bias=INT32),
    "depthwise": partial(_conv, dtype=INT8, bias=INT32, depthwise=True),
    "depthwise16": partial(_conv, dtype=INT16, bias=INT64, depthwise=True),
    "dense": partial(_fully_connected, dtype=INT8, bias=INT32),
    "dense16": partial(_fully_connected, dtype=INT16, bias=INT64),
    "dense16_bias32": partial(_fully_connected, dtype=INT16, bias=INT32),
    "transpose_conv": _transpose_conv,
    "chain": _chain,
    **_of(_binary, _BINARY | _EXTREMA, INT8),
    **_of(_binary, _BINARY, INT16),
    "add_one_scale": partial(_binary, type_=LayerType.ADD, dtype=INT8, one_scale=True),
    "sub_one_scale": partial(_binary, type_=LayerType.SUB, dtype=INT8, one_scale=True),
    "add16_one_scale": partial(_binary, type_=LayerType.ADD, dtype=INT16, one_scale=True),
    **_of(_pool, _POOLS, INT8),
    **_of(_pool, _POOLS, INT16),
    **_of(_unary, _CURVES | _FUNCTIONS, INT8),
    **_of(_unary, _CURVES, INT16),
    "prelu": _prelu,
    "bilinear": partial(_resize, bilinear=True),
    "nearest": partial(_resize, bilinear=False),
    "mean": partial(_mean, dtype=INT8),
    "mean16": partial(_mean, dtype=INT16),
    **{name.lower(): partial(_along, type_=LayerType[name]) for name in ("SUM", "REDUCE_MAX", "REDUCE_MIN", "ARG_MAX")},
    **{name.lower(): partial(_move, type_=LayerType[name]) for name in (*_MOVES, "CONCATENATION")},
    "transpose16": partial(_move, type_=LayerType.TRANSPOSE, dtype=INT16),
    "concatenation16": partial(_move, type_=LayerType.CONCATENATION, dtype=INT16),
    "batch_matmul": _batch_matmul,
    "lstm": partial(_lstm, dtype=INT8),
    "lstm16": partial(_lstm, dtype=INT16),
}
"""What draws each kind of network; the function adds the layers and returns the output."""


def vela_case(kind: str, seed: int) -> Network:
    """Return a network of the kind, the same for the same arguments; KeyError if there is no such kind."""
    network = Network(f"{kind}_{seed}")
    draw = Draw(np.random.default_rng([seed, sorted(KINDS).index(kind)]), network)
    network.set_outputs([KINDS[kind](draw)])
    return network
