# SPDX-License-Identifier: Apache-2.0
"""Dynamic quantisation, which float32 layers compute with the same integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from onnx_models import drawn, load, model, node
from oracle import onnxruntime_outputs

from ferrule import formats
from ferrule.errors import UnsupportedError

QUANTISE = node("DynamicQuantizeLinear", "x", "q s z")


def floats(*shape: int) -> Any:  # noqa: ANN401
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def integers(*shape: int, dtype: str = "int8") -> Any:  # noqa: ANN401
    limits = np.iinfo(dtype)
    return np.random.default_rng(3).integers(limits.min, limits.max + 1, shape).astype(dtype)


def product(op: str, shape: list[int], weights: Any, point: Any = None, **attributes: Any) -> Any:  # noqa: ANN401
    names = "q w z p" if point is not None else "q w z"
    nodes = [QUANTISE, node(op, names, "i", **attributes), node("Cast", "i", "f", to=1), node("Mul", "f s", "y")]
    constants = {"w": weights, **({} if point is None else {"p": point})}
    return model(nodes, {"x": ("float32", shape)}, ["y"], constants)


def check(made: Any, x: Any) -> None:  # noqa: ANN401
    network = load(made)
    found, expected = network.run([x])[0], onnxruntime_outputs(made, {"x": x})[0]
    assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    assert network.notes


PRODUCTS = [
    product("MatMulInteger", [3, 8], integers(8, 5), np.int8(3)),
    product("MatMulInteger", [2, 3, 8], integers(8, 5, dtype="uint8"), np.uint8(128)),
    product("MatMulInteger", [3, 8], integers(8, 5)),
    product("ConvInteger", [1, 2, 7, 6], integers(3, 2, 3, 3), np.int8(-5), pads=[1, 1, 0, 1], strides=[2, 1]),
    product("ConvInteger", [1, 2, 7, 6], integers(3, 2, 3, 3, dtype="uint8"), np.uint8(7)),
    product("ConvInteger", [1, 4, 7, 6], integers(4, 1, 3, 3), group=4),
]


@pytest.mark.parametrize("number", range(len(PRODUCTS)))
def test_products_equal_those_of_onnxruntime(number: int) -> None:
    made = PRODUCTS[number]
    for seed, factor in enumerate((1, 100, 1e-3)):
        (x,) = drawn(load(made), seed).values()
        check(made, x * np.float32(factor))
        check(made, np.abs(x))
        check(made, -np.abs(x))
    check(made, np.zeros_like(x))


def test_models_of_quantize_dynamic(tmp_path: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    nodes = [node("MatMul", "x w", "a"), node("Add", "a b", "c"), node("Relu", "c", "d"), node("MatMul", "d v", "y")]
    constants = {"w": floats(8, 16), "b": floats(16), "v": floats(16, 4)}
    made = model(nodes, {"x": ("float32", [3, 8])}, ["y"], constants, opset=17)
    onnx.save(onnx.shape_inference.infer_shapes(made), tmp_path / "float.onnx")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "dynamic.onnx", weight_type=QuantType.QInt8)
    network = formats.load(tmp_path / "dynamic.onnx")
    assert network.notes == (
        "dynamic quantisation: 2 DynamicQuantizeLinear, 2 MatMulInteger computed in float32, with weights of float32",
    )
    x = floats(3, 8)
    expected = onnxruntime_outputs(onnx.load(tmp_path / "dynamic.onnx"), {"x": x})[0]
    assert_allclose(network.run([x])[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("nodes", "outputs", "constants"),
    [
        ([], ["q"], {}),
        ([node("Cast", "z", "y", to=1)], ["y"], {}),
        ([node("MatMulInteger", "q w z", "y")], ["y"], {"w": integers(4, 2)}),
        ([node("MatMulInteger", "q w z", "i"), node("Cast", "i", "y", to=7)], ["y"], {"w": integers(4, 2)}),
        ([node("MatMulInteger", "q w", "i"), node("Cast", "i", "y", to=1)], ["y"], {"w": integers(4, 2)}),
        ([node("MatMulInteger", "q q z z", "i"), node("Cast", "i", "y", to=1)], ["y"], {}),
        (
            [node("MatMulInteger", "q w z p", "i"), node("Cast", "i", "y", to=1)],
            ["y"],
            {"w": integers(4, 2), "p": np.zeros(3, np.int8)},
        ),
    ],
)
def test_other_uses_of_the_integers_are_refused(nodes: Any, outputs: Any, constants: Any) -> None:  # noqa: ANN401
    made = model([QUANTISE, *nodes], {"x": ("float32", [4, 4])}, outputs, constants)
    with pytest.raises(UnsupportedError, match="quantises its input anew in every run") as caught:
        load(made)
    assert "quantize_static" in str(caught.value.hint) + "".join(str(each.hint) for each in caught.value.problems)
