# SPDX-License-Identifier: Apache-2.0
"""Float models that become integers."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import small_networks
from float_networks import FLOAT32, convolutions, random, samples
from gate import some_of
from needs import require_module

import ferrule
from ferrule.errors import FerruleError, InputError, MissingToolError
from ferrule.evaluation.data import DataSettings, open_data
from ferrule.graph import LayerType
from ferrule.quantization import QuantizedModel, library
from ferrule.report.writers import WRITERS


@pytest.fixture(autouse=True)
def quantizer() -> None:
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")


def types(done: QuantizedModel) -> list[str]:
    """Return the type of each layer's output."""
    return [f"{layer.type} {done.network.info(layer.outputs[0]).dtype}" for layer in done.network.layers]


@pytest.mark.parametrize("scheme", ["int8", "int16"])
def test_all_layers_become_integers(tmp_path: Path, scheme: str) -> None:
    network = convolutions()
    done = ferrule.quantize(network, str(samples(network, tmp_path)), scheme=scheme)
    assert types(done) == [
        f"{name} {scheme}" for name in ("CONV_2D", "LEAKY_RELU", "CONV_2D", "MEAN", "FULLY_CONNECTED", "SOFTMAX")
    ]
    assert done.floats == ()
    assert [info.name for info in (*done.network.inputs, *done.network.outputs)] == ["x", "y"]
    assert [each.name for each in done.losses] == ["x", "first", "leaky", "second", "mean", "dense", "y"]
    given = random(1, 8, 8, 3, seed=9)
    wanted, found = network.run([given])[0], done.network.run([given], real=True)[0]
    assert np.max(np.abs(wanted - found)) < 0.05
    assert ferrule.load(done.tflite).run([given], real=True)[0].tolist() == found.tolist()


def test_labels_give_the_metrics_of_both_models(tmp_path: Path) -> None:
    network = convolutions()
    data = str(samples(network, tmp_path))
    np.save(tmp_path / "y.npy", np.arange(12) % 4)
    done = ferrule.quantize(network, data, str(tmp_path / "y.npy"))
    assert done.evaluation is not None
    assert done.evaluation.float_model is not None
    alone = ferrule.evaluate(done.network, data, str(tmp_path / "y.npy"), float_model=done.float_network)
    assert done.evaluation.metrics == alone.metrics
    assert alone.float_model is not None
    assert done.evaluation.float_model.metrics == alone.float_model.metrics
    ends = done.float_network.inputs, done.float_network.outputs
    opened = open_data(data, str(tmp_path / "y.npy"), *ends, DataSettings(), None)
    same = ferrule.quantize(network, opened)
    assert same.evaluation is not None
    assert same.evaluation.metrics == alone.metrics
    assert ferrule.quantize(network, data).evaluation is None


def test_int16_loses_less_than_int8(tmp_path: Path) -> None:
    network = convolutions()
    data = str(samples(network, tmp_path))
    narrow, wide = (ferrule.quantize(network, data, scheme=scheme).losses for scheme in ("int8", "int16"))
    own = {each.name: each.own_db or 0.0 for each in wide}
    assert own["leaky"] > 80  # a layer without weights
    assert [each.name for each in narrow if (each.own_db or 0.0) > own[each.name]] == []


def test_the_rule_of_ranges_is_the_one_that_loses_least(tmp_path: Path) -> None:
    network, data = convolutions(), random(100, 8, 8, 3, seed=5)
    data[7, 0, 0] *= 400  # with which all ranges are far wider than what the other samples need
    np.save(tmp_path / "outlier.npy", data)
    done = ferrule.quantize(network, str(tmp_path / "outlier.npy"))
    ratios = {each.rule: each.sqnr_db or 0.0 for each in done.tried}
    assert done.ranges == max(ratios, key=lambda rule: ratios[rule]) != "minmax"
    assert ratios[done.ranges] > ratios["minmax"] + 0.5
    named = ferrule.quantize(network, str(tmp_path / "outlier.npy"), ranges=done.ranges)
    assert named.tried == ()
    assert named.tflite == done.tflite
    assert f"by {done.ranges}, chosen from 4 rules" in WRITERS["markdown"]([done.document])


def test_minmax_unless_another_rule_is_clearly_better(tmp_path: Path) -> None:
    data = str(samples(convolutions(), tmp_path))
    done = ferrule.quantize(convolutions(), data)
    best = min(each.noise for each in done.tried)
    first = done.tried[0]
    assert first.rule == "minmax"
    assert (done.ranges == "minmax") == (first.noise <= 1.06 * best)


@pytest.mark.parametrize("scheme", ["int8", "int16"])
def test_a_convolution_without_a_bias(tmp_path: Path, scheme: str) -> None:
    network = ferrule.Network("unbiased")
    network.add_input(ferrule.TensorInfo("x", (1, 4, 4, 2), FLOAT32))
    network.set_outputs([network.add_conv2d_layer("x", random(3, 3, 3, 2), name="y")])
    done = ferrule.quantize(network, str(samples(network, tmp_path)), scheme=scheme)
    assert done.floats == ()
    assert (done.losses[-1].sqnr_db or 0.0) > 30


def test_more_weights_than_the_library_writes_into_a_flatbuffer(tmp_path: Path) -> None:
    """From 256 KiB on, it writes them behind."""
    network = ferrule.Network("wide")
    network.add_input(ferrule.TensorInfo("x", (1, 600), FLOAT32))
    network.set_outputs([network.add_fully_connected_layer("x", random(512, 600), random(512), name="y")])
    done = ferrule.quantize(network, str(samples(network, tmp_path)))
    assert types(done) == ["FULLY_CONNECTED int8"]


def test_equal_weights_of_layers_with_channels_on_different_axes(tmp_path: Path) -> None:
    network, weights = ferrule.Network("equal"), random(72)
    network.add_input(ferrule.TensorInfo("x", (1, 8, 8, 8), FLOAT32))
    first = network.add_depthwise_conv2d_layer("x", weights.reshape(1, 3, 3, 8), random(8), name="depthwise")
    mean = network.add_mean_layer(first, axes=(3,), keep_dims=True, name="mean")
    network.set_outputs([network.add_conv2d_layer(mean, weights.reshape(8, 3, 3, 1), random(8), name="convolution")])
    done = ferrule.quantize(network, str(samples(network, tmp_path)), ranges="minmax")
    assert done.floats == ()
    axes = [
        quantization.axis
        for layer in done.network.layers
        if layer.type is not LayerType.MEAN
        and (quantization := done.network.info(layer.inputs[1] or "").quantization) is not None
    ]
    assert axes == [3, 0]
    assert min(each.sqnr_db or 0.0 for each in done.losses) > 30


def test_layers_that_are_kept(tmp_path: Path) -> None:
    network = convolutions()
    data = str(samples(network, tmp_path))
    done = ferrule.quantize(network, data, keep=["second=int16", "SOFTMAX"])
    assert types(done) == [
        *("CONV_2D int8", "LEAKY_RELU int8", "QUANTIZE int16", "CONV_2D int16", "QUANTIZE int8", "MEAN int8"),
        *("FULLY_CONNECTED int8", "DEQUANTIZE float32", "SOFTMAX float32", "QUANTIZE int8"),
    ]
    assert [(each.name, each.type, each.reason) for each in done.floats] == [("y", "SOFTMAX", "it is kept in float32")]


def test_inputs_and_outputs_in_float(tmp_path: Path) -> None:
    network = convolutions()
    done = ferrule.quantize(network, str(samples(network, tmp_path)), io="float")
    assert [str(info.dtype) for info in (*done.network.inputs, *done.network.outputs)] == ["float32", "float32"]
    assert [info.name for info in (*done.network.inputs, *done.network.outputs)] == ["x", "y"]
    assert {layer.type for layer in done.network.layers} >= {LayerType.QUANTIZE, LayerType.DEQUANTIZE}
    assert done.floats == ()


@pytest.mark.parametrize("ranges", ["minmax", "mse", "percentile=99"])
def test_the_order_of_the_samples_does_not_matter(tmp_path: Path, ranges: str) -> None:
    network = convolutions()
    path = samples(network, tmp_path, 40)
    first = ferrule.quantize(network, str(path), ranges=ranges, compared=0).tflite
    np.save(path, np.load(path)[::-1])
    assert ferrule.quantize(network, str(path), ranges=ranges, compared=0).tflite == first
    np.save(path, np.load(path)[:20])
    assert ferrule.quantize(network, str(path), ranges=ranges, compared=0).tflite != first


def test_our_own_integers_equal_the_interpreter(tmp_path: Path) -> None:
    """Layers that the library leaves in float32."""
    network = ferrule.Network("own")
    network.add_input(ferrule.TensorInfo("x", (1, 4, 4, 8), FLOAT32))
    prelu = network.add_prelu_layer("x", random(1, 1, 8), name="prelu")
    least = network.add_minimum_layer(prelu, "x", name="least")
    first = network.add_conv2d_layer(least, random(8, 1, 1, 8), random(8), name="conv")
    network.set_outputs([network.add_leaky_relu_layer(first, alpha=0.2, name="y")])
    done = ferrule.quantize(network, str(samples(network, tmp_path)))
    assert {name.rpartition(" ")[2] for name in types(done)} == {"int8"}
    given = random(1, 4, 4, 8, seed=11)
    assert np.max(np.abs(network.run([given])[0] - done.network.run([given], real=True)[0])) < 0.3


def test_what_has_no_integers_stays_in_float_by_name(tmp_path: Path) -> None:
    network = ferrule.Network("waves")
    network.add_input(ferrule.TensorInfo("x", (1, 16), FLOAT32))
    dense = network.add_fully_connected_layer("x", random(16, 16), random(16), name="dense")
    sine = network.add_elementwise_unary_layer(LayerType.SIN, dense, name="sine")
    network.set_outputs([network.add_fully_connected_layer(sine, random(4, 16), random(4), name="y")])
    done = ferrule.quantize(network, str(samples(network, tmp_path)))
    (left,) = done.floats
    assert (left.name, left.type, left.reason) == ("sine", "SIN", "SIN has no integer kernel")
    assert types(done)[1:3] == ["DEQUANTIZE float32", "SIN float32"]


def test_a_kernel_for_the_other_type_is_named(tmp_path: Path) -> None:
    """The library quantises DIV to int16, for which there is no kernel; the layer stays in float32."""
    network = ferrule.Network("quotient")
    network.add_input(ferrule.TensorInfo("x", (1, 16), FLOAT32))
    dense = network.add_fully_connected_layer("x", random(16, 16), random(16), name="dense")
    above = network.add_constant_array("c", np.abs(random(1, 16)) + np.float32(1))
    quotient = network.add_div_layer(
        above, network.add_add_layer(network.add_mul_layer(dense, dense), above), name="div"
    )
    network.set_outputs([network.add_fully_connected_layer(quotient, random(4, 16), random(4), name="y")])
    done = ferrule.quantize(network, str(samples(network, tmp_path)), scheme="int16")
    assert [(each.name, each.reason) for each in done.floats] == [
        ("div", "DIV has no kernel for int16, but one for int8")
    ]
    assert ferrule.quantize(network, str(samples(network, tmp_path))).floats == ()


@pytest.mark.parametrize("scheme", ["int8", "int16"])
@pytest.mark.parametrize("type_", [LayerType.HARD_SWISH, LayerType.SQUARE, LayerType.NEG, LayerType.ADD_N])
def test_layers_written_as_others_that_have_kernels(tmp_path: Path, scheme: str, type_: LayerType) -> None:
    network = ferrule.Network("rewritten")
    network.add_input(ferrule.TensorInfo("x", (1, 16), FLOAT32))
    first = network.add_fully_connected_layer("x", random(16, 16), random(16), name="first")
    if type_ is LayerType.HARD_SWISH:
        middle = network.add_hard_swish_layer(first, name="middle")
    elif type_ is LayerType.ADD_N:
        middle = network.add_add_n_layer([first, "x", first], name="middle")
    else:
        middle = network.add_elementwise_unary_layer(type_, first, name="middle")
    network.set_outputs([network.add_fully_connected_layer(middle, random(4, 16), random(4), name="y")])
    done = ferrule.quantize(network, str(samples(network, tmp_path, 40)), scheme=scheme)
    assert done.floats == ()
    (loss,) = (each for each in done.losses if each.name == "middle")
    assert loss.sqnr_db is not None
    assert loss.sqnr_db > {"int8": 30, "int16": 40}[scheme]


@pytest.mark.parametrize(
    ("value", "scheme"),
    some_of(
        product([0.0, 0.5, -3.25, 100.0], ["int8", "int16"]),
        [(0.0, "int8"), (0.5, "int16"), (-3.25, "int8"), (100.0, "int16")],
    ),
)
def test_padding_with_any_value(tmp_path: Path, scheme: str, value: float) -> None:
    network = ferrule.Network("padded")
    network.add_input(ferrule.TensorInfo("x", (1, 16), FLOAT32))
    first = network.add_fully_connected_layer("x", random(16, 16), random(16), name="first")
    padded = network.add_pad_v2_layer(first, ((0, 0), (2, 1)), value, name="padded")
    network.set_outputs([network.add_fully_connected_layer(padded, random(4, 19), random(4), name="y")])
    done = ferrule.quantize(network, str(samples(network, tmp_path)), scheme=scheme)
    assert done.floats == ()
    made: dict[str, object] = {}
    given = random(1, 16, seed=8)
    done.network.run(
        [given], real=True, observe=lambda layer, results: made.update(zip(layer.outputs, results, strict=True))
    )
    info = done.network.info("padded")
    edges = info.dequantize(np.asarray(made["padded"]))[0, [0, 1, -1]]
    assert np.max(np.abs(edges - value)) <= info.scale / 2


@pytest.mark.parametrize("scheme", ["int8", "int16"])
@pytest.mark.parametrize("io", [None, "float"])
def test_custom_operators_stay_in_float_between_integers(tmp_path: Path, scheme: str, io: str | None) -> None:
    """The library cannot prepare them; one reads the input, one writes an output, and two follow one another."""
    network = ferrule.Network("signals")
    network.add_input(ferrule.TensorInfo("x", (1, 18), FLOAT32))
    first = network.add_signal_irfft_layer("x", fft_length=16, name="first")
    dense = network.add_fully_connected_layer(first, random(16, 16), random(16), name="dense")
    second = network.add_signal_rfft_layer(dense, fft_length=16, name="second")
    third = network.add_signal_irfft_layer(second, fft_length=16, name="third")
    last = network.add_fully_connected_layer(third, random(4, 16), random(4), name="y")
    network.set_outputs([last, second, first])
    done = ferrule.quantize(network, str(samples(network, tmp_path, 40)), scheme=scheme, io=io)
    reason = "SIGNAL_{} of integers takes samples without a scale"
    assert [(each.name, each.reason) for each in done.floats] == [
        ("first", reason.format("IRFFT")),
        ("second", reason.format("RFFT")),
        ("third", reason.format("IRFFT")),
    ]
    ends = (*done.network.inputs, *done.network.outputs)
    assert [(info.name, str(info.dtype)) for info in ends] == [
        (name, (io and "float32") or scheme) for name in ("x", "y", "second", "first")
    ]
    given = random(1, 18, seed=3)
    for ours, exact in zip(done.network.run([given], real=True), network.run([given]), strict=True):
        assert np.sqrt(np.mean((ours - exact) ** 2)) < 0.06 * np.sqrt(np.mean(exact**2))
    assert (
        ferrule.load(done.tflite).run([given], real=True)[0].tolist()
        == done.network.run([given], real=True)[0].tolist()
    )


def test_several_inputs_and_outputs_are_integers(tmp_path: Path) -> None:
    network = ferrule.Network("several")
    for name in ("a", "b"):
        network.add_input(ferrule.TensorInfo(name, (1, 16), FLOAT32))
        np.save(tmp_path / f"{name}.npy", random(20, 16, seed=ord(name)))
    total = network.add_add_layer("a", "b", name="total")
    network.set_outputs([network.add_fully_connected_layer(total, random(4, 16), name="y"), total])
    done = ferrule.quantize(network, [f"{name}={tmp_path / name}.npy" for name in ("a", "b")])
    ends = (*done.network.inputs, *done.network.outputs)
    assert [(info.name, str(info.dtype)) for info in ends] == [(name, "int8") for name in ("a", "b", "y", "total")]
    assert types(done) == ["ADD int8", "FULLY_CONNECTED int8"]


def test_layers_that_need_one_quantisation_or_narrow_constants(tmp_path: Path) -> None:
    network = ferrule.Network("alike")
    network.add_input(ferrule.TensorInfo("x", (1, 4, 4, 8), FLOAT32))
    first = network.add_conv2d_layer("x", random(8, 1, 1, 8), random(8), name="first")
    prelu = network.add_prelu_layer(first, random(1, 1, 8), name="prelu")
    most = network.add_reduce_max_layer(prelu, axes=(1, 2), name="most")
    network.set_outputs([network.add_fully_connected_layer(most, random(4, 8), random(4), name="y")])
    data = str(samples(network, tmp_path))
    assert ferrule.quantize(network, data).floats == ()
    assert [each.name for each in ferrule.quantize(network, data, scheme="int16").floats] == ["most"]


def test_models_that_cannot_be_quantised(tmp_path: Path) -> None:
    quantised = small_networks.dense()
    with pytest.raises(FerruleError, match=r"'dense' is quantised already: tensor '.*' is int8 with scale") as caught:
        ferrule.quantize(quantised, "none.npy")
    assert caught.value.hint == "give the float32 model from before its quantisation"
    network = convolutions()
    for asked, message in (
        ({"scheme": "int4"}, "scheme is 'int4', expected int8 or int16"),
        ({"io": "int16"}, "io is 'int16', expected int8, as the scheme, or float"),
        ({"compared": -1}, "compared is -1, expected a number from 0 on"),
    ):
        with pytest.raises(FerruleError, match=message):
            ferrule.quantize(network, str(samples(network, tmp_path)), **asked)  # type: ignore[arg-type]


def test_data_that_is_wrong(tmp_path: Path) -> None:
    network = convolutions()
    path = samples(network, tmp_path)
    values = np.load(path)
    values[3, 1, 2, 0] = np.nan
    np.save(path, values)
    with pytest.raises(InputError, match=r"row 3 has a value that is not a number \(NaN\)"):
        ferrule.quantize(network, str(path))
    np.save(path, random(4, 8, 8, 2))
    with pytest.raises(InputError, match=r"shape"):
        ferrule.quantize(network, str(path))
    values[3, 1, 2, 0] = np.inf
    np.save(path, values)
    with pytest.raises(InputError, match="sample '3': input 'x' has the value inf, expected finite numbers"):
        ferrule.quantize(network, str(path))
    np.save(path, np.zeros((0, 8, 8, 3), np.float32))
    with pytest.raises(InputError):
        ferrule.quantize(network, str(path))
    np.save(path, np.full((4, 8, 8, 3), 3e38, np.float32))
    with pytest.raises(InputError, match="sample '0': the output of layer 'mean' MEAN has the value -inf"):
        ferrule.quantize(network, str(path))


def test_one_sample_and_constant_channels(tmp_path: Path) -> None:
    network = convolutions()
    path = samples(network, tmp_path, 1)
    assert ferrule.quantize(network, str(path)).data.samples == 1
    np.save(path, np.zeros((3, 8, 8, 3), np.float32))
    done = ferrule.quantize(network, str(path))
    assert done.network.inputs[0].scale == np.float32(1 / 255)
    assert done.losses[0].sqnr_db is None
    values = random(9, 8, 8, 3)
    values[..., 1] = 0.25  # the same in all samples
    np.save(path, values)
    done = ferrule.quantize(network, str(path))
    assert done.floats == ()
    assert (done.losses[-1].sqnr_db or 0.0) > 15


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match="ai-edge-quantizer is not installed") as caught:
        ferrule.quantize(convolutions(), str(tmp_path))
    assert caught.value.hint == "pip install 'ferrule[quantize]'"
