# SPDX-License-Identifier: Apache-2.0
"""If and Loop of ONNX models, against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.testing import assert_allclose
from onnx_models import agrees, count, load, model, node

from ferrule import formats
from ferrule.errors import FerruleError, IterationLimitError
from ferrule.graph import Array, LayerType

X = np.random.default_rng(2).normal(size=(2, 3)).astype(np.float32)
INPUT = {"x": ("float32", (2, 3))}
Inputs = Sequence[tuple[str, str, Sequence[int]]]


def graph(
    nodes: Sequence[Any], outputs: str, inputs: Inputs = (), constants: Mapping[str, npt.ArrayLike] | None = None
) -> Any:  # noqa: ANN401
    """Return an inner graph; outputs are separated by spaces."""
    from onnx import helper, numpy_helper

    described = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
        for name, dtype, shape in inputs
    ]
    arrays = [numpy_helper.from_array(np.asarray(data), name) for name, data in (constants or {}).items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs.split()]
    return helper.make_graph(list(nodes), "inner", described, results, arrays)


def selection(condition: str, *before: Any, shape: tuple[int, ...] = (2, 3)) -> Any:  # noqa: ANN401
    """Return a model that selects one of two graphs, which read tensors and constants of the graph outside."""
    then = graph([node("Mul", "t factor", "a")], "a")
    otherwise = graph([node("Relu", "x", "r"), node("Add", "r own", "a2")], "a2", constants={"own": np.float32(2)})
    nodes = [*before, node("Neg", "x", "t"), node("If", condition, "i", then_branch=then, else_branch=otherwise)]
    constants: dict[str, npt.ArrayLike] = {
        "factor": np.float32(3),
        "yes": np.array(True),
        "no": np.array(False),
        "two": np.array(2),
    }
    return model([*nodes, node("Abs", "i", "y")], {"x": ("float32", shape), "c": ("bool", ())}, ["y"], constants)


@pytest.mark.parametrize("condition", [True, False])
def test_an_if_whose_condition_is_computed(condition: bool) -> None:
    network = agrees(selection("c"), {"x": X, "c": np.array(condition)})
    assert count(network, LayerType.IF) == 1


@pytest.mark.parametrize("condition", ["yes", "no", "same"])
def test_an_if_whose_condition_is_known_is_replaced_by_its_graph(condition: str) -> None:
    before = [node("Shape", "x", "s"), node("Gather", "s zero", "extent"), node("Equal", "extent two", "same")]
    made = selection(condition, node("Constant", "", "zero", value_int=0), *before)
    network = agrees(made, {"x": X, "c": np.array(True)})
    assert count(network, LayerType.IF) == 0
    assert count(network, LayerType.MUL) == (condition != "no")


def test_names_of_graphs_that_replace_their_nodes_do_not_meet() -> None:
    """The graphs of several nodes have tensors of the same name; onnxruntime takes this for a cycle."""
    first = graph([node("Neg", "x", "t")], "t")
    second = graph([node("Exp", "p", "t")], "t")
    third = graph([node("Identity", "q", "u")], "u")
    nodes = [
        node("If", "yes", "p", then_branch=first, else_branch=second),
        node("If", "no", "q", then_branch=first, else_branch=second),
        node("If", "yes", "y", then_branch=third, else_branch=first),
    ]
    network = load(model(nodes, INPUT, ["y"], {"yes": np.array(True), "no": np.array(False)}))
    assert_allclose(network.run({"x": X})[0], np.exp(-X), rtol=1e-6)


def test_an_if_inside_of_an_if_reads_tensors_of_both_graphs_outside() -> None:
    inner = graph([node("Add", "m x", "k")], "k")
    other = graph([node("Mul", "m c1", "l")], "l")
    then = graph(
        [node("Exp", "x", "m"), node("If", "d", "n", then_branch=inner, else_branch=other)],
        "n",
    )
    otherwise = graph([node("Neg", "x", "o")], "o")
    nodes = [node("If", "c", "y", then_branch=then, else_branch=otherwise)]
    described = {**INPUT, "c": ("bool", ()), "d": ("bool", ())}
    made = model(nodes, described, ["y"], {"c1": np.float32(3)})
    for each in (True, False):
        agrees(made, {"x": X, "c": np.array(True), "d": np.array(each)})


CARRIED: Inputs = [("i", "int64", ()), ("go", "bool", ()), ("v", "float32", (2, 3))]


def loop(
    trips: str, condition: str, nodes: Sequence[Any], outputs: str, results: str = "y", **constants: npt.ArrayLike
) -> Any:  # noqa: ANN401
    """Return a model of a loop that begins with x."""
    body = graph(nodes, outputs, CARRIED)
    known: dict[str, npt.ArrayLike] = {"five": np.array(5), "forever": np.array(2**63 - 1), "yes": np.array(True)}
    whole = [node("Neg", "x", "t"), node("Loop", f"{trips} {condition} x", results, body=body)]
    described = {**INPUT, "n": ("int64", ()), "c": ("bool", ())}
    return model(whole, described, results.split(), {**known, "factor": np.float32(1.5), **constants})


COUNTED = [
    node("Cast", "i", "number", to=1),
    node("Mul", "v factor", "w"),
    node("Add", "w t", "u"),
    node("Add", "u number", "next"),
]
ENDING = [
    node("ReduceMax", "next", "top", keepdims=0),
    node("Less", "top limit", "on"),
]


def given(trips: int = 0, *, condition: bool = True) -> dict[str, Array]:
    """Return inputs."""
    return {"x": X, "n": np.array(trips), "c": np.array(condition)}


@pytest.mark.parametrize(("trips", "number"), [("five", 0), ("n", 0), ("n", 1), ("n", 7)])
@pytest.mark.parametrize("condition", ["-", "yes", "c"])
def test_a_loop_with_a_trip_count(trips: str, number: int, condition: str) -> None:
    network = agrees(loop(trips, condition, [*COUNTED, node("Identity", "go", "on")], "on next"), given(number))
    assert count(network, LayerType.WHILE) == 1


@pytest.mark.parametrize("trips", ["-", "forever", "five"])
@pytest.mark.parametrize("condition", [True, False])
def test_a_loop_that_a_condition_ends(trips: str, condition: bool) -> None:
    made = loop(trips, "c", [*COUNTED, *ENDING], "on next", limit=np.float32(40))
    agrees(made, given(condition=condition))


def test_a_trip_count_beyond_int32_is_not_truncated() -> None:
    made = loop("n", "c", [*COUNTED, *ENDING], "on next", limit=np.float32(40))
    agrees(made, given(2**32))


def test_the_limit_of_iterations_concerns_loops_of_unknown_length() -> None:
    endless = [*COUNTED, node("Identity", "go", "on")]
    unknown = formats.load(loop("n", "-", endless, "on next").SerializeToString(), max_iterations=3)
    assert len(unknown.run(given(3))) == 1
    with pytest.raises(IterationLimitError):
        unknown.run(given(4))
    known = formats.load(loop("five", "-", endless, "on next").SerializeToString(), max_iterations=3)
    assert len(known.run(given())) == 1


def test_scan_outputs_are_refused_by_name() -> None:
    made = loop("five", "-", [*COUNTED, node("Identity", "go", "on")], "on next u", "y z")
    with pytest.raises(FerruleError, match=r"it has scan outputs \(u\), which are not supported"):
        load(made)


def test_a_loop_without_an_end_is_refused() -> None:
    with pytest.raises(FerruleError, match="neither a trip count nor a condition"):
        load(loop("forever", "-", [*COUNTED, node("Identity", "go", "on")], "on next"))


def test_an_operator_inside_that_is_not_supported_is_named() -> None:
    made = loop("five", "-", [node("Det", "v", "next"), node("Identity", "go", "on")], "on next")
    with pytest.raises(FerruleError, match=r"node 1 .*Loop.*body: node .*Det"):
        load(made)


def test_branches_of_different_shapes_are_refused() -> None:
    then, otherwise = graph([node("Neg", "x", "a")], "a"), graph([node("Flatten", "x", "b", axis=0)], "b")
    made = model([node("If", "c", "y", then_branch=then, else_branch=otherwise)], {**INPUT, "c": ("bool", ())}, ["y"])
    with pytest.raises(FerruleError, match="else_branch: 'b' of its outputs is"):
        load(made)
