# SPDX-License-Identifier: Apache-2.0
"""Lifetimes of tensors."""

from __future__ import annotations

import numpy as np
import pytest
from chains import build, chain, info
from hypothesis import given
from hypothesis import strategies as st

from ferrule.errors import ModelError
from ferrule.graph import Descriptor, Graph, Layer, LayerType
from ferrule.memory import (
    Alias,
    AliasKind,
    Lifetime,
    Region,
    home,
    lifetimes,
    scheduled_layers,
    views,
)


def lives(graph: Graph, order: list[str] | None = None) -> dict[str, tuple[int, int]]:
    return {name: (life.first, life.last) for name, life in lifetimes(graph, order).items()}


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_meets_is_symmetric_and_means_a_common_step(a: int, b: int, c: int, d: int) -> None:
    x, y = Lifetime(first=min(a, b), last=max(a, b)), Lifetime(first=min(c, d), last=max(c, d))
    common = set(range(x.first, x.last + 1)) & set(range(y.first, y.last + 1))
    assert x.meets(y) == y.meets(x) == bool(common)


@pytest.mark.parametrize(("first", "last"), [(-1, 0), (2, 1)])
def test_a_lifetime_that_ends_before_it_begins_is_refused(first: int, last: int) -> None:
    with pytest.raises(ValueError, match="expected 0 <= first <= last"):
        Lifetime(first=first, last=last)


def test_a_chain_hands_over() -> None:
    assert lives(chain([1, 2, 3])) == {"t0": (0, 0), "t1": (0, 1), "t2": (1, 1)}


def test_inputs_live_from_the_start_and_outputs_to_the_end() -> None:
    graph = build(
        [("x", 1), ("late", 1), ("unread", 1)],
        [(["x"], [("a", 1), ("unused", 1)]), (["a"], [("b", 1)]), (["b", "late"], [("c", 1)])],
        ["a", "c"],
    )
    assert lives(graph) == {
        "x": (0, 0),
        "late": (0, 2),
        "unread": (0, 0),
        "a": (0, 2),
        "unused": (0, 0),
        "b": (1, 2),
        "c": (2, 2),
    }


def test_an_input_can_be_an_output() -> None:
    assert lives(build([("x", 1)], [(["x"], [("a", 1)]), (["a"], [("b", 1)])], ["x", "b"]))["x"] == (0, 1)
    assert lives(build([("x", 1)], [], ["x"])) == {"x": (0, 0)}


def test_constants_do_not_live() -> None:
    graph = Graph("constant")
    graph.add_constant(info("w", 4), np.zeros(4, np.int8))
    layer = Layer("l", LayerType.RESHAPE, Descriptor(), inputs=("w", None), outputs=("y",))
    graph.add_layer(layer, [info("y", 4)])
    graph.set_outputs(["y", "w"])
    assert lives(graph) == {"y": (0, 0)}
    assert views(graph) == ()


def test_views_are_those_layers_that_keep_the_bytes() -> None:
    assert views(chain([4, 4, 4], views=[2])) == (Alias(output="t2", input="t1", kind=AliasKind.VIEW),)


def test_an_order_moves_the_lifetimes() -> None:
    graph = build([("x", 1)], [(["x"], [("a", 1)]), (["x"], [("b", 1)]), (["a", "b"], [("c", 1)])], ["c"])
    assert lives(graph)["a"] == (0, 2)
    assert lives(graph, ["l1", "l0", "l2"])["a"] == (1, 2)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        *((order, "expected each layer's once") for order in (["l0"], ["l0", "l0"], ["l0", "l1", "l1"])),
        (["l1", "l0"], "'l1' is ordered before 'l0'"),
    ],
)
def test_an_order_has_every_layer_once_and_producers_first(order: list[str], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        scheduled_layers(chain([1, 1, 1]), order)


def test_regions_are_chosen_by_who_reaches_them() -> None:
    regions = (
        Region(name="dtcm", size_bytes=1, reachable_by=frozenset({"core"})),
        Region(name="sram", size_bytes=1, reachable_by=frozenset({"core", "npu"})),
    )
    assert home(regions, ["core"]) is regions[0]
    assert home(regions, ["npu", "core"]) is regions[1]
    assert home(regions, ["dma"]) is None


@pytest.mark.parametrize("wrong", [{"size_bytes": -1}, {"alignment": 0}])
def test_regions_without_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="region 'sram' has size"):
        Region(**{"name": "sram", "size_bytes": 1, **wrong})  # type: ignore[arg-type]
