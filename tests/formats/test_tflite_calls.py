# SPDX-License-Identifier: Apache-2.0
"""Subgraphs that IF and WHILE call: the variables in them, and calls that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from compare import graph_differences
from flatbuffer_tree import Table, operator, table, tensor, write
from oracle import tflm_sequence

from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.formats import load, to_tflite
from ferrule.graph import Array

CODES = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE", "ADD", "SLICE", "CONCATENATION", "IF", "WHILE")
INTEGERS = {1: np.array([0], np.int32), 2: np.array([1], np.int32), 3: np.array([2], np.int32)}
"""Constants by number of the buffer; buffer 4 is one false bool."""


def step(type_: str, inputs: list[int], outputs: list[int], **options: object) -> Table:
    """Return an operator; `options` are the fields of its table."""
    names = {"VAR_HANDLE": "VarHandle", "READ_VARIABLE": "ReadVariable", "ASSIGN_VARIABLE": "AssignVariable"}
    names |= {"CALL_ONCE": "CallOnce", "IF": "If", "WHILE": "While"}
    name = names.get(type_, type_.capitalize())
    return operator(inputs, outputs, table(f"{name}Options", **options), code=CODES.index(type_))


def graph(name: str, tensors: list[Table], inputs: list[int], outputs: list[int], *operators: Table) -> Table:
    """Return a SubGraph table."""
    return table(
        "SubGraph",
        Name=name,
        Tensors=tensors,
        Inputs=np.array(inputs, np.int32),
        Outputs=np.array(outputs, np.int32),
        Operators=list(operators),
    )


def model(*graphs: Table) -> bytes:
    """Return a file with these subgraphs."""
    import tflite

    numbers = [getattr(tflite.BuiltinOperator, code) for code in CODES]
    contents = [b"", *(array.tobytes() for array in INTEGERS.values()), b"\0"]
    return write(
        table(
            "Model",
            Version=3,
            OperatorCodes=[
                table("OperatorCode", DeprecatedBuiltinCode=min(number, 127), BuiltinCode=number, Version=1)
                for number in numbers
            ],
            Subgraphs=list(graphs),
            Buffers=[table("Buffer", Data=content) if content else table("Buffer") for content in contents],
        )
    )


def accumulating(name: str, *, read: bool = True) -> Table:
    """Return a graph from x to v + x, which it assigns to v; or to x, which it assigns, if it does not `read` v."""
    tensors = [tensor("x", (2,)), tensor("v", (), "RESOURCE"), tensor("old", (2,)), tensor("new", (2,))]
    handle, assigned = step("VAR_HANDLE", [], [1], SharedName="v"), 3 if read else 0
    sums = [step("READ_VARIABLE", [1], [2]), step("ADD", [2, 0], [3])] if read else []
    return graph(name, tensors, [0], [assigned], handle, *sums, step("ASSIGN_VARIABLE", [1, assigned], []))


def passing(name: str) -> Table:
    return graph(name, [tensor("x", (2,))], [0], [0])


def if_model(then: Table, other: Table) -> bytes:
    """Return y = IF(condition, x), z = v afterwards."""
    tensors = [tensor("c", (1,), "BOOL"), tensor("x", (2,)), tensor("y", (2,))]
    tensors += [tensor("v", (), "RESOURCE"), tensor("z", (2,))]
    main = graph(
        "main",
        tensors,
        [0, 1],
        [2, 4],
        step("VAR_HANDLE", [], [3], SharedName="v"),
        step("IF", [0, 1], [2], ThenSubgraphIndex=1, ElseSubgraphIndex=2),
        step("READ_VARIABLE", [3], [4]),
    )
    return model(main, then, other)


def while_model() -> bytes:
    """Return a loop over flags, whose body adds to x and accumulates x in v."""
    flags = tensor("flags", (3,), "BOOL")
    tensors = [flags, tensor("x", (2,)), tensor("left", (3,), "BOOL"), tensor("y", (2,))]
    tensors += [tensor("v", (), "RESOURCE"), tensor("z", (2,))]
    main = graph(
        "main",
        tensors,
        [0, 1],
        [3, 5],
        step("VAR_HANDLE", [], [4], SharedName="v"),
        step("WHILE", [0, 1], [2, 3], CondSubgraphIndex=1, BodySubgraphIndex=2),
        step("READ_VARIABLE", [4], [5]),
    )
    zero, one, two = (tensor(f"n{value}", (1,), "INT32", buffer=value + 1) for value in range(3))
    condition = graph(
        "condition",
        [flags, tensor("x", (2,)), zero, one, tensor("first", (1,), "BOOL")],
        [0, 1],
        [4],
        step("SLICE", [0, 2, 3], [4]),
    )
    rest, end = tensor("rest", (2,), "BOOL"), tensor("end", (1,), "BOOL", buffer=4)
    shifted, old, new = tensor("shifted", (3,), "BOOL"), tensor("old", (2,)), tensor("new", (2,))
    body = graph(
        "body",
        [flags, tensor("x", (2,)), one, two, rest, end, shifted, tensor("v", (), "RESOURCE"), old, new],
        [0, 1],
        [6, 9],
        step("SLICE", [0, 2, 3], [4]),
        step("CONCATENATION", [4, 5], [6]),
        step("VAR_HANDLE", [], [7], SharedName="v"),
        step("READ_VARIABLE", [7], [8]),
        step("ADD", [8, 1], [9]),
        step("ASSIGN_VARIABLE", [7, 9], []),
    )
    return model(main, condition, body)


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
            for mine, theirs in zip(each.run(inputs, state=state), outputs, strict=True):
                np.testing.assert_array_equal(mine, theirs)
    assert graph_differences(load(to_tflite(again), name="main"), again) == []


def calling(index: int, other: int) -> Table:
    """Return a graph from (c, x) to y by an IF of two subgraphs."""
    tensors = [tensor("c", (1,), "BOOL"), tensor("x", (2,)), tensor("y", (2,))]
    call = step("IF", [0, 0, 1], [2], ThenSubgraphIndex=index, ElseSubgraphIndex=other)
    return graph("m", tensors, [0, 1], [2], call)


def two(name: str) -> Table:
    return graph(name, [tensor("c", (1,), "BOOL"), tensor("x", (2,))], [0, 1], [1])


def nested(depth: int) -> bytes:
    """Return a model in which `depth` graphs call one another."""
    graphs = [calling(2 * level + 1, 2 * level + 2) for level in range(depth - 1)]
    ordered = [graphs[0]]
    for level in range(1, depth - 1):
        ordered += [graphs[level], two(f"else {level}")]
    return model(*_renumbered(ordered))


def _renumbered(graphs: list[Table]) -> list[Table]:
    """Return the graphs with the last branches, and the calls of each at the right places."""
    callers = [index for index, each in enumerate(graphs) if each["Operators"]]
    for caller in callers:
        last = caller == callers[-1]
        then = len(graphs) if last else callers[callers.index(caller) + 1]
        other = then + 1
        options = graphs[caller]["Operators"][0]["BuiltinOptions"]
        options["ThenSubgraphIndex"], options["ElseSubgraphIndex"] = then, other
    return [*graphs, two("then"), two("else")]


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (model(calling(1, 0), two("a")), UnsupportedError, "else_branch: subgraph 0: 'm' calls itself"),
        (model(calling(1, 1), two("a")), UnsupportedError, "else_branch: subgraph 1: 'a' is called more than once"),
        (model(calling(1, 3), calling(2, 1), two("a"), two("b")), UnsupportedError, "subgraph 1: 'm' calls itself"),
        (model(calling(1, 9), two("a")), ModelError, "else_branch: subgraph 9: it does not exist, the model has 2"),
        (model(calling(1, 2), two("a"), passing("b")), ModelError, "else_branch: it has 1 inputs, expected 2"),
        (model(calling(1, 2), two("a"), two("b"), two("c")), UnsupportedError, "does not call 'c'"),
        (nested(10), UnsupportedError, "more than 8 subgraphs call one another"),
    ],
    ids=["itself", "twice", "cycle", "none", "signature", "not called", "deep"],
)
def test_calls_that_are_refused(data: bytes, kind: type[FerruleError], text: str) -> None:
    with pytest.raises(kind, match="m: ") as caught:
        load(data, name="m")
    assert text in str(caught.value)


def test_a_model_may_nest_eight_graphs() -> None:
    network = load(nested(9), name="m")
    np.testing.assert_array_equal(network.run([np.array([True]), X])[0], X)


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
