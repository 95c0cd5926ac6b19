# SPDX-License-Identifier: Apache-2.0
"""Small networks with state, one for each way in which a state gets its new value; whole numbers keep them exact."""

from __future__ import annotations

import numpy as np

from ferrule.graph import Array, DataType, TensorInfo
from ferrule.network import Network


def running_sum() -> Network:
    """Return a network with a state: `total` [1, 2] is `x` plus the `total` of the run before, at first [1, -1]."""
    network = Network("running sum")
    network.add_input(TensorInfo("x", (1, 2), DataType.FLOAT32))
    before = TensorInfo("before", (1, 2), DataType.FLOAT32)
    network.add_state(before, np.array([[1, -1]], np.float32), name="sum")
    network.set_state("sum", network.add_add_layer("x", "before", name="total"))
    network.set_outputs(["total"])
    return network


def stream() -> Network:
    """Return a streaming convolution: `x` [1, 1, 2] goes to a window of the last 3 inputs, whose filter gives `y`."""
    network = Network("stream")
    network.add_input(TensorInfo("x", (1, 1, 2), DataType.FLOAT32))
    past = TensorInfo("past", (1, 2, 2), DataType.FLOAT32)
    network.add_state(past, np.full((1, 2, 2), 0.5, np.float32))
    window = network.add_concatenation_layer(["past", "x"], axis=1, name="window")
    network.set_state("past", network.add_slice_layer(window, (0, 1, 0), (1, 2, 2), name="kept"))
    flat = network.add_reshape_layer(window, (1, 6), name="flat")
    weights = np.arange(-9, 9).astype(np.float32).reshape(3, 6)
    network.add_fully_connected_layer(flat, weights, np.zeros(3, np.float32), name="y")
    network.set_outputs(["y"])
    return network


def _info(name: str, *shape: int) -> TensorInfo:
    return TensorInfo(name, shape, DataType.FLOAT32)


def _values(*shape: int, first: int = 1) -> Array:
    return np.arange(first, first + int(np.prod(shape))).astype(np.float32).reshape(shape)


def shift_register() -> Network:
    """Return a delay of three runs; the states' new values are an input and two other states' old values."""
    network = Network("shift register")
    network.add_input(_info("x", 1, 3))
    for number in range(3):
        network.add_state(_info(f"delay_{number}", 1, 3), _values(1, 3, first=10 * number))
    network.set_state("delay_0", "x")
    network.set_state("delay_1", "delay_0")
    network.set_state("delay_2", "delay_1")
    network.set_outputs([network.add_add_layer("x", "delay_2", name="y"), "delay_1"])
    return network


def rotation() -> Network:
    """Return three states that rotate, two that change places, and one that follows one of these."""
    network = Network("rotation")
    network.add_input(_info("x", 2))
    names = ["a", "b", "c", "d", "e", "f"]
    for number, name in enumerate(names):
        network.add_state(_info(name, 2), _values(2, first=number))
    for old, new in zip(names, ["b", "c", "a", "e", "d", "d"], strict=True):
        network.set_state(old, new)
    network.set_outputs([network.add_add_layer("x", name, name=f"{name}_now") for name in names])
    return network


def views() -> Network:
    """Return states whose new values are views: of an input, of another state, of a sum, and of their own old value."""
    network = Network("views")
    network.add_input(_info("x", 2, 2))
    for name in ("input", "other", "sum", "own"):
        network.add_state(_info(name, 4), _values(4, first=len(name)))
    network.add_state(_info("square", 2, 2), _values(2, 2))
    network.add_add_layer("input", "other", name="y")
    network.add_add_layer("sum", "own", name="z")
    total = network.add_add_layer("x", "square", name="total")
    network.set_state("input", network.add_reshape_layer("x", (4,), name="x_flat"))
    network.set_state("other", network.add_reshape_layer("square", (4,), name="square_flat"))
    network.set_state("sum", network.add_reshape_layer(total, (4,), name="total_flat"))
    network.set_state("square", network.add_reshape_layer("own", (2, 2), name="own_square"))
    network.set_state("own", network.add_reshape_layer("own_square", (4,), name="own_flat"))
    network.set_outputs(["y", "z"])
    return network


def constants() -> Network:
    """Return states that become a constant and stay as they are, and one value for two states and an output."""
    network = Network("constants")
    network.add_input(_info("x", 2))
    for name in ("once", "never", "left", "right"):
        network.add_state(_info(name, 2), np.full(2, len(name), np.float32))
    network.set_state("once", network.add_constant(_info("later", 2), _values(2)))
    total = network.add_add_layer("x", network.add_add_layer("once", "never"), name="total")
    network.set_state("left", total)
    network.set_state("right", total)
    network.set_outputs([network.add_mul_layer("left", "right", name="y"), total, "later"])
    return network


def read_late() -> Network:
    """Return a state whose new value is computed before the old one is read for the last time."""
    network = Network("read late")
    network.add_input(_info("x", 2))
    network.add_state(_info("old", 2), _values(2))
    new = network.add_add_layer("x", "old", name="new")
    network.set_state("old", new)
    network.set_outputs([network.add_mul_layer("old", network.add_mul_layer(new, new), name="y")])
    return network


NETWORKS = (running_sum, stream, shift_register, rotation, views, constants, read_late)
