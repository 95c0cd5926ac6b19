# SPDX-License-Identifier: Apache-2.0
"""The rules of operators between conversions: what onnxruntime fuses there, and the arithmetic as written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from gate import every
from needs import require_module
from numpy.testing import assert_array_equal
from onnx_models import agrees, load, model, node
from oracle import onnxruntime_outputs

from ferrule import formats
from ferrule.cli.reading import ARITHMETICS
from ferrule.errors import FerruleError
from ferrule.formats.onnx import Arithmetic
from ferrule.graph import Array, LayerType
from ferrule.network import Network

SHAPE = [1, 8, 16, 16]
POINTS: Mapping[str, Any] = {
    "s1": np.float32(0.05),
    "z1": np.int8(4),
    "s2": np.float32(0.03),
    "z2": np.int8(-9),
    "ks": np.float32(0.02),
    "kz": np.int8(0),
}


@pytest.fixture(autouse=True)
def _installed() -> None:
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")


def rules(network: Network, *types: LayerType) -> list[str]:
    return [str(layer.rounding) for layer in network.layers if layer.type in types]


def graph(
    nodes: Sequence[Any],
    *,
    integers: tuple[bool, bool] = (False, True),
    constants: Mapping[str, Any] | None = None,
    second: bool = False,
    opset: int = 17,
) -> Any:  # noqa: ANN401
    """Return a model with nodes from "d" (and "e") to "g" between conversions.

    `integers` says whether the inputs and the output have 8 bits.
    """
    before, inputs = [], {}
    for name, stored, real, points in (("x", "q", "d", "s1 z1"), ("w", "k", "e", "ks kz"))[: 2 if second else 1]:
        if integers[0]:
            inputs[stored] = ("int8", SHAPE)
        else:
            inputs[name] = ("float32", SHAPE)
            before.append(node("QuantizeLinear", f"{name} {points}", stored))
        before.append(node("DequantizeLinear", f"{stored} {points}", real))
    after = [node("QuantizeLinear", "g s2 z2", "y" if integers[1] else "p")]
    if not integers[1]:
        after.append(node("DequantizeLinear", "p s2 z2", "y"))
    return model([*before, *nodes, *after], inputs, ["y"], {**POINTS, **(constants or {})}, opset=opset)


def given(made: Any, seed: int = 1) -> dict[str, Array]:  # noqa: ANN401
    """Return random inputs: all integers, or floats of their range."""
    generator = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for info in made.graph.input:
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        integers = generator.integers(-128, 128, shape).astype(np.int8)
        floats = (generator.normal(size=shape) * 3).astype(np.float32)
        feeds[info.name] = floats if info.type.tensor_type.elem_type == 1 else integers
    return feeds


BOTH = [(False, False), (True, False), (False, True), (True, True)]
TYPE = {(False, False): "onnx-uint8", (True, False): "onnx-float", (False, True): "onnx-float", (True, True): "onnx"}
"""The rule of an operator that is fused if all integers have one type: those beside a float32 value become uint8."""


@pytest.mark.parametrize("integers", BOTH)
@pytest.mark.parametrize("op", ["Add", "Mul"])
@pytest.mark.parametrize("second", [False, True])
def test_operators_of_two_inputs(op: str, integers: tuple[bool, bool], *, second: bool) -> None:
    """onnxruntime has a DequantizeLinear for each use, and only int8 with a single one becomes uint8."""
    made = graph([node(op, "d e" if second else "d d", "g")], integers=integers, second=second)
    network = agrees(made, given(made), exact=True)
    rule = TYPE[integers] if second else "onnx" if integers[1] else "onnx-float"
    assert rules(network, LayerType[op.upper()]) == [rule]


@pytest.mark.parametrize("integers", BOTH)
@pytest.mark.parametrize("order", ["d e", "e d"])
@pytest.mark.parametrize("narrow", [True, False])
def test_constants_become_uint8_unless_they_are_narrow(
    order: str, integers: tuple[bool, bool], *, narrow: bool
) -> None:
    values = (
        np.random.default_rng(0).integers(-64, 64, (8, 1, 1)) if narrow else np.arange(-128, 128, 33)[:, None, None]
    )
    nodes = [node("DequantizeLinear", "k ks kz", "e"), node("Mul", order, "g")]
    made = graph(nodes, integers=integers, constants={"k": values.astype(np.int8)})
    network = agrees(made, given(made), exact=True)
    types = {narrow, integers[0], integers[1]}  # whether each tensor stays int8
    assert rules(network, LayerType.MUL) == ["onnx-float" if len(types) > 1 else "onnx" if narrow else "onnx-uint8"]


@pytest.mark.parametrize("integers", BOTH)
@pytest.mark.parametrize("opset", [17, 21])
@pytest.mark.parametrize(
    ("stride", "pads", "late"),
    [(2, 0, "onnx-columns"), (1, 1, "onnx-columns"), (3, 0, "onnx-float")],
)
def test_averages(integers: tuple[bool, bool], opset: int, stride: int, pads: int, late: str) -> None:
    pool = node("AveragePool", "d", "g", kernel_shape=[2, 2], strides=[stride] * 2, pads=[pads] * 4)
    made = graph([pool], integers=integers, opset=opset)
    network = agrees(made, given(made), exact=True)
    rule = TYPE[integers]
    expected = late if rule == "onnx-float" and opset < 19 else rule
    assert rules(network, LayerType.AVERAGE_POOL_2D) == [expected]


@pytest.mark.parametrize("integers", BOTH)
@pytest.mark.parametrize("opset", [17, 21])
def test_averages_of_whole_images(integers: tuple[bool, bool], opset: int) -> None:
    made = graph([node("AveragePool", "d", "g", kernel_shape=[16, 16])], integers=integers, opset=opset)
    found = rules(agrees(made, given(made), exact=True), LayerType.MEAN, LayerType.AVERAGE_POOL_2D)
    assert found == ["onnx" if TYPE[integers] != "onnx-float" else "onnx-float"]
    made = graph([node("GlobalAveragePool", "d", "g")], integers=integers, opset=opset)
    assert rules(agrees(made, given(made), exact=True), LayerType.MEAN) == found


@pytest.mark.parametrize("integers", BOTH)
def test_shares(integers: tuple[bool, bool]) -> None:
    """Fused, the quotient is multiplied by whole steps of the output's scale; in float32 it is divided by it."""
    constants = {"s2": np.float32(0.0043), "z2": np.int8(-128)}
    made = graph([node("Softmax", "d", "g", axis=1)], integers=integers, constants=constants)
    network = agrees(made, given(made), exact=True)
    assert rules(network, LayerType.SOFTMAX) == ["onnx-float" if TYPE[integers] == "onnx-float" else "onnx"]


@pytest.mark.parametrize(("low", "rule"), [(-128, "onnx-uint8"), (-9, "onnx-float")])
@pytest.mark.parametrize("op", ["Relu", "Clip"])
def test_a_clamp_that_changes_something_prevents_fusion(low: int, rule: str, op: str) -> None:
    clamp = node("Relu", "r", "g") if op == "Relu" else node("Clip", "r zero", "g")
    constants = {"z2": np.int8(low), "zero": np.float32(0)}
    made = graph([node("Mul", "d e", "r"), clamp], integers=(False, False), constants=constants, second=True)
    assert rules(agrees(made, given(made), exact=True), LayerType.MUL) == [rule]


def test_an_output_that_is_also_read_stays_int8() -> None:
    made = graph([node("Add", "d e", "g")], integers=(False, False), second=True)
    made.graph.output.append(made.graph.value_info.add(name="p"))
    made.graph.output[-1].type.tensor_type.elem_type = 3
    assert rules(agrees(made, given(made), exact=True), LayerType.ADD) == ["onnx-float"]


@pytest.mark.parametrize("integers", BOTH)
def test_conversions_move_before_operators_that_move_elements(integers: tuple[bool, bool]) -> None:
    nodes = [
        node("AveragePool", "d", "a", kernel_shape=[2, 2], strides=[2, 2]),
        node("MaxPool", "a", "m", kernel_shape=[2, 2]),
        node("Reshape", "m shape", "g"),
    ]
    made = graph(nodes, integers=integers, constants={"shape": np.array([1, -1])})
    network = agrees(made, given(made), exact=True)
    assert rules(network, LayerType.AVERAGE_POOL_2D) == ["onnx-columns" if integers[0] else "onnx-uint8"]
    (pool,) = (layer for layer in network.layers if layer.type is LayerType.MAX_POOL_2D)
    assert not network.info(pool.outputs[0]).dtype.is_float


@pytest.mark.parametrize("op", ["Conv", "Gemm"])
@pytest.mark.parametrize("bias", [True, False])
def test_float32_weights_between_conversions_are_quantised(op: str, *, bias: bool) -> None:
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(4, 8, 3, 3) if op == "Conv" else (6, 2048)).astype(np.float32)
    constants = {
        "v": weights,
        "b": generator.normal(size=weights.shape[0]).astype(np.float32),
        "s2": np.float32(0.4 if op == "Conv" else 4),
        "shape": np.array([1, -1]),
    }
    names = " v b" if bias else " v"
    nodes = [node("Conv", f"d{names}", "g")]
    if op == "Gemm":
        nodes = [node("Reshape", "d shape", "f"), node("Gemm", f"f{names}", "g", transB=1)]
    made = graph(nodes, integers=(False, False), constants=constants)
    network = agrees(made, given(made), exact=True)
    layer = LayerType.CONV_2D if op == "Conv" else LayerType.FULLY_CONNECTED
    assert rules(network, layer) == ["onnx"]
    written = formats.load(made.SerializeToString(), onnx_arithmetic="as-written")
    assert [written.info(name).dtype.is_float for each in written.layers if each.type is layer for name in each.outputs]
    assert rules(written, layer) == ["tflm"]


def test_weights_stay_float32_beside_a_bias_that_no_integer_holds() -> None:
    weights = np.random.default_rng(0).normal(size=(4, 8, 3, 3)).astype(np.float32)
    bias = np.array([0, 1, 2, np.inf], np.float32)
    made = graph([node("Conv", "d v b", "g")], integers=(False, False), constants={"v": weights, "b": bias})
    assert rules(load(made), LayerType.CONV_2D) == ["tflm"]


@pytest.mark.parametrize("integers", BOTH)
@pytest.mark.parametrize("op", ["Add", "Mul", "AveragePool", "GlobalAveragePool", "Softmax"])
def test_arithmetic_as_written_equals_onnxruntime_without_optimiser(op: str, integers: tuple[bool, bool]) -> None:
    attributes: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]} if op == "AveragePool" else {}
    made = graph([node(op, "d e" if op in {"Add", "Mul"} else "d", "g", **attributes)], integers=integers, second=True)
    feeds = given(made)
    network = formats.load(made.SerializeToString(), onnx_arithmetic="as-written")
    assert_array_equal(network.run(feeds)[0], onnxruntime_outputs(made, feeds, fused=False)[0])
    types = (LayerType.ADD, LayerType.MUL, LayerType.AVERAGE_POOL_2D, LayerType.MEAN, LayerType.SOFTMAX)
    assert rules(network, *types) == ["onnx-columns" if op == "AveragePool" else "onnx-float"]


def test_operators_that_name_scales_are_fused_in_either_arithmetic() -> None:
    linear = node("QLinearMul", "q s1 z1 k ks kz s2 z2", "y", "com.microsoft")
    made = model([linear], {"q": ("int8", SHAPE), "k": ("int8", SHAPE)}, ["y"], POINTS)
    for arithmetic in Arithmetic:
        network = formats.load(made.SerializeToString(), onnx_arithmetic=arithmetic)
        assert rules(network, LayerType.MUL) == ["onnx"]


def test_the_option() -> None:
    assert tuple(Arithmetic) == ARITHMETICS
    made = graph([node("Mul", "d d", "g")]).SerializeToString()
    with pytest.raises(FerruleError, match="there is no arithmetic 'fast'") as caught:
        formats.load(made, onnx_arithmetic="fast")
    assert "as-written, optimised" in str(caught.value.hint)
    assert rules(formats.load(made), LayerType.MUL) == rules(
        formats.load(made, onnx_arithmetic="optimised"), LayerType.MUL
    )


@pytest.mark.parametrize("first", every(10, range(0, 1000, 25)))
def test_random_graphs_are_fused_as_said_and_equal_onnxruntime(first: int) -> None:
    import onnx_fusion  # which needs onnxruntime

    tally = onnx_fusion.Tally()
    for seed in range(first, first + 25):
        onnx_fusion.compare(seed, tally)
    assert not tally.wrong
    assert not tally.differing
    assert len(tally.transposed) <= 2
    assert tally.refused < 10
    assert len(Counter(kind for _, kind in tally.operators.elements())) == 3
