# SPDX-License-Identifier: Apache-2.0
"""Networks that are quick to build and run, one for each kind of interface."""

from __future__ import annotations

import numpy as np

from ferrule import DataType, Network, Quantization, TensorInfo

SCALE = Quantization.of(0.05, 3)
"""The quantisation of all int8 activations here."""


def int8_input(name: str, *shape: int) -> TensorInfo:
    """Return an int8 input."""
    return TensorInfo(name, shape, DataType.INT8, quantization=SCALE)


def dense(*, batch: int = 1, seed: int = 1) -> Network:
    """Return an int8 FULLY_CONNECTED: `x` [batch, 6] to `y` [batch, 4]."""
    generator = np.random.default_rng(seed)
    network = Network("dense")
    network.add_input(int8_input("x", batch, 6))
    return with_products(network, "x", generator)


def with_products(network: Network, source: str, generator: np.random.Generator) -> Network:
    """Add an int8 FULLY_CONNECTED of 6 to 4 elements, whose output `y` is the network's, and return the network."""
    network.add_fully_connected_layer(
        source,
        generator.integers(-127, 128, (4, 6), dtype=np.int8),
        generator.integers(-300, 300, 4, dtype=np.int32),
        weights_quantization=Quantization.of(0.02),
        quantization=SCALE,
        name="y",
    )
    network.set_outputs(["y"])
    return network


def two_by_two() -> Network:
    """Return a network with the inputs `left` [1, 2, 3] and `right` [1, 1, 3], and the outputs `sum` and `largest`."""
    network = Network("two by two")
    network.add_input(int8_input("left", 1, 2, 3))
    network.add_input(int8_input("right", 1, 1, 3))
    network.add_add_layer("left", "right", quantization=SCALE, name="sum")
    network.add_maximum_layer("left", "right", name="largest")
    network.set_outputs(["sum", "largest"])
    return network


def float_dense() -> Network:
    """Return a float32 FULLY_CONNECTED with a TANH: `x` [1, 6] to `y` [1, 4]."""
    generator = np.random.default_rng(2)
    network = Network("float_dense")
    network.add_input(TensorInfo("x", (1, 6), DataType.FLOAT32))
    network.add_fully_connected_layer(
        "x",
        generator.normal(0, 1, (4, 6)).astype(np.float32),
        generator.normal(0, 1, 4).astype(np.float32),
        name="sums",
    )
    network.add_tanh_layer("sums", name="y")
    network.set_outputs(["y"])
    return network


def scalar() -> Network:
    """Return the maximum of two int8 scalars, `a` and `b`."""
    network = Network("scalar")
    network.add_input(int8_input("a"))
    network.add_input(int8_input("b"))
    network.add_maximum_layer("a", "b", name="y")
    network.set_outputs(["y"])
    return network
