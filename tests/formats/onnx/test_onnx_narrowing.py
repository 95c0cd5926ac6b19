# SPDX-License-Identifier: Apache-2.0
"""int64 arithmetic at run time, which is done in int32 if all results are proved to fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx_models import agrees, count, load, model, node

from ferrule.errors import UnsupportedError
from ferrule.graph import LayerType

X = {"x": ("float32", [2, 5])}
BIT = [node("Greater", "x zero", "b"), node("Cast", "b", "i", to=7)]
"""0 or 1 as int64."""
BEST = [node("ArgMax", "x", "i", axis=1)]
"""0 to 4 as int64."""
ZERO = {"zero": np.float32(0)}


def made(before: Sequence[Any], *after: Any, **constants: Any) -> Any:  # noqa: ANN401
    return model([*before, *after], X, ["y"], {**ZERO, **{name: np.array(data) for name, data in constants.items()}})


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Max", "Min"])
@pytest.mark.parametrize("before", [BIT, BEST], ids=["bit", "position"])
def test_small_integers_agree_with_onnxruntime(op: str, before: Sequence[Any]) -> None:
    network = agrees(made(before, node(op, "i k", "y"), k=[[3], [-2]]), exact=True)
    assert network.outputs[0].dtype == "int64"
    agrees(made(before, node(op, "k i", "y"), k=[[3], [-2]]), exact=True)


def test_ranges_are_known_of_moved_and_computed_integers() -> None:
    after = [
        node("Mul", "i k", "a"),
        node("Transpose", "a", "t"),
        node("Add", "t m", "s"),
        node("Reshape", "s shape", "r"),
        node("Add", "r r", "d"),
        node("Sub", "d r", "y"),
    ]
    network = agrees(made(BIT, *after, k=2**28, m=[[2**28, -(2**28)]], shape=[-1]), exact=True)
    assert count(network, LayerType.ADD) == 2
    with pytest.raises(UnsupportedError, match="numbers from 0 to 2147483648 are possible, expected those of 32 bits"):
        load(made(BIT, *after, k=2**29, m=[[2**29, 0]], shape=[-1]))


@pytest.mark.parametrize(("op", "factor"), [("Add", 2**31 - 2), ("Sub", -(2**31) + 2), ("Mul", 2**31 - 1)])
def test_the_largest_results_fit_and_one_more_is_refused(op: str, factor: int) -> None:
    agrees(made(BIT, node(op, "i k", "y"), k=factor), exact=True)
    more = factor + (1 if factor > 0 else -1)
    with pytest.raises(UnsupportedError, match="expected those of 32 bits") as caught:
        load(made(BIT, node(op, "i k", "y"), k=more))
    assert "int32 or float32" in str(caught.value.hint)


def test_inputs_may_have_any_value() -> None:
    inputs = {"x": ("int64", [3])}
    with pytest.raises(UnsupportedError, match="numbers from -9223372036854775808 to"):
        load(model([node("Add", "x k", "y")], inputs, ["y"], {"k": np.array(1)}))
    nothing = model([node("Mul", "x k", "y")], inputs, ["y"], {"k": np.array(0)})
    agrees(nothing, {"x": np.array([2**40, -1, 2**63 - 1])}, exact=True)


def test_a_float_as_an_integer_may_have_any_value() -> None:
    with pytest.raises(UnsupportedError, match="expected those of 32 bits"):
        load(made([node("Cast", "x", "i", to=7)], node("Add", "i k", "y"), k=1))
