# SPDX-License-Identifier: Apache-2.0
"""Models that compute in uint8 give LiteRT's results as int8 networks with uint8 inputs and outputs."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from compare import assert_arrays_equal
from flatbuffer_tree import Table, one_operator_model, operator, quantization, table, tensor, write
from import_check import check_import
from numpy.testing import assert_array_equal
from stored_weights import OPTIONS, WEIGHTED, unsigned_model

from ferrule import formats
from ferrule.errors import UnsupportedError
from ferrule.formats import to_tflite
from ferrule.graph import Array, DataType, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.operators.arithmetic.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from ferrule.operators.weighted.products import has_zero_point
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case

OTHERS = (
    LayerType.ADD,
    LayerType.AVERAGE_POOL_2D,
    LayerType.CONCATENATION,
    LayerType.DEQUANTIZE,
    LayerType.HARD_SWISH,
    LayerType.LEAKY_RELU,
    LayerType.LOGISTIC,
    LayerType.MAX_POOL_2D,
    LayerType.MAXIMUM,
    LayerType.MEAN,
    LayerType.MINIMUM,
    LayerType.MUL,
    LayerType.PAD,
    LayerType.PADV2,
    LayerType.PRELU,
    LayerType.RELU,
    LayerType.RELU6,
    LayerType.RELU_N1_TO_1,
    LayerType.RESIZE_NEAREST_NEIGHBOR,
    LayerType.SOFTMAX,
    LayerType.SUB,
    LayerType.SUM,
    LayerType.TANH,
)
SEEDS = range(6)


def check(model: bytes) -> None:
    """Compare a network with LiteRT."""
    network = formats.load(model, name="m")
    assert {info.dtype for info in network.inputs} <= {DataType.UINT8}
    inputs = random_inputs(network)
    wanted = oracle.litert_reference(model, inputs)
    for info, got, expected in zip(network.outputs, network.run(inputs), wanted, strict=True):
        assert got.dtype == expected.dtype == info.dtype.numpy
        assert_array_equal(got, expected)


@pytest.mark.parametrize("type_", WEIGHTED, ids=str)
@pytest.mark.parametrize("zero_point", [0, 128, 131, 255])
def test_weights_with_a_zero_point(type_: LayerType, zero_point: int) -> None:
    checked = 0
    for seed in range(16):
        graph = layer_case(type_, DataType.INT8, seed)
        weights = graph.info(graph.layers[0].present_inputs[1])
        assert weights.quantization is not None
        grouped = type_ is LayerType.CONV_2D and weights.shape[3] != graph.inputs[0].shape[3]
        if not grouped and not weights.quantization.per_channel and len(graph.layers[0].present_inputs) == 3:
            model = unsigned_model(graph, zero_point)
            check(model)
            check(to_tflite(formats.load(model, name="m")))
            assert check_import(model)
            checked += 1
    assert checked >= 3


@pytest.mark.parametrize("type_", OTHERS, ids=str)
def test_other_operators(type_: LayerType) -> None:
    assert set(OTHERS) < set(LAYER_TYPES)
    for seed in SEEDS:
        check(unsigned_model(layer_case(type_, DataType.INT8, seed), 0))


def test_inputs_and_outputs_keep_name_and_type() -> None:
    network = formats.load(unsigned_model(layer_case(LayerType.RELU, DataType.INT8, 1), 0), name="m")
    assert [layer.type for layer in network.layers] == [LayerType.QUANTIZE, LayerType.RELU, LayerType.QUANTIZE]
    assert [(info.name, info.dtype) for info in network.inputs] == [("input_0", DataType.UINT8)]
    assert [(info.name, info.dtype) for info in network.outputs] == [("output_0", DataType.UINT8)]
    assert network.info("input_0_int8").zero_point == network.info("input_0").zero_point - 128


@pytest.mark.parametrize(
    ("pool", "stride", "layers"), [((3, 3), 1, 3), ((2, 2), 1, 7), ((2, 3), 2, 7)], ids=["odd", "even", "wide"]
)
def test_means_that_cannot_end_on_a_half_are_taken_as_they_are(pool: tuple[int, int], stride: int, layers: int) -> None:
    shape = (1, (6 - pool[0]) // stride + 1, (6 - pool[1]) // stride + 1, 2)
    options = table(
        "Pool2DOptions",
        Padding=1,
        StrideW=stride,
        StrideH=stride,
        FilterWidth=pool[1],
        FilterHeight=pool[0],
        FusedActivationFunction=0 if layers == 7 else 1,
    )
    scale = quantization([0.1], [100])
    tensors = [tensor("x", (1, 6, 6, 2), "UINT8", 0, scale), tensor("y", shape, "UINT8", 0, scale)]
    model = write(one_operator_model("AVERAGE_POOL_2D", tensors, [0], [1], options))
    check(model)
    assert len(formats.load(model, name="m").layers) == layers


def joined(scales: list[tuple[float, int]]) -> Table:
    """Return a model that joins two inputs with these scales and zero points, the last of which are the output's."""
    import tflite

    first, second, output = (quantization([scale], [zero_point]) for scale, zero_point in scales)
    tensors = [
        tensor("x", (1, 256), "UINT8", 0, first),
        tensor("y", (1, 256), "UINT8", 0, second),
        tensor("z", (1, 512), "UINT8", 0, output),
        tensor("rectified", (1, 512), "UINT8", 0, output),
    ]
    options = table("ConcatenationOptions", Axis=1)
    model = one_operator_model("CONCATENATION", tensors, [0, 1], [2], options, graph_inputs=[0, 1])
    model["OperatorCodes"].append(table("OperatorCode", DeprecatedBuiltinCode=tflite.BuiltinOperator.RELU))
    graph = model["Subgraphs"][0]
    graph["Operators"].append(operator([2], [3], code=1))
    graph["Outputs"] = np.array([2, 3], np.int32)
    return model


@pytest.mark.parametrize(
    "scales",
    [[(0.1, 100), (0.1, 100), (0.1, 100)], [(0.1, 100), (0.03, 7), (0.071, 128)], [(2.0, 0), (0.3, 255), (0.3, 1)]],
)
def test_joined_inputs_get_the_quantisation_of_the_output(scales: list[tuple[float, int]]) -> None:
    model = write(joined(scales))
    network = formats.load(model, name="m")
    inputs = [np.arange(256, dtype=np.uint8).reshape(1, 256)] * 2
    assert_arrays_equal(network.run(inputs), oracle.litert_reference(model, inputs))
    added = {LayerType.QUANTIZE, LayerType.DEQUANTIZE}.intersection(layer.type for layer in network.layers[2:-3])
    assert bool(added) == any(scale != scales[2] for scale in scales)


def test_an_operator_that_may_differ_is_refused() -> None:
    x, weights = quantization([0.1], [100]), np.ones((1, 4), np.uint8).tobytes()
    tensors = [
        tensor("x", (1, 4), "UINT8", 0, x),
        tensor("w", (1, 4), "UINT8", 1, x),
        tensor("y", (1, 1), "UINT8", 0, x),
    ]
    model = one_operator_model(
        "FULLY_CONNECTED", tensors, [0, 1], [2], table("FullyConnectedOptions"), buffers=(weights,)
    )
    import tflite

    model["OperatorCodes"].append(table("OperatorCode", DeprecatedBuiltinCode=tflite.BuiltinOperator.CAST))
    graph = model["Subgraphs"][0]
    graph["Tensors"].append(tensor("z", (1, 1)))
    graph["Operators"].append(
        table("Operator", OpcodeIndex=1, Inputs=np.array([2], np.int32), Outputs=np.array([3], np.int32))
    )
    with pytest.raises(
        UnsupportedError, match=r"operator 1 CAST.*: tensor 'y' is uint8 in a model that computes in uint8"
    ):
        formats.load(write(model), name="m")


def signed(type_: str, weights: Array) -> bytes:
    """Return an int8 model whose weights have zero point 7."""
    tensors = [
        tensor("x", (1, 1, 1, 4) if type_ == "CONV_2D" else (1, 4), "INT8", 0, quantization([0.5], [3])),
        tensor("w", weights.shape, "INT8", 1, quantization([0.25], [7])),
        tensor("y", (1, 1, 1, 3) if type_ == "CONV_2D" else (1, 3), "INT8", 0, quantization([2.0], [-3])),
    ]
    options = table("Conv2DOptions", StrideW=1, StrideH=1) if type_ == "CONV_2D" else table("FullyConnectedOptions")
    return write(one_operator_model(type_, tensors, [0, 1], [2], options, buffers=(weights.tobytes(),)))


def test_int8_weights_with_a_zero_point() -> None:
    # TensorFlow Lite Micro subtracts it in FULLY_CONNECTED and ignores it in convolutions
    weights = np.random.default_rng(2).integers(-128, 128, (3, 4)).astype(np.int8)
    dense = signed("FULLY_CONNECTED", weights)
    network = formats.load(dense, name="m")
    inputs = random_inputs(network)
    assert_array_equal(network.run(inputs)[0], oracle.tflm(dense, inputs)[0])
    with pytest.raises(UnsupportedError, match="'w' have a zero point that is not 0, expected symmetric weights"):
        formats.load(signed("CONV_2D", weights.reshape(3, 1, 1, 4)), name="m")


def test_a_convolution_of_a_branch_keeps_its_zero_point() -> None:
    cases = (layer_case(LayerType.CONV_2D, DataType.INT8, seed) for seed in range(64))
    branch = next(each for each in cases if has_zero_point(each.info(str(each.layers[0].inputs[1]))))
    network = Network("calls")
    inputs = [TensorInfo("condition", (), DataType.BOOL), *branch.inputs]
    names = [network.add_input(info) for info in inputs]
    network.set_outputs(network.add_if_layer(names[0], names[1:], branch, branch))
    again = formats.load(to_tflite(network), name="m")
    given = random_inputs(network)
    np.testing.assert_array_equal(again.run(given)[0], network.run(given)[0])


@pytest.mark.parametrize("type_", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_the_product_of_the_scales_is_rounded_to_float32(type_: str) -> None:
    random = np.random.default_rng(0)
    data, weights, output = (float(np.float32(value)) for value in (0.05678, 0.01234, 12.3))
    product = float(np.float32(data) * np.float32(weights))
    exact, rounded = (quantize_multiplier(each / output) for each in (data * weights, product))
    sums = random.integers(-1_500_000, 1_500_000, 2_000_000)
    by_each = [multiply_by_quantized_multiplier(sums, *factor) for factor in (exact, rounded)]
    differing = sums[by_each[0] != by_each[1]]
    assert differing.size
    bias = np.resize(differing, 20).astype(np.int32)
    image, shape = ((1, 1, 1, 2), (20, 1, 1, 2)) if type_ == "CONV_2D" else ((1, 1, 1, 20), (1, 1, 1, 20))
    tensors = [
        tensor("x", image, "UINT8", 0, quantization([data], [0])),
        tensor("w", shape, "UINT8", 1, quantization([weights], [9])),
        tensor("b", (20,), "INT32", 2, quantization([product], [0])),
        tensor("y", (1, 1, 1, 20), "UINT8", 0, quantization([output], [128])),
    ]
    buffers = (np.full(shape, 9, np.uint8).tobytes(), bias.tobytes())
    model = write(one_operator_model(type_, tensors, [0, 1, 2], [3], OPTIONS[type_], buffers=buffers))
    check(model)
    check(to_tflite(formats.load(model, name="m")))
    assert check_import(model)
