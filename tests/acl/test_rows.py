# SPDX-License-Identifier: Apache-2.0
"""Each row of the table of operators, by random layers in one class per element type and target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from acl_programs import build_many, run_stepwise
from needs import require_acl

from ferrule.acl.program import VALIDATE, TraceProgram
from ferrule.codegen.acl import AclOptions, generate_class, rearrangement, supported
from ferrule.codegen.acl.rows import FLOATS
from ferrule.codegen.acl.table import ROWS
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, Graph, Layer, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.operator import Operands
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.report.document import Verdict
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case

TARGETS = {"Gpu": "arm-gpu-c++", "Cpu": "arm-cpu-c++"}
TYPES = {"Float": DataType.FLOAT32, "Int8": DataType.INT8}
GATE_SEEDS = 3
NIGHTLY_SEEDS = range(GATE_SEEDS, 30)
NIGHTLY_PER_CLASS = 6
ALWAYS = {LayerType.FULLY_CONNECTED: (18, 22)}
"""Seeds that found a fault: activations with an upper limit, which version 20.08 fuses wrongly for int8."""
ONCE = frozenset({*rearrangement.ROWS, *(type_ for type_, row in ROWS.items() if row.types == FLOATS)})
"""Layers of many functions each, and functions of floats: one is drawn of each type, the first that is valid."""


def is_valid(graph: Graph) -> bool:
    """Return whether the layer has a reference, and a row takes it."""
    (layer,) = graph.layers
    try:
        OPERATORS[layer.type].check(layer.descriptor, Operands.of(graph, layer))
    except FerruleError:
        return False
    return supported(graph, layer, AclOptions(version=require_acl().version)) == ""


@cache
def drawn(dtype: DataType, seeds: Sequence[int]) -> Network:
    """Return a network with layers of all types side by side, each with inputs of its own."""
    network = Network("rows")
    for type_ in LAYER_TYPES:
        once = type_ in ONCE
        for seed in range(seeds[0], seeds[0] + 12) if once else sorted({*seeds, *ALWAYS.get(type_, ())}):
            graph = layer_case(type_, dtype, seed)
            if is_valid(graph):
                add(network, graph, f"{type_.lower()}_{seed}")
                if once:
                    break
    for name, graph in dilated(dtype).items():
        assert is_valid(graph)
        add(network, graph, name)
    network.set_outputs([name for layer in network.layers for name in layer.outputs])
    return network


def dilated(dtype: DataType) -> dict[str, Graph]:
    """Return convolutions with dilations, strides and padding that differ by axis and side; samples have none."""
    cases = {}
    uneven = Padding(top=1, bottom=3, left=4, right=2)
    for name, type_, descriptor, weights in (
        ("conv", LayerType.CONV_2D, Conv2dDescriptor(dilation_h=2, dilation_w=3, padding=uneven), (5, 3, 2, 4)),
        (
            "strided",
            LayerType.CONV_2D,
            Conv2dDescriptor(stride_h=3, stride_w=2, padding=Padding(left=1), activation=Activation.RELU6),
            (3, 2, 3, 4),
        ),
        (
            "depthwise",
            LayerType.DEPTHWISE_CONV_2D,
            DepthwiseConv2dDescriptor(dilation_h=3, dilation_w=2, padding=uneven),
            (1, 2, 3, 4),
        ),
        (
            "multiplied",
            LayerType.DEPTHWISE_CONV_2D,
            DepthwiseConv2dDescriptor(depth_multiplier=2, stride_h=2, padding=Padding(bottom=1)),
            (1, 3, 3, 8),
        ),
    ):
        axis = 0 if type_ is LayerType.CONV_2D else 3
        rng = np.random.default_rng(len(name))
        channels = weights[axis]
        graph = Graph(name)
        integer = dtype is DataType.INT8
        scale = Quantization.of(0.05, 3) if integer else None
        graph.add_input(TensorInfo("x", (1, 9, 11, 4), dtype, quantization=scale))
        scales = tuple(float(np.float32(0.01 * (1 + index))) for index in range(channels))
        per_channel = Quantization(scales=scales, zero_points=(0,) * channels, axis=axis) if integer else None
        values = rng.integers(-127, 128, weights) if integer else rng.standard_normal(weights)
        bias = rng.integers(-500, 500, channels) if integer else rng.standard_normal(channels)
        bias_type = DataType.INT32 if integer else dtype
        graph.add_constant(TensorInfo("w", weights, dtype, quantization=per_channel), values.astype(dtype.numpy))
        graph.add_constant(TensorInfo("b", (channels,), bias_type), bias.astype(bias_type.numpy))
        inputs = tuple(graph.info(each) for each in ("x", "w", "b"))
        (shape,) = OPERATORS[type_].infer(descriptor, inputs)
        output = TensorInfo("y", shape, dtype, quantization=Quantization.of(0.3, -7) if integer else None)
        graph.add_layer(Layer("layer", type_, descriptor, inputs=("x", "w", "b"), outputs=("y",)), [output])
        graph.set_outputs(["y"])
        cases[f"{name}_dilated"] = graph
    return cases


def add(network: Network, graph: Graph, name: str) -> None:
    """Add the layer of a graph to a network, under another name."""
    (layer,) = graph.layers
    for tensor in graph.tensors:
        info = replace(tensor.info, name=f"{name}_{tensor.info.name}")
        if tensor.data is not None:
            network.add_constant(info, tensor.data)
        elif tensor.info.name in layer.present_inputs:
            network.add_input(info)
    network.add_layer(
        replace(
            layer,
            name=name,
            inputs=tuple(None if each is None else f"{name}_{each}" for each in layer.inputs),
            outputs=tuple(f"{name}_{each}" for each in layer.outputs),
        ),
        [replace(info, name=f"{name}_{info.name}") for info in graph.output_infos(layer)],
    )


def values(network: Network) -> dict[str, Array]:
    """Return random inputs."""
    rng = np.random.default_rng(3)
    return {
        info.name: rng.standard_normal(info.shape).astype(np.float32)
        if info.dtype.is_float
        else rng.integers(-128, 128, info.shape).astype(info.dtype.numpy)
        for info in network.inputs
    }


def check(program: TraceProgram, name: str, network: Network) -> None:
    comparisons = run_stepwise(program, name, network, values(network))
    assert len(comparisons) == len(network.outputs)
    assert not [each for each in comparisons if each.verdict is Verdict.DIFFERENT]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> TraceProgram:
    """One program with a class for each element type and target."""
    options = AclOptions(version=require_acl().version)
    artifacts = [
        generate_class(drawn(dtype, range(GATE_SEEDS)), target=target, name=f"{kind}{side}", options=options)
        for kind, dtype in TYPES.items()
        for side, target in TARGETS.items()
    ]
    return build_many(artifacts, tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize("side", TARGETS)
@pytest.mark.parametrize("kind", TYPES)
def test_layers_are_the_references(program: TraceProgram, kind: str, side: str) -> None:
    check(program, f"{kind}{side}", drawn(TYPES[kind], range(GATE_SEEDS)))


@pytest.mark.nightly
def test_the_library_s_opencl_side_takes_every_layer(tmp_path: Path) -> None:
    """`CL*::validate()` of the real OpenCL side, of which nothing runs."""
    options = AclOptions(version=require_acl().version)
    networks = {kind: drawn(dtype, range(GATE_SEEDS)) for kind, dtype in TYPES.items()}
    artifacts = [
        generate_class(network, target=TARGETS["Gpu"], name=f"{kind}Valid", options=options)
        for kind, network in networks.items()
    ]
    program = build_many(artifacts, tmp_path, prelude=VALIDATE)
    for kind, network in networks.items():
        program.run(f"{kind}Valid", values(network), observed=False)


def test_the_drawn_layers_have_every_row() -> None:
    require_acl()
    layers = [layer for dtype in TYPES.values() for layer in drawn(dtype, range(GATE_SEEDS)).layers]
    assert {layer.type for layer in layers} == set(ROWS)
    whole = {layer.type for layer in drawn(DataType.FLOAT32, range(GATE_SEEDS)).layers}
    assert set(ROWS) - whole == {LayerType.DEQUANTIZE}


def test_the_drawn_windows_are_uneven() -> None:
    """Asymmetric padding, strides and dilations would hide a swap of sides or axes if they were the same."""
    require_acl()
    layers = drawn(DataType.FLOAT32, range(GATE_SEEDS)).layers
    windows = [layer.descriptor for layer in layers]
    for kind in (Conv2dDescriptor, DepthwiseConv2dDescriptor, Pool2dDescriptor):
        found = [each for each in windows if isinstance(each, kind)]
        assert any(each.padding.top != each.padding.bottom or each.padding.left != each.padding.right for each in found)
        assert any(each.stride_h != each.stride_w for each in found), kind
    dilated = [each for each in windows if isinstance(each, (Conv2dDescriptor, DepthwiseConv2dDescriptor))]
    assert any(each.dilation_h != each.dilation_w for each in dilated)


def test_scales_for_each_channel_of_a_transposed_convolution() -> None:
    graph = layer_case(LayerType.TRANSPOSE_CONV, DataType.INT8, 12)
    (layer,) = graph.layers
    assert "has one for all" in supported(graph, layer, AclOptions(version="20.08"))
    assert supported(graph, layer, AclOptions(version="24.11")) == ""


@pytest.mark.nightly
@pytest.mark.parametrize("first", NIGHTLY_SEEDS[::NIGHTLY_PER_CLASS])
def test_many_layers_are_the_references(first: int, tmp_path: Path) -> None:
    options = AclOptions(version=require_acl().version)
    seeds = range(first, min(first + NIGHTLY_PER_CLASS, NIGHTLY_SEEDS.stop))
    networks = {kind: drawn(dtype, seeds) for kind, dtype in TYPES.items()}
    artifacts = [
        generate_class(network, target=target, name=f"{kind}{side}", options=options)
        for kind, network in networks.items()
        for side, target in TARGETS.items()
    ]
    program = build_many(artifacts, tmp_path)
    for kind, network in networks.items():
        for side in TARGETS:
            check(program, f"{kind}{side}", network)
