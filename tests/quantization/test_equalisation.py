# SPDX-License-Identifier: Apache-2.0
"""Channels that are multiplied by powers of two between layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from float_networks import FLOAT32, convolutions, random, samples
from gate import every

import ferrule
from ferrule.errors import FerruleError
from ferrule.graph import Array, GraphEditor, Layer
from ferrule.network.copying import network_of
from ferrule.operators.activation import Activation
from ferrule.quantization.equalisation import Equalised, equalised
from ferrule.report.sections import plural
from ferrule.report.writers import WRITERS

ACTIVATIONS = (Activation.NONE, Activation.RELU, Activation.RELU, Activation.RELU6)


def peaks_of(network: ferrule.Network, given: Array) -> dict[str, Array]:
    """Return the largest magnitude of each tensor that a run computes, for each index of its last axis."""
    found: dict[str, Array] = {}

    def observe(layer: Layer, made: Sequence[Array]) -> None:
        for name, array in zip(layer.outputs, made, strict=True):
            found[name] = np.abs(array).reshape(-1, array.shape[-1]).max(axis=0)

    network.run([given], observe=observe)
    return found


class Drawn:
    """A random chain of layers that sum products and of others, whose channels have very different sizes."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.network = ferrule.Network("drawn")
        self.channels = int(self._random.integers(1, 5))
        self.input = self._random.standard_normal((1, 6, 5, self.channels)).astype(np.float32)
        self.network.add_input(ferrule.TensorInfo("x", self.input.shape, FLOAT32))
        name = "x"
        for _ in range(int(self._random.integers(3, 8))):
            name = self._weighted(name) if self._random.random() < 0.6 else self._other(name)
        if self._random.random() < 0.5:
            name = self.network.add_mean_layer(name, axes=(1, 2))
        units = int(np.prod(self.network.info(name).shape[1:]))
        dense = self._random.standard_normal((3, units)).astype(np.float32)
        self.network.set_outputs([self.network.add_fully_connected_layer(name, dense)])

    def _activation(self) -> Activation:
        return ACTIVATIONS[int(self._random.integers(len(ACTIVATIONS)))]

    def _values(self, shape: tuple[int, ...], axis: int) -> Array:
        """Return normal values, each index of an axis of which has a size of its own."""
        sizes = self._random.lognormal(0, 2, shape[axis])
        values = self._random.standard_normal(shape) * sizes.reshape(
            [-1 if at == axis else 1 for at in range(len(shape))]
        )
        return values.astype(np.float32)

    def _weighted(self, source: str) -> str:
        shape = self.network.info(source).shape
        height, width = (2, 2) if min(shape[1:3]) >= 2 else (1, 1)
        depthwise = self._random.random() < 0.4
        out = self.channels * int(self._random.integers(1, 3)) if depthwise else int(self._random.integers(1, 6))
        kernel = (1, height, width, out) if depthwise else (out, height, width, self.channels)
        bias = self._values((out,), 0) if self._random.random() < 0.5 else None
        add = self.network.add_depthwise_conv2d_layer if depthwise else self.network.add_conv2d_layer
        self.channels = out
        weights = self._values(kernel, 3 if depthwise else 0)
        return add(source, weights, bias, padding="same", activation=self._activation())

    def _other(self, source: str) -> str:
        network, kind = self.network, int(self._random.integers(6))
        if kind == 0:
            return network.add_leaky_relu_layer(source, alpha=0.3)
        if kind == 1:
            return network.add_prelu_layer(
                source, self._random.standard_normal((1, 1, self.channels)).astype(np.float32)
            )
        if kind == 2:
            return network.add_max_pool2d_layer(source, (2, 2), padding="same")
        if kind == 3:
            return network.add_average_pool2d_layer(source, (2, 2), padding="same")
        if kind == 4:
            return network.add_add_layer(source, source)
        return network.add_relu_layer(source)


@pytest.mark.parametrize("start", every(25, range(0, 1000, 40)))
def test_a_thousand_random_graphs_keep_every_bit(start: int) -> None:
    changed = 0
    for seed in range(start, start + 40):
        drawn = Drawn(seed)
        done = equalised(drawn.network, peaks_of(drawn.network, drawn.input))
        changed += done.channels > 0
        before, after = (network.run([drawn.input])[0] for network in (drawn.network, done.network))
        assert before.tobytes() == after.tobytes(), seed
    assert changed > 15


def unequal(
    *,
    activation: Activation = Activation.RELU,
    depthwise: bool = False,
    between: Callable[..., str] | None = None,
) -> ferrule.Network:
    """Return two layers that sum products, with channels between of which the second is a hundredth of the first."""
    network = ferrule.Network("unequal")
    network.add_input(ferrule.TensorInfo("x", (1, 4, 4, 2), FLOAT32))
    weights = random(4, 3, 3, 2) * np.array([1, 0.01, 1, 0.1], np.float32).reshape(4, 1, 1, 1)
    name = network.add_conv2d_layer("x", weights, random(4) / 100, padding="same", activation=activation, name="first")
    name = between(network, name) if between is not None else name
    if depthwise:
        network.set_outputs([network.add_depthwise_conv2d_layer(name, random(1, 3, 3, 4), name="second")])
    else:
        second = random(5, 1, 1, 4) * np.array([1, 100, 1, 10], np.float32)
        network.set_outputs([network.add_conv2d_layer(name, second, random(5), name="second")])
    return network


def changed(network: ferrule.Network) -> Equalised:
    given = random(*network.inputs[0].shape, seed=3)
    done = equalised(network, peaks_of(network, given))
    assert network.run([given])[0].tobytes() == done.network.run([given])[0].tobytes()
    return done


@pytest.mark.parametrize("depthwise", [False, True])
def test_small_channels_grow(*, depthwise: bool) -> None:
    network = unequal(depthwise=depthwise)
    done = changed(network)
    assert done.channels >= 2
    assert done.layers == 1
    peaks = [peaks_of(each, random(1, 4, 4, 2, seed=3))["first"] for each in (network, done.network)]
    ratios = [float(each.max() / each.min()) for each in peaks]
    assert ratios[0] > 50
    assert ratios[1] < 10
    assert peaks[0].max() == peaks[1].max()


KEPT: dict[str, Callable[[ferrule.Network, str], str]] = {
    "LEAKY_RELU": lambda network, name: network.add_leaky_relu_layer(name, alpha=0.2),
    "PRELU": lambda network, name: network.add_prelu_layer(name, random(1, 1, 4)),
    "MAX_POOL_2D": lambda network, name: network.add_max_pool2d_layer(name, (2, 2), strides=(2, 2)),
    "AVERAGE_POOL_2D": lambda network, name: network.add_average_pool2d_layer(name, (2, 2), strides=(2, 2)),
    "MEAN": lambda network, name: network.add_mean_layer(name, axes=(1, 2), keep_dims=True),
}


@pytest.mark.parametrize("kind", KEPT)
def test_layers_that_keep_factors_are_passed(kind: str) -> None:
    assert changed(unequal(activation=Activation.NONE, between=KEPT[kind])).channels >= 2


def residual(network: ferrule.Network, name: str) -> str:
    return network.add_add_layer(name, network.add_conv2d_layer(name, random(4, 1, 1, 4), name="other"))


REFUSED: dict[str, Callable[[ferrule.Network, str], str]] = {
    "a residual": residual,
    "RELU6": lambda network, name: network.add_relu6_layer(name),
    "TANH": lambda network, name: network.add_tanh_layer(name),
    "a mean of the channels": lambda network, name: network.add_reshape_layer(
        network.add_mean_layer(name, axes=(3,), keep_dims=True), (1, 2, 2, 4)
    ),
    "channels that are torn": lambda network, name: network.add_transpose_layer(name, (0, 3, 1, 2)),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_keep_factors_is_refused(kind: str) -> None:
    network = unequal(between=REFUSED[kind])
    assert changed(network).channels == 0


def test_a_fused_relu6_is_refused() -> None:
    assert changed(unequal(activation=Activation.RELU6)).channels == 0


def test_weights_that_two_layers_share_stay() -> None:
    network = ferrule.Network("shared")
    network.add_input(ferrule.TensorInfo("x", (1, 8), FLOAT32))
    weights = random(8, 8) * np.float32(10) ** np.arange(8, dtype=np.float32)[:, None]
    first = network.add_fully_connected_layer("x", weights, name="first")
    network.set_outputs([network.add_fully_connected_layer(first, weights, name="second")])
    assert changed(network).channels > 0
    editor = GraphEditor(network)
    one, other = network.layers
    editor.replace_layer(replace(other, inputs=(other.inputs[0], one.inputs[1])))
    assert changed(network_of(editor.finish())).channels == 0


def test_constants_that_would_leave_the_normal_numbers_stay() -> None:
    network = ferrule.Network("tiny")
    network.add_input(ferrule.TensorInfo("x", (1, 4), FLOAT32))
    first = network.add_fully_connected_layer("x", random(2, 4) * np.float32([[1], [0.001]]), name="first")
    second = np.float32([[1, 2e-38], [1, 1]])
    network.set_outputs([network.add_fully_connected_layer(first, second, name="second")])
    assert changed(network).channels == 0


def test_a_dense_layer_reads_flattened_channels() -> None:
    network = ferrule.Network("flat")
    network.add_input(ferrule.TensorInfo("x", (1, 4, 4, 2), FLOAT32))
    weights = random(4, 3, 3, 2) * np.array([1, 0.01, 1, 0.1], np.float32).reshape(4, 1, 1, 1)
    first = network.add_conv2d_layer("x", weights, name="first")
    flat = network.add_reshape_layer(first, (1, 16))
    network.set_outputs([network.add_fully_connected_layer(flat, random(3, 16), name="second")])
    assert changed(network).channels >= 2


def test_an_average_has_the_scale_of_what_it_averages() -> None:
    """A channel that is large in one place alone is small in the mean, and must not grow by that."""
    network = ferrule.Network("average")
    network.add_input(ferrule.TensorInfo("x", (1, 4, 4, 2), FLOAT32))
    first = network.add_conv2d_layer("x", np.eye(2, dtype=np.float32).reshape(2, 1, 1, 2), name="first")
    mean = network.add_average_pool2d_layer(first, (4, 4))
    network.set_outputs([network.add_conv2d_layer(mean, random(3, 1, 1, 2), name="second")])
    given = np.ones((1, 4, 4, 2), np.float32)
    given[..., 1] = 0
    given[0, 0, 0, 1] = 1
    assert equalised(network, peaks_of(network, given)).channels == 0


def test_it_is_taken_where_it_loses_less(tmp_path: Path) -> None:
    network = unequal()
    data = str(samples(network, tmp_path, 40))
    done, without = (ferrule.quantize(network, data, equalise=each, compared=0) for each in ("auto", "off"))
    part = done.equalisation
    assert part is not None
    assert part.taken
    assert part.noise is not None
    assert part.without is not None
    assert part.noise < 0.5 * part.without
    assert without.equalisation is None
    assert done.tflite != without.tflite
    assert f"{part.channels} channels of 1 layer equalised" in WRITERS["markdown"]([done.document])
    asked = ferrule.quantize(network, data, equalise="on", ranges=done.ranges, compared=4)
    assert asked.tflite == done.tflite
    assert asked.equalisation is not None
    assert asked.equalisation.noise is None
    assert min(each.sqnr_db or 0.0 for each in asked.losses) > 25  # against the float network with the same factors


def test_it_is_left_where_it_does_not_lose_less(tmp_path: Path) -> None:
    network = ferrule.Network("unused")
    network.add_input(ferrule.TensorInfo("x", (1, 8), FLOAT32))
    first = network.add_fully_connected_layer("x", random(4, 8) * np.float32([[1], [0.3], [1], [1]]), random(4) / 10)
    second = random(3, 4) * np.float32([1, 0.001, 1, 1])  # the small channel is hardly read
    network.set_outputs([network.add_fully_connected_layer(first, second, random(3), name="second")])
    data = str(samples(network, tmp_path, 40))
    done = ferrule.quantize(network, data, compared=0)
    part = done.equalisation
    assert part is not None
    assert not part.taken
    assert part.noise is not None
    assert part.without is not None
    assert 1.06 * part.noise >= part.without
    assert done.tflite == ferrule.quantize(network, data, equalise="off", compared=0).tflite
    assert f"{plural(part.channels, 'channel')} of 1 layer not equalised" in WRITERS["markdown"]([done.document])


def test_nothing_to_equalise(tmp_path: Path) -> None:
    network = ferrule.Network("one")
    network.add_input(ferrule.TensorInfo("x", (1, 4), FLOAT32))
    network.set_outputs([network.add_fully_connected_layer("x", random(2, 4), name="y")])
    data = str(samples(network, tmp_path))
    assert ferrule.quantize(network, data, compared=0).equalisation is None
    asked = ferrule.quantize(network, data, compared=0, equalise="on")
    assert asked.equalisation is not None
    assert asked.equalisation.text == "there are no channels to equalise"


def test_int16_has_steps_enough(tmp_path: Path) -> None:
    network = unequal()
    data = str(samples(network, tmp_path))
    assert ferrule.quantize(network, data, scheme="int16", compared=0).equalisation is None
    asked = ferrule.quantize(network, data, scheme="int16", compared=0, equalise="on")
    assert asked.equalisation is not None
    assert asked.equalisation.channels >= 2


def test_another_word_is_refused(tmp_path: Path) -> None:
    network = convolutions()
    with pytest.raises(FerruleError, match=r"^equalise is 'yes', expected auto, on or off$"):
        ferrule.quantize(network, str(samples(network, tmp_path)), equalise="yes")
