# SPDX-License-Identifier: Apache-2.0
"""Periods of CIRCULAR_BUFFER: the runs that TensorFlow Lite Micro does not end early have its results."""

from __future__ import annotations

import numpy as np
import pytest
from compare import graph_differences
from oracle import random_inputs, tflm_sequence

from ferrule.errors import FerruleError, UnsupportedError
from ferrule.formats import load, to_tflite
from ferrule.formats.tflite.flexbuffer import write_map
from ferrule.formats.tflite.periods import refuse_periods
from ferrule.graph import Array, DataType, Graph, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.circular_buffer import CircularBufferDescriptor
from ferrule.optimizer import optimize
from ferrule.runtime import Runtime

REAL = Quantization.of(0.05, -3)
RUNS = 13


def frame(*shape: int) -> TensorInfo:
    return TensorInfo(name="x", shape=shape, dtype=DataType.INT8, quantization=REAL)


def stream(*cycles: int) -> bytes:
    """Return a streaming model: a convolution over the last frames, then two such parts behind buffers with periods."""
    random = np.random.default_rng(4)
    network = Network("stream")
    name = network.add_input(frame(1, 1, 1, 3))
    for _ in cycles:
        frames = network.add_circular_buffer_layer(name, 3)
        weights = random.integers(-127, 128, (3, 3, 1, 3)).astype(np.int8)
        name = network.add_conv2d_layer(frames, weights, weights_quantization=Quantization.of(0.01), quantization=REAL)
    network.set_outputs([name])
    return with_periods(to_tflite(network), *cycles)


def with_periods(model: bytes, *cycles: int) -> bytes:
    """Return a model whose buffers have these periods, with 0 for none in the file."""
    written = write_map({"cycles_max": 1})
    for number in cycles:
        wanted = write_map({"cycles_max": 100 + number}).replace(bytes([100 + number]), bytes([number]))
        assert len(wanted) == len(written)
        model = model.replace(written, wanted, 1) if number != 1 else model.replace(written, b"#" * len(written), 1)
    return model.replace(b"#" * len(written), written)


def samples(network: Graph) -> list[list[Array]]:
    return [random_inputs(network, run) for run in range(RUNS)]


@pytest.mark.parametrize("cycles", [(1,), (2,), (1, 2), (3, 1), (2, 2)])
def test_runs_that_end_a_period_equal_tflm_and_others_repeat_its_result(cycles: tuple[int, ...]) -> None:
    model = stream(*cycles)
    network = load(model)
    network.validate()
    inputs, state = samples(network), network.initial_state()
    previous = [np.full(info.shape, -3, np.int8) for info in network.outputs]
    for run, (given, wanted) in enumerate(zip(inputs, tflm_sequence(model, inputs), strict=True), 1):
        got = network.run(given, state=state)
        np.testing.assert_array_equal(got[0], previous[0] if run % int(np.prod(cycles)) else wanted[0])
        previous = got
    assert graph_differences(network, load(to_tflite(network))) == []


def test_a_loaded_network_counts_from_its_reset() -> None:
    network = load(stream(2, 2))
    inputs, state = samples(network), network.initial_state()
    wanted = [network.run(each, state=state)[0] for each in inputs]
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry))
        for _ in range(2):
            for given, expected in zip(inputs, wanted, strict=True):
                np.testing.assert_array_equal(runtime.enqueue_workload(number, given)[0], expected)
            runtime.reset_state(number)


@pytest.mark.parametrize(("slots", "cycles"), [(5, 1), (13, 1), (4, 2), (6, 2)])
def test_without_a_period_in_the_file_it_is_that_of_tflm(slots: int, cycles: int) -> None:
    network = Network("one")
    network.add_input(frame(1, 1, 2, 3))
    network.set_outputs([network.add_circular_buffer_layer("x", slots)])
    model = with_periods(to_tflite(network), 0)
    descriptor = load(model).layers[0].descriptor
    assert descriptor == CircularBufferDescriptor(slots=slots, cycles=cycles)
    inputs = samples(network)
    state = load(model).initial_state()
    for given, wanted in zip(inputs, tflm_sequence(model, inputs), strict=True):
        np.testing.assert_array_equal(load(model).run(given, state=state)[0], wanted[0])


def test_what_is_ambiguous_is_refused() -> None:
    network = Network("one")
    network.add_input(frame(1, 1, 2, 96))
    network.set_outputs([network.add_circular_buffer_layer("x", 4)])
    with pytest.raises(UnsupportedError, match="depends on other models") as caught:
        load(with_periods(to_tflite(network), 0))
    assert "cycles_max" in str(caught.value.hint)


def test_a_period_in_a_subgraph_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="expected it in the model itself"):
        refuse_periods(load(stream(2)))
    refuse_periods(load(stream(1)))


@pytest.mark.parametrize(
    ("shape", "message"), [((1, 2, 1, 3), "expected .1, 1, width, depth."), ((1, 3), "expected 4 axes")]
)
def test_frames_that_are_refused(shape: tuple[int, ...], message: str) -> None:
    network = Network("one")
    network.add_input(frame(*shape))
    with pytest.raises(FerruleError, match=message):
        network.add_circular_buffer_layer("x", 4)


def test_many_periods_are_refused() -> None:
    assert load(stream(*[2] * 7)).layers
    with pytest.raises(UnsupportedError, match="8 CIRCULAR_BUFFER end runs early, expected at most 7"):
        load(stream(*[2] * 8))


def test_layers_that_do_not_wait_for_a_period_cannot_be_written() -> None:
    network = load(stream(2))
    network.set_outputs([network.add_relu_layer(network.outputs[0].name)])
    with pytest.raises(UnsupportedError, match="expected an IF with all layers behind it"):
        to_tflite(network)
