# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite models whose layers round as a named program does."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from needs import require_module
from numpy.testing import assert_array_equal

from ferrule import formats
from ferrule.errors import FerruleError
from ferrule.formats.tflite.versions import VERSIONS, rule_of
from ferrule.graph import DataType, Quantization, Rounding, TensorInfo
from ferrule.network import Network

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from rounding_rules import Draw, litert, weighted

LITERT = "litert-2.3"


@pytest.mark.parametrize("operator", sorted(VERSIONS[LITERT]))
def test_litert_rounds_layers_with_weights_once(operator: str) -> None:
    require_module("ai_edge_litert", "pip install ai-edge-litert")
    for seed in range(3):
        case = weighted(Draw(seed, DataType.INT8), operator)
        model = formats.to_tflite(case.network)
        network = formats.load(model, rounding=LITERT)
        assert [layer.rounding for layer in network.layers] == [Rounding.ONNX]
        assert_array_equal(network.run(case.inputs)[0], litert(model, case.inputs, "AUTO"))
        assert formats.load(model, rounding="tflm").layers == formats.load(model).layers


def test_int16_keeps_the_rule() -> None:
    model = formats.to_tflite(weighted(Draw(0, DataType.INT16), "CONV_2D").network)
    assert formats.load(model, rounding=LITERT).layers == formats.load(model).layers


def test_weights_from_run_time_keep_the_rule() -> None:
    network = Network("constant")
    quantization = Quantization.of(0.5)
    source = network.add_input(TensorInfo("x", (1, 4), DataType.INT8, quantization=quantization))
    weights = np.ones((3, 4), np.int8)
    network.add_fully_connected_layer(source, weights, weights_quantization=quantization, quantization=quantization)
    (layer,) = network.layers
    assert rule_of(LITERT, network, layer) is Rounding.ONNX
    assert rule_of(LITERT, network, replace(layer, inputs=("x", "x"))) is Rounding.TFLM


def test_an_unknown_version_is_refused() -> None:
    model = formats.to_tflite(weighted(Draw(0, DataType.INT8), "CONV_2D").network)
    with pytest.raises(FerruleError, match=r"no rounding 'litert-1', expected tflm or litert-2\.3"):
        formats.load(model, rounding="litert-1")


def test_onnx_models_state_their_rule(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x0a")
    with pytest.raises(FerruleError, match=r"'litert-2\.3' is one for TensorFlow Lite models") as caught:
        formats.load(path, rounding=LITERT)
    assert "leave the rounding out" in str(caught.value.hint)
