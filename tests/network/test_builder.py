# SPDX-License-Identifier: Apache-2.0
"""Networks built by hand, with one method per operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import oracle
import pytest
from compare import graph_differences
from signal_networks import subtracted

from ferrule import formats
from ferrule.errors import FerruleError, ModelError
from ferrule.formats import to_tflite
from ferrule.graph import DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.control_flow import DEFAULT_ITERATIONS
from ferrule.operators.elementwise.comparison import COMPARISONS
from ferrule.operators.elementwise.functions import ELEMENTWISE_UNARY
from ferrule.operators.elementwise.functions_of_two import ElementwiseBinaryDescriptor
from ferrule.operators.table import BEYOND_TFLITE, OPERATORS, family
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.testing.backends.comparison import graph_difference, random_inputs
from ferrule.testing.backends.layers import shared_case

Build = Callable[[Network, DataType], str | tuple[str, ...]]

IN = Quantization.of(0.05, 3)
OUT = Quantization.of(0.1, -20)


def start(dtype: DataType = DataType.INT8, shape: tuple[int, ...] = (1, 6, 5, 4)) -> Network:
    """Return a network with an input 'x' and no layers."""
    network = Network("built")
    network.add_input(TensorInfo("x", shape, dtype, quantization=IN if dtype is DataType.INT8 else None))
    return network


def weights(dtype: DataType, *shape: int) -> np.ndarray:
    generator = np.random.default_rng(len(shape))
    if dtype.is_float:
        return generator.normal(0, 0.5, shape).astype(np.float32)
    return generator.integers(-127, 128, shape, dtype=np.int8)


def bias(dtype: DataType, count: int) -> np.ndarray:
    return np.arange(count).astype(np.float32 if dtype.is_float else np.int32) * 100


def scales(count: int, axis: int) -> Quantization:
    values = tuple(float(np.float32(0.01 * (i + 1))) for i in range(count))
    return Quantization(scales=values, zero_points=(0,) * count, axis=axis)


def quantized(dtype: DataType, value: Quantization) -> Quantization | None:
    return None if dtype.is_float else value


def _conv(network: Network, dtype: DataType) -> str:
    return network.add_conv2d_layer(
        "x",
        weights(dtype, 3, 3, 3, 4),
        bias(dtype, 3),
        strides=(2, 1),
        padding="same",
        activation=Activation.RELU,
        weights_quantization=quantized(dtype, scales(3, 0)),
        quantization=quantized(dtype, OUT),
    )


def _depthwise(network: Network, dtype: DataType) -> str:
    return network.add_depthwise_conv2d_layer(
        "x",
        weights(dtype, 1, 3, 3, 8),
        bias(dtype, 8),
        weights_quantization=quantized(dtype, scales(8, 3)),
        quantization=quantized(dtype, OUT),
    )


def _transpose_conv(network: Network, dtype: DataType) -> str:
    return network.add_transpose_conv_layer(
        "x",
        weights(dtype, 3, 3, 2, 4),
        bias(dtype, 3),
        size=(11, 10),
        strides=(2, 2),
        padding="same",
        weights_quantization=quantized(dtype, scales(3, 0)),
        quantization=quantized(dtype, OUT),
    )


def _dense(network: Network, dtype: DataType) -> str:
    return network.add_fully_connected_layer(
        "x",
        weights(dtype, 7, 120),
        bias(dtype, 7),
        weights_quantization=quantized(dtype, Quantization.of(0.01)),
        quantization=quantized(dtype, OUT),
    )


def _prelu(network: Network, dtype: DataType) -> str:
    return network.add_prelu_layer(
        "x",
        weights(dtype, 1, 1, 4),
        alpha_quantization=quantized(dtype, Quantization.of(0.01)),
        quantization=quantized(dtype, OUT),
    )


def _binary(method: Callable[..., str]) -> Callable[[Network, DataType], str]:
    def build(network: Network, dtype: DataType) -> str:
        other = network.add_constant_array("other", weights(dtype, 1, 1, 1, 4), quantized(dtype, IN))
        if "quantization" in inspect.signature(method).parameters:
            return method(network, "x", other, quantization=quantized(dtype, OUT))
        return method(network, "x", other)

    return build


def _typed_back(network: Network, dtype: DataType) -> str:
    if dtype.is_float:
        return network.add_quantize_layer("x", DataType.INT8, OUT)
    return network.add_dequantize_layer("x")


def _buffered(network: Network, dtype: DataType) -> str:
    source = network.add_quantize_layer("x", DataType.INT8, OUT) if dtype.is_float else "x"
    return network.add_circular_buffer_layer(network.add_reshape_layer(source, (1, 1, 10, 12)), 5)


def _detection(network: Network, dtype: DataType) -> tuple[str, ...]:
    source = "x" if dtype.is_float else network.add_dequantize_layer("x")
    boxes = network.add_reshape_layer(source, (1, 30, 4))
    scores = network.add_slice_layer(boxes, (0, 0, 1), (1, 30, 3))
    return network.add_detection_postprocess_layer(
        boxes,
        scores,
        np.random.default_rng(5).uniform(0.1, 1, (30, 4)).astype(np.float32),
        max_detections=2,
        num_classes=2,
        score_threshold=-1e4,
        iou_threshold=0.5,
        scales=(10, 10, 5, 5),
        regular=True,
    )


def _l2_pool(network: Network, dtype: DataType) -> str:
    image = "x" if dtype.is_float else network.add_dequantize_layer("x")
    return network.add_l2_pool2d_layer(image, (3, 2), padding="same")


def _update(network: Network, dtype: DataType) -> str:
    update = network.add_constant_array("update", weights(dtype, 1, 2, 3, 4), quantized(dtype, IN))
    return network.add_dynamic_update_slice_layer("x", update, np.array([0, 3, 1, 0], np.int32))


def _fill(network: Network, dtype: DataType) -> str:
    del dtype
    first = network.add_slice_layer("x", (0, 1, 2, 3), (1, 1, 1, 1))
    return network.add_fill_layer(network.add_reshape_layer(first, ()), (2, 3))


def _svdf(network: Network, dtype: DataType) -> str:
    source = network.add_reshape_layer("x", (2, 60))
    return network.add_svdf_layer(
        source,
        weights(dtype, 6, 60),
        weights(dtype, 6, 5),
        bias(dtype, 3),
        rank=2,
        feature_quantization=quantized(dtype, Quantization.of(0.002)),
        time_quantization=quantized(dtype, Quantization.of(0.01)),
        state_quantization=quantized(dtype, Quantization.of(0.03, 2)),
        quantization=quantized(dtype, OUT),
    )


def _lstm(network: Network, dtype: DataType) -> str:
    symmetric = None if dtype.is_float else [Quantization.of(0.01)] * 4
    return network.add_lstm_layer(
        network.add_reshape_layer("x", (2, 3, 20)),
        [weights(dtype, 4, 20)] * 4,
        [weights(dtype, 4, 4)[::step] for step in (1, -1, 1, -1)],
        [bias(dtype, 4) / np.float32(100) if dtype.is_float else bias(dtype, 4)] * 4,
        time_major=True,
        cell_clip=5.0,
        weights_quantizations=symmetric,
        recurrent_quantizations=symmetric,
        cell_quantization=quantized(dtype, Quantization.of(2**-11)),
        quantization=quantized(dtype, Quantization.of(1 / 128, -1)),
    )


def _doubled(network: Network) -> tuple[Network, Network]:
    """Return two graphs of an input like `x`: one doubles its rows and drops every second, and one leaves it."""
    graphs = Network("doubled"), Network("left")
    for graph in graphs:
        graph.add_input(network.info("x"))
    doubled = graphs[0].add_concatenation_layer(["x", "x"], 1)
    graphs[0].set_outputs([graphs[0].add_strided_slice_layer(doubled, (0, 0, 0, 0), (1, 12, 5, 4), (1, 2, 1, 1))])
    graphs[1].set_outputs(["x"])
    return graphs


def _if(network: Network, dtype: DataType) -> tuple[str, ...]:
    del dtype
    condition = network.add_slice_layer("x", (0, 1, 1, 1), (1, 1, 1, 1))
    return network.add_if_layer(condition, ["x"], *_doubled(network))


def _while(network: Network, dtype: DataType) -> tuple[str, ...]:
    """Add a loop over the truth values of a constant."""
    del dtype
    body, condition = _doubled(network)
    flags = network.add_constant_array("flags", np.array([True, True, False]))
    for graph in (body, condition):
        graph.add_input(replace(network.info(flags), name="flags"))
    condition.set_outputs([condition.add_slice_layer("flags", (0,), (1,))])
    behind = body.add_slice_layer("flags", (1,), (2,))
    end = body.add_constant_array("end", np.array([False]))
    body.set_outputs([body.outputs[0].name, body.add_concatenation_layer([behind, end], 0)])
    return network.add_while_layer(["x", flags], condition, body, limit=DEFAULT_ITERATIONS)


def _divided(method: Callable[..., str]) -> Callable[[Network, DataType], str]:
    """Build a division of floats or int32 by a constant."""

    def build(network: Network, dtype: DataType) -> str:
        kind, source = (np.float32, "x") if dtype.is_float else (np.int32, network.add_cast_layer("x", DataType.INT32))
        divisor = network.add_constant_array("divisor", np.array([3, -2, 5, 7], kind))
        return method(network, source, divisor)

    return build


def _compared(type_: LayerType, network: Network, dtype: DataType) -> str:
    del dtype
    return network.add_comparison_layer(type_, "x", network.add_relu_layer("x"))


def _truths(network: Network) -> tuple[str, str]:
    """Add two bool tensors."""
    return network.add_cast_layer("x", DataType.BOOL), network.add_comparison_layer(LayerType.EQUAL, "x", "x")


def _function_of_two(type_: LayerType, network: Network, dtype: DataType) -> str:
    del dtype
    refusals = {kind: shared_case(type_, kind, 0)[1] for kind in (DataType.BOOL, DataType.INT32)}
    kind = next(kind for kind, refusal in refusals.items() if not refusal)
    other = network.add_constant_array("other", np.array([3, -2, 5, 7]).astype(kind.numpy))
    return network.add_elementwise_binary_layer(type_, network.add_cast_layer("x", kind), other)


def _function(type_: LayerType, network: Network, dtype: DataType) -> str:
    if type_ is LayerType.LOGICAL_NOT:
        return network.add_elementwise_unary_layer(type_, network.add_cast_layer("x", DataType.BOOL))
    return network.add_elementwise_unary_layer(type_, "x", quantization=quantized(dtype, OUT))


def _samples(network: Network) -> str:
    """Return 120 int16 samples: the input, amplified."""
    wide = network.add_cast_layer(network.add_reshape_layer("x", (120,)), DataType.INT16)
    return network.add_signal_window_layer(wide, np.full(120, 100, np.int16), shift=0)


def _energies(network: Network) -> str:
    return network.add_signal_energy_layer(_samples(network), start_index=0, end_index=60)


def _channels(network: Network) -> str:
    return network.add_signal_filter_bank_layer(
        _energies(network),
        weights=range(100, 160),
        unweights=range(60, 0, -1),
        frequency_starts=(0, 20, 40),
        weight_starts=(0, 20, 40),
        widths=(20, 20, 20),
    )


def _subtracted(network: Network) -> tuple[str, str]:
    return subtracted(network, _energies(network))


BUILDS: dict[str, Build] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "TRANSPOSE_CONV": _transpose_conv,
    "FULLY_CONNECTED": _dense,
    "BATCH_MATMUL": lambda n, t: n.add_batch_matmul_layer("x", "x", adj_y=True, quantization=quantized(t, OUT)),
    "L2_POOL_2D": _l2_pool,
    "AVERAGE_POOL_2D": lambda n, _: n.add_average_pool2d_layer("x", (2, 2), strides=(2, 2)),
    "MAX_POOL_2D": lambda n, _: n.add_max_pool2d_layer("x", (3, 3), padding="same"),
    "RESIZE_NEAREST_NEIGHBOR": lambda n, _: n.add_resize_nearest_neighbor_layer("x", (9, 3), align_corners=True),
    "RESIZE_BILINEAR": lambda n, _: n.add_resize_bilinear_layer("x", (9, 3), half_pixel_centers=True),
    "ADD": _binary(Network.add_add_layer),
    "SUB": _binary(Network.add_sub_layer),
    "MUL": _binary(Network.add_mul_layer),
    "ADD_N": lambda n, t: n.add_add_n_layer(["x", "x", "x"], quantization=quantized(t, OUT)),
    "LOGICAL_AND": lambda n, _: n.add_logical_and_layer(*_truths(n)),
    "LOGICAL_OR": lambda n, _: n.add_logical_or_layer(*_truths(n)),
    "SELECT_V2": lambda n, _: n.add_select_v2_layer(_truths(n)[0], "x", n.add_relu_layer("x")),
    "L2_NORMALIZATION": lambda n, _: n.add_l2_normalization_layer("x"),
    "LOG_SOFTMAX": lambda n, _: n.add_log_softmax_layer("x"),
    "CAST": lambda n, t: n.add_cast_layer("x", DataType.INT32 if t.is_float else DataType.FLOAT32),
    "DIV": _divided(Network.add_div_layer),
    "FLOOR_DIV": _divided(Network.add_floor_div_layer),
    "FLOOR_MOD": _divided(Network.add_floor_mod_layer),
    "BITWISE_XOR": lambda n, _: n.add_bitwise_xor_layer(*[n.add_cast_layer("x", DataType.INT32)] * 2),
    "SQUARED_DIFFERENCE": _binary(Network.add_squared_difference_layer),
    "MAXIMUM": _binary(Network.add_maximum_layer),
    "MINIMUM": _binary(Network.add_minimum_layer),
    "MEAN": lambda n, t: n.add_mean_layer("x", (1, -2), quantization=quantized(t, OUT)),
    "SUM": lambda n, t: n.add_sum_layer("x", (1, 2), keep_dims=True, quantization=quantized(t, OUT)),
    "REDUCE_MAX": lambda n, _: n.add_reduce_max_layer("x", (1, -2)),
    "REDUCE_MIN": lambda n, _: n.add_reduce_min_layer("x", (3,), keep_dims=True),
    "ARG_MAX": lambda n, _: n.add_arg_max_layer("x", -1),
    "ARG_MIN": lambda n, _: n.add_arg_min_layer("x", 1),
    "CUMSUM": lambda n, t: n.add_cumsum_layer("x", -2, exclusive=True, quantization=quantized(t, OUT)),
    "RELU": lambda n, _: n.add_relu_layer("x"),
    "RELU6": lambda n, t: n.add_relu6_layer("x", quantization=quantized(t, IN)),
    "RELU_N1_TO_1": lambda n, _: n.add_relu_n1_to_1_layer("x"),
    "LEAKY_RELU": lambda n, t: n.add_leaky_relu_layer("x", 0.1, quantization=quantized(t, OUT)),
    "PRELU": _prelu,
    "HARD_SWISH": lambda n, t: n.add_hard_swish_layer("x", quantization=quantized(t, OUT)),
    "LOGISTIC": lambda n, _: n.add_logistic_layer("x"),
    "TANH": lambda n, _: n.add_tanh_layer("x"),
    "SOFTMAX": lambda n, _: n.add_softmax_layer("x", beta=0.5),
    "QUANTIZE": lambda n, t: n.add_quantize_layer("x", DataType.INT8, OUT),
    "DEQUANTIZE": _typed_back,
    "RESHAPE": lambda n, _: n.add_reshape_layer("x", (2, -1)),
    "SQUEEZE": lambda n, _: n.add_squeeze_layer("x", (0,)),
    "EXPAND_DIMS": lambda n, _: n.add_expand_dims_layer("x", -1),
    "TRANSPOSE": lambda n, _: n.add_transpose_layer("x", (0, 3, 1, 2)),
    "PAD": lambda n, _: n.add_pad_layer("x", [(0, 0), (1, 2), (0, 1), (0, 0)]),
    "PADV2": lambda n, t: n.add_pad_v2_layer("x", [(0, 0), (1, 0), (0, 1), (0, 0)], 1.5 if t.is_float else -7),
    "SLICE": lambda n, _: n.add_slice_layer("x", (0, 1, 0, 2), (1, 3, -1, 1)),
    "STRIDED_SLICE": lambda n, _: n.add_strided_slice_layer("x", (0, 4, 0, 0), (1, 1, 5, 4), (1, -1, 2, 1)),
    "CONCATENATION": lambda n, _: n.add_concatenation_layer(["x", "x"], -1),
    "SPLIT": lambda n, _: n.add_split_layer("x", 1, 3),
    "CIRCULAR_BUFFER": _buffered,
    "DETECTION_POSTPROCESS": _detection,
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "SPLIT_V": lambda n, _: n.add_split_v_layer("x", -1, (1, 3)),
    "GATHER": lambda n, _: n.add_gather_layer("x", np.array([[3, 0], [1, 1]], np.int32), 1),
    "GATHER_ND": lambda n, _: n.add_gather_nd_layer("x", np.array([[0, 5], [0, 1]], np.int32)),
    "EMBEDDING_LOOKUP": lambda n, _: n.add_embedding_lookup_layer(np.array([0, 0, 0], np.int32), "x"),
    "DYNAMIC_UPDATE_SLICE": _update,
    "TILE": lambda n, _: n.add_tile_layer("x", (2, 1, 3, 1)),
    "BROADCAST_TO": lambda n, _: n.add_broadcast_to_layer("x", (3, 6, 5, 4)),
    "FILL": _fill,
    "ZEROS_LIKE": lambda n, _: n.add_zeros_like_layer("x"),
    "REVERSE_V2": lambda n, _: n.add_reverse_v2_layer("x", (-1, 2)),
    "MIRROR_PAD": lambda n, _: n.add_mirror_pad_layer("x", [(0, 0), (1, 2), (0, 1), (0, 0)], reflect=True),
    "SPACE_TO_DEPTH": lambda n, _: n.add_space_to_depth_layer(n.add_reshape_layer("x", (1, 6, 20, 1)), 2),
    "DEPTH_TO_SPACE": lambda n, _: n.add_depth_to_space_layer("x", 2),
    "SPACE_TO_BATCH_ND": lambda n, _: n.add_space_to_batch_nd_layer("x", (2, 5), [(0, 0), (0, 0)]),
    "BATCH_TO_SPACE_ND": lambda n, _: n.add_batch_to_space_nd_layer(
        n.add_reshape_layer("x", (6, 2, 5, 2)), (2, 3), [(1, 0), (0, 2)]
    ),
    "PACK": lambda n, _: n.add_pack_layer(["x", "x"], -1),
    "UNPACK": lambda n, _: n.add_unpack_layer("x", 2),
    "WHILE": _while,
    "SIGNAL_DELAY": lambda n, _: n.add_signal_delay_layer(_samples(n), delay_length=3),
    "SIGNAL_ENERGY": lambda n, _: _energies(n),
    "SIGNAL_FFT_AUTO_SCALE": lambda n, _: n.add_signal_fft_auto_scale_layer(_samples(n)),
    "SIGNAL_FILTER_BANK": lambda n, _: _channels(n),
    "SIGNAL_FILTER_BANK_LOG": lambda n, _: n.add_signal_filter_bank_log_layer(
        _energies(n), input_correction_bits=3, output_scale=64
    ),
    "SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION": lambda n, _: _subtracted(n),
    "SIGNAL_FILTER_BANK_SQUARE_ROOT": lambda n, _: n.add_signal_filter_bank_square_root_layer(
        _channels(n), n.add_constant_array("bits", np.array(2, np.int32))
    ),
    "SIGNAL_FRAMER": lambda n, _: n.add_signal_framer_layer(_samples(n), frame_size=40, frame_step=30, prefill=True),
    "SIGNAL_IRFFT": lambda n, _: n.add_signal_irfft_layer(
        n.add_signal_rfft_layer(_samples(n), fft_length=120), fft_length=120
    ),
    "SIGNAL_OVERLAP_ADD": lambda n, _: n.add_signal_overlap_add_layer(
        n.add_reshape_layer(_samples(n), (6, 20)), frame_step=8
    ),
    "SIGNAL_PCAN": lambda n, _: n.add_signal_pcan_layer(*_subtracted(n), np.arange(125).astype(np.int16), snr_shift=6),
    "SIGNAL_RFFT": lambda n, _: n.add_signal_rfft_layer(_samples(n), fft_length=128),
    "SIGNAL_STACKER": lambda n, _: n.add_signal_stacker_layer(_samples(n), left_context=1, right_context=0),
    "SIGNAL_WINDOW": lambda n, _: n.add_signal_window_layer(_samples(n), np.arange(120).astype(np.int16), shift=4),
}
BUILDS_OF_BOOL: dict[str, Build] = {
    "IF": _if,
    "REDUCE_ANY": lambda n, _: n.add_reduce_any_layer("x", (0, -2)),
    "REDUCE_ALL": lambda n, _: n.add_reduce_all_layer("x", (1,), keep_dims=True),
}
FUNCTIONS = [row.type for row in ELEMENTWISE_UNARY]
FUNCTIONS_OF_TWO = family(ElementwiseBinaryDescriptor)
COMPARED = [row.type for row in COMPARISONS]
CASES = [
    (type_, build, dtype) for type_, build in sorted(BUILDS.items()) for dtype in (DataType.FLOAT32, DataType.INT8)
]
CASES += [
    (type_, partial(_compared, type_), dtype) for type_ in COMPARED for dtype in (DataType.FLOAT32, DataType.INT8)
]
CASES += [(type_, build, DataType.BOOL) for type_, build in sorted(BUILDS_OF_BOOL.items())]
CASES += [(type_, partial(_function, type_), DataType.FLOAT32) for type_ in FUNCTIONS]
CASES += [(type_, partial(_function_of_two, type_), DataType.FLOAT32) for type_ in FUNCTIONS_OF_TWO]
CASES += [(type_, partial(_function, type_), DataType.INT8) for type_ in (LayerType.ABS, LayerType.ELU)]


def test_there_is_a_method_for_every_operator() -> None:
    assert {*BUILDS, *BUILDS_OF_BOOL, *FUNCTIONS, *FUNCTIONS_OF_TWO, *COMPARED} == set(OPERATORS) - BEYOND_TFLITE
    methods = {name for name in dir(Network) if name.startswith("add_") and name.endswith("_layer")}
    families = {
        "add_layer",
        "add_elementwise_unary_layer",
        "add_elementwise_binary_layer",
        "add_comparison_layer",
        "add_layer_normalization_layer",  # no layer of files: tests/operators/test_layer_normalization.py
    }
    assert len(methods - families) == len(BUILDS) + len(BUILDS_OF_BOOL)


@pytest.mark.parametrize(("type_", "build", "dtype"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_built_runs_as_elsewhere(type_: str, build: Build, dtype: DataType) -> None:
    del type_
    network = start(dtype)
    result = build(network, dtype)
    names = (result,) if isinstance(result, str) else result
    network.set_outputs(names)
    network.validate()
    inputs = random_inputs(network, 11)
    outputs = oracle.interpreter(network, inputs)
    theirs = [each.reshape(info.shape) for each, info in zip(outputs, network.outputs, strict=True)]
    assert not graph_difference(network, inputs, theirs)
    assert graph_differences(network, formats.load(to_tflite(network))) == []


def test_names_and_types_are_inferred() -> None:
    network = start()
    first = network.add_relu_layer("x")
    second = network.add_softmax_layer(network.add_reshape_layer(first, (1, -1)), name="scores")
    assert (first, second) == ("relu_0", "scores")
    assert [layer.name for layer in network.layers] == ["relu_0", "reshape_1", "scores"]
    assert network.info("scores").shape == (1, 120)
    assert network.info("scores").quantization == Quantization.of(1 / 256, -128)
    assert network.info("relu_0").quantization == IN


def test_the_bias_gets_the_prescribed_quantisation() -> None:
    network = start()
    _conv(network, DataType.INT8)
    found = network.info("conv_2d_0_bias").quantization
    assert found is not None
    assert found.scales == tuple(float(np.float32(0.05) * np.float32(0.01 * (i + 1))) for i in range(3))


def test_explicit_padding_is_kept() -> None:
    network = start(DataType.FLOAT32)
    padding = Padding(top=3, left=1)
    network.add_conv2d_layer("x", weights(DataType.FLOAT32, 3, 3, 3, 4), padding=padding)
    descriptor = network.layers[0].descriptor
    assert isinstance(descriptor, Conv2dDescriptor)
    assert descriptor.padding == padding
    assert network.info("conv_2d_0").shape == (1, 7, 4, 3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda n: n.add_relu_layer("nothing"), "no tensor 'nothing'"),
        (lambda n: n.add_elementwise_unary_layer(LayerType.RELU, "x"), "RELU is not an elementwise function"),
        (lambda n: n.add_elementwise_unary_layer(LayerType.NEG, "x"), "tensor 'x' is int8, expected float32"),
        (lambda n: n.add_comparison_layer(LayerType.RELU, "x", "x"), "RELU is not a comparison, expected EQUAL"),
        (lambda n: n.add_add_n_layer([]), "no inputs, expected at least 2"),
        (lambda n: n.add_relu_layer("x", name="x"), "layer 'x' RELU: there is a tensor 'x' already"),
        (lambda n: n.add_transpose_layer("x", (0, 1)), "layer 'transpose_0' TRANSPOSE: "),
        (lambda n: n.add_mean_layer("x", (4,)), "axis 4 does not exist, expected -4 to 3"),
        (lambda n: n.add_concatenation_layer([], 0), "no inputs"),
        (lambda n: n.add_split_layer("x", 1, 4), "layer 'split_0' SPLIT: "),
        (lambda n: n.add_conv2d_layer("x", np.zeros((3, 3, 4), np.int8)), "weights have shape [3, 3, 4]"),
        (lambda n: n.add_conv2d_layer("x", np.zeros((1, 3, 3, 4), np.complex64)), "complex64, expected one of"),
        (lambda n: n.add_conv2d_layer("x", np.zeros((1, 9, 9, 4), np.int8)), "layer 'conv_2d_0' CONV_2D: "),
        (lambda n: n.add_depthwise_conv2d_layer("x", np.zeros((1, 3, 3, 6), np.int8)), "6 channels"),
        (lambda n: n.add_max_pool2d_layer("x", (0, 2)), "must be positive"),
        (lambda n: n.add_max_pool2d_layer("x", (2, 2), strides=(0, 1), padding="same"), "must be positive"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(build: Callable[[Network], str], message: str) -> None:
    network = start()
    with pytest.raises(FerruleError) as caught:
        build(network)
    assert message in str(caught.value)
    assert network.layers == ()
    assert [tensor.info.name for tensor in network.tensors] == ["x"]


def test_layer_names_are_unique() -> None:
    network = start()
    network.add_relu_layer("x", name="a")
    with pytest.raises(ModelError, match="layer 'a' RELU: there is a layer of that name"):
        network.add_relu_layer("x", name="a")
