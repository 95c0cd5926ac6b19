# SPDX-License-Identifier: Apache-2.0
"""States of a graph: values that live from one run to the next."""

from __future__ import annotations

import numpy as np
import pytest

from ferrule.errors import InputError, ModelError, UnsupportedError
from ferrule.graph import Array, DataType, GraphEditor, Quantization, TensorInfo, refuse_states
from ferrule.network import Network

_INFO = TensorInfo("x", (1, 2), DataType.FLOAT32)


def _running_sum() -> Network:
    network = Network("running_sum")
    network.add_input(_INFO)
    network.add_state(TensorInfo("old", (1, 2), DataType.FLOAT32), np.float32([[1, -1]]), name="sum")
    total = network.add_add_layer("x", "old", name="total")
    network.set_state("sum", total)
    network.set_outputs([total])
    return network


def test_state_is_carried_from_run_to_run_and_begins_with_its_initial_value() -> None:
    network, x = _running_sum(), np.float32([[2, 3]])
    state = network.initial_state()
    runs = [network.run([x], state=state)[0].tolist() for _ in range(3)]
    assert runs == [[[3, 2]], [[5, 5]], [[7, 8]]]
    assert network.run([x])[0].tolist() == [[3, 2]]
    assert network.initial_state()["sum"].tolist() == [[1, -1]]


def test_results_and_sources_have_the_states_last() -> None:
    network = _running_sum()
    assert [info.name for info in network.sources] == ["x", "old"]
    assert [info.name for info in network.results] == ["total", "total"]
    assert [info.name for info in network.inputs] == ["x"]


def test_editor_keeps_states() -> None:
    graph = GraphEditor(_running_sum()).finish()
    assert [(each.name, each.source, each.result) for each in graph.states] == [("sum", "old", "total")]
    assert GraphEditor(graph).is_output("total")


def test_state_that_does_not_fit_is_refused() -> None:
    network, x = _running_sum(), np.float32([[2, 3]])
    with pytest.raises(InputError, match=r"got the states \[\], expected \['sum'\]"):
        network.run([x], state={})
    with pytest.raises(InputError, match=r"input 'sum' has shape \[2\]"):
        network.run([x], state={"sum": np.zeros(2, np.float32)})
    with pytest.raises(ModelError, match="has no state 'other'"):
        network.set_state("other", "total")
    with pytest.raises(ModelError, match="has a state 'sum' already"):
        network.add_state(TensorInfo("z", (1,), DataType.INT8), np.zeros(1, np.int8), name="sum")
    with pytest.raises(ModelError, match="state 'y' has data int8"):
        network.add_state(TensorInfo("y", (1,), DataType.INT16), np.zeros(1, np.int8))
    network.add_state(TensorInfo("w", (1,), DataType.INT8), np.zeros(1, np.int8))
    with pytest.raises(ModelError, match=r"state 'w' gets tensor 'total' float32\[1, 2\], expected int8\[1\]"):
        network.set_state("w", "total")


def _handed_out() -> Network:
    """Return a network whose caller gives `total` back as `old`; `y` is an output of its own."""
    network = Network("handed out")
    for name in ("x", "old"):
        network.add_input(TensorInfo(name, (1, 2), DataType.FLOAT32))
    network.add_add_layer("x", "old", name="total")
    network.add_mul_layer("total", "x", name="y")
    network.set_outputs(["total", "y"])
    return network


def test_output_that_the_caller_gives_back_becomes_a_state() -> None:
    by_hand, kept, x = _handed_out(), _handed_out(), np.float32([[2, 3]])
    kept.keep_output("total", "old")
    assert [info.name for info in kept.inputs] == ["x"]
    assert [info.name for info in kept.outputs] == ["y"]
    old, state = np.zeros((1, 2), np.float32), kept.initial_state()
    for _ in range(3):
        old, expected = by_hand.run([x, old])
        assert np.array_equal(kept.run([x], state=state)[0], expected)
    assert np.array_equal(state["old"], old)


def test_state_of_int8_begins_at_the_zero_point() -> None:
    network, quantization = Network("shift"), Quantization.of(0.5, 7)
    for name in ("x", "old"):
        network.add_input(TensorInfo(name, (2,), DataType.INT8, quantization=quantization))
    network.set_outputs([network.add_add_layer("x", "old", quantization=quantization, name="y"), "x"])
    network.keep_output("x", "old")
    assert network.initial_state()["old"].tolist() == [7, 7]


def test_output_that_cannot_be_kept_is_refused_and_changes_nothing() -> None:
    network = _handed_out()
    with pytest.raises(ModelError, match="has no output 'x'") as caught:
        network.keep_output("x", "old")
    assert caught.value.hint == "its outputs: total, y"
    with pytest.raises(ModelError, match="has no input 'total'"):
        network.keep_output("total", "total")
    network.add_input(TensorInfo("z", (2,), DataType.FLOAT32))
    with pytest.raises(ModelError, match=r"state 'z' gets tensor 'total' float32\[1, 2\], expected float32\[2\]"):
        network.keep_output("total", "z")
    assert network.states == ()
    assert [info.name for info in network.inputs] == ["x", "old", "z"]


def test_what_cannot_keep_states_refuses_them() -> None:
    network = _running_sum()
    with pytest.raises(UnsupportedError, match="'running_sum' keeps 'sum' from run to run, which it does not support"):
        refuse_states(network.name, network.states, "it")
    refuse_states(network.name, (), "it")


@pytest.mark.parametrize("data", [np.zeros(3, np.int8), np.zeros((3, 1), np.int8), np.zeros(2, np.int16)])
def test_a_constant_of_another_shape_or_type_is_refused(data: Array) -> None:
    network = Network("constants")
    network.add_constant(TensorInfo("fits", (2,), DataType.INT8), np.zeros(2, np.int8))
    with pytest.raises(ModelError, match=r"has data .*, expected int8\[2\]"):
        network.add_constant(TensorInfo("other", (2,), DataType.INT8), data)
