# SPDX-License-Identifier: Apache-2.0
"""The precision of layers."""

from __future__ import annotations

import pytest
from float_networks import convolutions

from ferrule.errors import FerruleError
from ferrule.formats import load, to_tflite
from ferrule.quantization.precision import Keep, Precision, carried_over, precisions


def kept(*texts: str) -> dict[str, str]:
    found = precisions(convolutions(), Precision.INT8, [Keep.parse(text) for text in texts])
    return {name: str(precision) for name, precision in found.items() if precision is not Precision.INT8}


def test_layers_by_name_kind_and_pattern() -> None:
    assert kept() == {}
    assert kept("first") == {"first": "float"}
    assert kept("first=int16", "dense") == {"first": "int16", "dense": "float"}
    assert kept("CONV_2D") == kept("conv_2d") == {"first": "float", "second": "float"}
    assert kept("*e*n*=int16") == {"second": "int16", "mean": "int16", "dense": "int16"}


def test_the_last_rule_for_a_layer_counts() -> None:
    assert kept("CONV_2D=int16", "first=float") == {"first": "float", "second": "int16"}
    assert kept("first=float", "CONV_2D=int16") == {"first": "int16", "second": "int16"}
    assert kept("first", "first=int8") == {}


def test_rules_that_are_wrong() -> None:
    with pytest.raises(FerruleError, match="there is no layer 'frist' in 'convolutions'") as caught:
        kept("frist")
    assert caught.value.hint == "did you mean first?"
    with pytest.raises(FerruleError, match="keep is 'first=int4', expected NAME, or NAME=PRECISION"):
        kept("first=int4")


def test_precisions_of_the_same_network_from_a_file() -> None:
    network = convolutions()
    other = load(to_tflite(network))
    given = precisions(network, Precision.INT8, [Keep.parse("leaky=int16"), Keep.parse("y")])
    found = carried_over(network, given, other)
    assert [str(found[layer.name]) for layer in other.layers] == ["int8", "int16", "int8", "int8", "int8", "float"]


def test_a_layer_of_the_file_alone_is_as_its_reader() -> None:
    network = convolutions()
    file = load(to_tflite(network))
    found = carried_over(network, {**dict.fromkeys((each.name for each in network.layers), Precision.INT16)}, file)
    assert set(found.values()) == {Precision.INT16}
