# SPDX-License-Identifier: Apache-2.0
"""The description of a network by `ferrule inspect`."""

from __future__ import annotations

import io
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from golden import Golden
from small_networks import dense, float_dense, two_by_two

import ferrule
from ferrule.graph import DataType, GraphEditor, Quantization, Rounding, TensorInfo
from ferrule.network import Network
from ferrule.report.console import print_report
from ferrule.report.inspecting import inspect_network
from ferrule.report.inspection import Inspection


def text(inspection: Inspection) -> str:
    from rich.console import Console

    stream = io.StringIO()
    print_report(inspection, Console(file=stream, width=140))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def test_a_network_as_data() -> None:
    inspection = ferrule.inspect(dense(batch=2))
    assert (inspection.inputs, inspection.outputs) == (("x",), ("y",))
    assert inspection.macs == 2 * 4 * 6
    assert inspection.constant_bytes == 4 * 6 + 4 * 4
    assert inspection.arena is not None
    assert inspection.arena.certificate == "optimal"
    assert inspection.arena.size_bytes == inspection.arena.bound_bytes
    assert 2 * 6 <= inspection.arena.activation_bytes <= inspection.arena.bound_bytes
    (layer,) = inspection.layers
    assert (layer.type, layer.inputs[0], layer.outputs, layer.macs) == ("FULLY_CONNECTED", "x", ("y",), 48)
    x = inspection.tensor("x")
    assert (x.shape, x.dtype, x.zero_points, x.constant) == ((2, 6), "int8", (3,), False)
    assert x.scales == pytest.approx((0.05,))
    assert inspection.tensor(layer.inputs[1]).constant
    with pytest.raises(KeyError):
        inspection.tensor("nothing")


def test_json_can_be_read_again() -> None:
    inspection = ferrule.inspect(two_by_two())
    assert msgspec.json.decode(msgspec.json.encode(inspection), type=Inspection) == inspection


def test_a_rule_of_rounding_is_shown() -> None:
    network = dense(batch=2)
    editor = GraphEditor(network)
    editor.replace_layer(replace(network.layers[0], rounding=Rounding.ONNX))
    graph = editor.finish()
    (layer,) = inspect_network(graph).layers
    assert layer.rounding == "onnx"
    assert "rounding=onnx" in text(inspect_network(graph))
    assert repr(graph).endswith(" to int8[2, 4], rounding by onnx>")
    assert inspect_network(network).layers[0].rounding == "tflm"
    assert "rounding" not in text(inspect_network(network)) + repr(network)


def test_a_long_list_is_shown_by_its_first_values() -> None:
    network = Network("net")
    x = network.add_input(TensorInfo("x", (2, 40), DataType.INT8, quantization=Quantization.of(0.05)))
    factors, summands = np.ones(40, np.float32), np.zeros(40, np.float32)
    y = network.add_layer_normalization_layer(x, factors, summands, quantization=Quantization.of(0.02))
    network.set_outputs([y])
    (layer,) = inspect_network(network).layers
    assert layer.parameters["gains"].count(",") == 39
    assert layer.parameters["shift"] in layer.settings
    assert "... 40 values), offsets=(" in layer.settings
    assert len(layer.settings) < 220


def test_text(golden: Golden) -> None:
    golden.check("two_by_two.txt", text(ferrule.inspect(two_by_two(), division=False)))
    golden.check("float_dense.txt", text(ferrule.inspect(float_dense(), division=False)))
