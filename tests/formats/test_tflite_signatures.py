# SPDX-License-Identifier: Apache-2.0
"""Files with several signatures, of which one is chosen by its name."""

from __future__ import annotations

import pytest
from flatbuffer_tree import write
from needs import require_module
from signature_models import two

import ferrule
from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.formats import to_tflite


def test_a_subgraph_without_a_signature_never_runs() -> None:
    network = ferrule.load(write(two({})))
    assert len(network.layers) == 1
    assert network.signatures == ()


def test_one_of_several_signatures_is_chosen_by_name() -> None:
    data = write(two({"first": 0, "second": 1}))
    with pytest.raises(UnsupportedError, match="has 2 signatures, 'first', 'second', and the first of 2") as caught:
        ferrule.load(data)
    assert caught.value.hint == "choose it: signature=NAME"
    for name, layers in (("first", 1), ("second", 2)):
        network = ferrule.load(data, signature=name)
        assert len(network.layers) == layers
        assert network.signatures == (name, *({"first", "second"} - {name}))


def test_signatures_of_one_subgraph_need_no_choice() -> None:
    assert ferrule.load(write(two({"first": 0, "second": 0}))).signatures == ("first", "second")
    assert ferrule.load(write(two({"first": 0, "second": 0})), signature="second").signatures == ("second", "first")


def test_names_that_are_wrong() -> None:
    with pytest.raises(FerruleError, match="model: there is no signature 'secnd'") as caught:
        ferrule.load(write(two({"first": 0, "second": 1})), signature="secnd")
    assert caught.value.hint == "did you mean second?"
    with pytest.raises(FerruleError, match="the file has no signatures, and 'first' is wanted"):
        ferrule.load(write(two({})), signature="first")
    model = two({"first": 0, "second": 1})
    model["SignatureDefs"][1]["SignatureKey"] = "first"
    with pytest.raises(ModelError, match="2 subgraphs have the signature 'first', expected one"):
        ferrule.load(write(model), signature="first")


def test_a_signature_of_a_subgraph_that_does_not_exist_is_none() -> None:
    data = write(two({"first": 0, "second": 7}))
    assert ferrule.load(data).signatures == ("first",)
    with pytest.raises(FerruleError, match="there is no signature 'second'"):
        ferrule.load(data, signature="second")


def test_a_written_file_has_the_signature_of_its_network() -> None:
    network = ferrule.load(write(two({"first": 0, "second": 1})), signature="second")
    assert ferrule.load(to_tflite(network)).signatures == ("second",)
    built = ferrule.Network("built")
    built.add_input(ferrule.TensorInfo("x", (1, 4), ferrule.DataType.FLOAT32))
    built.set_outputs([built.add_relu_layer("x", name="y")])
    data = to_tflite(built)
    assert ferrule.load(data).signatures == ("serving_default",)
    require_module("ai_edge_litert", "pip install ai-edge-litert")
    from ai_edge_litert.interpreter import Interpreter

    signatures = Interpreter(model_content=data).get_signature_list()
    assert signatures == {"serving_default": {"inputs": ["x"], "outputs": ["y"]}}
