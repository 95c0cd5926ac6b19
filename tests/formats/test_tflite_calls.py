# SPDX-License-Identifier: Apache-2.0
"""Subgraphs that IF and WHILE call: the variables in them, and calls that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from call_models import accumulating, calling, graph, if_model, model, nested, passing, step, two, while_model
from compare import assert_arrays_equal, graph_differences
from flatbuffer_tree import tensor
from numpy.testing import assert_array_equal
from oracle import tflm_sequence

from ferrule.budget import limits
from ferrule.errors import BudgetError, FerruleError, ModelError, UnsupportedError
from ferrule.formats import load, to_tflite
from ferrule.graph import Array

X = np.array([1.5, -2.0], np.float32)
CONDITIONS: list[list[Array]] = [[np.array([value]), X + n] for n, value in enumerate((True, False, True, True, False))]


@pytest.mark.parametrize(
    ("data", "samples"),
    [
        (if_model(accumulating("then"), passing("else")), CONDITIONS),
        (if_model(passing("then"), accumulating("else", read=False)), CONDITIONS),
        (if_model(accumulating("then"), accumulating("else", read=False)), CONDITIONS),
        (while_model(), [[np.arange(3) < count, X] for count in (2, 0, 3, 1)]),
    ],
    ids=["one branch reads", "one branch only assigns", "both branches", "loop"],
)
def test_variables_of_subgraphs_are_those_of_the_model(data: bytes, samples: list[list[Array]]) -> None:
    network = load(data, name="main")
    assert [state.name for state in network.states] == ["v"]
    assert all(not inner.states for inner in network.layers[0].descriptor.graphs.values())
    wanted = tflm_sequence(data, samples)
    again = load(to_tflite(network), name="main")
    for each in (network, again):
        state = each.initial_state()
        for inputs, outputs in zip(samples, wanted, strict=True):
            assert_arrays_equal(each.run(inputs, state=state), outputs)
    assert graph_differences(load(to_tflite(again), name="main"), again) == []


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (model(calling(1, 0), two("a")), UnsupportedError, "else_branch: subgraph 0: 'm' calls itself"),
        (model(calling(1, 1), two("a")), UnsupportedError, "else_branch: subgraph 1: 'a' is called more than once"),
        (model(calling(1, 3), calling(2, 1), two("a"), two("b")), UnsupportedError, "subgraph 1: 'm' calls itself"),
        (model(calling(1, 9), two("a")), ModelError, "else_branch: subgraph 9: it does not exist, the model has 2"),
        (model(calling(1, 2), two("a"), passing("b")), ModelError, "else_branch: it has 1 inputs, expected 2"),
        (nested(10), UnsupportedError, "more than 8 subgraphs call one another"),
    ],
    ids=["itself", "twice", "cycle", "none", "signature", "deep"],
)
def test_calls_that_are_refused(data: bytes, kind: type[FerruleError], text: str) -> None:
    with pytest.raises(kind, match="m: ") as caught:
        load(data, name="m")
    assert text in str(caught.value)


def test_each_operator_of_a_subgraph_that_blocks_is_listed() -> None:
    three = graph(
        "b", [tensor(name, (2,)) for name in "xyz"], [0], [2], step("ADD", [9, 0], [1]), step("ADD", [8, 0], [2])
    )
    with pytest.raises(FerruleError) as caught:
        load(model(calling(1, 2), two("a"), three), name="m")
    assert [problem.place.split(": ")[1:] for problem in caught.value.problems] == [
        ["operator 0 IF -> tensor 'y'", "else_branch", "subgraph 2", "operator 0 ADD -> tensor 'y'"],
        ["operator 0 IF -> tensor 'y'", "else_branch", "subgraph 2", "operator 1 ADD -> tensor 'z'"],
    ]


def test_a_model_may_nest_eight_graphs() -> None:
    network = load(nested(9), name="m")
    assert_array_equal(network.run([np.array([True]), X])[0], X)


def test_a_condition_may_not_assign() -> None:
    tensors = [tensor("c", (1,), "BOOL"), tensor("c2", (1,), "BOOL")]
    main = graph("main", tensors, [0], [1], step("WHILE", [0], [1], CondSubgraphIndex=1, BodySubgraphIndex=2))
    handle = step("VAR_HANDLE", [], [1], SharedName="v")
    condition = graph(
        "condition", [tensors[0], tensor("v", (), "RESOURCE")], [0], [0], handle, step("ASSIGN_VARIABLE", [1, 0], [])
    )
    body = graph("body", [tensors[0]], [0], [0])
    with pytest.raises(UnsupportedError, match="the condition assigns variable 'v'"):
        load(model(main, condition, body), name="m")


def test_a_subgraph_may_not_initialise_variables() -> None:
    assigned = graph(
        "initialise",
        [tensor("v", (), "RESOURCE"), tensor("n2", (1,), "INT32", buffer=3)],
        [],
        [],
        step("VAR_HANDLE", [], [0], SharedName="v"),
        step("ASSIGN_VARIABLE", [0, 1], []),
    )
    tensors = [tensor("c", (1,), "BOOL"), tensor("y", (1,), "INT32")]
    main = graph("main", tensors, [0], [1], step("IF", [0], [1], ThenSubgraphIndex=1, ElseSubgraphIndex=2))
    then = graph(
        "then",
        [tensor("v", (), "RESOURCE"), tensor("y", (1,), "INT32")],
        [],
        [1],
        step("VAR_HANDLE", [], [0], SharedName="v"),
        step("CALL_ONCE", [], [], InitSubgraphIndex=3),
        step("READ_VARIABLE", [0], [1]),
    )
    other = graph("else", [tensor("n1", (1,), "INT32", buffer=2)], [], [0])
    with pytest.raises(UnsupportedError, match="a subgraph initialises variable 'v'"):
        load(model(main, then, other, assigned), name="m")


def test_a_variable_without_an_initial_value_is_held_by_the_budget() -> None:
    main = graph(
        "main",
        [tensor("x", (2,)), tensor("v", (), "RESOURCE"), tensor("huge", (1 << 22,)), tensor("y", (2,))],
        [0],
        [3],
        step("VAR_HANDLE", [], [1], SharedName="v"),
        step("READ_VARIABLE", [1], [2]),
        step("ADD", [0, 0], [3]),
    )
    with (
        limits(bytes="8MiB"),
        pytest.raises(BudgetError, match=r"variable 'huge' without an initial value takes 16,777,216 bytes"),
    ):
        load(model(main))
    with limits(bytes="64MiB"):
        assert load(model(main)).states[0].initial.nbytes == 1 << 24
