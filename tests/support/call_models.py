# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite files whose subgraphs call one another and share variables."""

from __future__ import annotations

import numpy as np
from flatbuffer_tree import Table, operator, table, tensor, write

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


def call_models() -> list[bytes]:
    """Return valid files of all kinds of calls."""
    branches = (
        (accumulating("then"), passing("else")),
        (passing("then"), accumulating("else", read=False)),
        (accumulating("then"), accumulating("else", read=False)),
    )
    return [*(if_model(then, other) for then, other in branches), while_model(), nested(3), nested(9)]
