# SPDX-License-Identifier: Apache-2.0
"""Models that the reader refuses, and the places that it names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flatbuffer_tree import Table, one_operator_model, operator, quantization, table, tensor, write

from ferrule import formats
from ferrule.errors import BudgetError, FerruleError, ModelError, UnsupportedError
from ferrule.graph import DataType


def relu(**changes: Table) -> Table:
    """Return a valid model: RELU of four floats."""
    tensors = [changes.get("x", tensor("x", (1, 4))), changes.get("y", tensor("y", (1, 4)))]
    return one_operator_model("RELU", tensors, [0], [1])


def graph_of(model: Table) -> Table:
    return model["Subgraphs"][0]


def refused(model: Table | bytes, kind: type[FerruleError], *parts: str) -> FerruleError:
    """Assert that the import fails with this kind of error, in one line that contains all parts; return the error."""
    data = model if isinstance(model, bytes) else write(model)
    with pytest.raises(kind) as caught:
        formats.load(data, name="m.tflite")
    message = str(caught.value)
    assert type(caught.value) is kind, message
    assert message.startswith("m.tflite: ")
    assert "\n" not in message
    for part in parts:
        assert part in message
    return caught.value


def test_the_valid_model_is_valid() -> None:
    network = formats.load(write(relu()), name="m")
    assert [layer.name for layer in network.layers] == ["relu_0"]


# Places and kinds of tensors


@pytest.mark.parametrize(
    ("type_", "word", "remedy"),
    [("FLOAT16", "float16", "float32"), ("STRING", "string", "outside of the model"), ("INT4", "int4", "int8")],
)
def test_types_that_networks_lack(type_: str, word: str, remedy: str) -> None:
    error = refused(relu(x=tensor("x", (1, 4), type_)), UnsupportedError, "tensor 'x'", f"it is {word}")
    assert remedy in (error.hint or "")


def test_a_type_that_the_schema_lacks() -> None:
    x = tensor("x", (1, 4))
    x["Type"] = 99
    refused(relu(x=x), ModelError, "tensor 'x'", "number 99")


def test_variables_and_sparse_tensors() -> None:
    x = tensor("x", (1, 4))
    x["IsVariable"] = True
    refused(relu(x=x), UnsupportedError, "tensor 'x'", "variable")
    x = tensor("x", (1, 4))
    x["Sparsity"] = table("SparsityParameters")
    refused(relu(x=x), UnsupportedError, "tensor 'x'", "sparse")


def test_dynamic_shapes() -> None:
    error = refused(relu(x=tensor("x", (1, -1))), UnsupportedError, "tensor 'x'", "[1, -1]", "dynamic")
    assert "fixed shape" in (error.hint or "")
    x = tensor("x", (1, 4))
    x["ShapeSignature"] = np.array([-1, -1], np.int32)
    error = refused(relu(x=x), UnsupportedError, "tensor 'x'", "dynamic")
    assert "fixed shape" in (error.hint or "")


def test_an_open_batch_counts_as_1() -> None:
    x = tensor("x", (-1, 4))
    x["ShapeSignature"] = np.array([-1, 4], np.int32)
    assert formats.load(write(relu(x=x))).inputs[0].shape == (1, 4)


def test_absurd_shapes() -> None:
    refused(relu(x=tensor("x", (1, -4))), ModelError, "tensor 'x'", "[1, -4]")
    refused(relu(x=tensor("x", (65536, 65536))), ModelError, "tensor 'x'", "more than")
    refused(relu(x=tensor("x", (2**31 - 1,) * 8)), ModelError, "tensor 'x'", "more than")
    refused(relu(x=tensor("x", (1,) * 9)), UnsupportedError, "tensor 'x'", "9 dimensions")


def test_quantisation_that_makes_no_sense() -> None:
    def with_quantization(scales: list[float], zero_points: list[int], axis: int = 0) -> Table:
        return relu(x=tensor("x", (1, 4), "INT8", quantization=quantization(scales, zero_points, axis)))

    refused(with_quantization([0.0], [0]), ModelError, "tensor 'x'", "scale is 0.0")
    refused(with_quantization([float("nan")], [0]), ModelError, "tensor 'x'", "scale is nan")
    refused(with_quantization([-1.0], [0]), ModelError, "tensor 'x'", "scale is -1.0")
    refused(with_quantization([1.0], [200]), ModelError, "tensor 'x'", "zero point 200")
    refused(with_quantization([1.0], []), ModelError, "tensor 'x'", "0 zero points")
    refused(with_quantization([1.0, 1.0], [0, 0], 1), ModelError, "tensor 'x'", "2 scales on axis 1")
    refused(with_quantization([1.0] * 4, [0] * 4, 7), ModelError, "tensor 'x'", "axis 7")
    custom = relu(x=tensor("x", (1, 4), "INT8", quantization=table("QuantizationParameters", DetailsType=1)))
    refused(custom, UnsupportedError, "tensor 'x'", "custom quantisation")


def test_one_zero_point_serves_all_channels() -> None:
    scales = quantization([0.5, 0.25], [3], axis=1)
    model = one_operator_model(
        "RESHAPE",
        [tensor(name, (1, 2), "INT8", quantization=scales) for name in "xy"],
        [0],
        [1],
        table("ReshapeOptions", NewShape=np.array([1, 2], np.int32)),
    )
    found = formats.load(write(model)).inputs[0].quantization
    assert found is not None
    assert found.zero_points == (3, 3)


def test_floats_drop_their_quantisation() -> None:
    x = tensor("x", (1, 4), quantization=quantization([0.0], [0]))
    assert formats.load(write(relu(x=x))).inputs[0].quantization is None


def test_tensors_of_one_dimension_have_one_axis() -> None:
    """person_detect.tflite of TensorFlow Lite Micro gives axis 3 to the biases of its depthwise convolutions."""
    unit = quantization([1.0], [0])
    tensors = [
        tensor("x", (1, 3, 3, 1), "INT8", quantization=unit),
        tensor("weights", (1, 3, 3, 2), "INT8", 1, quantization([0.5, 0.25], [0, 0], axis=3)),
        tensor("bias", (2,), "INT32", 2, quantization([0.5, 0.25], [0, 0], axis=3)),
        tensor("y", (1, 1, 1, 2), "INT8", quantization=unit),
    ]
    options = table("DepthwiseConv2DOptions", Padding=1, StrideW=1, StrideH=1, DepthMultiplier=2)
    model = one_operator_model(
        "DEPTHWISE_CONV_2D",
        tensors,
        [0, 1, 2],
        [3],
        options,
        graph_inputs=[0],
        buffers=(bytes(range(18)), np.array([7, -9], "<i4").tobytes()),
    )
    network = formats.load(write(model))
    quantized = network.info("bias").quantization
    assert quantized is not None
    assert (quantized.scales, quantized.axis) == ((0.5, 0.25), 0)
    image = np.arange(9, dtype=np.int8).reshape(1, 3, 3, 1)
    sums = [int((np.arange(9) * np.arange(channel, 18, 2)).sum()) for channel in (0, 1)]
    assert network.run([image])[0].ravel().tolist() == [min(127, round(sums[0] / 2 + 3.5)), min(127, sums[1] // 4 - 2)]


# Every operator that is refused


def chain(*types: str) -> Table:
    """Return a model whose operators read one another's outputs."""
    import tflite

    model = relu()
    codes = [getattr(tflite.BuiltinOperator, type_) for type_ in types]
    model["OperatorCodes"] = [table("OperatorCode", DeprecatedBuiltinCode=code, BuiltinCode=code) for code in codes]
    graph_of(model)["Tensors"] = [tensor(f"t{index}", (1, 4)) for index in range(len(types) + 1)]
    graph_of(model)["Operators"] = [operator([index], [index + 1], code=index) for index in range(len(types))]
    graph_of(model)["Outputs"] = np.array([len(types)], np.int32)
    return model


def lines_of(model: Table, kind: type[FerruleError]) -> list[str]:
    with pytest.raises(FerruleError) as caught:
        formats.load(write(model), name="m.tflite")
    assert type(caught.value) is kind
    return str(caught.value).splitlines()


def test_every_refused_operator_is_listed() -> None:
    head, *lines = lines_of(chain("RELU", "CALL", "LSTM", "RELU", "RNN"), UnsupportedError)
    assert head == "m.tflite: 3 operators cannot be used:"
    assert lines == [
        "  operator 1 CALL -> tensor 't2': calls of other functions are not supported, except IF, WHILE and CALL_ONCE",
        "  operator 2 LSTM -> tensor 't3': this operator is not supported",
        "  operator 4 RNN -> tensor 't5': this operator is not supported",
    ]
    head, *lines = lines_of(chain(*["LSTM"] * 50), UnsupportedError)
    assert head == "m.tflite: 50 operators cannot be used:"
    assert (len(lines), lines[-1]) == (21, "  and 30 more")


def test_readers_of_a_malformed_tensor_are_not_blamed() -> None:
    model = chain("RELU", "LSTM", "RELU", "RELU")
    graph_of(model)["Tensors"][1]["Type"] = 99
    graph_of(model)["Operators"][2] = operator([0], [3], code=2)
    graph_of(model)["Tensors"][3:] = [tensor("t3", (1, 5)), tensor("t4", (1, 5))]
    head, *lines = lines_of(model, ModelError)
    assert head == "m.tflite: 3 operators cannot be used:"
    assert lines[0].startswith("  operator 0 RELU -> tensor 't1': tensor 't1': its type is number 99")
    assert lines[1] == "  operator 1 LSTM -> tensor 't2': this operator is not supported"
    assert lines[2].startswith("  operator 2 RELU -> tensor 't3': output 't3' has shape [1, 5], expected [1, 4]")


def test_what_the_kernels_refuse_is_refused_at_load() -> None:
    x = tensor("x", (1, 4), "INT8", quantization=quantization([0.5], [0]))
    y = tensor("y", (1, 4), "INT16", quantization=quantization([0.5], [0]))
    refused(relu(x=x, y=y), UnsupportedError, "operator 0 RELU -> tensor 'y'", "int16")


# Buffers and constants


def add_constant(data: bytes, buffer: int = 1, shape: tuple[int, ...] = (4,)) -> Table:
    tensors = [tensor("x", (1, 4)), tensor("c", shape, buffer=buffer), tensor("y", (1, 4))]
    return one_operator_model("ADD", tensors, [0, 1], [2], buffers=(data,))


def test_constants_are_read_only_and_exact() -> None:
    values = np.array([1, -2, 0.1, np.inf], "<f4")
    data = formats.load(write(add_constant(values.tobytes()))).tensor("c").data
    assert data is not None
    assert data.tobytes() == values.tobytes()
    assert data.flags.aligned
    with pytest.raises(ValueError, match="read-only"):
        data[0] = 1


def test_buffers_of_another_size() -> None:
    refused(add_constant(bytes(15)), ModelError, "operator 0 ADD -> tensor 'y'", "tensor 'c'", "15 bytes, expected 16")
    refused(add_constant(bytes(16), shape=(2**30,)), ModelError, "tensor 'c'", "more than")
    refused(add_constant(bytes(16), buffer=7), ModelError, "tensor 'c'", "number 7")


def behind(values: bytes, offset: int, size: int) -> bytes:
    """Return a file whose constant is said to lie at an offset, with `values` at the offset 4096."""
    model = add_constant(bytes(16))
    model["Buffers"][1] = table("Buffer", Offset=offset, Size=size)
    return write(model).ljust(4096, b"\0") + values


def test_buffers_behind_the_flatbuffer() -> None:
    values = np.array([1, -2, 0.1, np.inf], "<f4")
    data = formats.load(behind(values.tobytes(), 4096, 16)).tensor("c").data
    assert data is not None
    assert data.tobytes() == values.tobytes()
    assert not data.flags.writeable
    for offset, size in ((4100, 16), (0, 16), (2**40, 16), (4096, 2**40)):
        with pytest.raises(ModelError, match=rf"buffer 1 has {size} B at {offset} of the file, which has 4112 B"):
            formats.load(behind(values.tobytes(), offset, size))


def test_inputs_and_outputs_must_not_have_data() -> None:
    model = relu(x=tensor("x", (1, 4), buffer=1))
    model["Buffers"].append(table("Buffer", Data=bytes(16)))
    refused(model, ModelError, "graph inputs", "tensor 'x'")
    model = relu(y=tensor("y", (1, 4), buffer=1))
    model["Buffers"].append(table("Buffer", Data=bytes(16)))
    refused(model, ModelError, "operator 0 RELU", "'y' has data")


def test_bools_are_0_or_1() -> None:
    model = one_operator_model(
        "CONCATENATION",
        [tensor("x", (1, 2), "BOOL"), tensor("c", (1, 2), "BOOL", buffer=1), tensor("y", (1, 4), "BOOL")],
        [0, 1],
        [2],
        table("ConcatenationOptions", Axis=1),
        buffers=(b"\x01\x02",),
    )
    refused(model, ModelError, "tensor 'c'", "byte 2")


# Operators


def test_custom_operators_are_refused_by_name() -> None:
    model = relu()
    model["OperatorCodes"] = [table("OperatorCode", DeprecatedBuiltinCode=32, CustomCode="foo", BuiltinCode=32)]
    refused(model, UnsupportedError, "operator 0 CUSTOM 'foo' -> tensor 'y'", "custom")
    for code, compiler in (("edgetpu-custom-op", "edgetpu_compiler"), ("ethos-u", "Vela"), ("NeutronGraph", "Neutron")):
        model["OperatorCodes"][0]["CustomCode"] = code
        error = refused(model, UnsupportedError, f"CUSTOM '{code}'", "compiled by", compiler)
        assert "from which it was compiled" in (error.hint or "")


def test_operators_that_are_not_supported() -> None:
    for type_, word, remedy in (
        ("CALL", "calls of other functions", "inlined"),
        ("STABLEHLO_ADD", "StableHLO", "builtin operators"),
        ("LSTM", "not supported", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
        ("HASHTABLE_FIND", "not supported", "outside of the model"),
        ("SEGMENT_SUM", "not supported", "docs/operators.md"),
    ):
        model = one_operator_model(type_, [tensor("x", (1, 4)), tensor("y", (1, 4))], [0], [1])
        error = refused(model, UnsupportedError, f"operator 0 {type_} -> tensor 'y'", word)
        assert remedy in (error.hint or "")
    for code, remedy in (
        ({"BuiltinCode": 9999}, "newer Ferrule"),
        ({"CustomCode": "FlexFFT"}, "SELECT_TF_OPS"),
        ({"CustomCode": "FlexTensorListStack"}, "unroll=True"),
    ):
        model = relu()
        custom = {"BuiltinCode": 32, "DeprecatedBuiltinCode": 32} if "CustomCode" in code else {}
        model["OperatorCodes"] = [table("OperatorCode", **code, **custom)]
        assert remedy in (refused(model, UnsupportedError, "operator 0 ").hint or "")


def test_a_scalar_has_no_axis() -> None:
    options = table("SplitOptions", NumSplits=1)
    tensors = [tensor("axis", (), "INT32", 1), tensor("x", ()), tensor("y", ())]
    model = one_operator_model(
        "SPLIT", tensors, [0, 1], [2], options, graph_inputs=[1], buffers=(np.zeros(1, np.int32).tobytes(),)
    )
    refused(model, ModelError, "SPLIT", "axis is 0", "a scalar, which has none")


def test_operator_codes_and_tensor_indices_out_of_range() -> None:
    model = relu()
    graph_of(model)["Operators"] = [operator([0], [1], code=5)]
    refused(model, ModelError, "operator 0", "number 5")
    for inputs, outputs in (([9], [1]), ([-2], [1]), ([0], [9]), ([0], [-1])):
        model = relu()
        graph_of(model)["Operators"] = [operator(inputs, outputs)]
        refused(model, ModelError, "operator 0 RELU", "does not exist")
    for end in ("Inputs", "Outputs"):
        model = relu()
        graph_of(model)[end] = np.array([0, 77], np.int32)
        refused(model, ModelError, f"graph {end.lower()}", "tensor 77")


def test_wrong_numbers_of_inputs_and_outputs() -> None:
    for inputs, outputs, message in (
        ([0, 0], [1], "2 inputs, expected 1"),
        ([0], [], "0 outputs, expected 1"),
        ([-1], [1], "tensor -1 does not exist"),
    ):
        model = relu()
        graph_of(model)["Operators"] = [operator(inputs, outputs)]
        refused(model, ModelError, "operator 0 RELU", message)


def test_the_order_of_operators() -> None:
    model = relu()
    graph_of(model)["Tensors"].append(tensor("z", (1, 4)))
    graph_of(model)["Operators"] = [operator([2], [1]), operator([0], [2])]
    refused(model, ModelError, "operator 0 RELU", "tensor 'z' is read before")
    graph_of(model)["Operators"] = [operator([0], [1]), operator([0], [1])]
    refused(model, ModelError, "operator 1 RELU", "'y' already")
    graph_of(model)["Operators"] = [operator([0], [0])]
    refused(model, ModelError, "operator 0 RELU", "'x' already")
    graph_of(model)["Operators"] = [operator([0], [2])]
    refused(model, ModelError, "graph outputs", "'y' is read before")


def test_no_outputs_and_doubled_inputs() -> None:
    model = relu()
    graph_of(model)["Outputs"] = np.array([], np.int32)
    refused(model, ModelError, "graph outputs")
    model = relu()
    graph_of(model)["Inputs"] = np.array([0, 0], np.int32)
    refused(model, ModelError, "graph inputs", "'x' already")


def test_a_model_without_a_subgraph_is_refused() -> None:
    model = relu()
    model["Subgraphs"] = []
    refused(model, ModelError, "no subgraph")


def test_the_schema_version() -> None:
    model = relu()
    model["Version"] = 2
    refused(model, ModelError, "schema version is 2")


# Options


def convolution(options: Table | None, weights: str = "FLOAT32", image: tuple[int, ...] = (1, 4, 4, 1)) -> Table:
    size = 9 * (4 if weights == "FLOAT32" else 1)
    scale = None if weights == "FLOAT32" else quantization([0.5], [0])
    tensors = [
        tensor("image", image),
        tensor("weights", (1, 3, 3, 1), weights, buffer=1, quantization=scale),
        tensor("y", (1, 2, 2, 1)),
    ]
    return one_operator_model("CONV_2D", tensors, [0, 1], [2], options, buffers=(bytes(size),))


def conv_options(**fields: int) -> Table:
    return table("Conv2DOptions", **({"Padding": 1, "StrideW": 1, "StrideH": 1} | fields))


def test_the_convolution_is_valid() -> None:
    assert formats.load(write(convolution(conv_options()))).layers[0].type == "CONV_2D"


def test_options_that_are_absent_or_another_operators() -> None:
    refused(convolution(None), ModelError, "operator 0 CONV_2D -> tensor 'y'", "no options, expected Conv2DOptions")
    refused(convolution(table("Pool2DOptions")), ModelError, "number 5", "Conv2DOptions")


def test_options_out_of_range() -> None:
    refused(convolution(conv_options(StrideW=0)), ModelError, "strides are [1, 0]")
    refused(convolution(conv_options(StrideH=-3)), ModelError, "strides are [-3, 1]")
    refused(convolution(conv_options(DilationHFactor=0)), ModelError, "dilation factors are [0, 1]")
    refused(convolution(conv_options(Padding=7)), ModelError, "padding is number 7")
    refused(convolution(conv_options(Padding=0, DilationWFactor=2**30)), UnsupportedError, "2147483649 pixels")
    refused(convolution(conv_options(FusedActivationFunction=4)), UnsupportedError, "TANH")
    refused(convolution(conv_options(FusedActivationFunction=5)), UnsupportedError, "SIGN_BIT")
    refused(convolution(conv_options(FusedActivationFunction=77)), ModelError, "number 77")
    refused(convolution(conv_options(), image=(4, 4)), UnsupportedError, "tensor 'image'", "4 dimensions")


def test_hybrid_layers_are_refused_by_that_word() -> None:
    error = refused(convolution(conv_options(), "INT8"), UnsupportedError, "hybrid", "'image'", "'weights'")
    assert "dynamic-range" in str(error.hint)


@pytest.mark.parametrize("channels", [1, 3])
def test_hybrid_weights_become_float32_on_request(channels: int) -> None:
    stored = (np.arange(9 * channels) - 4 * channels).astype(np.int8)
    scales = [0.5, 0.25, 3.0][:channels]
    tensors = [
        tensor("image", (1, 4, 4, 1)),
        tensor("weights", (channels, 3, 3, 1), "INT8", buffer=1, quantization=quantization(scales, [0] * channels)),
        tensor("y", (1, 2, 2, channels)),
    ]
    model = write(one_operator_model("CONV_2D", tensors, [0, 1], [2], conv_options(), buffers=(stored.tobytes(),)))
    refused(model, UnsupportedError, "hybrid")
    network = formats.load(model, dequantize_weights=True)
    weights = network.tensor("weights")
    assert (weights.info.dtype, weights.info.quantization) == (DataType.FLOAT32, None)
    expected = stored.reshape(channels, 3, 3, 1) * np.float32(scales).reshape(-1, 1, 1, 1)
    assert weights.data is not None
    assert np.array_equal(weights.data, expected)
    (output,) = network.run([np.ones((1, 4, 4, 1), np.float32)])
    assert np.allclose(output[0, 0, 0], expected.sum(axis=(1, 2, 3)))


def test_hybrid_weights_without_a_scale_are_refused() -> None:
    tensors = [
        tensor("image", (1, 4, 4, 1)),
        tensor("weights", (1, 3, 3, 1), "INT8", buffer=1),
        tensor("y", (1, 2, 2, 1)),
    ]
    model = write(one_operator_model("CONV_2D", tensors, [0, 1], [2], conv_options(), buffers=(bytes(9),)))
    with pytest.raises(ModelError, match=r"tensor 'weights': it has no scale, expected quantised weights"):
        formats.load(model, dequantize_weights=True)


def test_shuffled_weights() -> None:
    tensors = [tensor("x", (1, 4)), tensor("w", (2, 4), buffer=1), tensor("y", (1, 2))]
    options = table("FullyConnectedOptions", WeightsFormat=1)
    model = one_operator_model("FULLY_CONNECTED", tensors, [0, 1], [2], options, buffers=(bytes(32),))
    refused(model, UnsupportedError, "operator 0 FULLY_CONNECTED", "shuffled")


def with_parameter(
    type_: str, values: np.ndarray | None, options: Table | None = None, source: tuple[int, ...] = (1, 4)
) -> Table:
    """Return a model with one data input and a parameter: a constant, or computed if `values` is None."""
    given = np.zeros(1, np.int32) if values is None else values
    name = "INT64" if given.dtype == np.int64 else "FLOAT32" if given.dtype == np.float32 else "INT32"
    tensors = [
        tensor("x", source),
        tensor("p", given.shape, name, buffer=0 if values is None else 1),
        tensor("y", (1, 4)),
    ]
    return one_operator_model(
        type_,
        tensors,
        [0, 1],
        [2],
        options,
        graph_inputs=[0, 1] if values is None else None,
        buffers=() if values is None else (values.tobytes(),),
    )


@pytest.mark.parametrize("type_", ["MEAN", "SUM", "RESHAPE", "EXPAND_DIMS", "TRANSPOSE", "PAD"])
def test_parameters_that_are_computed(type_: str) -> None:
    refused(with_parameter(type_, None), UnsupportedError, f"operator 0 {type_}", "tensor 'p'", "run time")


def test_parameters_out_of_range() -> None:
    def parameter(type_: str, *values: int) -> Table:
        return with_parameter(type_, np.array(values, np.int32))

    refused(parameter("MEAN", 2), ModelError, "axis is 2, expected -2 to 1")
    refused(parameter("SUM", -3), ModelError, "axis is -3")
    refused(parameter("EXPAND_DIMS", 3), ModelError, "axis is 3, expected -3 to 2")
    refused(parameter("EXPAND_DIMS", 1, 2), ModelError, "2 elements, expected 1")
    refused(parameter("TRANSPOSE", 0, 0), ModelError, "permutation is [0, 0]")
    refused(parameter("TRANSPOSE", 0), ModelError, "permutation is [0]")
    refused(parameter("RESHAPE", -1, -1), ModelError, "new shape is [-1, -1]")
    refused(parameter("RESHAPE", 0, 4), ModelError, "new shape is [0, 4]")
    refused(parameter("PAD", 1, 1), ModelError, "shape [2], expected [2, 2]")
    refused(with_parameter("PAD", np.array([[0, 0], [0, -1]], np.int32)), ModelError, "down to -1")
    refused(with_parameter("MEAN", np.array([0], np.float32)), ModelError, "it is float32")


def test_parameters_without_elements() -> None:
    def empty(shape: tuple[int, ...]) -> Table:
        model = with_parameter("MEAN", None)
        graph_of(model)["Tensors"][1] = tensor("p", shape, "INT32")
        graph_of(model)["Inputs"] = np.array([0], np.int32)
        return model

    assert formats.load(write(empty((0,)))).layers[0].descriptor.axes == ()
    for shape in ((-1, 0), (0, 2**31 - 1, 2**31 - 1, 2**31 - 1), (0,) * 100):
        refused(empty(shape), UnsupportedError, "operator 0 MEAN", "tensor 'p'", "run time")


def test_parameters_of_int64_and_negative_axes() -> None:
    model = with_parameter("MEAN", np.array([-1, 1], np.int64))
    graph_of(model)["Tensors"][2] = tensor("y", (1,))
    layer = formats.load(write(model)).layers[0]
    assert layer.descriptor.axes == (1,)
    assert layer.inputs == ("x",)


def test_slices_out_of_range() -> None:
    def sliced(begin: list[int], size: list[int]) -> Table:
        tensors = [tensor("x", (1, 4)), tensor("b", (2,), "INT32", 1), tensor("s", (2,), "INT32", 2)]
        tensors.append(tensor("y", (1, 4)))
        buffers = (np.array(begin, np.int32).tobytes(), np.array(size, np.int32).tobytes())
        return one_operator_model("SLICE", tensors, [0, 1, 2], [3], buffers=buffers)

    assert formats.load(write(sliced([0, 0], [1, -1]))).layers[0].inputs == ("x",)
    refused(sliced([0, 2], [1, 3]), ModelError, "size [1, 3]")
    refused(sliced([0, 5], [1, -1]), ModelError, "begin [0, 5]")
    refused(sliced([-1, 0], [1, 4]), ModelError, "begin [-1, 0]")
    refused(sliced([0, 0], [1, -2]), ModelError, "size [1, -2]")


def strided(
    begin: list[int], end: list[int], strides: list[int], result: tuple[int, ...] = (2, 6), **options: int
) -> Table:
    tensors = [tensor("x", (2, 6)), tensor("y", result)]
    tensors += [tensor(n, (len(begin),), "INT32", i) for i, n in enumerate(("begin", "end", "strides"), 1)]
    buffers = tuple(np.array(values, np.int32).tobytes() for values in (begin, end, strides))
    return one_operator_model(
        "STRIDED_SLICE", tensors, [0, 2, 3, 4], [1], table("StridedSliceOptions", **options), buffers=buffers
    )


def test_strided_slices() -> None:
    refused(strided([0, 0], [2, 6], [1, 0]), ModelError, "strides are [1, 0]")
    refused(strided([0, 0, 0], [2, 6, 1], [1, 1, 1]), ModelError, "at most 2")


def test_strided_slices_of_the_first_axes_keep_the_others() -> None:
    descriptor = formats.load(write(strided([0], [2], [1]))).layers[0].descriptor
    assert (descriptor.begin, descriptor.end, descriptor.strides) == ((0, 0), (2, 0), (1, 1))
    assert (descriptor.begin_mask, descriptor.end_mask) == (2, 2)


def test_strided_slices_whose_end_is_an_offset() -> None:
    descriptor = formats.load(write(strided([0, -4], [2, 3], [1, 1], (2, 3), Offset=True))).layers[0].descriptor
    assert (descriptor.begin, descriptor.end) == ((0, -4), (2, 5))


def test_splits_must_match_their_outputs() -> None:
    tensors = [tensor("a", (), "INT32", 1), tensor("x", (1, 4)), tensor("y", (1, 4))]
    axis = np.array(1, np.int32).tobytes()
    model = one_operator_model(
        "SPLIT", tensors, [0, 1], [2], table("SplitOptions", NumSplits=3), graph_inputs=[1], buffers=(axis,)
    )
    refused(model, ModelError, "operator 0 SPLIT", "splits into 3, but has 1 outputs")


def test_fused_activations_of_concatenations() -> None:
    options = table("ConcatenationOptions", Axis=1, FusedActivationFunction=1)
    model = one_operator_model("CONCATENATION", [tensor("x", (1, 4)), tensor("y", (1, 4))], [0], [1], options)
    refused(model, UnsupportedError, "operator 0 CONCATENATION", "fused activation")


def test_numbers_that_are_not_finite() -> None:
    options = table("SoftmaxOptions", Beta=float("nan"))
    model = one_operator_model("SOFTMAX", [tensor("x", (1, 4)), tensor("y", (1, 4))], [0], [1], options)
    refused(model, ModelError, "operator 0 SOFTMAX", "beta is nan")


def test_fills_must_be_quantised_as_the_output() -> None:
    pads = np.zeros((2, 2), np.int32).tobytes()

    def padded(type_: str, fill: Table) -> Table:
        scale = quantization([0.5], [0])
        tensors = [
            tensor("x", (1, 4), type_, quantization=scale),
            tensor("pads", (2, 2), "INT32", 1),
            fill,
            tensor("y", (1, 4), type_, quantization=scale),
        ]
        return one_operator_model("PADV2", tensors, [0, 1, 2], [3], buffers=(pads, b"\x05"))

    fill = tensor("fill", (), "INT8", 2, quantization([0.25], [0]))
    refused(padded("INT8", fill), UnsupportedError, "fill 'fill'", "another quantisation")
    fill = tensor("fill", (), "INT8", 2, quantization([0.5], [0]))
    assert formats.load(write(padded("INT8", fill))).layers[0].descriptor.value == 5
    refused(padded("INT16", fill), ModelError, "fill 'fill' is int8, expected int16")


def test_outputs_of_another_shape_than_the_operator_gives() -> None:
    model = convolution(conv_options())
    graph_of(model)["Tensors"][2] = tensor("y", (1, 2, 3, 1))
    refused(model, ModelError, "operator 0 CONV_2D", "output 'y' has shape [1, 2, 3, 1], expected [1, 2, 2, 1]")


def test_fills_are_numbers() -> None:
    pads = np.zeros((2, 2), np.int32).tobytes()
    tensors = [tensor("x", (1, 4)), tensor("pads", (2, 2), "INT32", 1), tensor("fill", (), buffer=2)]
    for value, fits in ((np.nan, False), (-np.inf, True)):
        buffers = (pads, np.float32(value).tobytes())
        model = one_operator_model("PADV2", [*tensors, tensor("y", (1, 4))], [0, 1, 2], [3], buffers=buffers)
        if fits:
            assert formats.load(write(model)).layers[0].descriptor.value == value
        else:
            refused(model, ModelError, "operator 0 PADV2", "fill 'fill' is nan")


def test_a_bias_that_is_listed_as_absent() -> None:
    model = convolution(conv_options())
    graph_of(model)["Operators"][0]["Inputs"] = np.array([0, 1, -1], np.int32)
    assert formats.load(write(model)).layers[0].inputs == ("image", "weights")


# Names


def test_empty_and_repeated_names_are_numbered() -> None:
    model = relu(x=tensor("same", (1, 4)), y=tensor("same", (1, 4)))
    network = formats.load(write(model))
    assert (network.inputs[0].name, network.outputs[0].name) == ("same", "same_2")
    model = relu(x=tensor("", (1, 4)), y=tensor("", (1, 4)))
    network = formats.load(write(model))
    assert (network.inputs[0].name, network.outputs[0].name) == ("tensor_0", "tensor_1")


def test_many_repeated_names_do_not_take_for_ever() -> None:
    model = relu()
    graph_of(model)["Tensors"] += [tensor("same", ()) for _ in range(5000)]
    assert len(formats.load(write(model)).layers) == 1


def test_names_stay_on_one_line() -> None:
    model = relu(x=tensor("a\nb\x1b[31m", (1, 0)))
    refused(model, ModelError, "tensor 'a_b_[31m'")


def test_the_name_of_the_network(tmp_path: Path) -> None:
    path = tmp_path / "my_model.tflite"
    path.write_bytes(write(relu()))
    assert formats.load(path).name == "my_model"
    assert formats.load(path, name="other").name == "other"
    assert formats.load(path.read_bytes()).name == "model"


# Files


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.tflite", tmp_path, tmp_path / "a\0b"):
        with pytest.raises(ModelError):
            formats.load(path)


def test_files_that_are_too_large(tmp_path: Path) -> None:
    path = tmp_path / "huge.tflite"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BudgetError, match=r"huge\.tflite takes 1,099,511,627,776 bytes of memory"):
        formats.load(path)


def test_files_of_another_format() -> None:
    refused(b"", ModelError, "empty")
    refused(b"PK\x03\x04" * 4, ModelError, "an archive in zip")
    refused(b"abcd" * 4, ModelError, "expected 54 46 4c 33")
    refused(bytes(4) + b"TFL3" + bytes(8), ModelError, "Model", "outside the file")


def test_truncated_files() -> None:
    data = write(relu())
    for size in range(len(data)):
        with pytest.raises(ModelError):
            formats.load(data[:size])
