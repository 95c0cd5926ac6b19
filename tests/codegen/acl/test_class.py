# SPDX-License-Identifier: Apache-2.0
"""The generated class as text, and its parameter file: names, order, refusals; nothing is compiled here."""

from __future__ import annotations

import hashlib
import re
import zlib
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from state_networks import running_sum

import ferrule
from ferrule.codegen.acl import (
    TARGETS,
    AclArtifact,
    AclOptions,
    ArtifactRecord,
    explain_class,
    generate_class,
    read_record,
)
from ferrule.codegen.acl.support import supported
from ferrule.codegen.acl.table import REASONS, ROWS
from ferrule.codegen.c_writer import CWriter
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import DataType, Graph, GraphEditor, Layer, LayerType, Quantization, Rounding, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.table import BEYOND_TFLITE, OPERATORS
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case

GPU, CPU = "arm-gpu-c++", "arm-cpu-c++"


def network(name: str = "tiny") -> ferrule.Network:
    """Return a small network with weights, an activation of its own and a flatten."""
    rng = np.random.default_rng(1)
    net = ferrule.Network(name)
    x = net.add_input(TensorInfo("x", (1, 4, 4, 3), DataType.FLOAT32))
    weights, biases = (rng.standard_normal(shape).astype("f4") for shape in ((5, 3, 3, 3), (5,)))
    y = net.add_conv2d_layer(x, weights, biases, name="y")
    z = net.add_add_layer(y, y, activation=Activation.RELU, name="z")
    flat = net.add_reshape_layer(z, (1, 20), name="flat")
    net.set_outputs([flat])
    return net


def text(artifact: AclArtifact, suffix: str) -> str:
    return artifact.files[f"{artifact.name}.{suffix}"].decode()


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_network_makes_the_same_files(target: str) -> None:
    first, second = (generate_class(network(), target=target) for _ in range(2))
    assert first.files == second.files
    assert list(first.files) == ["AclArtifact.h", "AclArtifact.cpp", "AclArtifact.par", "AclArtifact.par.json"]


def test_the_constructor_configures_allocates_and_loads_in_this_order() -> None:
    source = text(generate_class(network(), target=GPU), "cpp")
    configured = [match.start() for match in re.finditer(r"\.configure\(", source)]
    allocated = [match.start() for match in re.finditer(r"->allocate\(\)", source)]
    loaded = [match.start() for match in re.finditer(r"acl_parameters::read\(", source)]
    tensors = re.findall(
        r"^    arm_compute::CLTensor (_\w+);", text(generate_class(network(), target=GPU), "h"), re.MULTILINE
    )
    assert len(allocated) == len(tensors) == len(set(tensors))
    assert configured
    assert max(configured) < min(allocated) < max(allocated) < min(loaded)
    assert "init_auto_padding" not in source
    assert re.search(r"sync\(\);\n}", source)
    assert source.count(".map()") == source.count(".unmap()") == len(loaded) == 2


def test_each_target_has_names_of_its_own_only() -> None:
    gpu, cpu = (generate_class(network(), target=target) for target in (GPU, CPU))
    for artifact, wrong in ((gpu, r"\bNE[A-Z]|arm_compute::Tensor\b|NEON/"), (cpu, r"\bI?CL[A-Z]|\bmap\(|sync\(|CL/")):
        for suffix in ("h", "cpp"):
            assert not re.search(wrong, text(artifact, suffix)), wrong
    translated = text(gpu, "h").replace("CLTensor", "Tensor")
    assert re.findall(r"get_\w+|getInput|getOutput", translated) == re.findall(
        r"get_\w+|getInput|getOutput", text(cpu, "h")
    )


def test_the_class_has_the_members_of_the_design() -> None:
    header = text(generate_class(network(), target=GPU, name="Tiny"), "h")
    for line in (
        "class Tiny",
        "Tiny();",
        "Tiny(const std::string &path);",
        "void Inference();",
        "arm_compute::CLTensor &get_x();",
        "arm_compute::CLTensor &get_flat();",
        "arm_compute::CLTensor &getInput();",
        "arm_compute::CLTensor &getOutput();",
        "std::ifstream _parIn;",
        "arm_compute::CLTensor _y_conv_2d_weights;",
        "arm_compute::CLConvolutionLayer _y_conv_2d_layer;",
    ):
        assert line in header, line
    assert header.index("private:") < header.index("_parIn")


def test_several_inputs_and_outputs_have_no_short_getters() -> None:
    net = ferrule.Network("two")
    names = [net.add_input(TensorInfo(n, (2,), DataType.FLOAT32)) for n in ("a", "b")]
    net.set_outputs([net.add_add_layer(*names, name="c"), net.add_mul_layer(*names, name="d")])
    header = text(generate_class(net, target=CPU), "h")
    assert "getInput" not in header
    assert "getOutput" not in header


def test_names_that_collide_are_numbered_and_listed() -> None:
    net = ferrule.Network("names")
    x = net.add_input(TensorInfo("in/1", (2,), DataType.FLOAT32))
    last = x
    for name in ("in:1", "in_1", "In 1", "class", "9x", "ü", "parIn", "a;b;Wide__name", "*/ int evil; /*"):
        last = net.add_relu_layer(last, name=name)
    net.set_outputs([last])
    artifact = generate_class(net, target=GPU)
    getters = [tensor.getter for tensor in artifact.record.tensors]
    assert len(set(getters)) == len(getters)
    assert all(re.fullmatch(r"get_[0-9A-Za-z]+(_[0-9A-Za-z]+)*", getter) for getter in getters), getters
    header = text(artifact, "h")
    listed = header[: header.index("#ifndef")]
    for tensor in artifact.record.tensors:
        if tensor.getter != f"get_{tensor.name}":
            assert f"{tensor.getter}()" in listed
    members = re.findall(r" (_\w+);", header)
    assert len(set(members)) == len(members)
    assert not any(re.match(r"_[A-Z]|.*__", member) for member in members)
    assert "*/ int evil" not in header


BAD_NAMES = ("", "1a", "a b", "a__b", "class", "_A", "arm_compute", "Ä", "a;", "../a")
METHODS = ("Inference", "getInput", "afterLayer", "get_x", "std", "acl_parameters")


@pytest.mark.parametrize("bad", [*BAD_NAMES, *METHODS, "a" * 101])
def test_names_of_classes_are_checked(bad: str) -> None:
    with pytest.raises(FerruleError, match="cannot be named"):
        generate_class(network(), target=GPU, name=bad)


def test_names_that_begin_with_a_digit_are_names_of_variables_too() -> None:
    net = ferrule.Network("digits")
    x = net.add_input(TensorInfo("0", (1, 2), DataType.FLOAT32))
    y = net.add_fully_connected_layer(x, np.ones((2, 2), np.float32), name="1")
    joined = net.add_concatenation_layer([x, y], 1, name="2")
    net.set_outputs(net.add_split_layer(joined, 1, 2, name="3"))
    source = text(generate_class(net, target=CPU), "cpp")
    assert re.findall(r"FullyConnectedLayerInfo (\w+);", source) == ["of_1_fully_connected_info"]
    assert re.findall(r"std::vector<.*> (\w+) =", source) == ["of_2_concatenation_inputs", "of_3_0_split_outputs"]


@pytest.mark.parametrize("made", ["x", "weights"])
def test_outputs_that_no_layer_writes_are_refused(made: str) -> None:
    net = network()
    constant = next(name for name in net.layers[0].inputs[1:] if name is not None)
    net.set_outputs([{"x": "x", "weights": constant}[made]])
    with pytest.raises(UnsupportedError, match=r"output '\w+': it is an? \w+, and no layer writes it"):
        generate_class(net, target=GPU)


def test_a_network_with_state_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"keeps 'sum' from run to run, which a class over the Arm Compute"):
        generate_class(running_sum(), target="arm-cpu-c++")


def test_infinite_values_have_their_header() -> None:
    net = ferrule.Network("infinite")
    x = net.add_input(TensorInfo("x", (2, 3), DataType.FLOAT32))
    net.set_outputs([net.add_pad_v2_layer(x, [(0, 0), (1, 1)], float("-inf"), name="y")])
    source = text(generate_class(net, target=CPU), "cpp")
    assert "PixelValue(-std::numeric_limits<float>::infinity())" in source
    assert "#include <limits>" in source


def test_unknown_targets_and_versions_are_refused() -> None:
    with pytest.raises(FerruleError, match="there is no target 'arm-npu'"):
        generate_class(network(), target="arm-npu")
    for call in (generate_class, explain_class):
        with pytest.raises(FerruleError, match=r"is '19\.02', expected one of 20\.08, 24\.11"):
            call(network(), target=GPU, options=AclOptions(version="19.02"))


def test_the_parameter_file_is_the_constants_one_after_the_other() -> None:
    net = network()
    artifact = generate_class(net, target=GPU)
    data, record = artifact.files["AclArtifact.par"], read_record(artifact.files["AclArtifact.par.json"])
    assert record == artifact.record
    weights, biases = (net.tensor(name).data for name in net.layers[0].inputs[1:] if name is not None)
    assert weights is not None
    assert biases is not None
    assert data == weights.transpose(0, 3, 1, 2).astype("<f4").tobytes() + biases.astype("<f4").tobytes()
    assert (record.bytes, record.crc32) == (len(data), zlib.crc32(data))
    assert f"{len(data)}U, {zlib.crc32(data)}U" in text(artifact, "cpp")
    end = 0
    for entry in record.parameters:
        assert entry.offset == end
        assert hashlib.sha256(data[entry.offset : entry.offset + entry.bytes]).hexdigest() == entry.sha256
        end += entry.bytes
    assert end == len(data)
    source = text(artifact, "cpp")
    read = re.findall(r"acl_parameters::read\(_parIn, (_\w+)\)", source)
    assert read == [entry.name for entry in record.parameters]


def test_float16_halves_the_parameters() -> None:
    whole, half = (
        generate_class(network(), target=CPU, options=AclOptions(float16=float16)) for float16 in (False, True)
    )
    assert half.record.bytes * 2 == whole.record.bytes
    assert "DataType::F32" not in text(half, "cpp")
    assert {tensor.type for tensor in half.record.tensors} == {"float16"}


def test_damaged_descriptions_are_refused() -> None:
    good = generate_class(network(), target=GPU).files["AclArtifact.par.json"]
    for bad in (b"", b"{}", b"\xff", good[:-9], good.replace(b'"bytes": ', b'"bytes": "x", "b": ', 1)):
        with pytest.raises(FerruleError, match="description of the artifact"):
            read_record(bad)
    newer = msgspec.json.encode(replace_format(read_record(good)))
    with pytest.raises(FerruleError, match="format 2, expected 1"):
        read_record(newer)


def replace_format(record: ArtifactRecord) -> ArtifactRecord:
    return replace(record, format=2)


def test_types_of_layers_have_a_row_or_a_reason() -> None:
    assert not set(ROWS) & set(REASONS)
    assert {*ROWS, *REASONS} <= set(OPERATORS) - BEYOND_TFLITE


@pytest.mark.parametrize("type_", LAYER_TYPES)
@pytest.mark.parametrize("dtype", [DataType.FLOAT32, DataType.INT8, DataType.INT16])
def test_layers_are_generated_or_refused_with_a_reason(type_: LayerType, dtype: DataType) -> None:
    for seed in range(6):
        graph = layer_case(type_, dtype, seed)
        reason = supported(graph, graph.layers[0], AclOptions())
        (use,) = explain_class(graph, target=GPU)
        assert bool(use.functions) != bool(reason)
        assert use.reason == reason
        if reason:
            with pytest.raises(UnsupportedError, match="layer 'layer'") as caught:
                generate_class(graph, target=GPU)
            assert reason in str(caught.value)
        else:
            artifact = generate_class(graph, target=GPU)
            declared = re.findall(r"arm_compute::(CL\w+) \w+;", artifact.files["AclArtifact.h"].decode())
            assert tuple(name for name in declared if name != "CLTensor") == use.functions


def test_a_newer_version_is_named_only_where_it_helps() -> None:
    for graph, helps in ((convolution(0.99e-5), True), (layer_case(LayerType.COS, DataType.FLOAT32, 0), False)):
        with pytest.raises(UnsupportedError) as caught:
            generate_class(graph, target=GPU)
        assert ("version 24.11 (AclOptions) takes more" in str(caught.value.hint)) == helps


def test_refused_layers_are_all_listed() -> None:
    net = ferrule.Network("refused")
    x = net.add_input(TensorInfo("x", (2,), DataType.FLOAT32))
    a = net.add_elementwise_unary_layer(LayerType.COS, x, name="a")
    b = net.add_relu_layer(a, name="b")
    net.set_outputs([net.add_elementwise_unary_layer(LayerType.COS, b, name="c")])
    with pytest.raises(UnsupportedError) as caught:
        generate_class(net, target=GPU)
    assert str(caught.value).count("the library has no function for it") == 2
    uses = explain_class(net, target=CPU)
    assert [use.functions for use in uses] == [(), ("NEActivationLayer",), ()]


def convolution(scale: float) -> Graph:
    """Return an int8 convolution whose second channel has this scale."""
    graph = Graph("small")
    graph.add_input(TensorInfo("x", (1, 3, 3, 1), DataType.INT8, quantization=Quantization.of(0.5)))
    weights = Quantization(scales=(0.25, float(np.float32(scale))), zero_points=(0, 0))
    graph.add_constant(
        TensorInfo("w", (2, 1, 1, 1), DataType.INT8, quantization=weights),
        np.ones((2, 1, 1, 1), np.int8),
    )
    case = layer_case(LayerType.CONV_2D, DataType.INT8, 0).layers[0]
    assert isinstance(case.descriptor, Conv2dDescriptor)
    graph.add_layer(
        Layer(
            "conv",
            LayerType.CONV_2D,
            replace(case.descriptor, stride_h=1, stride_w=1, dilation_h=1, dilation_w=1),
            inputs=("x", "w"),
            outputs=("y",),
        ),
        [TensorInfo("y", (1, 3, 3, 2), DataType.INT8, quantization=Quantization.of(0.5))],
    )
    graph.set_outputs(["y"])
    return graph


@pytest.mark.parametrize(("scale", "refused"), [(1.01e-5, False), (0.99e-5, True)])
def test_factors_that_the_old_version_takes_as_zero_are_refused_there(scale: float, refused: bool) -> None:
    graph = convolution(scale)
    reason = supported(graph, graph.layers[0], AclOptions())
    assert reason.startswith("version 20.08 takes the factors of 1 of its 2 output channels") == refused
    assert supported(graph, graph.layers[0], AclOptions(version="24.11")) == ""


@pytest.mark.parametrize("activation", Activation)
def test_int8_sums_are_bounded_by_a_function_of_their_own(activation: Activation) -> None:
    """Version 20.08 takes the upper bound of a fused activation as the lower one, too."""
    net = ferrule.Network("bounded")
    scale = Quantization.of(0.5)
    x = net.add_input(TensorInfo("x", (1, 3), DataType.INT8, quantization=scale))
    weights = np.ones((2, 3), np.int8)
    given = {"activation": activation, "weights_quantization": scale, "quantization": scale}
    net.set_outputs([net.add_fully_connected_layer(x, weights, name="y", **given)])
    (use,) = explain_class(net, target=CPU)
    apart = activation in {Activation.RELU6, Activation.RELU_N1_TO_1}
    assert use.functions == ("NEFullyConnectedLayer", "NEActivationLayer")[: 1 + apart]


@pytest.mark.parametrize("rule", [Rounding.SINGLE, Rounding.ONNX], ids=str)
def test_other_rules_of_rounding_are_refused(rule: Rounding) -> None:
    graph = GraphEditor(convolution(0.5))
    graph.replace_layer(replace(graph.layer("conv"), rounding=rule))
    ruled = graph.finish()
    wanted = f"it rounds by {rule.phrase} ('{rule}'), which the library does not compute"
    assert supported(ruled, ruled.layers[0], AclOptions()) == wanted


MOVERS = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "PAD", "PADV2", "SPLIT", "SLICE", "STRIDED_SLICE")


@pytest.mark.parametrize("type_", MOVERS)
def test_elements_that_move_keep_their_quantisation(type_: str) -> None:
    """The library refuses other layers, or fills their padding with the zero point of the input."""
    cases = (layer_case(LayerType[type_], DataType.INT8, seed) for seed in range(20))
    graph = next(case for case in cases if supported(case, case.layers[0], AclOptions()) == "")
    (layer,) = graph.layers
    net = ferrule.Network("requantized")
    net.add_input(graph.info(layer.present_inputs[0]))
    other = Quantization.of(0.125, -9)
    net.add_layer(layer, [replace(info, quantization=other) for info in graph.output_infos(layer)])
    assert "differ in quantisation" in supported(net, net.layers[0], AclOptions())


def test_constants_of_one_float_are_no_literals_of_integers() -> None:
    """`1f` is not C++."""
    net = ferrule.Network("softmax")
    x = net.add_input(TensorInfo("x", (1, 5), DataType.FLOAT32))
    net.set_outputs([net.add_softmax_layer(x, name="y")])
    assert re.search(r"_y_softmax_layer\.configure\(&_x, &_y, 1\.0f\);", text(generate_class(net, target=CPU), "cpp"))


@pytest.mark.parametrize(
    ("dtype", "values", "reason"),
    [
        (DataType.INT8, 15, ""),
        (DataType.INT8, 16, "the library is up to 6 steps off for int8 and 16 or more values ('x')"),
        (DataType.FLOAT32, 16, ""),
    ],
)
def test_softmax_of_many_integers_is_refused(dtype: DataType, values: int, reason: str) -> None:
    net = ferrule.Network("softmax")
    scale = Quantization.of(0.5) if dtype is DataType.INT8 else None
    net.add_softmax_layer(net.add_input(TensorInfo("x", (1, values), dtype, quantization=scale)))
    assert supported(net, net.layers[0], AclOptions()) == reason


def test_a_writer_of_c_refuses_the_class() -> None:
    with pytest.raises(UnsupportedError, match="C has no classes, got Class 'AclArtifact'"):
        generate_class(network(), target=GPU, writer=CWriter())
