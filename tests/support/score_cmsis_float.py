# SPDX-License-Identifier: Apache-2.0
"""The float32 data sets of CMSIS-NN's unit tests as networks, by the function that is tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from layer_case import layer_network, tensor
from score_cases import Run
from score_headers import DataSet, Translated, padding_of

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType
from ferrule.network import Network
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor


def _network(*shapes: Sequence[int]) -> Network:
    network = Network("case")
    for index, shape in enumerate(shapes):
        network.add_input(tensor(f"x{index}", tuple(shape), DataType.FLOAT32))
    return network


def _clamped(network: Network, name: str, data: DataSet) -> None:
    """Make a tensor the output, clamped to the activation's range, which is any range here."""
    prefix = "OUT_ACTIVATION_" if "OUT_ACTIVATION_MIN" in data.macros else "ACTIVATION_"
    network.add_constant_array("low", np.array([data.real(f"{prefix}MIN")], np.float32))
    network.add_constant_array("high", np.array([data.real(f"{prefix}MAX")], np.float32))
    network.set_outputs([network.add_minimum_layer(network.add_maximum_layer(name, "low"), "high")])


def _run(data: DataSet, *inputs: Array) -> list[Run]:
    return [Run(inputs, [data.array("output_ref", "output_ref_data", "output")])]


def _bias(data: DataSet) -> Array | None:
    absent = data.macros.get("USE_NULL_BIAS") == "1" or data.macros.get("HAS_BIAS") == "0"
    return None if absent else data.array("biases_data", "biases")


def _convolution(data: DataSet, functions: Sequence[str]) -> Translated:
    depthwise = functions[0].startswith("depthwise")
    shape = (data.number("INPUT_BATCHES"), *data.extents("INPUT_", "HW"), data.number("IN_CH"))
    kernel, dilations = data.extents("FILTER_", "HW"), data.extents("DILATION_", "HW")
    spread = tuple((size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True))
    pads = data.extents("PADDING_", "HW")
    outputs = data.number("OUT_CH")
    network = _network(shape)
    add = network.add_depthwise_conv2d_layer if depthwise else network.add_conv2d_layer
    weights = data.array("weights_data").reshape((1, *kernel, outputs) if depthwise else (outputs, *kernel, -1))
    strides = data.extents("STRIDE_", "HW")
    name = add(
        "x0",
        weights,
        _bias(data),
        strides=(strides[0], strides[1]),
        dilations=(dilations[0], dilations[1]),
        padding=padding_of(data, (spread[0], spread[1]), (pads[0], pads[1])),
    )
    _clamped(network, name, data)
    return network, _run(data, data.array("input_data"))


def _transpose_conv(data: DataSet, _functions: Sequence[str]) -> Translated:
    shape = (data.number("INPUT_BATCHES"), *data.extents("INPUT_", "HW"), data.number("IN_CH"))
    weights = data.array("weights").reshape(data.number("OUT_CH"), *data.extents("FILTER_", "HW"), -1)
    size, strides, pads = (data.extents(each, "HW") for each in ("OUTPUT_", "STRIDE_", "PADDING_"))
    descriptor = TransposeConvDescriptor(
        output_h=size[0], output_w=size[1], stride_h=strides[0], stride_w=strides[1], pad_top=pads[0], pad_left=pads[1]
    )
    constants = {1: weights, 2: data.array("biases")}
    infos = [tensor("x0", shape, DataType.FLOAT32)]
    infos += [tensor(f"x{index}", each.shape, DataType.FLOAT32) for index, each in constants.items()]
    network = layer_network(LayerType.TRANSPOSE_CONV, descriptor, infos, constants=constants)
    _clamped(network, network.outputs[0].name, data)
    return network, _run(data, data.array("input"))


def _fully_connected(data: DataSet, _functions: Sequence[str]) -> Translated:
    network = _network((data.number("INPUT_BATCHES"), data.number("INPUT_SIZE")))
    weights = data.array("weights_data").reshape(data.number("OUT_CH"), data.number("INPUT_SIZE"))
    _clamped(network, network.add_fully_connected_layer("x0", weights, _bias(data)), data)
    return network, _run(data, data.array("input_data"))


def _pool(data: DataSet, functions: Sequence[str]) -> Translated:
    window, strides, pads = (data.extents(each, "HW") for each in ("FILTER_", "STRIDE_", "PADDING_"))
    network = _network((data.number("BATCH_SIZE"), *data.extents("INPUT_", "HWC")))
    add = network.add_max_pool2d_layer if functions[0].startswith("max") else network.add_average_pool2d_layer
    padding = padding_of(data, (window[0], window[1]), (pads[0], pads[1]))
    name = add("x0", (window[0], window[1]), strides=(strides[0], strides[1]), padding=padding)
    _clamped(network, name, data)
    return network, _run(data, data.array("input_tensor"))


def _binary(data: DataSet, functions: Sequence[str]) -> Translated:
    operands = data.array("input1"), data.array("input2")
    network = _network(operands[0].shape, operands[1].shape)
    add = network.add_mul_layer if functions[0].startswith("elementwise_mul") else network.add_add_layer
    _clamped(network, add("x0", "x1"), data)
    return network, _run(data, *operands)


def _extremum(data: DataSet, _functions: Sequence[str]) -> Translated:
    axes = ("BATCH", "HEIGHT", "WIDTH", "CHANNEL")
    network = _network(*(tuple(data.number(f"{axis}_{index}") for axis in axes) for index in (1, 2)))
    add = network.add_maximum_layer if data.name.startswith("maximum") else network.add_minimum_layer
    network.set_outputs([add("x0", "x1")])
    return network, _run(data, data.array("input_tensor_1"), data.array("input_tensor_2"))


def _pad(data: DataSet, _functions: Sequence[str]) -> Translated:
    network = _network(data.extents("INPUT_"))
    sides = list(zip(data.extents("PRE_PAD_"), data.extents("POST_PAD_"), strict=True))
    network.set_outputs([network.add_pad_v2_layer("x0", sides, data.real("PAD_VALUE"))])
    return network, _run(data, data.array("input_tensor"))


def _concatenation(data: DataSet, _functions: Sequence[str]) -> Translated:
    shape = data.extents("INPUT_", "NHW")
    network = _network((*shape, data.number("LHS_C")), (*shape, data.number("RHS_C")))
    network.set_outputs([network.add_concatenation_layer(["x0", "x1"], 3)])
    return network, _run(data, data.array("lhs_input"), data.array("rhs_input"))


def _softmax(data: DataSet, _functions: Sequence[str]) -> Translated:
    network = _network((data.number("NUM_ROWS"), data.number("ROW_SIZE")))
    network.set_outputs([network.add_softmax_layer("x0")])
    return network, _run(data, data.array("input"))


def _transpose(data: DataSet, _functions: Sequence[str]) -> Translated:
    count = data.number("NUM_DIMS")
    network = _network(data.extents("INPUT_")[:count])
    network.set_outputs([network.add_transpose_layer("x0", data.extents("PERM_", "0123")[:count])])
    return network, _run(data, data.array("input_tensor"))


def _batch_matmul(data: DataSet, _functions: Sequence[str]) -> Translated:
    """Return a batched product; with ADJ_Y, the data has the right matrices as the product needs them."""
    left, right = data.matrices()
    adj_x, adj_y = (data.number(f"ADJ_{side}") == 1 for side in "XY")
    network = _network(left, (*right[:2], right[3], right[2]) if adj_y else right)
    _clamped(network, network.add_batch_matmul_layer("x0", "x1", adj_x=adj_x), data)
    first = "lhs_transposed_tensor" if adj_x else "lhs_input_tensor"
    return network, _run(data, data.array(first), data.array("rhs_input_tensor"))


def _activations(data: DataSet, _functions: Sequence[str]) -> Translated:
    network = _network((data.number("SIZE"),))
    outputs = {
        "hardswish": network.add_hard_swish_layer("x0"),
        "leaky_relu": network.add_leaky_relu_layer("x0", data.real("LEAKY_RELU_PARAM")),
        "sigmoid": network.add_logistic_layer("x0"),
        "tanh": network.add_tanh_layer("x0"),
    }
    network.set_outputs(outputs.values())
    return network, [Run([data.array("input")], [data.array(f"output_ref_{name}") for name in outputs])]


def _batch_norm(_data: DataSet, _functions: Sequence[str]) -> Translated:
    raise UnsupportedError("not translated: batch_norm_f32, which TensorFlow Lite does not have")


KINDS: Mapping[str, Callable[[DataSet, Sequence[str]], Translated]] = {
    "activation": _activations,
    "avg_pool": _pool,
    "batch_matmul": _batch_matmul,
    "batch_norm": _batch_norm,
    "concatenation": _concatenation,
    "convolve": _convolution,
    "depthwise_conv": _convolution,
    "elementwise": _binary,
    "fully_connected": _fully_connected,
    "max_pool": _pool,
    "maximum_minimum": _extremum,
    "pad": _pad,
    "softmax": _softmax,
    "transpose_conv": _transpose_conv,
    "transpose_f32": _transpose,
}
"""By the beginning of the function's name."""
