# SPDX-License-Identifier: Apache-2.0
"""Random networks of all operators, with branches, constants and repeated operands."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation

TYPES = (DataType.INT8, DataType.INT16, DataType.FLOAT32)
_MOST_ELEMENTS = 2000
_OWN = ("_weights", "_bias", "_alpha")
"""How the names of a layer's own constants end, which no other layer reads."""


def random_network(seed: int, layers: int = 8, dtype: DataType | None = None) -> Network:
    """Return a network of up to `layers` layers with one to three outputs; the same for the same arguments."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    chosen = dtype or dice.choice(TYPES)
    network = Network(f"random_{seed}")
    for index in range(dice.randint(1, 2)):
        shape = (dice.randint(1, 2), dice.randint(2, 6), dice.randint(2, 6), dice.randint(1, 4))
        info = TensorInfo(f"input_{index}", shape, chosen, quantization=_scale(dice, chosen))
        network.add_input(info)
    if dice.random() < 0.3:
        first = network.inputs[0]
        network.add_constant_array("fixed", _array(dice, first.shape, chosen), first.quantization)
    attempts = 0
    while len(network.layers) < layers and attempts < 8 * layers:
        attempts += 1
        pool = [
            tensor.info.name
            for tensor in network.tensors
            if tensor.info.dtype is chosen and tensor.info.shape and not tensor.info.name.endswith(_OWN)
        ]
        try:
            dice.choice(_STEPS)(dice, network, dice.choice(pool))
        except FerruleError:
            continue  # the builder rejected the layer and added nothing
    written = [name for layer in network.layers for name in layer.outputs] or [network.inputs[0].name]
    network.set_outputs(dict.fromkeys([written[-1], *dice.sample(written, min(len(written), dice.randint(0, 2)))]))
    return network


@cache
def shared_network(seed: int, layers: int = 8, dtype: DataType | None = None) -> Network:
    """Return the network of `random_network`, which accepts no changes and is drawn once per process."""
    network = random_network(seed, layers, dtype)
    network.freeze()
    return network


def _scale(dice: random.Random, dtype: DataType) -> Quantization | None:
    if dtype.is_float:
        return None
    return Quantization.of(dice.choice([0.02, 0.05, 0.11]), dice.randint(-20, 20) if dtype is DataType.INT8 else 0)


def _array(dice: random.Random, shape: Sequence[int], dtype: DataType) -> Array:
    generator = np.random.default_rng(dice.getrandbits(32))
    if dtype.is_float:
        return generator.normal(0, 1, shape).astype(dtype.numpy)
    return generator.integers(-100, 100, shape).astype(dtype.numpy)


def _weights(
    dice: random.Random, shape: Sequence[int], channels: int, axis: int, dtype: DataType
) -> tuple[Array, Array, Quantization | None]:
    if dtype.is_float:
        return _array(dice, shape, dtype), _array(dice, (channels,), dtype), None
    scales = tuple(float(np.float32(dice.uniform(0.005, 0.02))) for _ in range(channels))
    quantization = Quantization(scales=scales, zero_points=(0,) * channels, axis=axis)
    bias = _array(dice, (channels,), DataType.INT64 if dtype is DataType.INT16 else DataType.INT32)
    return _array(dice, shape, DataType.INT8), bias, quantization


def _conv2d(dice: random.Random, network: Network, source: str) -> None:
    info = network.info(source)
    out = dice.randint(1, 4)
    kernel, bias, quantization = _weights(
        dice, (out, dice.randint(1, 3), dice.randint(1, 3), info.shape[-1]), out, 0, info.dtype
    )
    network.add_conv2d_layer(
        source,
        kernel,
        bias if dice.random() < 0.8 else None,
        strides=(dice.randint(1, 2), dice.randint(1, 2)),
        padding=dice.choice(["same", "valid"]),
        activation=dice.choice(list(Activation)),
        weights_quantization=quantization,
        quantization=_scale(dice, info.dtype),
    )


def _depthwise(dice: random.Random, network: Network, source: str) -> None:
    info = network.info(source)
    out = info.shape[-1] * dice.randint(1, 2)
    kernel, bias, quantization = _weights(dice, (1, dice.randint(1, 3), dice.randint(1, 3), out), out, 3, info.dtype)
    network.add_depthwise_conv2d_layer(
        source,
        kernel,
        bias,
        padding=dice.choice(["same", "valid"]),
        weights_quantization=quantization,
        quantization=_scale(dice, info.dtype),
    )


def _fully_connected(dice: random.Random, network: Network, source: str) -> None:
    info = network.info(source)
    out = dice.randint(1, 5)
    kernel = _array(dice, (out, info.shape[-1]), info.dtype if info.dtype.is_float else DataType.INT8)
    quantization = None if info.dtype.is_float else Quantization.of(0.01)
    network.add_fully_connected_layer(
        source,
        kernel,
        keep_num_dims=True,
        weights_quantization=quantization,
        quantization=_scale(dice, info.dtype),
        activation=dice.choice(list(Activation)),
    )


def _binary(dice: random.Random, network: Network, source: str) -> None:
    shape, dtype = network.info(source).shape, network.info(source).dtype
    others = [t.info.name for t in network.tensors if t.info.shape == shape and t.info.dtype is dtype]
    method = dice.choice([network.add_add_layer, network.add_sub_layer, network.add_mul_layer])
    method(source, dice.choice(others), quantization=_scale(dice, dtype), activation=dice.choice(list(Activation)))


def _extremum(dice: random.Random, network: Network, source: str) -> None:
    dice.choice([network.add_maximum_layer, network.add_minimum_layer])(source, source)


def _unary(dice: random.Random, network: Network, source: str) -> None:
    own = network.info(source).quantization if dice.random() < 0.7 else _scale(dice, network.info(source).dtype)
    steps: list[Callable[[], object]] = [
        lambda: network.add_relu_layer(source, quantization=own),
        lambda: network.add_relu6_layer(source, quantization=own),
        lambda: network.add_relu_n1_to_1_layer(source, quantization=own),
        lambda: network.add_leaky_relu_layer(source, 0.2, quantization=own),
        lambda: network.add_hard_swish_layer(source, quantization=own),
        lambda: network.add_logistic_layer(source),
        lambda: network.add_tanh_layer(source),
        lambda: network.add_softmax_layer(source),
    ]
    dice.choice(steps)()


def _move(dice: random.Random, network: Network, source: str) -> None:
    info = network.info(source)
    rank = len(info.shape)
    axes = list(range(rank))
    dice.shuffle(axes)
    steps: list[Callable[[], object]] = [
        lambda: network.add_reshape_layer(source, info.shape if dice.random() < 0.3 else (1, -1)),
        lambda: network.add_reshape_layer(source, (1, *info.shape[1:-1], -1)),
        lambda: network.add_squeeze_layer(source),
        lambda: network.add_expand_dims_layer(source, dice.randint(0, rank)),
        lambda: network.add_transpose_layer(source, sorted(axes) if dice.random() < 0.2 else axes),
        lambda: network.add_pad_layer(
            source, [(0, 0), *[(dice.randint(0, 1), dice.randint(0, 1))] * (rank - 2), (0, 0)]
        ),
        lambda: network.add_pad_v2_layer(source, [(0, dice.randint(0, 1))] * rank, 1),
        lambda: network.add_slice_layer(source, [0] * rank, [-1] * rank),
        lambda: network.add_slice_layer(source, [dice.randint(0, e - 1) for e in info.shape], [-1] * rank),
        lambda: network.add_strided_slice_layer(source, [0] * rank, list(info.shape), [dice.randint(1, 2)] * rank),
        lambda: network.add_concatenation_layer([source] * dice.randint(1, 2), dice.randint(0, rank - 1)),
        lambda: network.add_split_layer(source, rank - 1, dice.choice([1, 2])),
    ]
    if info.elements <= _MOST_ELEMENTS:
        dice.choice(steps)()


def _reduce(dice: random.Random, network: Network, source: str) -> None:
    rank = len(network.info(source).shape)
    method = dice.choice([network.add_mean_layer, network.add_sum_layer])
    axes = dice.sample(range(rank), dice.randint(1, min(rank, 2)))
    method(source, axes, keep_dims=dice.random() < 0.7, quantization=network.info(source).quantization)


def _pool(dice: random.Random, network: Network, source: str) -> None:
    dice.choice([network.add_average_pool2d_layer, network.add_max_pool2d_layer])(
        source,
        (2, dice.randint(1, 2)),
        padding=dice.choice(["same", "valid"]),
        activation=dice.choice(list(Activation)),
    )


_STEPS = (
    *(_conv2d, _depthwise, _fully_connected, _pool, _reduce),
    *(_binary, _extremum, _unary, _unary),
    *(_move, _move, _move),
)
