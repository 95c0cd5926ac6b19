# SPDX-License-Identifier: Apache-2.0
"""Affine layers that become part of the weights beside them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from float_networks import FLOAT32, random
from gate import every

import ferrule
from ferrule.graph import Array, LayerType
from ferrule.network.copying import network_of
from ferrule.operators.activation import Activation
from ferrule.quantization.folding import folded

Made = Callable[[str, tuple[int, ...]], Array]
"""From the role of a constant and its shape to its values."""
AFFINE = (LayerType.ADD, LayerType.SUB, LayerType.MUL, LayerType.DIV)
ACTIVATIONS = (Activation.NONE, Activation.NONE, Activation.RELU, Activation.RELU6)
UNIT = 2.0**-24


class Drawn:
    """A random chain of convolutions and affine layers, in its form and in one of magnitudes.

    All constants, inputs and signs of the second are positive, and it has no activations: its results bound the sums of
    the magnitudes of all products on the way to an element.
    """

    def __init__(self, seed: int, *, magnitudes: bool) -> None:
        self._random = np.random.default_rng(seed)
        self._magnitudes = magnitudes
        self.operations = 0
        """Roundings on the way to an element, at most."""
        self.network = ferrule.Network("drawn")
        self.channels = int(self._random.integers(1, 5))
        self.input = self._values((1, 5, 4, self.channels))
        self.network.add_input(ferrule.TensorInfo("x", self.input.shape, FLOAT32))
        name = "x"
        for _ in range(int(self._random.integers(2, 7))):
            name = self._weighted(name) if self._random.random() < 0.5 else self._affine(name)
        self.network.set_outputs([self._weighted(name)])

    def run(self, network: ferrule.Network) -> Array:
        return network.run([self.input])[0].astype(np.float64)

    def _values(self, shape: tuple[int, ...]) -> Array:
        values = self._random.standard_normal(shape).astype(np.float32)
        return np.abs(values) if self._magnitudes else values

    def _activation(self) -> Activation:
        chosen = ACTIVATIONS[int(self._random.integers(len(ACTIVATIONS)))]
        return Activation.NONE if self._magnitudes else chosen

    def _weighted(self, source: str) -> str:
        depthwise, biased = self._random.random() < 0.4, self._random.random() < 0.5
        padding = "same" if self._random.random() < 0.5 else "valid"
        shape = self.network.info(source).shape
        height, width = (2, 2) if min(shape[1:3]) >= 2 else (1, 1)
        out = self.channels if depthwise else int(self._random.integers(1, 5))
        kernel = (1, height, width, out) if depthwise else (out, height, width, self.channels)
        bias = self._values((out,)) if biased else None
        add = self.network.add_depthwise_conv2d_layer if depthwise else self.network.add_conv2d_layer
        made = add(source, self._values(kernel), bias, padding=padding, activation=self._activation())
        self.operations += height * width * (1 if depthwise else self.channels) + 8
        self.channels = out
        return made

    def _affine(self, source: str) -> str:
        type_ = AFFINE[int(self._random.integers(len(AFFINE)))]
        first = type_ in {LayerType.SUB, LayerType.ADD} and self._random.random() < 0.3
        values = self._values((self.channels,) if self._random.random() < 0.7 else (1,))
        if type_ is LayerType.DIV:
            values = np.float32(0.5) + np.abs(values)
        self.operations += 8
        constant = self.network.add_constant_array(self.network.unique_name("c"), values)
        sides = (constant, source) if first else (source, constant)
        if type_ is LayerType.DIV:
            return self.network.add_div_layer(*sides, activation=self._activation())
        if type_ is LayerType.SUB and self._magnitudes:
            type_ = LayerType.ADD
        add = {
            LayerType.ADD: self.network.add_add_layer,
            LayerType.SUB: self.network.add_sub_layer,
            LayerType.MUL: self.network.add_mul_layer,
        }[type_]
        return add(*sides, activation=self._activation())


@pytest.mark.parametrize("start", every(2, range(0, 1000, 250)))
def test_a_thousand_random_graphs_keep_their_results(start: int) -> None:
    """Each rounding errs by a unit of the magnitudes that are summed, in both networks."""
    fewer = 0
    for seed in range(start, start + 250):
        drawn, magnitudes = Drawn(seed, magnitudes=False), Drawn(seed, magnitudes=True)
        after = network_of(folded(drawn.network))
        fewer += len(after.layers) < len(drawn.network.layers)
        difference = np.abs(drawn.run(drawn.network) - drawn.run(after))
        bound = 4 * drawn.operations * UNIT * magnitudes.run(magnitudes.network)
        assert (difference <= bound).all(), seed
    assert fewer > 100


def normalised(*, keras: bool, padding: str, before: bool) -> ferrule.Network:
    """Return a convolution with a batch normalisation before or behind it, as exporters leave it."""
    network = ferrule.Network("normalised")
    network.add_input(ferrule.TensorInfo("x", (1, 6, 6, 4), FLOAT32))
    name = "x"

    def normalise(name: str) -> str:
        def constant(index: int) -> str:
            values = np.float32(1.5) + random(4, seed=index) / 4
            return network.add_constant_array(network.unique_name("c"), values)

        if keras:
            name = network.add_sub_layer(name, constant(0))
        name = network.add_mul_layer(name, constant(1))
        return network.add_add_layer(name, constant(2), activation=Activation.NONE if before else Activation.RELU)

    name = normalise(name) if before else name
    name = network.add_conv2d_layer(name, random(4, 3, 3, 4), random(4), padding=padding)  # type: ignore[arg-type]
    network.set_outputs([name if before else normalise(name)])
    return network


@pytest.mark.parametrize("keras", [False, True])
@pytest.mark.parametrize(
    ("before", "padding", "left"),
    [(False, "same", 1), (False, "valid", 1), (True, "valid", 1), (True, "same", None)],
)
def test_batch_normalisation(*, keras: bool, before: bool, padding: str, left: int | None) -> None:
    """Before a padded convolution, what is added has to stay: the padding is 0 behind it."""
    network = normalised(keras=keras, padding=padding, before=before)
    after = network_of(folded(network))
    assert len(after.layers) == (left or len(network.layers))
    given = random(1, 6, 6, 4, seed=5)
    assert np.allclose(network.run([given])[0], after.run([given])[0], rtol=1e-5, atol=1e-4)
    assert [info.name for info in after.outputs] == [info.name for info in network.outputs]


def test_what_others_read_stays() -> None:
    network = ferrule.Network("shared")
    network.add_input(ferrule.TensorInfo("x", (1, 4, 4, 2), FLOAT32))
    first = network.add_conv2d_layer("x", random(2, 1, 1, 2), name="conv")
    factor = network.add_constant_array("c", random(2))
    network.set_outputs([network.add_mul_layer(first, factor, name="y"), first])
    assert len(folded(network).layers) == 2


def test_an_activation_between_keeps_them_apart() -> None:
    network = ferrule.Network("between")
    network.add_input(ferrule.TensorInfo("x", (1, 4, 4, 2), FLOAT32))
    first = network.add_conv2d_layer("x", random(2, 1, 1, 2), activation=Activation.RELU, name="conv")
    network.set_outputs([network.add_mul_layer(first, network.add_constant_array("c", random(2)), name="y")])
    assert len(folded(network).layers) == 2


def test_constants_beyond_float32_are_not_made() -> None:
    network = ferrule.Network("large")
    network.add_input(ferrule.TensorInfo("x", (1, 4), FLOAT32))
    first = network.add_fully_connected_layer("x", np.full((2, 4), 1e30, np.float32), name="dense")
    network.set_outputs([network.add_mul_layer(first, network.add_constant_array("c", np.float32([1e30])), name="y")])
    assert len(folded(network).layers) == 2
