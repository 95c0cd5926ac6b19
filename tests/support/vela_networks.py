# SPDX-License-Identifier: Apache-2.0
"""Random networks of one to three operators in a row, for what compilers of Ethos-U do where operators meet.

Batches are above 1, convolutions have groups, padding exceeds the window, and scales are at powers of two or one unit
in the last place beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from vela_cases import INT8, INT16, INT32, INT64, Draw

from ferrule.errors import FerruleError
from ferrule.graph import DataType, LayerType, Quantization, Shape
from ferrule.network import Network
from ferrule.operators.activation import Activation

_FUSED = (Activation.NONE, Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)
_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D")
_MOST_ELEMENTS = 6000
_ATTEMPTS = 40


class Chain(Draw):
    """A network that grows at its end, the tensor `at`."""

    at: str = ""

    def near_scale(self, low: float, high: float) -> float:
        """Draw a float32 scale: a power of two, one beside it, or any."""
        if self.below(0.4):
            return self.scale(low, high)
        power = np.float32(2.0 ** self.between(round(np.log2(low)), round(np.log2(high))))
        return float(np.nextafter(power, np.float32(self.one((0.0, float(power), 1e9))), dtype=np.float32))

    def near(self, dtype: DataType, low: float = 2**-9, high: float = 0.25) -> Quantization:
        """Draw the quantisation of an activation; its zero point is often at an end or 0."""
        if dtype is INT16:
            return Quantization.of(self.near_scale(low / 256, high / 256))
        return Quantization.of(self.near_scale(low, high), self.one((-128, 127, 0, self.between(-128, 127))))

    @property
    def shape(self) -> Shape:
        """The shape of the last tensor."""
        return self.network.info(self.at).shape

    @property
    def dtype(self) -> DataType:
        """The element type of the last tensor."""
        return self.network.info(self.at).dtype

    def other(self, shape: Shape, quantization: Quantization) -> str:
        """Return a second operand: an input, a constant, or the last tensor."""
        if shape == self.shape and self.below(0.3) and self.network.info(self.at).quantization == quantization:
            return self.at
        if self.below(0.4):
            return self.hold(shape, self.dtype, quantization)
        return self.take(shape, self.dtype, quantization)


def _windowed(chain: Chain, *, depthwise: bool) -> str:
    channels = chain.shape[-1]
    if len(chain.shape) != 4:
        raise ValueError(chain.shape)
    kernel = (chain.between(1, 4), chain.between(1, 4))
    padding: object = chain.one(("same", "valid", "explicit"))
    if padding == "explicit":  # beyond the window, too
        most = chain.one((1, 3, 6))
        padding = tuple(tuple(chain.between(0, most) for _ in range(2)) for _ in range(2))
    dtype = chain.dtype
    if depthwise:
        outputs = channels * chain.one((1, 1, 2, 3))
        shape: Shape = (1, *kernel, outputs)
        products = kernel[0] * kernel[1]
    else:
        groups = chain.one([n for n in range(1, channels + 1) if channels % n == 0]) if chain.below(0.5) else 1
        outputs = groups * chain.between(1, 4)
        shape = (outputs, *kernel, channels // groups)
        products = kernel[0] * kernel[1] * channels // groups
    count = outputs if chain.below(0.7) else 1
    scales = Quantization(
        scales=tuple(chain.near_scale(2**-9, 2**-5) for _ in range(count)),
        zero_points=(0,) * count,
        axis=3 if depthwise else 0,
    )
    strides = (chain.between(1, 2), chain.between(1, 2))
    dilations = (1, 1)
    if chain.below(0.2):
        strides, dilations = (1, 1), (chain.between(1, 2), chain.between(1, 2))
    if depthwise:
        strides = (strides[0], strides[0])
    bias = chain.bias(outputs, INT32 if dtype is INT8 or chain.below(0.2) else INT64)
    return (chain.network.add_depthwise_conv2d_layer if depthwise else chain.network.add_conv2d_layer)(
        chain.at,
        chain.weights(shape),
        bias if chain.below(0.9) else None,
        strides=strides,
        dilations=dilations,
        padding=padding,  # type: ignore[arg-type] # drawn
        activation=chain.one(_FUSED),
        weights_quantization=scales,
        quantization=_summed(chain, scales, products),
    )


def _summed(chain: Chain, weights: Quantization, products: int) -> Quantization:
    """Draw the quantisation of sums of products; its factor is often next to a power of two."""
    found = chain.result(chain.dtype, chain.network.info(chain.at).scale, weights, products)
    if chain.below(0.5):
        return found
    power = np.float32(2.0 ** np.rint(np.log2(found.scale)))
    scale = np.nextafter(power, np.float32(chain.one((0.0, float(power), 1e9))), dtype=np.float32)
    return Quantization.of(float(scale), found.zero_points[0])


def _dense(chain: Chain) -> str:
    network = chain.network
    rows, depth = chain.shape[0], int(np.prod(chain.shape[1:]))
    if len(chain.shape) != 2:
        chain.at = network.add_reshape_layer(chain.at, (rows, depth))
    outputs = chain.between(1, 24)
    scales = Quantization.of(chain.near_scale(2**-9, 2**-5))
    return network.add_fully_connected_layer(
        chain.at,
        chain.weights((outputs, depth)),
        chain.bias(outputs, INT32 if chain.dtype is INT8 else INT64),
        activation=chain.one(_FUSED),
        weights_quantization=scales,
        quantization=_summed(chain, scales, depth),
    )


def _binary(chain: Chain, type_: LayerType) -> str:
    network, own = chain.network, chain.network.info(chain.at).quantization
    assert own is not None
    small = chain.one([chain.shape, chain.shape, (*(1,) * (len(chain.shape) - 1), chain.shape[-1])])
    if type_ in {LayerType.MINIMUM, LayerType.MAXIMUM}:
        names = [chain.at, chain.other(small, own)]
        return (network.add_minimum_layer if type_ is LayerType.MINIMUM else network.add_maximum_layer)(*names)
    second = chain.one((own, chain.near(chain.dtype)))
    if type_ is LayerType.SQUARED_DIFFERENCE:
        small = chain.shape
    names = [chain.at, chain.other(small, second)]
    if chain.below(0.3):
        names.reverse()
    output = chain.near(chain.dtype)
    if type_ in {LayerType.MUL, LayerType.SQUARED_DIFFERENCE}:
        reach = own.scale * second.scale * (100 if chain.dtype is INT8 else 20000)
        output = Quantization.of(chain.near_scale(reach / 4, reach * 4), output.zero_points[0])
    if type_ is LayerType.SQUARED_DIFFERENCE:
        return network.add_squared_difference_layer(*names, quantization=output)
    adders = {
        LayerType.ADD: network.add_add_layer,
        LayerType.SUB: network.add_sub_layer,
        LayerType.MUL: network.add_mul_layer,
    }
    return adders[type_](*names, activation=chain.one(_FUSED), quantization=output)


def _unary(chain: Chain, type_: LayerType) -> str:
    network, output = chain.network, chain.near(chain.dtype)
    match type_:
        case LayerType.LOGISTIC:
            return network.add_logistic_layer(chain.at)
        case LayerType.TANH:
            return network.add_tanh_layer(chain.at)
        case LayerType.SOFTMAX:
            return network.add_softmax_layer(chain.at)
        case LayerType.LEAKY_RELU:
            return network.add_leaky_relu_layer(chain.at, chain.dice.uniform(0.01, 0.5), quantization=output)
        case LayerType.HARD_SWISH:
            return network.add_hard_swish_layer(chain.at, quantization=output)
        case LayerType.RELU:
            return network.add_relu_layer(chain.at, quantization=output)
        case LayerType.RELU6:
            return network.add_relu6_layer(chain.at)
        case LayerType.QUANTIZE:
            dtype = chain.one((INT8, INT16))
            return network.add_quantize_layer(chain.at, dtype, chain.near(dtype))
        case _:
            return network.add_elementwise_unary_layer(type_, chain.at, quantization=output)


def _pool(chain: Chain, type_: LayerType) -> str:
    network = chain.network
    add = network.add_max_pool2d_layer if type_ is LayerType.MAX_POOL_2D else network.add_average_pool2d_layer
    window, strides = (chain.between(1, 4), chain.between(1, 4)), (chain.between(1, 3), chain.between(1, 3))
    return add(chain.at, window, strides=strides, padding=chain.one(("same", "valid")), activation=chain.one(_FUSED))


def _pads(chain: Chain, most: int = 3) -> tuple[int, int]:
    return chain.between(0, most), chain.between(0, most)


def _move(chain: Chain, type_: LayerType) -> str:
    network, shape = chain.network, chain.shape
    rank = len(shape)
    match type_:
        case LayerType.PAD:
            return network.add_pad_layer(chain.at, [(0, 0), *(_pads(chain) for _ in range(rank - 1))])
        case LayerType.MIRROR_PAD:
            pads = [(chain.between(0, min(2, side - 1)), chain.between(0, min(2, side - 1))) for side in shape]
            pads[0] = pads[-1] = (0, 0)
            return network.add_mirror_pad_layer(chain.at, pads, reflect=chain.below(0.5))
        case LayerType.TRANSPOSE:
            kept = 1 if chain.below(0.7) else 0
            moved = (chain.dice.permutation(rank - kept) + kept).tolist()
            return network.add_transpose_layer(chain.at, [*range(kept), *moved])
        case LayerType.RESHAPE:
            sides = [*shape]
            first = chain.between(0, rank - 2)
            forms: list[list[int]] = [
                [*sides[:first], sides[first] * sides[first + 1], *sides[first + 2 :]],
                [*sides[:first], sides[first + 1], sides[first], *sides[first + 2 :]],
                [*sides[:first], sides[first] * sides[first + 1], 1, *sides[first + 2 :]],
                [int(np.prod(sides[:-1])), sides[-1]],
            ]
            return network.add_reshape_layer(chain.at, chain.one(forms))
        case LayerType.SLICE | LayerType.STRIDED_SLICE:
            begin = [chain.between(0, side - 1) for side in shape]
            end = [chain.between(at + 1, side) for at, side in zip(begin, shape, strict=True)]
            if type_ is LayerType.SLICE:
                return network.add_slice_layer(chain.at, begin, [e - b for b, e in zip(begin, end, strict=True)])
            steps = [1, *(chain.between(1, 2) for _ in shape[1:-1]), 1]
            return network.add_strided_slice_layer(chain.at, begin, end, steps[:rank])
        case LayerType.SPLIT:
            axis = chain.between(0, rank - 1)
            count = chain.one([n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
            return chain.one(network.add_split_layer(chain.at, axis, count))
        case LayerType.CONCATENATION | LayerType.PACK:
            same = network.info(chain.at).quantization
            assert same is not None
            parts = [chain.at, chain.other(shape, same)]
            if chain.below(0.5):
                parts.reverse()
            if type_ is LayerType.PACK:
                return network.add_pack_layer(parts, chain.between(0, rank))
            return network.add_concatenation_layer(parts, chain.between(0, rank - 1))
        case LayerType.TILE:
            return network.add_tile_layer(chain.at, [chain.between(1, 2) for _ in shape])
        case _:
            return network.add_expand_dims_layer(chain.at, chain.between(0, rank))


def _resize(chain: Chain) -> str:
    _, height, width, _ = chain.shape
    factor = chain.one((2, 4))
    network = chain.network
    add = chain.one((network.add_resize_bilinear_layer, network.add_resize_nearest_neighbor_layer))
    return add(chain.at, (height * factor, width * factor), half_pixel_centers=chain.below(0.4))


def _reduce(chain: Chain, type_: LayerType) -> str:
    network, rank = chain.network, len(chain.shape)
    if type_ is LayerType.MEAN:
        axes = chain.one(((1,), (2,), (1, 2))) if rank == 4 else (rank - 1,)
        return network.add_mean_layer(chain.at, axes, keep_dims=chain.below(0.7), quantization=chain.near(chain.dtype))
    add = network.add_reduce_max_layer if type_ is LayerType.REDUCE_MAX else network.add_reduce_min_layer
    return add(chain.at, [chain.between(1, rank - 1)], keep_dims=True)


def _transpose_conv(chain: Chain) -> str:
    _, height, width, channels = chain.shape
    side, outputs = chain.between(2, 4), chain.between(1, 6)
    scales = Quantization.of(chain.near_scale(2**-9, 2**-5))
    return chain.network.add_transpose_conv_layer(
        chain.at,
        chain.weights((outputs, side, side, channels)),
        chain.bias(outputs, INT32 if chain.dtype is INT8 else INT64),
        size=(height * 2, width * 2),
        strides=(2, 2),
        padding="same",
        weights_quantization=scales,
        quantization=_summed(chain, scales, side * side * channels),
    )


def _batch_matmul(chain: Chain) -> str:
    *outer, _, inner = chain.shape
    own, other = chain.network.info(chain.at), chain.near(chain.dtype)
    right = chain.take((*outer, inner, chain.between(1, 8)), chain.dtype, other)
    reach = own.scale * other.scale * inner**0.5 * (60 if chain.dtype is INT8 else 15000)
    output = Quantization.of(
        chain.near_scale(reach / 2, reach * 2), 0 if chain.dtype is INT16 else chain.between(-9, 9)
    )
    return chain.network.add_batch_matmul_layer(chain.at, right, quantization=output)


def _kinds(function: Callable[..., str], *types: str) -> dict[str, Callable[[Chain], str]]:
    return {name: partial(function, type_=LayerType[name]) for name in types}


STEPS: Mapping[str, Callable[[Chain], str]] = {
    "CONV_2D": lambda chain: _windowed(chain, depthwise=False),
    "DEPTHWISE_CONV_2D": lambda chain: _windowed(chain, depthwise=True),
    "FULLY_CONNECTED": _dense,
    "TRANSPOSE_CONV": _transpose_conv,
    "BATCH_MATMUL": _batch_matmul,
    "RESIZE": _resize,
    **_kinds(_binary, "ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM", "SQUARED_DIFFERENCE"),
    **_kinds(_unary, "LOGISTIC", "TANH", "SOFTMAX", "LEAKY_RELU", "HARD_SWISH", "RELU", "RELU6", "QUANTIZE"),
    **_kinds(_unary, "ABS", "ELU", "RSQRT"),
    **_kinds(_pool, "MAX_POOL_2D", "AVERAGE_POOL_2D"),
    **_kinds(_move, "PAD", "MIRROR_PAD", "TRANSPOSE", "RESHAPE", "SLICE", "STRIDED_SLICE", "SPLIT"),
    **_kinds(_move, "CONCATENATION", "PACK", "TILE", "EXPAND_DIMS"),
    **_kinds(_reduce, "MEAN", "REDUCE_MAX", "REDUCE_MIN"),
}
"""What draws each operator; the function adds it after the last tensor of a chain and returns its result."""


def vela_network(seed: int) -> Network:
    """Return a network of one to three operators, the same for the same seed."""
    dice = np.random.default_rng([seed, 28])
    while True:
        network = _grown(Chain(dice, Network(f"chain_{seed}")))
        if network is not None:
            return network


def _grown(chain: Chain) -> Network | None:
    """Return a network whose operators fit one another; None if what was drawn does not."""
    dtype = INT8 if chain.below(0.7) else INT16
    shape = (chain.one((1, 1, 2, 3)), chain.between(1, 9), chain.between(1, 9), chain.between(1, 12))
    if chain.below(0.1):
        shape = chain.one(((chain.between(1, 3), chain.between(2, 40)), shape[:3]))  # type: ignore[assignment]
    chain.at = chain.take(shape, dtype, chain.near(dtype))
    names = (*STEPS, *_WEIGHTED * 2)
    wanted = chain.one((1, 2, 2, 3, 3, 3))
    for _ in range(_ATTEMPTS):
        if wanted == 0:
            break
        before = chain.at
        try:
            at = STEPS[chain.one(names)](chain)
        except (FerruleError, ValueError, TypeError):
            return None
        if chain.network.info(at).elements > _MOST_ELEMENTS:
            return None
        chain.at = at
        wanted -= before != at
    network = chain.network
    read = {name for layer in network.layers for name in layer.present_inputs}
    outputs = [name for layer in network.layers for name in layer.outputs if name not in read or chain.below(0.1)]
    network.set_outputs(outputs)
    try:
        network.validate()
    except FerruleError:
        return None
    return network
