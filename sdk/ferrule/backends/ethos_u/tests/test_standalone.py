# SPDX-License-Identifier: Apache-2.0
"""The model on its own: files of Vela, inputs in, outputs out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from needs import require_module
from numpy.testing import assert_array_equal
from vela_campaign import compile_in_process
from vela_cases import vela_case

from ferrule.backends.ethos_u import EthosUStream
from ferrule.errors import FerruleError, InputError
from ferrule.formats import to_tflite
from ferrule.graph import DataType
from ferrule.network import Network
from ferrule.testing.backends.comparison import random_inputs


@pytest.fixture(scope="module", autouse=True)
def vela() -> None:
    require_module("ethosu", "pip install 'ferrule[ethos-u]'")


def compiled(network: Network) -> bytes:
    return compile_in_process(to_tflite(network), "ethos-u55-128")


@pytest.fixture(scope="module")
def add() -> Network:
    """Two inputs."""
    return vela_case("add", 1)


@pytest.fixture
def stream(add: Network) -> EthosUStream:
    return EthosUStream.read(compiled(add))


def test_inputs_by_name_and_in_order_have_the_results_of_the_network(add: Network, stream: EthosUStream) -> None:
    assert len(stream.inputs) == 2
    arrays = random_inputs(add)
    (wanted,) = add.run(arrays)
    named = {tensor.name: array for tensor, array in zip(stream.inputs, arrays, strict=True)}
    for given in (arrays, named):
        (found,) = stream.run(given).outputs.values()
        assert_array_equal(found, wanted)


def test_a_path_is_read_as_its_bytes(add: Network, stream: EthosUStream, tmp_path: Path) -> None:
    path = tmp_path / "add_vela.npz"
    path.write_bytes(compiled(add))
    assert EthosUStream.read(path).stream == EthosUStream.read(str(path)).stream == stream.stream


def test_ones_in_a_shape_and_the_sign_of_a_type_do_not_matter(add: Network, stream: EthosUStream) -> None:
    arrays = random_inputs(add)
    (wanted,) = stream.run(arrays).outputs.values()
    bent = [np.squeeze(array).view(np.uint8)[None, ..., None] for array in arrays]
    (found,) = stream.run(bent).outputs.values()
    assert_array_equal(found, wanted)


def test_outputs_stay_when_the_stream_runs_again(add: Network, stream: EthosUStream) -> None:
    (first,) = stream.run(random_inputs(add)).outputs.values()
    kept = first.copy()
    stream.run(random_inputs(add, 1))
    assert_array_equal(first, kept)


def test_the_operations_are_the_same_before_and_in_a_run(add: Network, stream: EthosUStream) -> None:
    before = stream.operations()
    run = stream.run(random_inputs(add))
    assert [step.operation.name for step in before] == [step.operation.name for step in run.steps]
    assert [(s.macs, s.bytes_read, s.bytes_written) for s in before] == [
        (s.macs, s.bytes_read, s.bytes_written) for s in run.steps
    ]
    assert before[-1].operation.name == "STOP"
    assert sum(step.bytes_written for step in before) > 0


def test_macs_are_those_of_the_layer() -> None:
    network = vela_case("dense", 3)
    channels, outputs = network.inputs[0].elements, network.outputs[0].elements
    run = EthosUStream.read(compiled(network)).run(random_inputs(network))
    assert run.macs == channels * outputs


def test_a_state_goes_on_until_it_is_reset() -> None:
    network = vela_case("lstm", 2)
    stream = EthosUStream.read(compiled(network))
    assert len(stream.states) == 2
    inputs = random_inputs(network)
    state = network.initial_state()
    wanted = [network.run(inputs, state=state)[0] for _ in range(2)]
    assert not np.array_equal(*wanted)
    initial = {tensor.name: each.initial for tensor, each in zip(stream.states, network.states, strict=True)}
    for _ in range(2):
        stream.reset(initial)
        for expected in wanted:
            (found,) = stream.run(inputs).outputs.values()
            assert_array_equal(found.reshape(expected.shape), expected)


def test_a_reset_without_values_clears_the_states() -> None:
    network = vela_case("lstm16", 2)
    stream = EthosUStream.read(compiled(network))
    inputs = random_inputs(network)
    first = stream.run(inputs).outputs
    stream.reset()
    for name, again in stream.run(inputs).outputs.items():
        assert_array_equal(again, first[name])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays[:1], "there are 1 arrays, expected 2: input0, input1"),
        (lambda arrays: {"input0": arrays[0]}, "input 'input1' is missing"),
        (lambda arrays: {"input0": arrays[0], "input2": arrays[1]}, "input2"),
        (lambda arrays: [arrays[0].astype(np.float32), arrays[1]], "'input0' is float32, expected int8"),
        (lambda arrays: [arrays[0].astype(np.int16), arrays[1]], "'input0' is int16, expected int8"),
        (lambda arrays: [arrays[0][:, :-1], arrays[1]], "'input0' has the shape"),
        (lambda arrays: [arrays[0].reshape(-1), arrays[1]], "'input0' has the shape"),
    ],
)
def test_wrong_inputs_are_named_and_change_nothing(
    add: Network, stream: EthosUStream, change: object, message: str
) -> None:
    arrays = random_inputs(add)
    (wanted,) = stream.run(arrays).outputs.values()
    with pytest.raises(FerruleError, match=message):
        stream.run(change(random_inputs(add, 1)))  # type: ignore[operator]
    (found,) = stream.run(arrays).outputs.values()
    assert_array_equal(found, wanted)


def test_wrong_states_are_named() -> None:
    stream = EthosUStream.read(compiled(vela_case("lstm", 2)))
    with pytest.raises(FerruleError, match="memory"):
        stream.reset({"memory": np.zeros(1, np.int8)})
    with pytest.raises(InputError, match="'state1' is int8, expected int16"):
        stream.reset({"state1": np.zeros(stream.states[1].shape, np.int8)})
    assert stream.states[1].dtype is DataType.INT16
