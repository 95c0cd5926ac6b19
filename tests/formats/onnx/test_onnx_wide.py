# SPDX-License-Identifier: Apache-2.0
"""Conversions to 16 bits and back, which float32 layers compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onnx_models import agrees, count, load, model, node
from oracle import onnxruntime_outputs

from ferrule.errors import UnsupportedError
from ferrule.formats.onnx.node import MICROSOFT
from ferrule.graph import LayerType

KINDS = [("int16", 0), ("int16", -300), ("uint16", 0), ("uint16", 32768), ("uint16", 65535)]
SCALE = np.float32(0.0007)


def converted(kind: str, point: int, *after: Any, domain: str = "", **constants: Any) -> Any:  # noqa: ANN401
    nodes = [node("QuantizeLinear", "x s z", "q", domain), node("DequantizeLinear", "q s z", "d", domain)]
    given = {"s": SCALE, "z": np.array(point, kind), **constants}
    return model([*nodes, *after], {"x": ("float32", [2, 3, 5, 4])}, ["y"] if after else ["d"], given)


def edges(point: int, kind: str) -> Any:  # noqa: ANN401
    """Return numbers round ties and beyond both limits."""
    limits = np.iinfo(kind)
    steps = np.random.default_rng(2).integers(limits.min - point, limits.max - point, 120).astype(np.float64)
    steps[:40] += 0.5
    steps[40:44] = [limits.min - point - 9, limits.max - point + 9, 1e9, -1e9]
    return (steps * SCALE).astype(np.float32).reshape(2, 3, 5, 4)


@pytest.mark.parametrize("domain", ["", MICROSOFT])
@pytest.mark.parametrize(("kind", "point"), KINDS)
def test_numbers_equal_those_of_onnxruntime(kind: str, point: int, domain: str) -> None:
    made = converted(kind, point, domain=domain)
    x = edges(point, kind)
    network = load(made)
    assert_array_equal(network.run([x])[0], onnxruntime_outputs(made, {"x": x})[0])
    assert count(network, LayerType.ROUND) == 1
    assert all(tensor.info.dtype.is_float for tensor in network.tensors)


def test_weights_of_16_bits_are_constants() -> None:
    weights = np.random.default_rng(4).integers(-(2**15), 2**15, (4, 3, 2, 2)).astype(np.int16)
    constants = {
        "w": weights,
        "ws": np.array([1, 2, 3, 4], np.float32) / 2**16,
        "wz": np.array([0, 5, -7, 9], np.int16),
    }
    nodes = [node("DequantizeLinear", "w ws wz", "r", axis=0), node("Conv", "x r", "y")]
    network = agrees(model(nodes, {"x": ("float32", [1, 3, 5, 4])}, ["y"], constants))
    assert count(network, LayerType.CONV_2D) == 1
    assert count(network, LayerType.DEQUANTIZE) == 0


def test_several_nodes_may_read_the_integers() -> None:
    more = [node("DequantizeLinear", "q s z", "e"), node("Sub", "d e", "y")]
    network = load(converted("int16", 3, *more))
    assert not network.run([edges(3, "int16")])[0].any()
    assert count(network, LayerType.ROUND) == 1


@pytest.mark.parametrize(
    "after",
    [
        [node("DequantizeLinear", "q t z", "y")],
        [node("DequantizeLinear", "q s u", "y")],
        [node("Identity", "q", "y")],
    ],
)
def test_other_uses_of_the_integers_are_refused(after: Any) -> None:  # noqa: ANN401
    made = converted("int16", 3, *after, t=np.float32(1), u=np.array(4, np.int16))
    with pytest.raises(UnsupportedError, match="it quantises to int16, expected int8 or uint8") as caught:
        load(made)
    assert "8 bits" in str(caught.value.hint)


def test_scales_that_do_not_fit_constants_are_refused() -> None:
    constants = {"w": np.zeros((4, 3), np.int16), "ws": np.ones(3, np.float32), "wz": np.zeros(3, np.int16)}
    nodes = [node("DequantizeLinear", "w ws wz", "r", axis=0), node("MatMul", "x r", "y")]
    with pytest.raises(UnsupportedError, match="expected int8 or uint8"):
        load(model(nodes, {"x": ("float32", [1, 4])}, ["y"], constants))


def test_the_type_may_be_an_attribute() -> None:
    nodes = [node("QuantizeLinear", "x s", "q", output_dtype=5), node("DequantizeLinear", "q s", "y")]
    made = model(nodes, {"x": ("float32", [2, 3, 5, 4])}, ["y"], {"s": SCALE})
    x = edges(0, "int16")
    assert_array_equal(load(made).run([x])[0], onnxruntime_outputs(made, {"x": x})[0])
