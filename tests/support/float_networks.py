# SPDX-License-Identifier: Apache-2.0
"""Small networks in float32, as they come from training, with samples for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ferrule
from ferrule.graph import Array

FLOAT32 = ferrule.DataType.FLOAT32


def random(*shape: int, seed: int = 0) -> Array:
    """Return normal float32 values."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def convolutions() -> ferrule.Network:
    """Return two convolutions with a LEAKY_RELU between them, a mean, a dense layer and a softmax."""
    network = ferrule.Network("convolutions")
    network.add_input(ferrule.TensorInfo("x", (1, 8, 8, 3), FLOAT32))
    first = network.add_conv2d_layer("x", random(8, 3, 3, 3), random(8), name="first")
    leaky = network.add_leaky_relu_layer(first, alpha=0.1, name="leaky")
    second = network.add_conv2d_layer(leaky, random(8, 3, 3, 8), random(8), name="second")
    mean = network.add_mean_layer(second, axes=(1, 2), name="mean")
    dense = network.add_fully_connected_layer(mean, random(4, 8), random(4), name="dense")
    network.set_outputs([network.add_softmax_layer(dense, name="y")])
    return network


def samples(network: ferrule.Network, folder: Path, count: int = 12, name: str = "cal.npy") -> Path:
    """Write samples for a network with one input, and return their file."""
    path = folder / name
    np.save(path, random(count, *network.inputs[0].shape[1:], seed=7))
    return path
