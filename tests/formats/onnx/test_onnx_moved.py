# SPDX-License-Identifier: Apache-2.0
"""Operators that select elements between conversions, as several layers of integers each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import agrees, model, node

from ferrule.errors import UnsupportedError
from ferrule.graph import LayerType

POINTS = {"s": np.float32(0.03), "z": np.int8(-7)}


@pytest.mark.parametrize(
    ("operator", "constants", "attributes", "layer"),
    [
        ("Pad", {"p": [0, 0, 1, 2, 0, 0, 0, 1]}, {"mode": "edge"}, LayerType.GATHER),
        ("Pad", {"p": [0, 1, 1, 2, 0, 0, 0, 1]}, {"mode": "wrap"}, LayerType.GATHER),
        ("Pad", {"p": [0, -1, 1, -1, 0, 0, -2, 1]}, {}, LayerType.PAD),
        ("Pad", {"p": [0, -1, 1, -1, 0, 0, -2, 1]}, {"mode": "reflect"}, LayerType.MIRROR_PAD),
        ("MaxPool", {}, {"kernel_shape": [3, 2], "dilations": [2, 3]}, LayerType.MAX_POOL_2D),
        ("MaxPool", {}, {"kernel_shape": [2, 2], "dilations": [1, 4], "pads": [1, 1, 0, 1]}, LayerType.MAX_POOL_2D),
    ],
)
def test_elements_are_moved_as_integers(operator: str, constants: Any, attributes: Any, layer: LayerType) -> None:  # noqa: ANN401
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node(operator, " ".join(["d", *constants]), "r", **attributes),
        node("QuantizeLinear", "r s z", "i"),
        node("DequantizeLinear", "i s z", "y"),
    ]
    x = np.random.default_rng(1).normal(size=(1, 3, 7, 8)).astype(np.float32)
    x[0, 0] = -9  # which is less than the padding of any pool may be
    made = model(nodes, {"x": ("float32", x.shape)}, ["y"], {**POINTS, **constants})
    network = agrees(made, {"x": x}, exact=True)
    assert {network.info(each.outputs[0]).dtype for each in network.layers if each.type == layer} == {"int8"}


def test_averages_with_dilations_of_integers_are_refused() -> None:
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("AveragePool", "d", "r", kernel_shape=[2, 2], dilations=[2, 1]),
        node("QuantizeLinear", "r s z", "y"),
    ]
    made = model(nodes, {"x": ("float32", [1, 3, 7, 8])}, ["y"], POINTS)
    with pytest.raises(UnsupportedError, match=r"'dilations' is \[2, 1\] and its data are integers") as caught:
        agrees(made)
    assert "nodes_to_exclude" in str(caught.value.hint)
