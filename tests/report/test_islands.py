# SPDX-License-Identifier: Apache-2.0
"""Layers of float32 among layers of integers, as `ferrule inspect` lists them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import small_networks
from float_networks import FLOAT32, random
from needs import require_module
from page_reader import Page

import ferrule
from ferrule.graph import DataType, Layer, LayerType, Quantization
from ferrule.operators.elementwise.quantize import DequantizeDescriptor, QuantizeDescriptor
from ferrule.report.html import html_page
from ferrule.report.inspection import Inspection
from ferrule.report.reading import read_document
from ferrule.report.run_document import ReportDocument
from ferrule.report.writers.markdown import markdown_text

SIZE = 1000


def mixed(*between: LayerType, second: float | None = None) -> ferrule.Network:
    """Return int8 data, functions of float32 between conversions, and int8 data; `second` is another scale."""
    network = ferrule.Network("mixed")
    data = ferrule.TensorInfo("x", (1, SIZE), DataType.INT8, Quantization.of(0.05, 3))
    network.add_input(data)
    relu = network.add_relu_layer("x", name="relu")
    real = ferrule.TensorInfo("real", (1, SIZE), FLOAT32)
    network.add_layer(Layer("back", LayerType.DEQUANTIZE, DequantizeDescriptor(), (relu,), ("real",)), [real])
    name = network.add_softmax_layer("real", name="shares")
    for index, type_ in enumerate(between):
        name = network.add_elementwise_unary_layer(type_, name, name=f"f{index}")
    outputs = []
    for index, scale in enumerate([1 / 128, second][: 1 if second is None else 2]):
        assert scale is not None
        info = ferrule.TensorInfo(f"y{index}", (1, SIZE), DataType.INT8, Quantization.of(scale))
        network.add_layer(Layer(f"q{index}", LayerType.QUANTIZE, QuantizeDescriptor(), (name,), (info.name,)), [info])
        outputs.append(info.name)
    network.set_outputs(outputs)
    return network


def test_an_island_has_its_costs_and_its_reasons() -> None:
    inspection = ferrule.inspect(mixed(LayerType.SIN))
    (island,) = inspection.islands
    assert island.layers == ("shares", "f0")
    assert island.place == "between integers"
    assert island.ram_bytes == 2 * 4 * SIZE
    assert inspection.planned is not None
    layers = {each.layer: each.cycles for each in inspection.planned.layers}
    assert island.cycles == sum(layers[name] for name in ("back", "shares", "f0", "q0")) > 0
    assert island.milliseconds is not None
    assert abs(island.milliseconds - 1e3 * island.cycles / inspection.planned.clock_hz) < 1e-6
    assert island.reasons == ("SIN has no integer kernel", "shares: nothing quantises its result 'shares'")
    assert "of all but SIN" in island.advice


def test_results_with_two_scales_and_what_helps() -> None:
    (island,) = ferrule.inspect(mixed(second=1 / 64)).islands
    assert island.reasons == ("shares: its result 'shares' is quantised with 2 scales",)
    assert island.advice.startswith("quantise the float32 model")


def test_networks_of_one_kind_have_no_islands() -> None:
    assert ferrule.inspect(small_networks.dense()).islands == ()
    network = ferrule.Network("reals")
    network.add_input(ferrule.TensorInfo("x", (1, 8), FLOAT32))
    network.set_outputs([network.add_fully_connected_layer("x", random(4, 8), name="y")])
    assert ferrule.inspect(network).islands == ()


def test_all_forms_of_the_report_have_them(tmp_path: Path) -> None:
    inspection = ferrule.inspect(mixed(LayerType.SIN))
    path = tmp_path / "inspection.json"
    path.write_text(inspection.to_json(), encoding="utf-8")
    found = read_document(path)
    assert isinstance(found, Inspection)
    assert found.islands == inspection.islands
    assert "SIN has no integer kernel" in html_page(inspection)
    assert "SIN has no integer kernel" in markdown_text([inspection])


def test_quantize_leaves_what_it_says(tmp_path: Path) -> None:
    """The layers that `quantize` lists are those that `inspect` finds."""
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")
    network = ferrule.Network("waves")
    network.add_input(ferrule.TensorInfo("x", (1, 16), FLOAT32))
    dense = network.add_fully_connected_layer("x", random(16, 16), random(16), name="dense")
    shares = network.add_softmax_layer(dense, name="shares")
    sine = network.add_elementwise_unary_layer(LayerType.SIN, dense, name="sine")
    both = network.add_mul_layer(sine, shares, name="both")
    network.set_outputs([network.add_fully_connected_layer(both, random(4, 16), random(4), name="y")])
    np.save(tmp_path / "c.npy", random(12, 16, seed=7))
    done = ferrule.quantize(network, str(tmp_path / "c.npy"), scheme="int16")
    (island,) = ferrule.inspect(done.network).islands
    assert [str(done.network.layer(name).type) for name in island.layers] == [each.type for each in done.floats]


def test_a_run_lists_them_as_an_inspection_does(tmp_path: Path) -> None:
    network = mixed(LayerType.SIN)
    report = ferrule.compile(network, board="mps2-an386").run()
    assert report.islands == ferrule.inspect(network, board="mps2-an386").islands != ()
    path = tmp_path / "run.json"
    path.write_text(report.to_json(), encoding="utf-8")
    found = read_document(path)
    assert isinstance(found, ReportDocument)
    assert found.islands == report.islands
    words = "in 2 layers between integers in float32, from 'shares'; `ferrule quantize` of the float32 model makes"
    for text in (html_page(found), markdown_text([found])):
        for each in ("Float islands", "SIN has no integer kernel", "between integers"):
            assert each in text
    assert words in Page(html_page(found)).text


def test_a_run_of_integers_alone_has_none() -> None:
    assert ferrule.compile(small_networks.dense(), board="mps2-an386").run().islands == ()
