# SPDX-License-Identifier: Apache-2.0
"""Names that are handed out once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferrule.errors import ModelError
from ferrule.graph import DataType, Graph, Layer, LayerType, TensorInfo
from ferrule.graph.names import UniqueNames
from ferrule.operators.elementwise.rectify import ReluDescriptor


def test_a_taken_name_gets_the_first_free_number() -> None:
    names = UniqueNames(["layer", "layer_2"])
    assert [names.take(wanted) for wanted in ("layer", "layer", "other", "other", "layer_2")] == [
        "layer_3",
        "layer_4",
        "other",
        "other_2",
        "layer_2_2",
    ]


def test_a_free_name_stays_free_until_it_is_added() -> None:
    names = UniqueNames()
    assert names.free("layer") == names.free("layer") == "layer"
    names.add("layer")
    assert names.free("layer") == "layer_2"


@pytest.mark.parametrize("bad", ["\x1b[31m", "\u202e", "a\nb", "\u2028", "\x00"])
def test_names_that_cannot_be_shown_are_refused(bad: str) -> None:
    """Names of models are printed in tables, pages and generated files."""
    info = TensorInfo("x", (1,), DataType.INT8)
    for make in (
        lambda: Graph(bad),
        lambda: replace(info, name=bad),
        lambda: Layer(bad, LayerType.RELU, ReluDescriptor(), inputs=("x",), outputs=("y",)),
    ):
        with pytest.raises(ModelError, match="not printable"):
            make()
