# SPDX-License-Identifier: Apache-2.0
"""Grouped and transposed convolutions, and those of few outputs, in parts that are ordinary convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from layer_case import layer_network, tensor
from lowered_call import lower, lowering_of, run_lowered, run_overlapping
from merged import merged
from needs import require_module, require_program
from numpy.testing import assert_array_equal
from oracle import edge_inputs

import ferrule
from ferrule.backends.cpu_acc.lowering.kernels import block
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution
from ferrule.backends.cpu_acc.lowering.kernels.parts import Part, joined, phases, united, ways, whole_part
from ferrule.backends.cpu_acc.lowering.table import rows_of
from ferrule.backends.firmware import LoweredOp
from ferrule.backends.target import CoreFeatures, Goal
from ferrule.graph import Array, DataType, LayerType, Quantization, Rounding, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.transpose_conv import TransposeConvDescriptor
from ferrule.testing.backends.comparison import random_inputs

M4, M55 = CoreFeatures(name="cortex-m4", dsp=True), CoreFeatures(name="cortex-m55", dsp=True, mve=True)
M0 = CoreFeatures(name="cortex-m0plus")
ONE, RELU = Padding(top=1, bottom=1, left=1, right=1), Activation.RELU
RANDOM = np.random.default_rng(20)
TYPES = {
    Conv2dDescriptor: (LayerType.CONV_2D, 0),
    DepthwiseConv2dDescriptor: (LayerType.DEPTHWISE_CONV_2D, 3),
    TransposeConvDescriptor: (LayerType.TRANSPOSE_CONV, 0),
}
"""By descriptor: the layer's type, and the axis of the output channels of its weights."""


def layer(
    descriptor: Conv2dDescriptor | DepthwiseConv2dDescriptor | TransposeConvDescriptor,
    image: Shape,
    weights: Shape,
    *,
    zero_point: int = -128,
    input_zero_point: int = -7,
    lowest: int = -127,
) -> Network:
    type_, axis = TYPES[type(descriptor)]
    outputs = weights[axis]
    scales = tuple(float(np.float32(scale)) for scale in RANDOM.uniform(0.004, 0.02, outputs))
    bias_scales = tuple(float(np.float32(np.float32(0.02) * np.float32(each))) for each in scales)
    scaled = Quantization(scales=scales, zero_points=(0,) * outputs)
    weights_info = TensorInfo("weights", weights, DataType.INT8, quantization=replace(scaled, axis=axis))
    output = Quantization.of(float(np.float32(0.05 * np.prod(weights[1:]) ** 0.5)), zero_point)
    arrays: dict[int, Array] = {
        1: RANDOM.integers(lowest, 128, weights).astype(np.int8),
        2: RANDOM.integers(-2000, 2000, outputs).astype(np.int32),
    }
    bias = TensorInfo("bias", (outputs,), DataType.INT32, quantization=replace(scaled, scales=bias_scales))
    data = tensor("data", image, DataType.INT8, 0.02, input_zero_point)
    return layer_network(type_, descriptor, [data, weights_info, bias], output, arrays)


def transposed(
    image: Shape, weights: Shape, stride: int, size: tuple[int, int], pad: tuple[int, int] = (0, 0), **options: int
) -> Network:
    height, width = size
    descriptor = TransposeConvDescriptor(
        output_h=height,
        output_w=width,
        stride_h=stride,
        stride_w=stride,
        pad_top=pad[0],
        pad_left=pad[1],
        activation=RELU,
    )
    return layer(descriptor, image, weights, **options)


CASES: dict[str, Network] = {
    "four groups": layer(Conv2dDescriptor(padding=ONE, activation=RELU), (1, 5, 6, 16), (16, 3, 3, 4)),
    "groups of odd channels": layer(Conv2dDescriptor(padding=ONE), (2, 4, 5, 15), (9, 3, 3, 5), zero_point=3),
    "narrow groups": layer(Conv2dDescriptor(padding=ONE, stride_w=2), (1, 3, 7, 16), (16, 2, 3, 2), zero_point=-3),
    "groups of many channels": layer(Conv2dDescriptor(activation=RELU), (1, 3, 4, 36), (10, 2, 2, 18)),
    "dilated groups": layer(Conv2dDescriptor(dilation_h=2, dilation_w=3, padding=ONE), (1, 5, 8, 8), (6, 2, 2, 4)),
    "dilated groups of three": layer(Conv2dDescriptor(dilation_w=2, padding=ONE), (1, 3, 6, 6), (4, 2, 2, 3)),
    "groups that share columns": layer(Conv2dDescriptor(dilation_w=3, padding=ONE), (1, 3, 23, 8), (6, 1, 3, 4)),
    "groups of one output": layer(Conv2dDescriptor(padding=ONE), (1, 7, 6, 10), (5, 3, 1, 2)),
    "three outputs of a column": layer(Conv2dDescriptor(padding=ONE), (1, 2, 6, 4), (3, 2, 1, 4)),
    "groups of two outputs": layer(Conv2dDescriptor(padding=ONE, stride_w=2), (2, 4, 13, 14), (14, 3, 3, 2)),
    "dilated groups of two": layer(Conv2dDescriptor(dilation_w=2, dilation_h=2), (1, 7, 9, 6), (9, 3, 3, 2)),
    "a dilated row of groups": layer(Conv2dDescriptor(dilation_w=2), (1, 1, 19, 16), (12, 1, 5, 8), input_zero_point=5),
    "groups of one pixel": layer(Conv2dDescriptor(activation=RELU), (2, 3, 7, 12), (9, 1, 1, 4)),
    "one output of one pixel": layer(Conv2dDescriptor(), (2, 3, 5, 8), (1, 1, 1, 8), zero_point=5),
    "clamped groups": layer(Conv2dDescriptor(activation=Activation.RELU6), (1, 4, 4, 8), (8, 1, 1, 4), zero_point=-90),
    "strides above the window": layer(Conv2dDescriptor(stride_h=3, stride_w=2), (1, 7, 7, 12), (8, 1, 1, 6)),
    "one output": layer(Conv2dDescriptor(padding=ONE), (1, 5, 11, 8), (1, 3, 3, 8), zero_point=0),
    "two outputs": layer(Conv2dDescriptor(stride_h=2, stride_w=2), (2, 5, 8, 3), (2, 2, 3, 3), lowest=-128),
    "stride of the window": transposed((1, 3, 4, 8), (4, 2, 2, 8), 2, (6, 8)),
    "unequal phases": transposed((2, 3, 4, 8), (8, 3, 3, 8), 2, (6, 7), (0, 1)),
    "phases as one window": transposed((2, 3, 4, 3), (3, 4, 4, 3), 2, (6, 8), (1, 1), zero_point=-5),
    "phases of odd windows": transposed((1, 4, 3, 2), (5, 3, 3, 2), 2, (8, 6), (0, 1)),
    "phases without taps": transposed((1, 3, 3, 5), (3, 2, 2, 5), 3, (8, 9), zero_point=4),
    "phases that begin inside": transposed((1, 4, 5, 3), (5, 4, 4, 3), 2, (4, 5), (3, 2)),
    "an output with more pixels": transposed((1, 2, 2, 4), (1, 3, 3, 4), 2, (9, 8)),
    "one output transposed": transposed((1, 3, 4, 16), (1, 2, 3, 16), 2, (7, 8), (0, 1), input_zero_point=127),
}  # fmt: skip

DEPTHWISE: dict[str, Network] = {
    "multiplied": layer(DepthwiseConv2dDescriptor(depth_multiplier=3, padding=ONE), (1, 5, 6, 4), (1, 3, 3, 12)),
    "multiplied, of one pixel": layer(DepthwiseConv2dDescriptor(depth_multiplier=2), (2, 3, 5, 7), (1, 1, 1, 14)),
    "of one pixel": layer(DepthwiseConv2dDescriptor(activation=RELU), (1, 3, 7, 8), (1, 1, 1, 8), zero_point=3),
    "of one pixel, strides": layer(DepthwiseConv2dDescriptor(stride_w=2, stride_h=3), (1, 7, 7, 6), (1, 1, 1, 6)),
}
"""Depthwise layers that kernels compute as groups of one channel."""


def kernels_of(network: Network, core: CoreFeatures) -> Iterator[LoweredOp]:
    context, rows = rows_of(lowering_of(network, core))
    for row in rows:
        if "in parts" in row.kernel:
            found = row.candidate(context)
            for candidate in () if isinstance(found, str | Candidate) else found:
                yield candidate.lowered(context)


@pytest.mark.cc
@pytest.mark.parametrize("case", [*CASES, *DEPTHWISE])
def test_plain_c_on_the_host_is_the_reference(case: str) -> None:
    network = (CASES | DEPTHWISE)[case]
    kernels = [op for core in (M4, M55, M0) for op in kernels_of(network, core)]
    assert kernels
    for op in kernels:
        for inputs in (random_inputs(network), *edge_inputs(network).values()):
            (wanted,) = network.run(inputs)
            assert_array_equal(run_lowered(network, inputs, op=op)[0], wanted, err_msg=op.kernel)
            for overlap in op.overlaps:
                assert overlap.distance_bytes is not None
                got = run_overlapping(network, inputs, overlap, overlap.distance_bytes, op)
                assert_array_equal(got, wanted, err_msg=f"{op.kernel}: {overlap}")


@pytest.mark.parametrize(
    ("case", "dsp", "mve", "baseline"),
    [
        ("four groups", "conv2d_block_s8", "conv2d_mve_s8", "conv2d_duo_s8"),
        ("dilated groups of three", "conv2d_block_s8", "conv2d_mve_s8", "conv2d_duo_s8"),
        ("clamped groups", "conv2d_quad_s8", "conv2d_mve_s8", "conv2d_duo_s8"),
        ("one output", "conv2d_block_s8", "conv2d_mve_s8", "conv2d_duo_s8"),
        ("unequal phases", "conv2d_block_s8", "conv2d_mve_s8", "conv2d_duo_s8"),
    ],
)
def test_the_kernels_of_each_core(case: str, dsp: str, mve: str, baseline: str) -> None:
    assert [lower(CASES[case], core, Goal.SPEED).kernel for core in (M4, M55, M0)] == [dsp, mve, baseline]


def test_depthwise_layers_are_groups_only_if_multiplied_or_of_one_pixel() -> None:
    assert [lower(DEPTHWISE["multiplied, of one pixel"], core, Goal.SPEED).kernel for core in (M4, M55)] == [
        "conv2d_block_s8",
        "conv2d_mve_s8",
    ]
    usual = layer(DepthwiseConv2dDescriptor(padding=ONE), (1, 5, 6, 4), (1, 3, 3, 4))
    assert not list(kernels_of(usual, M4))


@pytest.mark.parametrize("rule", [Rounding.SINGLE, Rounding.ONNX])
def test_other_rules_have_the_same_parts_without_vectors(rule: Rounding) -> None:
    _, rows = rows_of(lowering_of(CASES["four groups"], M55))
    assert {row.kernel for row in rows if rule in row.rules} == {
        *(
            f"conv2d_{form}_s8 in parts{grown}"
            for form in ("block", "quad", "duo")
            for grown in ("", " with weights of zero")
        ),
        "conv2d",
    }


def places(part: Part) -> list[int]:
    """Return the places of all outputs of an image."""
    group, row, column = np.arange(part.groups), np.arange(part.height), np.arange(part.width)
    grid = np.ix_(row * part.row, column * part.column, group * part.group_output, part.places)
    found = np.full([len(axis.reshape(-1)) for axis in grid], part.first)
    for axis in grid:
        found = found + axis
    return list(found.reshape(-1))


@pytest.mark.parametrize("case", CASES)
def test_parts_have_each_output_and_each_weight(case: str) -> None:
    network = CASES[case]
    convolution = Convolution.of(rows_of(lowering_of(network))[0])
    weights = convolution.context.input(1).elements
    outputs = convolution.output.elements // convolution.output.shape[0]
    found = list(ways(convolution))
    assert found
    for grown, parts in found:
        found_places = sorted(place for part in parts for place in places(part))
        assert sorted(set(found_places) if grown else found_places) == list(range(outputs))  # a rest may be twice there
        taps = np.concatenate([part.taps.reshape(-1) for part in parts])
        assert set(taps) - {-1} <= set(range(weights))
        assert grown or np.bincount(taps[taps >= 0]).max() == 1


@pytest.mark.parametrize(("outputs", "count"), [(3, 2), (15, 2), (17, 0), (16, 0)])
def test_pixels_are_packed_only_for_few_outputs(outputs: int, count: int) -> None:
    network = layer(Conv2dDescriptor(padding=ONE), (1, 3, 9, 4), (outputs, 3, 3, 4))
    assert len(list(ways(Convolution.of(lowering_of(network))))) == count


@pytest.mark.cc
def test_groups_without_proved_constants_are_parts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    network = CASES["four groups"]
    proved = np.arange(16) // 4 != 2
    monkeypatch.setattr(block, "proved_channels", lambda *_: (np.zeros((16, 2)), proved))
    convolution = Convolution.of(rows_of(lowering_of(network, M4))[0])
    divided = block.divided_groups(convolution, whole_part(convolution))
    assert [(part.groups, part.first, part.first_c) for part in divided] == [(2, 0, 0), (1, 8, 8), (1, 12, 12)]
    inputs = random_inputs(network)
    for op in kernels_of(network, M4):
        assert_array_equal(run_lowered(network, inputs, op=op)[0], network.run(inputs)[0], err_msg=op.kernel)


def test_phases_of_the_same_window_are_one_part() -> None:
    convolution = Convolution.of(lowering_of(CASES["stride of the window"]))
    (part,) = joined(phases(convolution))
    assert (part.outputs, part.window.height, part.window.width, part.column) == (16, 1, 1, 8)
    assert len(joined(phases(Convolution.of(lowering_of(CASES["unequal phases"]))))) == 4


def test_phases_of_other_windows_are_one_part_with_weights_of_zero() -> None:
    (part,) = united(phases(Convolution.of(lowering_of(CASES["phases as one window"]))))
    assert (part.outputs, part.window.height, part.window.width, part.window.padding.top) == (12, 3, 3, 1)
    assert np.count_nonzero(part.taps < 0) == 4 * 3 * 3 * (9 - 4)  # a phase has four taps
    assert united(phases(Convolution.of(lowering_of(CASES["unequal phases"])))) == ()


def test_merged_groups_keep_their_channels() -> None:
    part = whole_part(Convolution.of(lowering_of(CASES["narrow groups"])))
    merged_part = part.merged(4)
    assert (merged_part.groups, merged_part.outputs, merged_part.channels) == (2, 8, 8)
    assert sorted(merged_part.taps[merged_part.taps >= 0]) == sorted(part.taps.reshape(-1))
    assert np.count_nonzero(merged_part.taps < 0) == 3 * part.taps.size


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("board", "toolchain", "engine"),
    [
        ("mps2-an386", "zig", "unicorn"),
        ("stm32g0b1", "zig", "unicorn"),
        ("mps3-an547", "arm-none-eabi-gcc", "qemu"),
        pytest.param("mps2-an386", "arm-none-eabi-gcc", "unicorn", marks=pytest.mark.nightly),
        pytest.param("mps3-an547", "zig", "qemu", marks=pytest.mark.nightly),
    ],
)
def test_assembler_is_exact(board: str, toolchain: str, engine: str) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_module("ziglang", "pip install ferrule[run]")
    if engine == "qemu":
        require_program("qemu-system-arm", "apt-get install qemu-system-arm")
        require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    cases = CASES | DEPTHWISE
    network = merged(list(cases.values()))
    built = ferrule.compile(network, board=board, toolchain=toolchain, goal="speed")
    inputs = random_inputs(network)
    report = built.run(inputs, engine=engine)
    for case, got, wanted in zip(cases, report.outputs, network.run(inputs), strict=True):
        assert_array_equal(got, wanted, err_msg=case)
