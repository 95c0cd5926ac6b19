# SPDX-License-Identifier: Apache-2.0
"""Layers with state that become integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from covering import covering
from float_networks import FLOAT32, random, samples
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import tflm_sequence

import ferrule
from ferrule.graph import Array, LayerType
from ferrule.operators.activation import Activation
from ferrule.quantization.recurrent import cells

UNITS, DEPTH, STEPS = 5, 6, 7


@pytest.fixture(autouse=True)
def quantizer() -> None:
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")


def lstm(*, time_major: bool = False, clip: float = 0.0, steps: int = STEPS) -> ferrule.Network:
    """Return an LSTM between dense layers, whose cell state grows over the steps."""
    network = ferrule.Network("lstm")
    shape = (steps, 1, DEPTH) if time_major else (1, steps, DEPTH)
    network.add_input(ferrule.TensorInfo("x", shape, FLOAT32))
    weights = [random(UNITS, DEPTH, seed=gate) for gate in range(4)]
    recurrent = [random(UNITS, UNITS, seed=gate) / 2 for gate in range(4)]
    biases = [random(UNITS, seed=gate) + (3 if gate == 1 else 0) for gate in range(4)]
    network.add_lstm_layer(
        "x",
        weights,
        recurrent,
        [each.astype(np.float32) for each in biases],
        time_major=time_major,
        cell_clip=clip,
        name="lstm",
    )
    flat = network.add_reshape_layer("lstm", (1, steps * UNITS), name="flat")
    network.set_outputs([network.add_fully_connected_layer(flat, random(3, steps * UNITS), random(3), name="y")])
    return network


def svdf(*, activation: Activation = Activation.NONE, rank: int = 1, bias: bool = True) -> ferrule.Network:
    """Return an SVDF with units that remember five frames."""
    network = ferrule.Network("svdf")
    network.add_input(ferrule.TensorInfo("x", (1, DEPTH), FLOAT32))
    network.add_svdf_layer(
        "x",
        random(UNITS * rank, DEPTH),
        random(UNITS * rank, 5),
        random(UNITS) if bias else None,
        rank=rank,
        activation=activation,
        name="svdf",
    )
    network.set_outputs([network.add_fully_connected_layer("svdf", random(3, UNITS), random(3), name="y")])
    return network


def runs(network: ferrule.Network, count: int, seed: int = 3) -> list[Array]:
    """Return stored inputs of runs that follow each other."""
    (info,) = network.inputs
    return [info.quantize(random(*info.shape, seed=seed + index)) for index in range(count)]


@covering("scheme,time_major,clip", ["int8", "int16"], [False, True], [0.0, 1.5], seed=1)
def test_lstm(tmp_path: Path, *, scheme: str, time_major: bool, clip: float) -> None:
    network = lstm(time_major=time_major, clip=clip)
    path = tmp_path / "cal.npy"
    shape = network.inputs[0].shape
    np.save(path, random(40 * shape[0], *shape[1:], seed=7))
    done = ferrule.quantize(network, str(path), scheme=scheme)
    assert done.floats == ()
    made = done.network
    (layer,) = (each for each in made.layers if each.type is LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM)
    assert [str(made.info(name).dtype) for name in layer.outputs] == [scheme, scheme, "int16"]
    assert np.log2(made.info(layer.outputs[2]).scale) % 1 == 0
    assert next(each.sqnr_db or 0.0 for each in done.losses if each.name == "lstm") > (25 if scheme == "int8" else 30)
    assert_runs_equal(made)
    (given,) = runs(made, 1)
    assert ferrule.load(done.tflite).run([given])[0].tolist() == made.run([given])[0].tolist()


def assert_runs_equal(made: ferrule.Network) -> None:
    """Assert that runs that follow each other have the results of TensorFlow Lite Micro."""
    given = runs(made, 4)
    state = made.initial_state()
    for inputs, theirs in zip(given, tflm_sequence(made, [[each] for each in given]), strict=True):
        assert_array_equal(made.run([inputs], state=state)[0], theirs[0])


@covering("rank,activation,bias", [1, 2], [Activation.NONE, Activation.RELU, Activation.RELU6], [False, True], seed=1)
def test_svdf(tmp_path: Path, *, rank: int, activation: Activation, bias: bool) -> None:
    network = svdf(rank=rank, activation=activation, bias=bias)
    done = ferrule.quantize(network, str(samples(network, tmp_path, 40)))
    assert done.floats == ()
    (layer,) = (each for each in done.network.layers if each.type is LayerType.SVDF)
    assert [str(done.network.info(name).dtype) for name in layer.outputs] == ["int8", "int16"]
    assert next(each.sqnr_db or 0.0 for each in done.losses if each.name == "svdf") > 25
    if bias:  # without one, TensorFlow Lite Micro crashes
        assert_runs_equal(done.network)


def test_svdf_has_no_kernel_for_int16(tmp_path: Path) -> None:
    network = svdf()
    done = ferrule.quantize(network, str(samples(network, tmp_path)), scheme="int16")
    assert [(each.name, each.reason) for each in done.floats] == [
        ("svdf", "SVDF has no kernel for int16, but one for int8")
    ]


@pytest.mark.parametrize("time_major", [False, True])
def test_cells_of_all_steps_are_observed(*, time_major: bool) -> None:
    """The range of steps that are computed one by one, from state to state, with sequences of two samples."""
    network, one = lstm(time_major=time_major), lstm(time_major=time_major, steps=1)
    (layer,) = (each for each in network.layers if each.type is LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM)
    given = [random(*network.inputs[0].shape, seed=seed) for seed in range(4)]
    begins = [True, False, True, True]
    found = cells(network, {"x": np.concatenate(given)}, begins, {})[layer.outputs[2]]
    seen, state = [0.0], one.initial_state()
    for sample, begin in zip(given, begins, strict=True):
        state = one.initial_state() if begin else state
        for step in range(STEPS):
            one.run([sample[step : step + 1] if time_major else sample[:, step : step + 1]], state=state)
            seen += state["lstm_cell"].ravel().tolist()
    assert (found.low, found.high) == (min(seen), max(seen))
