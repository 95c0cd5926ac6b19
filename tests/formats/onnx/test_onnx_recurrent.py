# SPDX-License-Identifier: Apache-2.0
"""LSTM and GRU of ONNX models, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onnx_models import agrees, count, drawn, load, model, node

from ferrule.errors import FerruleError
from ferrule.graph import Array, LayerType
from ferrule.operators.recurrent import MAX_STEPS

STEPS, BATCHES, INPUTS, UNITS = 4, 2, 5, 3
GATES = {"LSTM": 4, "GRU": 3}
OUTPUTS = {"LSTM": ("y", "h", "c"), "GRU": ("y", "h")}


def constants(op: str, directions: int) -> dict[str, Array]:
    """Return weights and a bias."""
    generator, rows = np.random.default_rng(4), GATES[op] * UNITS
    shapes = {"w": (directions, rows, INPUTS), "r": (directions, rows, UNITS), "b": (directions, 2 * rows)}
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def made(op: str, *, initial: str = "absent", layout: int = 0, used: str = "yhc", **attributes: Any) -> Any:  # noqa: ANN401
    """Return a model of one node; its initial states are absent, constant, or inputs."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    given, names = constants(op, directions), OUTPUTS[op][1:]
    inputs = {"x": ("float32", (STEPS, BATCHES, INPUTS) if layout == 0 else (BATCHES, STEPS, INPUTS))}
    shape = (directions, BATCHES, UNITS) if layout == 0 else (BATCHES, directions, UNITS)
    states = []
    for name in names:
        states.append("-" if initial == "absent" else f"{name}0")
        if initial == "constant":
            given[f"{name}0"] = np.random.default_rng(7).normal(size=shape).astype(np.float32)
        elif initial == "input":
            inputs[f"{name}0"] = ("float32", shape)
    outputs = [name if name in used else "" for name in OUTPUTS[op]]
    recurrent = node(op, f"x w r b - {' '.join(states)}", "first", hidden_size=UNITS, layout=layout, **attributes)
    del recurrent.output[:]
    recurrent.output.extend(outputs)
    return model([recurrent], inputs, [name for name in outputs if name], given)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("initial", ["absent", "constant", "input"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "GRU late"])
def test_a_recurrent_node(kind: str, initial: str, direction: str) -> None:
    op, _, late = kind.partition(" ")
    reset: dict[str, Any] = {"linear_before_reset": 1} if late else {}
    agrees(made(op, initial=initial, direction=direction, **reset))


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("used", ["y", "h"])
def test_only_the_outputs_that_are_used(op: str, used: str) -> None:
    network = agrees(made(op, used=used))
    assert len(network.outputs) == 1


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_the_layout_with_batches_first(op: str, direction: str) -> None:
    """onnxruntime has no layout 1: the same node with layout 0 has the same results, transposed."""
    first = load(made(op, initial="input", direction=direction, layout=1))
    second = load(made(op, initial="input", direction=direction))
    given = drawn(first)
    turned = {name: np.ascontiguousarray(array.swapaxes(0, 1)) for name, array in given.items()}
    for info, ours, theirs in zip(first.outputs, first.run(given), second.run(turned), strict=True):
        expected = theirs.transpose(2, 0, 1, 3) if info.name == "y" else theirs.swapaxes(0, 1)
        assert_array_equal(ours, expected, err_msg=info.name)


def test_a_lstm_behind_a_transposition_as_pytorch_writes_it() -> None:
    """The batch comes first around the node: neither its data nor its result is transposed."""
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]),
        node("LSTM", "t w r b", "s", hidden_size=UNITS, direction="bidirectional"),
        node("Transpose", "s", "u", perm=[0, 2, 1, 3]),
        node("Reshape", "u shape", "v"),
        node("Transpose", "v", "y", perm=[1, 0, 2]),
    ]
    shape = np.array([STEPS, BATCHES, 2 * UNITS])
    data = {**constants("LSTM", 2), "shape": shape}
    network = agrees(model(nodes, {"x": ("float32", (BATCHES, STEPS, INPUTS))}, ["y"], data))
    assert count(network, LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM) == 2
    assert count(network, LayerType.TRANSPOSE) == 0


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("LSTM", {"clip": 3.0}, "its attribute 'clip' is not supported"),
        ("LSTM", {"input_forget": 1}, "input_forget"),
        ("LSTM", {"activations": ["Relu", "Tanh", "Tanh"]}, "expected Sigmoid, Tanh, Tanh"),
        ("GRU", {"activations": ["Sigmoid", "Relu"]}, "expected Sigmoid, Tanh"),
        ("GRU", {"direction": "both"}, "expected forward or reverse or bidirectional"),
    ],
)
def test_options_are_refused_by_name(op: str, attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        load(made(op, **attributes))


@pytest.mark.parametrize(
    ("inputs", "shape", "message"),
    [
        ("x w r b short", (STEPS, BATCHES, INPUTS), r"its sequence_lens are \[4, 3\], expected 4 for each"),
        ("x w r b - - - p", (STEPS, BATCHES, INPUTS), "peephole"),
        ("x w r b", (STEPS, BATCHES, INPUTS + 1), r"its W is float32\[1, 12, 5\], expected float32\[1, 12, 6\]"),
    ],
)
def test_inputs_are_refused_by_name(inputs: str, shape: tuple[int, ...], message: str) -> None:
    data = {**constants("LSTM", 1), "short": np.array([4, 3], np.int32), "p": np.ones((1, 3 * UNITS), np.float32)}
    with pytest.raises(FerruleError, match=message):
        load(model([node("LSTM", inputs, "y", hidden_size=UNITS)], {"x": ("float32", shape)}, ["y"], data))


def test_full_sequence_lengths_are_read() -> None:
    data = {**constants("LSTM", 1), "full": np.array([STEPS] * BATCHES, np.int32)}
    recurrent = node("LSTM", "x w r b full", "y", hidden_size=UNITS)
    agrees(model([recurrent], {"x": ("float32", (STEPS, BATCHES, INPUTS))}, ["y"], data))


def test_a_gru_of_too_many_steps_is_refused() -> None:
    shape = (MAX_STEPS + 1, 1, INPUTS)
    recurrent = node("GRU", "x w r b", "y", hidden_size=UNITS)
    with pytest.raises(FerruleError, match="it has 65 steps, and each becomes layers of its own: expected at most 64"):
        load(model([recurrent], {"x": ("float32", shape)}, ["y"], constants("GRU", 1)))
