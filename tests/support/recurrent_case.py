# SPDX-License-Identifier: Apache-2.0
"""Random networks of one UNIDIRECTIONAL_SEQUENCE_LSTM or SVDF."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ferrule.graph import Array, DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.recurrent.lstm import GATES


def recurrent_network(
    type_: LayerType,
    generator: np.random.Generator,
    *,
    batch: int = 1,
    steps: int = 3,
    inputs: int = 8,
    units: int = 8,
    rank: int = 1,
    dtype: DataType = DataType.INT8,
    weights: Callable[[Shape], Array] | None = None,
) -> Network:
    """Return a network whose sums fill most of their range; `steps` of SVDF are the frames of its state."""
    wide = dtype is DataType.INT16
    drawn = weights or (lambda shape: generator.integers(-127, 128, shape, np.int8))
    zero_point = 0 if wide else int(generator.choice([-128, -128, 0, 127, int(generator.integers(-128, 128))]))
    source = Quantization.of(_power(generator, -8, -2) / (256 if wide else 1), zero_point)
    shape: Shape = (batch, inputs) if type_ is LayerType.SVDF else (batch, steps, inputs)
    network = Network("case")
    network.add_input(TensorInfo("data", shape, dtype, quantization=source))
    if type_ is LayerType.SVDF:
        _add_svdf(network, generator, units * rank, rank, steps, drawn)
        return network
    time_major = bool(generator.random() < 0.3)
    output = Quantization.of(2.0**-15) if wide else Quantization.of(*_hidden(generator))
    bias = np.int64 if wide else np.int32
    name = network.add_lstm_layer(
        "data",
        [drawn((units, shape[2])) for _ in GATES],
        [drawn((units, units)) for _ in GATES],
        [generator.normal(0, 3000 * (200 if wide else 1), units).astype(bias) for _ in GATES],
        time_major=time_major,
        cell_clip=float(generator.choice([0.0, 0.0, 0.5, 3.0])),
        weights_quantizations=[_weight_scale(generator, source, shape[2], wide=wide) for _ in GATES],
        recurrent_quantizations=[_weight_scale(generator, output, units, wide=wide) for _ in GATES],
        cell_quantization=Quantization.of(2.0 ** int(generator.choice([-15, -13, -12, -11, -11, -8]))),
        quantization=output,
        name="layer",
    )
    network.set_outputs([name])
    return network


def with_given_states(network: Network) -> Network:
    """Return the layer of a network with its old states as inputs and its new states as outputs."""
    (layer,) = network.layers
    result = Network(network.name)
    for tensor in network.tensors:
        if tensor.data is not None:
            result.add_constant(tensor.info, tensor.data)
        elif tensor.info.name not in layer.outputs:
            result.add_input(tensor.info)
    result.add_layer(layer, network.output_infos(layer))
    result.set_outputs(layer.outputs)
    return result


def _add_svdf(
    network: Network,
    generator: np.random.Generator,
    filters: int,
    rank: int,
    memory: int,
    drawn: Callable[[Shape], Array],
) -> None:
    """Add an SVDF with a state of int8 or int16."""
    data = network.info("data")
    narrow = bool(generator.random() < 0.5)
    feature, time = drawn((filters, data.shape[1])), drawn((filters, memory))
    scale, frames = float(np.float32(_power(generator, -9, -5))), float(np.float32(_power(generator, -9, -5)))
    steps = 20.0 if narrow else 3000.0
    state = data.scale * scale * np.sqrt(data.shape[1]) * 5000 / steps * _power(generator, -2, 2)
    zero_point = int(generator.choice([0, 0, -128, 127, 5])) if narrow else 0
    whole = frames * state * np.sqrt(memory * rank) * 70 * steps / 60 * _power(generator, -2, 1)
    name = network.add_svdf_layer(
        "data",
        feature,
        time if narrow else (time.astype(np.int16) * 200 + 3),
        generator.integers(-3000, 3000, filters // rank).astype(np.int32) if generator.random() < 0.7 else None,
        rank=rank,
        feature_quantization=Quantization.of(scale),
        time_quantization=Quantization.of(frames),
        state_quantization=Quantization.of(float(np.float32(state)), zero_point),
        quantization=Quantization.of(float(np.float32(whole)), int(generator.integers(-128, 128))),
        name="layer",
    )
    network.set_outputs([name])


def _hidden(generator: np.random.Generator) -> tuple[float, int]:
    """Return scale and zero point of an LSTM's output."""
    scale = float(generator.choice([1 / 128, 1 / 128, 1 / 256, 0.0061, 0.011]))
    return float(np.float32(scale)), int(generator.choice([0, 0, -128, 127, 3]))


def _weight_scale(generator: np.random.Generator, data: Quantization, products: int, *, wide: bool) -> Quantization:
    sums = np.sqrt(products) * 73 * (19_000 if wide else 73)
    return Quantization.of(float(np.float32(_power(generator, -2, 2) / (sums * data.scales[0]))))


def _power(generator: np.random.Generator, low: float, high: float) -> float:
    return float(2.0 ** generator.uniform(low, high))
