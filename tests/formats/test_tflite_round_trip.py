# SPDX-License-Identifier: Apache-2.0
"""Files from the writer can be read by the reader and by other runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import oracle
import pytest
from compare import assert_arrays_equal, graph_differences
from numpy.testing import assert_array_equal
from sample_networks import one_layer, valid_samples, weights_and_bias

from ferrule import formats
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats import to_tflite
from ferrule.formats.tflite import elementwise, encoder
from ferrule.formats.tflite.emitter import Written
from ferrule.formats.tflite.operators import OPERATORS as ROWS
from ferrule.graph import (
    ALL_ROUNDINGS,
    Array,
    DataType,
    Descriptor,
    Graph,
    Layer,
    LayerType,
    Quantization,
    Rounding,
    Shape,
    SubgraphView,
    TensorInfo,
)
from ferrule.network import Network
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.interpreter import execute
from ferrule.operators.movement.pad import PadV2Descriptor
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.table import BEYOND_TFLITE, OPERATORS
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layers import ruled_cases

SAMPLES = valid_samples()
OTHER_RULES = sorted(ALL_ROUNDINGS - {Rounding.TFLM})
MODELS = (
    "ad01_fp32",
    "ad01_int8",
    "kws_ref_model",
    "pretrainedResnet",
    "pretrainedResnet_quant",
    "vww_96_float",
    "vww_96_int8",
)


def test_the_samples_have_every_operator() -> None:
    assert {graph.layers[0].type for graph in SAMPLES} == set(OPERATORS) - BEYOND_TFLITE


def test_an_elementwise_row_names_the_options_that_the_schema_has() -> None:
    import tflite

    schema = {name.lower() for name in dir(tflite.BuiltinOptions)}
    without = [type_ for type_, row in elementwise.ROWS.items() if not row.table]
    assert [type_ for type_ in without if f"{type_.replace('_', '').lower()}options" in schema] == []


@pytest.mark.parametrize("graph", SAMPLES, ids=lambda graph: graph.name)
def test_a_round_trip_keeps_the_graph(graph: Graph) -> None:
    data = to_tflite(graph)
    again = formats.load(data, name=graph.name)
    assert graph_differences(graph, again) == []
    assert to_tflite(again) == data


def test_the_larger_of_the_two_operator_codes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "_DEPRECATED_CODE_LIMIT", 0)
    graph = next(each for each in SAMPLES if each.layers[0].type is LayerType.CONV_2D)
    assert graph_differences(graph, formats.load(to_tflite(graph), name=graph.name)) == []


@pytest.mark.parametrize(
    ("weights", "version"),
    [((6, 3, 3, 4), 3), ((6, 3, 5, 4), 3), ((6, 3, 4, 2), 6), ((6, 4, 3, 2), 6)],
    ids=["one group", "wide window", "groups, window as wide as the channels", "groups"],
)
def test_the_version_of_a_convolution(weights: Shape, version: int) -> None:
    infos = [TensorInfo(name, shape, DataType.INT8) for name, shape in (("x", (1, 8, 8, 4)), ("w", weights))]
    output = TensorInfo("y", (1, 8, 8, 6), DataType.INT8)
    assert ROWS[LayerType.CONV_2D].version(Written(Conv2dDescriptor(padding=Padding()), infos, output)) == version


@pytest.mark.parametrize(
    ("type_", "dtype", "scales", "version"),
    [
        (LayerType.MUL, DataType.INT16, (1.0,), 4),
        (LayerType.MUL, DataType.INT16, (), 7),
        (LayerType.QUANTIZE, DataType.INT8, (1.0,), 1),
        (LayerType.QUANTIZE, DataType.INT8, (1.0, 2.0), 3),
        (LayerType.QUANTIZE, DataType.FLOAT32, (), 1),
    ],
)
def test_the_version_depends_on_the_quantisation(
    type_: LayerType, dtype: DataType, scales: tuple[float, ...], version: int
) -> None:
    quantization = Quantization(scales=scales, zero_points=(0,) * len(scales)) if scales else None
    info = TensorInfo("x", (2,), dtype, quantization)
    assert ROWS[type_].version(Written(Descriptor(), [info, info], info)) == version


@pytest.mark.parametrize("graph", SAMPLES, ids=lambda graph: graph.name)
def test_some_other_runtime_accepts_the_file(graph: Graph) -> None:
    data, inputs = to_tflite(graph), random_inputs(graph)
    if graph.layers[0].type is LayerType.RSQRT:
        inputs = [np.maximum(inputs[0], inputs[0].dtype.type(3))]  # runtimes end with an error below the zero point
    refusals = []
    for run in (oracle.tflm, oracle.litert_reference):
        try:
            outputs = run(data, inputs)
        except (RuntimeError, ValueError) as error:
            refusals.append(f"{run.__name__}: {error}")
            continue
        for info, output in zip(graph.outputs, outputs, strict=True):
            assert output.size == info.elements
            assert output.dtype == info.dtype.numpy
    assert len(refusals) < 2 or _known_to_lack(graph), refusals


def _known_to_lack(graph: Graph) -> bool:
    """Return whether both runtimes lack an int16 kernel for the layer."""
    layer = graph.layers[0]
    int16 = graph.inputs[0].dtype is DataType.INT16
    return int16 and layer.type in {
        LayerType.HARD_SWISH,
        LayerType.PRELU,
        LayerType.RELU6,
        LayerType.RELU_N1_TO_1,
        LayerType.SUM,
    }


@pytest.mark.parametrize("model", MODELS)
def test_trained_models_survive_the_round_trip(models: Path, model: str) -> None:
    path = models / f"{model}.tflite"
    network = formats.load(path)
    data = to_tflite(network)
    again = formats.load(data, name=network.name)
    assert network.name == model
    assert graph_differences(network, again) == []
    assert to_tflite(again) == data
    inputs = random_inputs(network)
    for run in (oracle.tflm, oracle.litert_reference):
        assert_arrays_equal(run(data, inputs), run(path.read_bytes(), inputs))


def test_a_part_of_a_network_is_a_model(models: Path) -> None:
    network = formats.load(models / "pretrainedResnet_quant.tflite")
    names = [layer.name for layer in network.layers]
    part = SubgraphView.of(network, names[3:8])
    seen: dict[str, Array] = {}

    def keep(layer: Layer, arrays: Sequence[Array]) -> None:
        seen.update(zip(layer.outputs, arrays, strict=True))

    (image,) = random_inputs(network)
    execute(network, {network.inputs[0].name: image}, keep)
    again = formats.load(to_tflite(part))
    assert [layer.type for layer in again.layers] == [layer.type for layer in part.layers]
    assert tuple(info.name for info in again.inputs) == part.inputs
    assert tuple(info.name for info in again.outputs) == part.outputs
    assert {t.info.name for t in again.tensors} < {t.info.name for t in network.tensors}
    outputs = oracle.tflm(to_tflite(part), [seen[name] for name in part.inputs])
    for name, got in zip(part.outputs, outputs, strict=True):
        assert_array_equal(got, seen[name])


def test_a_view_of_everything_is_the_network(models: Path) -> None:
    network = formats.load(models / "ad01_int8.tflite")
    whole = SubgraphView.of(network, [layer.name for layer in network.layers])
    assert graph_differences(network, whole.to_graph()) == []


def test_the_hybrid_model_is_refused_by_that_word(models: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"kws_ref_model_float32.tflite: \d+ operators cannot be used") as caught:
        formats.load(models / "kws_ref_model_float32.tflite")
    first = str(caught.value).splitlines()[1]
    assert first.startswith("  operator 0 CONV_2D -> ")
    assert "it is hybrid" in first
    network = formats.load(models / "kws_ref_model_float32.tflite", dequantize_weights=True)
    assert {tensor.info.dtype for tensor in network.tensors} == {DataType.FLOAT32}


@pytest.mark.parametrize("dtype", [DataType.FLOAT32, DataType.INT8])
def test_odd_padding_becomes_a_pad(dtype: DataType) -> None:
    odd = one_layer(
        LayerType.CONV_2D,
        Conv2dDescriptor(padding=Padding(top=2, bottom=0, left=0, right=1)),
        dtype=dtype,
        inputs=[(1, 6, 5, 4)],
        constants=weights_and_bias(dtype, (3, 3, 3, 4), 3, 0),
        outputs=[(1, 6, 4, 3)],
    )
    again = formats.load(to_tflite(odd))
    assert [layer.type for layer in again.layers] == [LayerType.PAD, LayerType.CONV_2D]
    assert again.outputs == odd.outputs
    assert again.info(again.layers[0].outputs[0]).quantization == odd.inputs[0].quantization


def test_odd_padding_of_pools_becomes_the_lowest_value_or_is_refused() -> None:
    largest, average = (
        one_layer(
            type_,
            Pool2dDescriptor(pool_h=2, pool_w=2, padding=Padding(left=1)),
            dtype=DataType.INT8,
            inputs=[(1, 3, 3, 1)],
            outputs=[(1, 2, 3, 1)],
        )
        for type_ in (LayerType.MAX_POOL_2D, LayerType.AVERAGE_POOL_2D)
    )
    image = np.full((1, 3, 3, 1), -100, np.int8)
    for run in (oracle.tflm, oracle.litert_reference):
        assert (run(largest, [image])[0] == -100).all()
    with pytest.raises(UnsupportedError, match=r"average_pool_2d_0.*SAME and VALID"):
        to_tflite(average)


@pytest.mark.parametrize(("padding", "size"), [("valid", (4, 5)), ("same", (3, 4))])
def test_unpadded_transposed_convolutions_get_the_scheme_that_litert_accepts(
    padding: Literal["valid", "same"], size: tuple[int, int]
) -> None:
    network = Network("even_window")
    image = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
    network.add_input(TensorInfo("x", image.shape, DataType.FLOAT32))
    weights = np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)
    network.set_outputs([network.add_transpose_conv_layer("x", weights, size=size, padding=padding)])
    for run in (oracle.tflm, oracle.litert_reference):
        assert_array_equal(run(network, [image])[0], network.run([image])[0])


def test_an_absent_bias_is_left_out() -> None:
    graph = Graph("no_bias")
    graph.add_input(TensorInfo("x", (1, 4), DataType.FLOAT32))
    weights = TensorInfo("w", (3, 4), DataType.FLOAT32)
    graph.add_constant(weights, np.ones((3, 4), np.float32))
    layer = Layer(
        "dense",
        LayerType.FULLY_CONNECTED,
        FullyConnectedDescriptor(),
        inputs=("x", "w", None),
        outputs=("y",),
    )
    graph.add_layer(layer, [TensorInfo("y", (1, 3), DataType.FLOAT32)])
    graph.set_outputs(["y"])
    assert formats.load(to_tflite(graph)).layers[0].inputs == ("x", "w")
    for run in (oracle.tflm, oracle.litert_reference):
        assert run(graph, [np.ones((1, 4), np.float32)])[0].tolist() == [[4, 4, 4]]


def test_a_fill_must_fit_its_type() -> None:
    graph = one_layer(
        LayerType.PADV2,
        PadV2Descriptor(before=(1,), after=(0,), value=300),
        dtype=DataType.INT8,
        inputs=[(3,)],
        outputs=[(4,)],
    )
    with pytest.raises(ModelError, match="fill 300 does not fit into int8"):
        to_tflite(graph)


@pytest.mark.parametrize("rule", OTHER_RULES, ids=str)
def test_a_layer_that_rounds_by_another_rule_is_refused(rule: Rounding) -> None:
    refused = next(ruled_cases(rule, [0]))
    with pytest.raises(UnsupportedError) as caught:
        to_tflite(refused)
    assert str(caught.value).startswith(f"layer 'layer': {refused.layers[0].type} rounds by {rule.phrase} ('{rule}')")


def test_buffers_are_aligned_and_the_first_is_empty() -> None:
    import tflite

    graph = next(graph for graph in SAMPLES if graph.layers[0].type is LayerType.CONV_2D)
    data = to_tflite(graph)
    model = tflite.Model.GetRootAs(data, 0)
    assert data[4:8] == b"TFL3"
    assert model.Buffers(0).DataLength() == 0
    for index in range(1, model.BuffersLength()):
        table = model.Buffers(index)._tab
        assert table.Vector(table.Offset(4)) % 16 == 0
