# SPDX-License-Identifier: Apache-2.0
"""An LSTM that begins anew in each run, as layers of its steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from float_networks import random
from needs import require_module
from numpy.testing import assert_allclose

import ferrule
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Layer, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.operators.recurrent import MAX_STEPS
from ferrule.operators.recurrent.lstm import BIASES, CELL, HIDDEN, INPUT_WEIGHTS, RECURRENT_WEIGHTS, LstmDescriptor
from ferrule.operators.table import OPERATORS
from ferrule.quantization.unrolling import unrolled

UNITS, FEATURES = 5, 3


def lstm(
    steps: int = 4, batches: int = 1, *, time_major: bool = False, begun: bool = False, clip: float = 0.0
) -> Network:
    """Return an LSTM with initial values, which are 0 unless it is `begun`."""
    shapes = {
        **dict.fromkeys(INPUT_WEIGHTS, (UNITS, FEATURES)),
        **dict.fromkeys(RECURRENT_WEIGHTS, (UNITS, UNITS)),
        **dict.fromkeys(BIASES, (UNITS,)),
        **dict.fromkeys((HIDDEN, CELL), (batches, UNITS)),
    }
    data = (steps, batches, FEATURES) if time_major else (batches, steps, FEATURES)
    network = Network("lstm")
    network.add_input(TensorInfo("in0", data, DataType.FLOAT32))
    inputs: list[TensorInfo | None] = [network.info("in0"), *[None] * CELL]
    for place, shape in shapes.items():
        info = TensorInfo(f"in{place}", shape, DataType.FLOAT32)
        network.add_constant(info, random(*shape, seed=place) * (1 if begun or place < HIDDEN else 0))
        inputs[place] = info
    descriptor, type_ = LstmDescriptor(time_major=time_major, cell_clip=clip), LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM
    shapes_ = OPERATORS[type_].infer(descriptor, inputs)
    outputs = [TensorInfo(f"output_{index}", shape, DataType.FLOAT32) for index, shape in enumerate(shapes_)]
    names = tuple(None if info is None else info.name for info in inputs)
    network.add_layer(Layer("layer", type_, descriptor, names, tuple(info.name for info in outputs)), outputs)
    network.set_outputs(info.name for info in outputs)
    return network


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize(("steps", "batches"), [(1, 1), (2, 1), (7, 3)])
def test_the_steps_compute_what_the_lstm_computes(steps: int, batches: int, time_major: bool, begun: bool) -> None:
    network = lstm(steps, batches, time_major=time_major, begun=begun)
    written = unrolled(network)
    assert LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM not in {layer.type for layer in written.layers}
    assert [info.name for info in written.outputs] == [info.name for info in network.outputs]
    given = [random(*info.shape, seed=9) for info in network.inputs]
    for found, wanted in zip(written.run(given), network.run(given), strict=True):
        assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_it_becomes_integers(tmp_path: Path) -> None:
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")
    network = lstm(6)
    np.save(tmp_path / "cal.npy", random(50, 6, FEATURES, seed=2))
    done = ferrule.quantize(network, str(tmp_path / "cal.npy"))
    assert done.floats == ()
    given = random(1, 6, FEATURES, seed=3)
    for found, wanted in zip(done.network.run([given], real=True), network.run([given]), strict=True):
        assert np.abs(found - wanted).max() < 0.06
    assert (
        ferrule.load(done.tflite).run([given], real=True)[0].tolist()
        == done.network.run([given], real=True)[0].tolist()
    )


def test_what_keeps_its_state_stays() -> None:
    network = Network("kept")
    network.add_input(TensorInfo("x", (1, 2, FEATURES), DataType.FLOAT32))
    weights, recurrent = random(4, UNITS, FEATURES), random(4, UNITS, UNITS)
    network.set_outputs([network.add_lstm_layer("x", [*weights], [*recurrent], [*random(4, UNITS)], name="y")])
    assert network.states
    assert unrolled(network) is network


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (
            lstm(MAX_STEPS + 1),
            f"has {MAX_STEPS + 1} steps, each of which becomes layers of its own: expected at most",
        ),
        (lstm(2, clip=1.5), "limits its cell state to 1.5, expected no limit"),
    ],
)
def test_what_cannot_be_unrolled(network: Network, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        unrolled(network)
