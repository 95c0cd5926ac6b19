# SPDX-License-Identifier: Apache-2.0
"""Functions of one tensor that an exporter writes as several operators, and quantize_static with conversions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from needs import require_module
from numpy.testing import assert_array_equal
from onnx_models import count, load, model, node
from oracle import onnxruntime_outputs

from ferrule.graph import LayerType
from ferrule.network.execution import run_graph
from ferrule.optimizer.simplify import simplify

FUNCTIONS = {
    "gelu": {"a": "Div h root", "b": "Erf a", "c": "Add b one", "d": "Mul h c", "y": "Mul d half"},
    "gelu by tanh": {
        "a": "Pow h three",
        "b": "Mul a small",
        "c": "Add h b",
        "d": "Mul c factor",
        "e": "Tanh d",
        "f": "Add e one",
        "g": "Mul h half",
        "y": "Mul g f",
    },
    "swish": {"a": "Sigmoid h", "y": "Mul h a"},
    "hard swish": {"a": "Add h three", "b": "Clip a zero six", "c": "Mul h b", "y": "Mul c sixth"},
}
"""The operators as which exporters write functions of `h`: the operator and its inputs, by output."""
NUMBERS = {
    "root": math.sqrt(2),
    "factor": math.sqrt(2 / math.pi),
    "small": 0.044715,
    "sixth": 1 / 6,
    "zero": 0,
    "half": 0.5,
    "one": 1,
    "three": 3,
    "six": 6,
}
SHAPE = (1, 6, 40)


def written(name: str, opset: int = 13) -> Any:  # noqa: ANN401
    """Return a float32 model with a function of the sum of two inputs, and a product behind it."""
    from onnx import helper

    nodes = [node("Add", "x z", "h")]
    for output, text in FUNCTIONS[name].items():
        op, _, inputs = text.partition(" ")
        nodes.append(node(op, inputs, output))
    constants = {name: np.array(value, np.float32) for name, value in NUMBERS.items()}
    made = model(nodes, dict.fromkeys(("x", "z"), ("float32", SHAPE)), ["y"], constants, opset)
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info("y", 1, SHAPE))
    return made


@pytest.mark.parametrize("form", ["qdq-s8", "qdq-u8", "qdq-s8-tensor", "qop-u8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_quantised_function_of_several_operators_is_one_table(name: str, form: str) -> None:
    """It has the bits of the layers, and the integers of onnxruntime."""
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")
    import onnx_storage

    def drawn(seed: int) -> dict[str, Any]:
        generator = np.random.default_rng(seed)
        return {each: generator.normal(0, 1.5, SHAPE).astype(np.float32) for each in ("x", "z")}

    samples = [drawn(seed) for seed in range(4)]
    form_ = (onnx_storage.FORMS | onnx_storage.SMALL_FORMS)[form]
    made = onnx_storage.quantised(written(name), samples, form_)
    network = load(made)
    simpler = simplify(network)
    assert [each.type for each in simpler.layers].count(LayerType.LOOKUP) == 1
    assert {each.type for each in simpler.layers} == {
        *(LayerType.QUANTIZE, LayerType.ADD, LayerType.LOOKUP, LayerType.DEQUANTIZE)
    }
    assert count(network, LayerType.MUL) >= 1
    feeds = drawn(9)
    (got,), (theirs,) = network.run(dict(feeds)), onnxruntime_outputs(made, feeds)
    assert_array_equal(run_graph(simpler, [feeds["x"], feeds["z"]])[0], got)
    assert_array_equal(got, theirs)
